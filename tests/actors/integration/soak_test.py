"""Long trouble: a frozen learner, rounds of kills, a million messages. The tests are short; as a program with a
factor (soak_test.py --factor 12) everything lasts so many times longer.

    TROUPE_PROGRAM=build/bin/troupe TROUPE_SOURCE=. python tests/actors/integration/soak_test.py --factor 12
"""
import collections
import json
import os
import random
import re
import signal
import subprocess
import time
import unittest

import h5py

from harness import PROGRAM, SMOKE, RunTest, factor, wait_until

FACTOR = 1


def resident(pid):
    """MiB of a process."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory_bound(overrides):
    """MiB of data at most, as `troupe check` prints it."""
    words = [PROGRAM, "check", str(SMOKE), "--json"]
    for key, value in overrides.items():
        words += ["--set", f"{key}={value}"]
    report = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return report["memory"]["total"] / 2**20


class FrozenLearner(RunTest):
    OWN = {**RunTest.ENDLESS, "replay.placement": "own", "replay.shards": 2, "supervision.silent_after": "10m"}

    def stands_still(self, run):
        steps = run.last("actor_steps")
        time.sleep(1)
        return run.last("actor_steps") == steps

    def test_what_it_does_not_take_blocks_inserts_and_fills_no_memory(self):
        bound = memory_bound(self.OWN)
        run = self.start(self.OWN)
        run.ready("learner-0", "shard-0", "shard-1", "actor-0", "actor-1")
        run.progressed(1000, 200)
        nodes = {name: run.pid_of(name) for name in ["actor-0", "actor-1", "shard-0", "shard-1"]}
        learner = run.pid_of("learner-0")
        run.tell(signal.SIGSTOP, learner)
        wait_until(lambda: self.stands_still(run), what="the end of inserts")
        before = {name: resident(pid) for name, pid in nodes.items()}
        steps, rows = run.last("actor_steps"), len(run.metrics())
        time.sleep(5 * FACTOR)
        for name, pid in nodes.items():
            self.assertLess(resident(pid), before[name] + bound + 4, f"{name} grew; the bound is {bound} MiB")
        # Rows are written while steps or updates are made.
        self.assertEqual((run.last("actor_steps"), len(run.metrics())), (steps, rows))
        run.tell(signal.SIGCONT, learner)
        run.progressed(500, 100)
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(20), 130, run.told())
        self.assert_ledger(run)
        self.assertNotIn("is killed", run.log())


class Kills(RunTest):
    def test_rounds_of_kills_leave_an_exact_ledger(self):
        """Actors, shards and the learner, at random: the run goes on, and every step is counted once."""
        chance = random.Random(11)
        run = self.start({**self.ENDLESS, "replay.placement": "own", "replay.shards": 2, "checkpoint.every": "1s",
                          "environment.name": "probe/const", "d4pg.v_min": 0, "d4pg.v_max": 100,
                          "supervision.restarts": 1000})
        names = ["actor-0", "actor-1", "shard-0", "shard-1", "learner-0"]
        run.ready(*names)
        run.progressed(300, 50)
        for _ in range(6 * FACTOR):
            name = chance.choice(names)
            before = run.nodes().get(name)
            if before is None:
                continue  # just being replaced
            run.tell(signal.SIGKILL, before[0])
            wait_until(lambda: run.nodes().get(name, before)[1] > before[1], what=f"a new {name}")
            time.sleep(chance.random())
        run.ready(*names)
        run.progressed(300, 50)
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(20), 130, run.told())
        self.assert_no_trace(run)
        checkpoint = self.assert_ledger(run)
        told = sum(int(steps) for steps in re.findall(r"came back without the (\d+) steps", run.log()))
        self.assertEqual(checkpoint[1]["ledger"]["lost_with_shard"], told)
        self.check_steps(run, checkpoint)

    def check_steps(self, run, checkpoint):
        """No step twice: the pieces of an episode that the shards hold overlap nowhere."""
        path = self.root / "episodes.hdf5"
        done = subprocess.run([PROGRAM, "replay", "export", str(checkpoint[2]), str(path)], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        pieces = collections.defaultdict(list)
        steps = 0
        with h5py.File(path) as file:
            for group in file.values():
                name = tuple(int(group.attrs[key]) for key in ["worker", "incarnation", "environment_index", "episode"])
                count = len(group["rewards"]) + ("open_step" in group)
                pieces[name].append((int(group.attrs["first_step"]), count))
                steps += count
        self.assertGreater(steps, 0)
        for name, parts in pieces.items():
            end = 0
            for first, count in sorted(parts):
                self.assertGreaterEqual(first, end, f"{name}: {sorted(parts)}")
                end = first + count


class LargeParameters(RunTest):
    def test_large_parameters_are_no_reason_to_take_a_node_for_dead(self):
        """Parameter sets of 16 MB, or 256 MB the long way, to actors and evaluator while pings go on."""
        width = 2000 if FACTOR == 1 else 8000
        run = self.finish({**self.QUICK, "d4pg.policy": f"[{width}, {width}]", "d4pg.critic": "[32]", "d4pg.batch": 32,
                           "learners.publish_every": 2, "stop.updates": 8, "evaluation.every": 0}, limit=120)
        self.assertEqual(self.assert_ledger(run)[0]["version"], 8)
        self.assertNotIn("does not answer pings", run.log())
        self.assertNotIn("is started again", run.log())


if __name__ == "__main__":
    FACTOR = factor()
    unittest.main()
