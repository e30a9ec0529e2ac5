"""Nodes that die, freeze or hang: noticed, replaced, told; and the run's own death."""
import signal
import time
import unittest

from harness import RunTest, processes_with, wait_until


class Deaths(RunTest):
    ENDLESS = {**RunTest.ENDLESS, "supervision.silent_after": "4s"}

    def replaced(self, run, name, before):
        """Waits for the node's successor to serve."""
        pid, incarnation = before
        wait_until(lambda: run.nodes().get(name, before)[1] > incarnation, what=f"a new {name}")
        wait_until(lambda: run.log().count(f"{name} serves") > incarnation - 1 and
                   run.log().rfind(f"{name} serves") > run.log().rfind(f"{name} ended"),
                   what=f"the new {name} serves")
        self.assertNotIn(pid, processes_with(run.marker))

    def test_killed_nodes_are_replaced_and_the_run_goes_on(self):
        run = self.start({**self.ENDLESS, "checkpoint.every": "500ms"})
        run.ready("learner-0", "actor-0", "actor-1", "evaluator-0")
        run.progressed(200, 50)
        for name in ["actor-0", "evaluator-0", "learner-0"]:
            wait_until(run.checkpoints, what="a checkpoint")
            before = run.nodes()[name]
            run.tell(signal.SIGKILL, before[0])
            self.replaced(run, name, before)
            self.assertIn("SIGKILL", run.log())
            run.progressed(200, 50)
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.told())
        self.assert_no_trace(run)
        state = self.assert_ledger(run)[1]
        self.assertEqual(state["incarnations"],
                         {"actor-0": 2, "actor-1": 1, "evaluator-0": 2, "learner-0": 2})
        self.assertEqual(state["lost_with_shard"] > 0, "came back without the" in run.log())

    def test_a_learner_killed_before_any_checkpoint_starts_from_nothing(self):
        run = self.start(self.ENDLESS)
        run.ready("learner-0", "actor-0")
        run.progressed(500, 100)
        before = run.nodes()["learner-0"]
        run.tell(signal.SIGKILL, before[0])
        self.replaced(run, "learner-0", before)
        run.progressed(200, 50)
        run.tell(signal.SIGTERM)
        self.assertEqual(run.wait(10), 130, run.told())
        state = self.assert_ledger(run)[1]
        self.assertGreater(state["lost_with_shard"], 0)
        self.assertIn("came back without the", run.log())

    def test_a_killed_shard_process_is_replaced_and_its_loss_told(self):
        run = self.start({**self.ENDLESS, "replay.placement": "own", "replay.shards": 2})
        run.ready("learner-0", "actor-0", "shard-0", "shard-1")
        run.progressed(500, 100)
        before = run.nodes()["shard-1"]
        run.tell(signal.SIGKILL, before[0])
        self.replaced(run, "shard-1", before)
        wait_until(lambda: "shard 1 came back without the" in run.log(), what="the loss is told")
        run.progressed(500, 100)
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.told())
        self.assertGreater(self.assert_ledger(run)[1]["lost_with_shard"], 0)

    def test_every_step_that_a_killed_shard_acknowledged_is_in_the_ledger(self):
        run = self.start({**self.ENDLESS, "replay.placement": "own", "replay.shards": 2,
                          "replay.samples_per_insert": 0, "supervision.restarts": 10})
        run.ready("learner-0", "actor-0", "shard-0", "shard-1")
        run.progressed(500, 10)
        for name in ["shard-1", "shard-0", "shard-1"]:
            before = run.nodes()[name]
            run.tell(signal.SIGKILL, before[0])
            self.replaced(run, name, before)
            run.progressed(200, 1)
        acknowledged = run.last("actor_steps")    # as the environment actors count them
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.told())
        ledger = self.assert_ledger(run)[1]["ledger"]
        self.assertGreater(ledger["lost_with_shard"], 0)
        self.assertGreaterEqual(ledger["inserted"], acknowledged)

    def test_frozen_nodes_are_noticed_and_replaced(self):
        run = self.start({**self.ENDLESS, "checkpoint.every": "500ms"})
        run.ready("learner-0", "actor-0", "actor-1", "evaluator-0")
        run.progressed(200, 50)
        for name in ["actor-1", "learner-0", "evaluator-0"]:
            before = run.nodes()[name]
            run.tell(signal.SIGSTOP, before[0])
            # Four pings of a second each, one before the first is missed, and a second for looking.
            wait_until(lambda: before[0] not in processes_with(run.marker), 4 + 1 + 1,
                       f"the end of the frozen {name}")
            self.assertIn(f"{name} does not answer pings", run.log())
            self.assertIn(f"{name} is killed: it answered no ping for 4 s", run.log())
            self.replaced(run, name, before)
            run.progressed(200, 50)
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.told())
        self.assert_ledger(run)
        self.assert_no_trace(run)

    def test_a_run_that_sleeps_as_a_whole_goes_on_when_it_wakes(self):
        """As on a host that was suspended: longer than connections last, so that all of them are made again."""
        run = self.start({**self.ENDLESS, "checkpoint.every": "1s"})
        run.ready("learner-0", "actor-0", "actor-1")
        run.progressed(100, 100)
        wait_until(run.checkpoints, what="a checkpoint")
        asleep = list(processes_with(run.marker))
        for pid in asleep:
            run.tell(signal.SIGSTOP, pid)
        time.sleep(20)
        before = run.checkpoints()[-1][0]["sequence"]
        for pid in asleep:
            run.tell(signal.SIGCONT, pid)
        run.progressed(100, 100)
        wait_until(lambda: run.checkpoints()[-1][0]["sequence"] > before + 1, 40, "checkpoints after the sleep")
        self.assertNotIn("is started again", run.log())
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(20), 130, run.told())
        self.assert_no_trace(run)
        self.assert_ledger(run)

    def test_without_restarts_the_run_ends_and_says_why(self):
        for name in ["learner-0", "actor-0"]:
            with self.subTest(name):
                run = self.start({**self.ENDLESS, "supervision.restarts": 0, "actors.count": 1},
                                 directory=name)
                run.ready("learner-0", "actor-0")
                run.progressed()
                run.tell(signal.SIGKILL, run.nodes()[name][0])
                self.assertEqual(run.wait(15), 1, run.told())
                self.assertIn(f"{name} cannot be kept alive: killed by signal 9 (SIGKILL)", run.said())
                self.assert_no_trace(run)

    def test_a_spare_environment_actor_may_be_lost(self):
        run = self.start({**self.ENDLESS, "supervision.restarts": 0})
        run.ready("learner-0", "actor-0", "actor-1")
        run.tell(signal.SIGKILL, run.nodes()["actor-0"][0])
        wait_until(lambda: "has used up its 0 restarts" in run.log(), what="giving up is told")
        run.progressed(200, 20)
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.told())

    def test_no_child_outlives_the_run(self):
        for number in [signal.SIGKILL, signal.SIGKILL]:
            run = self.start(self.ENDLESS)
            wait_until(lambda: len(run.nodes()) == 4, what="four nodes")
            run.tell(number)
            run.wait(10)
            self.assert_no_trace(run)
        # What a killed run left in the temporary directory goes with the next start.
        self.finish({**self.QUICK, "stop.actor_steps": 500, "stop.updates": 1})


