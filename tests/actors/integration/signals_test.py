"""SIGINT, SIGTERM and SIGKILL at moments drawn from a fixed seed: no orphan, ten seconds, a checkpoint that loads,
and a ledger that holds to the step."""
import random
import signal
import time
import unittest

from harness import RunTest, wait_until

MOMENTS = 20
END = 10.0  # s


class Signals(RunTest):
    # Checkpoints all the time, so that many moments are in the middle of one.
    BUSY = {**RunTest.ENDLESS, "checkpoint.every": "200ms", "replay.error_buffer": 200}

    def strike(self, draw, index):
        """Starts on the same directory, signals at a moment of the given kind; (signal, exit code)."""
        kind = ["start-up", "warm-up", "mid-checkpoint", "mid-checkpoint"][index % 4]
        number = draw.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
        run = self.start(self.BUSY)
        if kind == "start-up":
            time.sleep(draw.uniform(0, 0.8))  # the moment itself is what is drawn
        elif kind == "warm-up":
            wait_until(lambda: len(run.nodes()) == 4, what="four nodes")
            time.sleep(draw.uniform(0, 0.5))
        else:
            # `resuming` is enough of a start: the learner writes its first checkpoint 200 ms after it serves.
            run.ready("learner-0", "actor-0")
            time.sleep(draw.uniform(0.1, 0.6))
        run.tell(number)
        code = run.wait(END)
        self.assert_no_trace(run, END)
        return run, kind, number, code

    def test_twenty_moments_lose_nothing_that_was_saved(self):
        draw = random.Random(20)
        steps, version = 0, 0
        for index in range(MOMENTS):
            run, kind, number, code = self.strike(draw, index)
            with self.subTest(index=index, kind=kind, signal=number):
                wanted = {-number} if number == signal.SIGKILL else {130, -number}
                # Before the program listens, a signal ends it as it ends any program.
                if code == -number and number != signal.SIGKILL:
                    self.assertEqual(kind, "start-up", run.told())
                self.assertIn(code, wanted, run.told())
                self.assertNotIn("is passed over", run.said())
                if not run.checkpoints():
                    continue
                manifest, state, _ = self.assert_ledger(run)
                self.assertGreaterEqual(manifest["actor_steps"], steps)
                self.assertGreaterEqual(manifest["version"], version)
                steps, version = manifest["actor_steps"], manifest["version"]
        self.check_that_it_goes_on(steps, version)

    def check_that_it_goes_on(self, steps, version):
        self.assertGreater(steps, 0)
        run = self.start(self.BUSY)
        wait_until(lambda: run.last("learner_updates") > version, what="updates beyond the last checkpoint's")
        self.assertIn("resuming run from step_", run.said())
        run.tell(signal.SIGTERM)
        self.assertEqual(run.wait(END), 130, run.told())
        manifest = self.assert_ledger(run)[0]
        self.assertGreater(manifest["version"], version)
        self.assertGreater(manifest["actor_steps"], steps)

    def test_actors_blocked_on_the_limiter_stop_in_time(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            run = self.start({**self.ENDLESS, "job": "null", "replay.samples_per_insert": 4,
                              "learners.prefetch": 1, "d4pg.batch": 16})
            wait_until(lambda: run.last("environment/replay_credit_blocked_share") or
                       run.last("learner/shard0/insert_blocked_share"), what="a blocked insert")
            run.tell(number)
            self.assertEqual(run.wait(END), 130, run.told())
            self.assert_no_trace(run)
            self.assert_ledger(run)

    def test_a_second_signal_is_a_hurry(self):
        run = self.start(self.BUSY)
        run.ready("learner-0", "actor-0")
        run.tell(signal.SIGINT)
        run.tell(signal.SIGINT)
        run.tell(signal.SIGTERM)
        self.assertEqual(run.wait(END), 130, run.told())
        self.assert_no_trace(run)

    def test_a_signal_ends_a_run_in_one_process_and_a_fixed_schedule_too(self):
        for overrides in [{"processes": 0}, {"deterministic": "true"}]:
            with self.subTest(**overrides):
                run = self.start({**self.ENDLESS, **overrides}, directory=next(iter(overrides)))
                run.progressed()
                run.tell(signal.SIGTERM)
                self.assertEqual(run.wait(END), 130, run.told())
                self.assert_no_trace(run)
                self.assert_ledger(run)


if __name__ == "__main__":
    unittest.main()
