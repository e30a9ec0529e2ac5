"""How old a policy is that acts, and the experience that is learnt from."""
import signal
import unittest

from harness import RunTest, wait_until


class Staleness(RunTest):
    def test_a_policy_in_a_slow_environment_keeps_up_with_the_learner(self):
        """Steps last a second and nothing holds the learner back: parameters do not queue up behind each other, so
        that the lag stays the same few steps."""
        run = self.start({**self.ENDLESS, "environment.name": "probe/slow", "environment.time_limit": 5,
                          "actors.count": 2, "d4pg.n_step": 1, "replay.min_size": 2, "replay.samples_per_insert": 0,
                          "learners.publish_every": 10, "d4pg.v_min": 0, "d4pg.v_max": 100,
                          "supervision.standstill_after": "60s"})
        run.ready("learner-0", "actor-0", "actor-1")
        run.progressed(2, 100)
        learning = run.metrics()[-1]["time"]
        wait_until(lambda: run.last("time") > learning + 16, what="sixteen steps")
        rows = run.metrics()
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(20), 130, run.told())
        self.assert_no_trace(run)
        self.assert_ledger(run)
        acting = [row for row in rows if row.get("learner_updates", 0) > 0 and "policy_lag" in row]
        updates = acting[-1]["learner_updates"]
        # The most updates within any four seconds: parameters are asked for at a step's beginning, arrive during it, act in
        # the next, and are reported until the one after that is over.
        fastest = max(later["learner_updates"] - row["learner_updates"] for i, row in enumerate(acting)
                      for later in acting[i:] if later["time"] - row["time"] <= 4.0)
        self.assertGreater(updates, 3 * fastest, "too short to tell a lag that grows from one that does not")
        self.assertLessEqual(max(row["policy_lag"] for row in acting), fastest + 10)
        # What is sampled is as old as the table, and the run says so.
        self.assertGreater(max(row.get("learner/sample_age", 0) for row in rows), 2 * fastest)


if __name__ == "__main__":
    unittest.main()