class Crashes(RunTest):
    BASE = {**RunTest.ENDLESS, "actors.count": 1, "d4pg.v_min": 0, "d4pg.v_max": 100}

    def test_an_environment_that_throws_loses_its_episode_only(self):
        run = self.start({**self.BASE, "environment.name": "probe/crash@30:throw"})
        run.progressed(300, 20)
        self.assertIn("throws as asked", run.log())
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.told())
        self.assertEqual(self.assert_ledger(run)[1]["incarnations"]["actor-0"], 1)

    def test_an_environment_that_aborts_is_named_with_its_signal(self):
        run = self.start({**self.BASE, "environment.name": "probe/crash@30:abort",
                          "supervision.restarts": 2})
        self.assertEqual(run.wait(60), 1, run.told())
        log = run.log()
        self.assertIn("actor-0 ended (killed by signal 6 (SIGABRT)", log)
        self.assertIn("probe/crash at step 30 aborts as asked", log)
        self.assertIn("actor-0 cannot be kept alive", run.said())
        self.assert_no_trace(run)

    def test_an_environment_that_hangs_is_killed_and_named(self):
        run = self.start({**self.BASE, "environment.name": "probe/crash@300:hang",
                          "supervision.step_timeout": "1s"})
        wait_until(lambda: run.nodes().get("actor-0", (0, 0))[1] > 1, what="a new actor-0")
        self.assertRegex(run.log(), r"actor-0 is killed: hung for \d+ s in a step of the environment")
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.told())
        self.assert_no_trace(run)

    def test_what_is_not_finite_never_reaches_replay(self):
        for what in ["reward", "observation"]:
            with self.subTest(what):
                run = self.start({**self.BASE, "environment.name": f"probe/nan@20:{what}"}, directory=what)
                run.progressed(300, 20)
                wait_until(lambda: run.last("environment/nan_transitions", None) is not None or
                           "invalid_episode" in str(run.metrics()[-1]), what="the fault is counted")
                run.tell(signal.SIGINT)
                self.assertEqual(run.wait(10), 130, run.told())
                self.assertIn("actor-0", run.log())
                self.assertRegex(run.log(), "(?i)not finite|nan")
                row = run.metrics()[-1]
                self.assertEqual(row.get("count/not_finite_chunks", 0), 0)
                self.assertEqual(row.get("count/refused", 0), 0)
                self.assertEqual(row.get("count/invalid_episode"), 1, row)


if __name__ == "__main__":
    unittest.main()
