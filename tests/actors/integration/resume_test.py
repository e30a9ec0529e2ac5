"""The same command goes on where the run was left; damage is named and an older checkpoint serves."""
import csv
import os
import signal
import unittest

import numpy

from harness import RunTest, wait_until


class Resume(RunTest):
    SHORT = {**RunTest.QUICK, "replay.error_buffer": 200, "evaluation.every": 500}

    def timesteps(self, run):
        with numpy.load(run.directory / "evaluations.npz") as evaluations:
            return list(evaluations["timesteps"])

    def csv_steps(self, run):
        with open(run.directory / "progress.csv", newline="") as file:
            return [int(row["actor_steps"]) for row in csv.DictReader(file)]

    def test_counters_files_and_evaluations_continue(self):
        first = self.finish(self.SHORT)
        before, evaluated = self.assert_ledger(first), self.timesteps(first)
        # A fast machine goes well past the 2000 asked for before the coordinator hears of it.
        goal = before[0]["actor_steps"] + 4000
        second = self.finish({**self.SHORT, "stop.actor_steps": goal})
        after = self.assert_ledger(second)
        self.assertIn(f"stop.actor_steps: this run was saved with 2000, command line says {goal}; "
                      "the command line counts", second.told())
        self.assertGreater(after[0]["version"], before[0]["version"])
        self.assertGreater(after[0]["sequence"], before[0]["sequence"])
        # The saved counters are those of the saved table.
        self.assertEqual(before[0]["actor_steps"], before[1]["ledger"]["inserted"])
        self.assertGreaterEqual(after[0]["actor_steps"], goal)
        self.assertGreater(after[1]["wall_ms"], before[1]["wall_ms"])
        # Nothing that was evaluated is lost, and nothing twice.
        now = self.timesteps(second)
        self.assertEqual(now[:len(evaluated)], evaluated)
        self.assertGreater(len(now), len(evaluated))
        self.assertEqual(now, sorted(set(now)))
        rows = self.csv_steps(second)
        self.assertEqual(rows, sorted(rows))
        # What is shown is what is counted: steps are not counted again after the resume. Steps taken but not
        # inserted are in open segments: credit and one open chunk for each environment.
        self.assertLess(rows[-1] - after[0]["actor_steps"], 200)

    def test_a_finished_run_says_so_and_trains_nothing(self):
        for shape in [{}, {"deterministic": "true"}]:
            with self.subTest(**shape):
                directory = "finished" + "".join(shape)
                first = self.finish({**self.SHORT, **shape}, directory)
                before = self.assert_ledger(first)
                rows = self.csv_steps(first)
                second = self.finish({**self.SHORT, **shape}, directory, limit=15)
                self.assertIn("stop.actor_steps", second.said())
                self.assertIn("finished", second.said())
                self.assertEqual(self.assert_ledger(second)[0], before[0])
                self.assertEqual(self.csv_steps(second), rows)

    def test_without_a_saved_replay_the_steps_stay_counted(self):
        short = {**self.SHORT, "checkpoint.replay": "false"}
        first = self.finish(short)
        before = self.assert_ledger(first)
        self.assertFalse((before[2] / "replay-0.table").exists())
        goal = before[0]["actor_steps"] + 2000
        second = self.finish({**short, "stop.actor_steps": goal})
        state = self.assert_ledger(second)[1]
        self.assertGreaterEqual(state["lost_with_shard"], before[0]["actor_steps"])
        self.assertGreaterEqual(state["ledger"]["inserted"], goal)
        self.assertIn("starts empty", second.told())

    def test_two_runs_in_one_directory_are_refused(self):
        run = self.start(self.ENDLESS)
        run.ready("learner-0")
        second = self.start(self.ENDLESS)
        self.assertIn(second.wait(20), (1, 2), second.told())
        self.assertIn(f"process {run.process.pid} runs run in {run.directory}", second.said())
        run.progressed()
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.told())

    def test_damaged_checkpoints_are_named_and_an_older_one_loads(self):
        run = self.start({**self.ENDLESS, "checkpoint.every": "200ms", "checkpoint.keep": 5})
        wait_until(lambda: len(run.checkpoints()) >= 4, what="four checkpoints")
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.told())
        *_, good, third, second, first = [path for _, _, path in run.checkpoints()]
        flipped = third / "parameters.safetensors"
        flip(flipped)
        cut = second / "replay-0.table"
        os.truncate(cut, cut.stat().st_size // 2)
        manifest = first / "manifest.json"
        manifest.write_text(manifest.read_text()[:100])
        again = self.start(self.ENDLESS)
        wait_until(lambda: "resuming" in again.said(), what="the resume")
        for name in [flipped, cut, manifest]:
            self.assertIn(str(name), again.told())
        self.assertIn(f"resuming run from {good.name}", again.said())
        again.progressed()
        again.tell(signal.SIGINT)
        self.assertEqual(again.wait(10), 130, again.told())
        self.assert_ledger(again)

    def test_checkpoints_of_which_none_is_good_are_not_thrown_away(self):
        first = self.finish({**self.QUICK, "checkpoint.keep": 1})
        path = self.assert_ledger(first)[2]
        flip(path / "parameters.safetensors")
        second = self.start({**self.QUICK, "checkpoint.keep": 1})
        self.assertEqual(second.wait(20), 1, second.told())
        self.assertIn(str(path / "parameters.safetensors"), second.told())
        self.assertTrue((path / "parameters.safetensors").exists())


def flip(path):
    """One bit in the middle of the file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


if __name__ == "__main__":
    unittest.main()
