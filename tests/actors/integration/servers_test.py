"""Learners that are not in step, over parameter servers: killed, frozen and resumed while every update is counted once.
The tests are short; as a program with a factor (servers_test.py --factor 10) there are so many times more rounds.

    TROUPE_PROGRAM=build/bin/troupe TROUPE_SOURCE=. python tests/actors/integration/servers_test.py --factor 10
"""
import random
import re
import signal
import sys
import time
import unittest

import numpy

from harness import SOURCE, RunTest, factor, wait_until

FACTOR = 1


class Servers(RunTest):
    ASYNCHRONOUS = {"learners.count": 4, "learners.sync": "parameter_servers", "learners.parameter_servers": 2,
                    "learners.timeout": "2s", "environment.name": "probe/const", "d4pg.v_min": 0, "d4pg.v_max": 100,
                    "d4pg.normalise_observations": "true", "replay.error_buffer": 200}
    GOING = {**RunTest.ENDLESS, **ASYNCHRONOUS, "supervision.silent_after": "3s", "supervision.restarts": 1000,
             "learners.snapshot_every": "500ms", "checkpoint.every": "2s"}
    NAMES = ["learner-0", "learner-1", "learner-2", "learner-3", "parameter_server-0", "parameter_server-1"]

    def ledger(self, run):
        """Of the newest checkpoint, exact for each server and in all; what was told to be lost is what is counted."""
        manifest, state, directory = self.assert_ledger(run)
        updates = state["updates"]
        for counts in [updates, *updates["servers"]]:
            self.assertEqual(counts["sent"], counts["applied"] + counts["rolled_back"], updates)
        for name in ["sent", "applied", "rolled_back"]:
            self.assertEqual(sum(server[name] for server in updates["servers"]), updates[name])
        for index in range(len(updates["servers"])):
            self.assertTrue((directory / f"parameter_server-{index}.snapshot").exists())
        return manifest, updates

    def told_lost(self, run):
        return sum(int(lost) for lost in re.findall(r"came back without the (\d+) updates", run.log()))

    def stop(self, run, earlier=0):
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(20), 130, run.told())
        self.assert_no_trace(run)
        manifest, updates = self.ledger(run)
        self.assertEqual(updates["rolled_back"], earlier + self.told_lost(run))
        said = re.findall(r"(\d+) sent = (\d+) applied \+ (\d+) rolled back", run.log())
        self.assertEqual(len(said), len(updates["servers"]))
        for sent, applied, lost in said:
            self.assertEqual(int(sent), int(applied) + int(lost))
        return manifest, updates

    def test_four_workers_and_two_servers_finish_a_run(self):
        run = self.finish({**self.QUICK, **self.ASYNCHRONOUS, "stop.actor_steps": 2000})
        manifest, updates = self.ledger(run)
        # Each update is sent to both, and counts once for the run: 4 samples an insert, 16 a batch.
        first, second = updates["servers"]
        self.assertLess(abs(manifest["version"] - first["applied"]), 50)
        self.assertLess(abs(first["applied"] - second["applied"]), 50)
        self.assertGreater(manifest["version"], 300)
        self.assertEqual(updates["rolled_back"], 0)
        self.assertLess(run.last("parameter_server/server0/staleness_max"), 17)
        self.assertGreater(run.last("parameter_server/server0/bytes"), 0)
        self.assertGreaterEqual(run.last("parameter_server/imbalance"), 1)
        # All of them learnt, and the ratio counts all batches: 4 samples an insert.
        samples = run.last("learner/samples_per_insert")
        self.assertGreater(samples, 3.2)
        self.assertLess(samples, 4.8)
        again = self.finish({**self.QUICK, "stop.actor_steps": 3000})
        resumed, more = self.ledger(again)
        self.assertGreater(resumed["version"], manifest["version"] + 100)
        self.assertGreaterEqual(more["sent"], updates["sent"])
        self.assertEqual(more["rolled_back"], 0)

    def test_so_do_groups_in_sync(self):
        run = self.finish({**self.QUICK, **self.ASYNCHRONOUS, "learners.sync": "groups", "learners.sync_groups": 2,
                           "learners.replicas": 2, "stop.actor_steps": 2000})
        self.assertRegex(run.log(), r"learners in step: learner-0, learner-1 \(group 0, generation 1\)")
        self.assertRegex(run.log(), r"learners in step: learner-2, learner-3 \(group 1, generation 1\)")
        manifest, _ = self.ledger(run)
        self.assertGreater(manifest["version"], 300)

    def test_so_do_all_in_one_process(self):
        run = self.finish({**self.QUICK, **self.ASYNCHRONOUS, "processes": 0, "learners.count": 2,
                           "stop.actor_steps": 1000, "evaluation.every": 0})
        self.ledger(run)

    def test_a_run_keeps_its_regime(self):
        self.finish({**self.QUICK, **self.ASYNCHRONOUS, "learners.count": 1, "stop.actor_steps": 500,
                     "evaluation.every": 0})
        self.refused({"learners.sync": "all_reduce", "learners.parameter_servers": 0, "stop.actor_steps": 900}, 2,
                     "a run keeps whether its learners are all in sync")
        self.refused({"learners.sync": "parameter_servers", "learners.parameter_servers": 1, "stop.actor_steps": 900}, 2,
                     "2 parameter servers, not 1")

    def test_rounds_of_kills_leave_an_exact_ledger(self):
        """Workers and servers at random: the others go on or wait, and every update is counted once."""
        chance = random.Random(7)
        run = self.start(self.GOING)
        run.ready(*self.NAMES)
        run.progressed(100, 100)
        for round_number in range(5 * FACTOR):
            name = chance.choice(self.NAMES) if round_number > 1 else ["parameter_server-0", "learner-0"][round_number]
            before = run.nodes().get(name)
            if before is None:
                continue  # just being replaced
            killed = time.monotonic()
            run.tell(signal.SIGKILL, before[0])
            wait_until(lambda: run.nodes().get(name, before)[1] > before[1], what=f"a new {name}")
            wait_until(lambda: run.log().count(f"{name} serves") >= before[1] + 1, what=f"{name} serves")
            run.progressed(20, 20)
            print(f"round {round_number}: {name} killed, updates and steps go on after "
                  f"{time.monotonic() - killed:.2f} s", file=sys.stderr)
            time.sleep(chance.random())
        run.ready(*self.NAMES)
        run.progressed(100, 100)
        _, updates = self.stop(run)
        self.assertGreater(updates["sent"], 200)

    def test_a_frozen_server_is_waited_for_and_replaced(self):
        run = self.start(self.GOING)
        run.ready(*self.NAMES)
        run.progressed(100, 100)
        server = run.pid_of("parameter_server-1")
        run.tell(signal.SIGSTOP, server)
        time.sleep(1)
        run.tell(signal.SIGCONT, server)  # a short sleep is nothing
        run.progressed(50, 50)
        self.assertNotIn("is killed", run.log())
        run.tell(signal.SIGSTOP, server)
        wait_until(lambda: "parameter_server-1 is killed: it answered no ping" in run.log(), what="its end")
        wait_until(lambda: run.log().count("parameter_server-1 serves") == 2, what="a new server")
        run.progressed(100, 100)
        self.stop(run)

    def test_a_frozen_worker_holds_up_nobody(self):
        run = self.start({**self.GOING, "supervision.silent_after": "10m"})
        run.ready(*self.NAMES)
        run.progressed(100, 100)
        leader = re.findall(r"(learner-\d) leads the learners", run.log())[-1]
        follower = next(name for name in self.NAMES if name != leader)
        for name in [follower, leader]:
            pid = run.pid_of(name)
            run.tell(signal.SIGSTOP, pid)
            if name == follower:
                run.progressed(300, 300)
            else:
                time.sleep(2)  # what it gave leave to is inserted; no more
            run.tell(signal.SIGCONT, pid)
            run.progressed(100, 100)
        self.assertNotIn("is killed", run.log())
        self.stop(run)

    def test_a_leader_that_stays_frozen_is_replaced(self):
        run = self.start(self.GOING)
        run.ready(*self.NAMES)
        run.progressed(100, 100)
        leader = re.findall(r"(learner-\d) leads the learners", run.log())[-1]
        run.tell(signal.SIGSTOP, run.pid_of(leader))
        wait_until(lambda: not run.log().rstrip().endswith(f"{leader} leads the learners") and
                   re.findall(r"(learner-\d) leads the learners", run.log())[-1] != leader, what="another leader")
        run.progressed(300, 300)
        self.stop(run)

    def test_a_stopped_run_goes_on_where_it_was(self):
        run = self.start(self.GOING)
        run.ready(*self.NAMES)
        run.progressed(100, 100)
        run.tell(signal.SIGKILL, run.pid_of("parameter_server-0"))
        wait_until(lambda: run.log().count("parameter_server-0 serves") == 2, what="a new server")
        run.progressed(100, 100)
        manifest, updates = self.stop(run)
        run = self.start({})
        run.ready(*self.NAMES)
        wait_until(lambda: run.last("learner_updates") > manifest["version"] + 50, what="updates")
        _, more = self.stop(run, updates["rolled_back"])
        for now, then in zip(more["servers"], updates["servers"]):
            self.assertGreater(now["applied"], then["applied"])


