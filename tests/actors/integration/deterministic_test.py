"""`deterministic: true`: the same seed gives the same bits, and stopping in between changes none of them."""
import unittest

import numpy as np

from harness import RunTest


class FixedSchedule(RunTest):
    BASE = {**RunTest.QUICK, "deterministic": "true", "checkpoint.every": "0s", "evaluation.every": 0}

    def trained(self, directory, steps, overrides):
        """The bytes of the parameters after so many actor steps."""
        run = self.finish({**self.BASE, "stop.actor_steps": steps, **overrides}, directory)
        manifest, _, path = self.assert_ledger(run)
        self.assertEqual(manifest["actor_steps"], steps)
        self.assertGreater(manifest["version"], 0)
        return (path / "parameters.safetensors").read_bytes()

    def check(self, overrides):
        whole = self.trained("whole", 600, overrides)
        self.assertEqual(whole, self.trained("again", 600, overrides))
        self.assertNotEqual(whole, self.trained("other", 600, {**overrides, "seed": 2}))
        half = self.trained("parts", 340, overrides)
        self.assertNotEqual(half, whole)
        self.assertEqual(whole, self.trained("parts", 600, overrides))

    def test_a_seed_gives_the_same_bits_with_or_without_a_stop(self):
        self.check({})

    def test_so_do_two_replicas_on_two_shards(self):
        self.check({"learners.replicas": 2, "replay.shards": 2})

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
