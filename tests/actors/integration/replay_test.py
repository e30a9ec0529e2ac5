"""The distributed replay in real processes: priorities, one ratio over all shards, shards that die and shards that
are added, standstills that are explained."""
import json
import os
import re
import signal
import subprocess
import unittest

from harness import RunTest, processes_with, wait_until

# Of configs/smoke.yaml.
BATCH, MIN_SIZE, SPI, BAND, N_STEP = 16, 100, 4, 40, 3


class ReplayRun(RunTest):
    OWN = {**RunTest.ENDLESS, "replay.placement": "own", "replay.shards": 2}

    def stop(self, run, limit=15):
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(limit), 130, run.told())
        self.assert_no_trace(run)
        return self.assert_ledger(run)

    def assert_ratio(self, checkpoint, died=False):
        """Samples per insert over all shards: by the sampler's own counts within the band, which a chunk on its way
        may pass by its items, and without the batches that wait for their updates. By the steps of the ledger too,
        unless a shard died: what it had not reported yet is in no ledger."""
        limiter = json.loads((checkpoint[2] / "limiter.json").read_text())
        items = limiter["lost"] + sum(shard["inserted"] for shard in limiter["shards"])
        cursor = SPI * items - limiter["samples"]
        self.assertGreaterEqual(cursor, SPI * MIN_SIZE - BAND, limiter)
        self.assertLessEqual(cursor, SPI * MIN_SIZE + BAND + 3 * BATCH, limiter)
        self.assertEqual(limiter["samples"], checkpoint[1]["version"] * BATCH)
        steps = checkpoint[1]["ledger"]["inserted"]
        # Open ends of episodes are in no item yet, and the shards' cuts are a moment apart from the sampler's.
        if not died:
            self.assertLess(abs(steps - items), 100 + 3 * 3 * N_STEP, f"{steps} steps, {limiter}")


class Prioritised(ReplayRun):
    def test_losses_become_priorities_in_the_shards_and_weights_in_the_batches(self):
        for placement in ["own", "learner"]:
            with self.subTest(placement):
                run = self.start({**self.OWN, "replay.placement": placement, "replay.selector": "prioritised",
                                  "replay.importance_exponent": 0.5, "replay.capacity": 1_000_000},  # none leave
                                 directory=placement)
                run.ready("learner-0", "actor-0", "actor-1")
                run.progressed(500, 200)
                own = "shard/" if placement == "own" else "learner/"
                most = lambda key: max((row.get(key, 0) for row in run.metrics()), default=0)
                wait_until(lambda: most(own + "priority_updates_per_second") > 0, what="priorities in the shards")
                checkpoint = self.stop(run)
                self.assertGreater(most("learner/priorities_sent_per_second"), 0)
                for fault in ["invalid_priorities", "stale_priorities", "malformed_chunks"]:
                    self.assertEqual(most(f"{own}{fault}_per_second"), 0, fault)
                # Losses are far from the 1 that new items begin with, so the mass is not what is held.
                row = run.metrics()[-1]
                for shard in ["shard0", "shard1"]:
                    mass, held = row[f"{own}{shard}/priority_mass"], row[f"{own}{shard}/held_steps"]
                    self.assertGreater(abs(mass / held - 1), 0.05)
                self.assert_ratio(checkpoint)

    def test_saved_tables_keep_their_selector_over_resumes(self):
        self.finish({**self.QUICK, "replay.selector": "prioritised", "stop.actor_steps": 600, "evaluation.every": 0})
        self.finish({**self.QUICK, "stop.actor_steps": 900})  # as it was begun
        self.refused({**self.QUICK, "replay.selector": "uniform"}, 2, "replay.selector", "replay.prefill")