class Learning(Servers):
    """What is learnt while parts die."""

    def test_a_pendulum_is_learnt_over_kills(self):
        chance = random.Random(11)
        rounds, steps = 2 * FACTOR, 30000
        run = self.start({"supervision.restarts": 1000, "learners.snapshot_every": "500ms", "telemetry.every": "100ms",
                          "learners.timeout": "2s", "stop.actor_steps": steps, "evaluation.episodes": 100},
                         config=SOURCE / "configs" / "pendulum_async.yaml")
        run.ready(*self.NAMES)
        for round_number in range(rounds):
            wait_until(lambda: run.last("actor_steps") > steps * 0.9 * (round_number + 1) / (rounds + 1) or
                       run.process.poll() is not None, what="the steps before the next kill")
            name = chance.choice(self.NAMES)
            before = wait_until(lambda: run.nodes().get(name), what=name)
            killed = time.monotonic()
            run.tell(signal.SIGKILL, before[0])
            wait_until(lambda: run.nodes().get(name, before)[1] > before[1], what=f"a new {name}")
            run.progressed(1, 1)
            print(f"round {round_number}: {name} killed, updates and steps go on after "
                  f"{time.monotonic() - killed:.2f} s", file=sys.stderr)
        self.assertEqual(run.wait(600), 0, run.told())
        self.assert_no_trace(run)
        _, updates = self.ledger(run)
        self.assertEqual(updates["rolled_back"], self.told_lost(run))
        returns = numpy.load(run.directory / "evaluations.npz")["results"][-1]
        self.assertEqual(len(returns), 100)
        print(f"{rounds} kills, mean return {returns.mean():.1f}", file=sys.stderr)
        self.assertGreaterEqual(returns.mean(), -200)


if __name__ == "__main__":
    FACTOR = factor()
    unittest.main()
