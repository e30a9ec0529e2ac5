#!/usr/bin/env python3
"""The two checkers on made-up input: each kind of fault is found, and a clean tree passes."""

import pathlib
import tempfile
import unittest

import includes
import needed


def faults_in(files):
    """The faults of a tree made of {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return includes.faults_of(includes.Tree(root))


class Includes(unittest.TestCase):
    def test_a_tree_whose_arrows_point_left_has_no_fault(self):
        self.assertEqual(faults_in({
            "envs/spec/spec.hpp": "#include <vector>\n",
            "envs/env.hpp": '#include "envs/spec/spec.hpp"\n#include <mujoco/mujoco.h>\n',
            "replay/batch.hpp": '#include "envs/spec/spec.hpp"\n',
            "models/net.hpp": '#include "replay/batch.hpp"\n#include <torch/types.h>\n',
            "learners/learner.hpp": '#include "replay/batch.hpp"\n',
            "learners/d4pg.cpp": '#include "models/net.hpp"\n',
            "actors/main.cpp": '#include "learners/learner.hpp"\n#include <caf/all.hpp>\n',
            "tests/models/net_test.cpp": '#include "models/net.hpp"\n',
        }), [])

    def test_an_arrow_to_the_right_is_a_fault_with_file_and_line(self):
        self.assertEqual(faults_in({
            "envs/env.cpp": '#include <vector>\n  #  include "replay/table.hpp"\n',
            "replay/table.hpp": "",
        }), ["envs/env.cpp:2: envs/ may not include replay/table.hpp"])

    def test_every_folder_refuses_its_right_neighbour(self):
        for folder, right in [("replay", "models/a.hpp"), ("models", "learners/a.hpp"),
                              ("learners", "actors/a.hpp"), ("models/inference", "models/a.hpp")]:
            faults = faults_in({f"{folder}/x.cpp": f'#include "{right}"\n', right: ""})
            self.assertEqual(faults, [f"{folder}/x.cpp:1: {folder}/ may not include {right}"])

    def test_replay_may_include_only_the_specs_of_envs(self):
        faults = faults_in({"replay/x.cpp": '#include "envs/env.hpp"\n', "envs/env.hpp": ""})
        self.assertEqual(faults, ["replay/x.cpp:1: replay/ may not include envs/env.hpp"])

    def test_an_include_beside_the_file_does_not_hide_the_arrow(self):
        faults = faults_in({"envs/x.cpp": '#include "../actors/a.hpp"\n', "actors/a.hpp": ""})
        self.assertEqual(faults, ["envs/x.cpp:1: envs/ may not include actors/a.hpp"])

    def test_libtorch_in_actors_is_a_fault_even_through_other_headers(self):
        faults = faults_in({
            "actors/a.cpp": '#include "learners/b.hpp"\n',
            "learners/b.hpp": '#include "models/c.hpp"\n',
            "models/c.hpp": "#include <ATen/ATen.h>\n",
        })
        self.assertEqual(faults, ["actors/a.cpp: actors/ may not see LibTorch (ATen/ATen.h, "
                                  "by way of learners/b.hpp -> models/c.hpp)"])

    def test_libtorch_in_inference_is_a_fault(self):
        faults = faults_in({"models/inference/x.cpp": "#include <c10/core/Device.h>\n"})
        self.assertEqual(faults, ["models/inference/x.cpp: models/inference/ may not see LibTorch "
                                  "(c10/core/Device.h)"])

    def test_libraries_of_the_actors_are_faults_left_of_them_and_in_their_tests(self):
        for header in ["caf/actor.hpp", "zmq.hpp", "yaml-cpp/yaml.h", "spdlog/spdlog.h", "CLI/CLI.hpp"]:
            for folder in ["envs", "replay", "models", "learners", "tests/learners"]:
                self.assertEqual(len(faults_in({f"{folder}/x.cpp": f"#include <{header}>\n"})), 1,
                                 f"{header} in {folder}")

    def test_a_file_over_four_hundred_lines_is_a_fault(self):
        self.assertEqual(faults_in({"envs/x.cpp": "\n" * 400}), [])
        self.assertEqual(faults_in({"envs/x.cpp": "\n" * 401}), ["envs/x.cpp: 401 lines, more than 400"])


class Needed(unittest.TestCase):
    def test_names_are_read_from_readelf(self):
        line = " 0x0000000000000001 (NEEDED)             Shared library: [libc10.so]\n"
        self.assertEqual(needed.needed_in(line + " 0x1d (RUNPATH) Library runpath: [/x]\n"), ["libc10.so"])

    def test_the_program_may_need_neither_libtorch_nor_cuda(self):
        for name in ["libtorch_cpu.so", "libc10.so", "libtorch.so", "libcudart.so.13", "libnccl.so.2"]:
            self.assertEqual(len(needed.faults_of("program", ["libc.so.6", name])), 1, name)
        self.assertEqual(needed.faults_of("program", ["libzmq.so.5", "libc.so.6"]), [])

    def test_the_program_may_not_need_hdf5_nor_what_it_brings(self):
        for name in ["libhdf5_serial.so.103", "libhdf5_serial_cpp.so.103", "libcurl.so.4"]:
            self.assertEqual(len(needed.faults_of("program", ["libc.so.6", name])), 1, name)

    def test_the_learning_library_may_need_only_libtorch_of_the_cpu(self):
        fine = ["libtorch_cpu.so", "libc10.so", "libc.so.6"]
        self.assertEqual(needed.faults_of("learners", fine), [])
        for name in ["libtorch.so", "libtorch_cuda.so", "libc10_cuda.so", "libcudart.so.13"]:
            self.assertEqual(len(needed.faults_of("learners", [*fine, name])), 1, name)

    def test_a_file_without_entries_is_a_fault(self):
        self.assertEqual(len(needed.faults_of("program", [])), 1)


if __name__ == "__main__":
    unittest.main()