class OneRatio(ReplayRun):
    def test_unequal_actors_keep_one_ratio_over_two_shards_and_neither_waits_for_the_other(self):
        run = self.start({**self.OWN, "actors.count": 3})
        run.ready("learner-0", "shard-0", "shard-1", "actor-0", "actor-1", "actor-2")
        run.progressed(3000, 500)
        # A frozen actor takes nothing from the others.
        frozen = run.pid_of("actor-1")
        run.tell(signal.SIGSTOP, frozen)
        run.progressed(1500, 200)
        run.tell(signal.SIGCONT, frozen)
        run.progressed(500, 100)
        self.assert_ratio(self.stop(run))

    def test_a_killed_shard_is_replaced_from_its_checkpoint_and_fills_up(self):
        run = self.start({**self.OWN, "checkpoint.every": "1s"})
        run.ready("learner-0", "shard-0", "shard-1", "actor-0", "actor-1")
        run.progressed(2000, 300)
        wait_until(run.checkpoints, what="a checkpoint")
        for _ in range(2):
            before = run.nodes()["shard-1"]
            run.tell(signal.SIGKILL, before[0])
            wait_until(lambda: run.nodes().get("shard-1", before)[1] > before[1], what="a new shard-1")
            wait_until(lambda: run.log().rfind("shard-1 serves") > run.log().rfind("shard-1 ended"),
                       what="the new shard-1 serves")
            run.progressed(1500, 200)
            wait_until(lambda: run.last("shard/shard1/inserted_steps_per_second") > 0,
                       what="steps in the new shard-1")
        told = re.findall(r"shard 1 came back without the (\d+) steps", run.log())
        checkpoint = self.stop(run)
        lost = sum(map(int, told))
        self.assertEqual(checkpoint[1]["ledger"]["lost_with_shard"], lost)
        self.assertEqual(checkpoint[1]["incarnations"]["shard-1"], 3)
        self.assert_ratio(checkpoint, died=True)

    def test_a_resumed_run_goes_on_at_its_ratio(self):
        for _ in range(3):
            run = self.start(self.OWN)
            run.ready("learner-0", "actor-0", "shard-0", "shard-1")
            run.progressed(800, 100)
            checkpoint = self.stop(run)
        self.assert_ratio(checkpoint)
        self.assertNotIn("came back without", run.log())


class AddedShards(ReplayRun):
    def test_shards_and_actors_are_added_while_the_run_goes_on_and_resume_with_it(self):
        run = self.start({**self.OWN, "replay.shards": 1})
        run.ready("learner-0", "shard-0", "actor-0", "actor-1")
        run.progressed(500, 100)
        self.assertEqual(run.control("scale", "shards=3"), "shards: 1 -> 3")
        run.ready("shard-1", "shard-2")
        for shard in ["shard1", "shard2"]:
            wait_until(lambda: run.last(f"shard/{shard}/held_steps") > 100, what=f"steps in {shard}")
        self.assertEqual(run.control("scale", "actors=3"), "actors: 2 -> 3")
        run.ready("actor-2")
        run.progressed(500, 100)
        checkpoint = self.stop(run)
        self.assert_ratio(checkpoint)
        for shard in range(3):
            self.assertTrue((checkpoint[2] / f"replay-{shard}.table").exists())
        again = self.start({**self.OWN, "replay.shards": 1})
        again.ready("learner-0", "shard-0", "shard-1", "shard-2", "actor-2")
        again.progressed(300, 50)
        checkpoint = self.stop(again)
        self.assert_ratio(checkpoint)
        self.assertEqual(checkpoint[1]["lost_with_shard"], 0)


class Standstills(ReplayRun):
    QUIET = {"supervision.standstill_after": "2s"}

    def test_a_start_up_that_cannot_come_to_an_end_is_explained(self):
        run = self.start({**self.OWN, **self.QUIET, "environment.name": "probe/slow", "environment.time_limit": 5,
                          "supervision.step_timeout": "60s"})
        wait_until(lambda: re.search(r"no update for \d+ s .*min_size \d+/100", run.log()), what="the explanation")
        run.tell(signal.SIGINT)
        run.wait(30)

    def test_frozen_actors_and_a_frozen_shard_are_named(self):
        run = self.start({**self.OWN, **self.QUIET, "supervision.silent_after": "60s"})
        run.ready("learner-0", "shard-0", "shard-1", "actor-0", "actor-1")
        run.progressed(300, 50)
        actors = [run.pid_of("actor-0"), run.pid_of("actor-1")]
        for pid in actors:
            run.tell(signal.SIGSTOP, pid)
        wait_until(lambda: re.search(r"no update for .*(no environment actor serves|holds samples back)", run.log()),
                   what="the frozen actors are named")
        for pid in actors:
            run.tell(signal.SIGCONT, pid)
        wait_until(lambda: "updates go on after" in run.log(), what="the end of the standstill")
        shard = run.pid_of("shard-1")
        run.tell(signal.SIGSTOP, shard)
        wait_until(lambda: re.search(r"no update for .*(shard-1 does not answer|items of shard 1)", run.log()),
                   what="the frozen shard is named")
        run.tell(signal.SIGCONT, shard)
        self.stop(run)


if __name__ == "__main__":
    unittest.main()
