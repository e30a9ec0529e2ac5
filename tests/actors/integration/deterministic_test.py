"""`deterministic: true`: the same seed gives the same bits, and stopping in between changes none of them."""
import unittest

import numpy as np

from harness import RunTest


class FixedSchedule(RunTest):
    BASE = {**RunTest.QUICK, "deterministic": "true", "checkpoint.every": "0s", "evaluation.every": 0}

    # What a run leaves that names its clock, its command or its own checkpoints.
    OWN = {"manifest.json", "state.json"}

    def trained(self, directory, steps, overrides):
        """{file: bytes} of the checkpoint after so many actor steps: networks, moments, generators, replay."""
        return self.files(self.finish({**self.BASE, "stop.actor_steps": steps, **overrides}, directory), steps)

    def files(self, run, steps=None):
        manifest, _, path = self.assert_ledger(run)
        if steps is not None:
            self.assertEqual(manifest["actor_steps"], steps)
        self.assertGreater(manifest["version"], 0)
        files = {file.name: file.read_bytes() for file in path.iterdir() if file.name not in self.OWN}
        self.assertLessEqual({"parameters.safetensors", "optimizer.safetensors", "learner.json", "limiter.json",
                              "schedule.state", "replay-0.table"}, set(files))
        return files

    def assert_same(self, one, other):
        self.assertEqual(set(one), set(other))
        self.assertEqual([name for name in one if one[name] != other[name]], [])

    def check(self, overrides):
        whole = self.trained("whole", 600, overrides)
        self.assert_same(whole, self.trained("again", 600, overrides))
        other = self.trained("other", 600, {**overrides, "seed": 2})
        self.assertNotEqual(whole["parameters.safetensors"], other["parameters.safetensors"])
        half = self.trained("parts", 340, overrides)
        self.assertNotEqual(half["parameters.safetensors"], whole["parameters.safetensors"])
        self.assert_same(whole, self.trained("parts", 600, overrides))

    def test_a_seed_gives_the_same_bits_with_or_without_a_stop(self):
        self.check({})

    def test_so_do_two_replicas_on_two_shards(self):
        self.check({"learners.replicas": 2, "replay.shards": 2})

    def test_a_hundred_updates_and_a_hundred_more_are_two_hundred(self):
        two = {**self.BASE, "learners.replicas": 2, "stop.actor_steps": 0, "replay.selector": "prioritised",
               "d4pg.normalise_observations": "true"}
        whole = self.files(self.finish({**two, "stop.updates": 200}, "whole"))
        half = self.files(self.finish({**two, "stop.updates": 100}, "parts"))
        self.assertNotEqual(half["replay-0.table"], whole["replay-0.table"])
        self.assert_same(whole, self.files(self.finish({**two, "stop.updates": 200}, "parts")))

    def test_so_do_priorities_over_three_shards(self):
        self.check({"replay.shards": 3, "replay.selector": "prioritised"})

    def test_so_do_evaluations_of_a_normalised_policy(self):
        """A resumed run evaluates in a fresh process, with statistics that come from its checkpoint."""
        overrides = {"d4pg.normalise_observations": "true", "evaluation.every": 600, "evaluation.episodes": 2}

        def evaluated(directory):
            found = np.load(self.root / directory / "evaluations.npz")
            return found["results"][list(found["timesteps"]).index(600)]

        whole = self.trained("whole", 600, overrides)
        self.trained("parts", 340, overrides)
        self.assertEqual(whole, self.trained("parts", 600, overrides))
        self.assertEqual(evaluated("whole").tolist(), evaluated("parts").tolist())
        plain = self.trained("plain", 600, {**overrides, "d4pg.normalise_observations": "false"})
        self.assertNotEqual(whole, plain)


if __name__ == "__main__":
    unittest.main()
