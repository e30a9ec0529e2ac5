#!/usr/bin/env python3
"""Checks which shared libraries a built file asks for (its NEEDED entries).

Usage: needed.py program|learners FILE. The program and the environment nodes carry no LibTorch, no
CUDA, and no HDF5 with the network library that it brings; the learning library links LibTorch's CPU library alone, so that no CUDA context or library
is asked for until a config names a GPU.
"""

import re
import subprocess
import sys

FORBIDDEN = re.compile(r"torch|c10|cuda|cudnn|cublas|nccl|nvrtc|cupti|hdf5|curl", re.IGNORECASE)
EXCEPTIONS = {"program": set(), "learners": {"libtorch_cpu.so", "libc10.so"}}


def needed_in(readelf_output):
    """The library names in the output of `readelf -d`."""
    return re.findall(r"\(NEEDED\).*\[(.+?)\]", readelf_output)


def faults_of(kind, needed):
    """One sentence per library that a file of this kind must not ask for."""
    faults = [f"{name} must not be needed by the {kind}" for name in needed
              if FORBIDDEN.search(name) and name not in EXCEPTIONS[kind]]
    if kind == "learners" and "libtorch_cpu.so" not in needed:
        faults.append("libtorch_cpu.so is not among the needed libraries: is this the learning library?")
    if not needed:
        faults.append("no NEEDED entry found: is this a dynamically linked file?")
    return faults


def main():
    kind, file = sys.argv[1:]
    output = subprocess.run(["readelf", "-dW", file], check=True, capture_output=True, text=True).stdout
    needed = needed_in(output)
    print(f"{file} needs {', '.join(needed)}")
    faults = faults_of(kind, needed)
    for fault in faults:
        print(f"fault: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
