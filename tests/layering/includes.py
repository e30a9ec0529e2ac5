#!/usr/bin/env python3
"""Reads every #include of the sources and fails on an arrow to the right.

The order is envs, replay, models/inference, learners/data, models, learners, actors; the tests of a folder follow
the rules of that folder. Usage: includes.py ROOT. Prints one line per fault and exits 1 on any.
"""

import pathlib
import re
import sys

SOURCES = {".hpp", ".cpp", ".h", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LONG_FILE, TOO_LONG_FILE = 300, 400

# What a folder may include of this repository, by path prefix.
ALLOWED = {
    "envs": ["envs/"],
    "replay": ["replay/", "envs/spec/"],
    "models/inference": ["models/inference/", "envs/spec/"],
    "models": ["models/", "envs/spec/", "replay/batch.hpp", "replay/signature.hpp"],
    "learners/data": ["learners/data/", "replay/", "envs/spec/"],
    "learners": ["learners/", "models/", "replay/", "envs/"],
    "actors": ["actors/", "learners/", "models/inference/", "replay/", "envs/"],
}
OWN = sorted({folder.split("/")[0] for folder in ALLOWED})

# Third-party headers that only some folders may see, directly or through headers of ours.
TORCH = re.compile(r"^(torch|ATen|c10)/")
RESTRICTED = {
    "LibTorch": (TORCH, {"models", "learners"}),
    "CAF": (re.compile(r"^caf/"), {"actors"}),
    "ZeroMQ": (re.compile(r"^zmq"), {"actors"}),
    "yaml-cpp": (re.compile(r"^yaml-cpp/"), {"actors"}),
    "spdlog": (re.compile(r"^spdlog/"), {"actors"}),
    "CLI11": (re.compile(r"^CLI/"), {"actors"}),
    "HDF5": (re.compile(r"^(H5|hdf5)"), {"replay"}),
    "image decoders": (re.compile(r"^(jpeglib|png|archive|archive_entry)\.h|^libexif/"), {"learners/data"}),
    "MuJoCo": (re.compile(r"^mujoco/"), {"envs", "actors"}),
}


def folder_of(path):
    """The folder whose rules hold for a path such as 'tests/envs/pendulum_test.cpp', or None."""
    path = path.removeprefix("tests/")
    if path.startswith("inference/"):  # tests/inference may stand for tests/models/inference
        return "models/inference"
    matches = [folder for folder in ALLOWED if path.startswith(folder + "/")]
    return max(matches, key=len, default=None)


class Tree:
    """The sources under ROOT with what each includes, as (line number, path, is it ours)."""

    def __init__(self, root):
        self.lines = {}
        self.includes = {}
        for top in OWN + ["tests"]:
            for file in sorted((root / top).rglob("*")):
                if file.suffix in SOURCES and file.is_file():
                    self._read(root, file)

    def _read(self, root, file):
        name = file.relative_to(root).as_posix()
        text = file.read_text(encoding="utf-8").splitlines()
        found = []
        for number, line in enumerate(text, 1):
            if match := INCLUDE.match(line):
                quote, path = match.groups()
                beside = file.parent / path
                if quote == '"' and beside.is_file():
                    path = beside.resolve().relative_to(root.resolve()).as_posix()
                found.append((number, path))
        self.lines[name] = len(text)
        self.includes[name] = found

    def third_party(self, name, seen=None):
        """Every third-party header that `name` sees: {header: the chain of files it comes by}."""
        seen = {name} if seen is None else seen
        result = {}
        for _, path in self.includes[name]:
            if path not in self.includes:
                result.setdefault(path, [name])
            elif path not in seen:
                seen.add(path)
                for header, chain in self.third_party(path, seen).items():
                    result.setdefault(header, [name, *chain])
        return result


def faults_of(tree):
    """One sentence per fault, in the order of the files."""
    faults = []
    for name, includes in tree.includes.items():
        if tree.lines[name] > TOO_LONG_FILE:
            faults.append(f"{name}: {tree.lines[name]} lines, more than {TOO_LONG_FILE}")
        folder = folder_of(name)
        if folder is None:
            continue
        for number, path in includes:
            ours = path.split("/")[0] in OWN
            if ours and not any(path.startswith(allowed) for allowed in ALLOWED[folder]):
                faults.append(f"{name}:{number}: {folder}/ may not include {path}")
        for header, chain in tree.third_party(name).items():
            for library, (pattern, folders) in RESTRICTED.items():
                if pattern.match(header) and folder not in folders:
                    way = "" if len(chain) == 1 else f", by way of {' -> '.join(chain[1:])}"
                    faults.append(f"{name}: {folder}/ may not see {library} ({header}{way})")
    return faults


def main():
    tree = Tree(pathlib.Path(sys.argv[1]))
    for name, count in tree.lines.items():
        if LONG_FILE < count <= TOO_LONG_FILE:
            print(f"warning: {name}: {count} lines; does it have one job?")
    faults = faults_of(tree)
    for fault in faults:
        print(f"fault: {fault}")
    print(f"{len(tree.includes)} files, {len(faults)} faults")
    if not tree.includes:
        sys.exit(f"no sources under {sys.argv[1]}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
