"""Several learner processes that apply every update together: killed, frozen and added again while the run goes on.
The tests are short; as a program with a factor (learners_test.py --factor 10) there are so many times more rounds.

    TROUPE_PROGRAM=build/bin/troupe TROUPE_SOURCE=. python tests/actors/integration/learners_test.py --factor 10
"""
import collections
import re
import signal
import sys
import time
import unittest

from harness import RunTest, factor, wait_until

FACTOR = 1


class Groups:
    """What learners told of the groups they were in, for tests of runs."""

    def joined(self, run):
        """{generation: {rank: (learner, size, update, state)}} as the learners told it."""
        found = collections.defaultdict(dict)
        pattern = r"(learner-\d) is learner (\d) of (\d) in generation (\d+) at update (\d+), state (\w+)"
        for name, rank, size, generation, update, state in re.findall(pattern, run.log()):
            found[int(generation)][int(rank)] = (name, int(size), int(update), state)
        return found

    def newest(self, run):
        """(generation, names) of the newest group, once all its members have told."""
        groups = self.joined(run)
        if not groups:
            return 0, ()
        generation = max(groups)
        members = groups[generation]
        if any(len(members) != size for _, size, _, _ in members.values()):
            return 0, ()
        return generation, tuple(members[rank][0] for rank in sorted(members))

    def group_of(self, run, size, after=0):
        """Waits for a complete group of that size with a higher generation."""
        return wait_until(lambda: (lambda newest: newest if newest[0] > after and len(newest[1]) == size else None)
                          (self.newest(run)), what=f"a group of {size} after generation {after}")

    def check_groups(self, run):
        """Who joined a group held the same bits as its others, and no update was lost or made twice."""
        groups, before = self.joined(run), 0
        for generation in sorted(groups):
            states = {(update, state) for _, _, update, state in groups[generation].values()}
            self.assertEqual(len(states), 1, groups[generation])
            update = next(iter(states))[0]
            self.assertGreaterEqual(update, before, groups)
            before = update
        self.assertNotIn("holds another state", run.log())


class Learners(Groups, RunTest):
    TWO = {**RunTest.ENDLESS, "learners.count": 2, "learners.timeout": "2s", "supervision.silent_after": "5s",
           "supervision.restarts": 1000, "checkpoint.every": "1s"}

    def stop(self, run):
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(20), 130, run.told())
        self.assert_no_trace(run)
        self.assert_ledger(run)
        self.check_groups(run)

    def test_two_learners_finish_a_run(self):
        run = self.finish({**self.QUICK, "learners.count": 2, "stop.updates": 500, "stop.actor_steps": 0})
        generation, names = self.newest(run)
        self.assertEqual((generation, names), (1, ("learner-0", "learner-1")))
        self.check_groups(run)
        self.assertGreaterEqual(run.last("learner/states_compared"), 4)
        manifest, state, _ = self.assert_ledger(run)
        self.assertEqual(manifest["version"], 500)
        # One of them wrote the checkpoint, and both resume from it.
        run = self.finish({**self.QUICK, "stop.updates": 700})
        self.assertRegex(run.log(), "learner 1 of 2 in generation 1 at update 500")
        self.assertEqual(self.assert_ledger(run)[0]["version"], 700)

    def test_so_do_learners_that_share_a_process(self):
        run = self.finish({**self.QUICK, "learners.count": 2, "processes": 0, "learners.replicas": 2,
                           "stop.actor_steps": 1000, "evaluation.every": 0})
        self.assertGreaterEqual(len(self.joined(run)), 1)
        self.check_groups(run)

    def test_a_killed_learner_is_done_without_and_comes_back(self):
        run = self.start(self.TWO)
        generation, names = self.group_of(run, 2)
        for round_number in range(2 * FACTOR):
            run.progressed(100, 120)  # so that states are compared in between
            victim = names[round_number % 2]  # the one that leads first
            made = run.last("learner_updates")
            killed = time.monotonic()
            run.tell(signal.SIGKILL, run.pid_of(victim))
            survivor, = set(names) - {victim}
            alone = self.group_of(run, 1, generation)
            self.assertEqual(alone[1], (survivor,))
            self.assertGreaterEqual(self.joined(run)[alone[0]][0][2], made, "updates were lost")
            wait_until(lambda: run.last("learner_updates") > self.joined(run)[alone[0]][0][2], what="updates")
            resumed = time.monotonic()
            generation, names = self.group_of(run, 2, alone[0])
            self.assertEqual(names[0], survivor)
            print(f"round {round_number}: {victim} killed at {made}; updates again after {resumed - killed:.2f} s, "
                  f"two learners again after {time.monotonic() - killed:.2f} s", file=sys.stderr)
        run.progressed(100, 120)
        self.assertGreater(run.last("learner/states_compared"), 0)
        self.stop(run)

    def test_a_frozen_learner_is_left_out_until_it_thaws(self):
        run = self.start({**self.TWO, "supervision.silent_after": "10m"})
        generation, names = self.group_of(run, 2)
        for victim in names:  # the one that leads first
            run.progressed(100, 50)
            pid = run.pid_of(victim)
            made = run.last("learner_updates")
            run.tell(signal.SIGSTOP, pid)
            generation, alone = self.group_of(run, 1, generation)
            self.assertNotIn(victim, alone)
            self.assertGreaterEqual(self.joined(run)[generation][0][2], made, "updates were lost")
            run.progressed(100, 50)
            run.tell(signal.SIGCONT, pid)
            generation, both = self.group_of(run, 2, generation)
            self.assertEqual(both, (*alone, victim))
        run.progressed(100, 50)
        self.assertNotIn("is killed", run.log())
        self.stop(run)

    def test_a_learner_that_stays_frozen_is_replaced(self):
        run = self.start(self.TWO)
        generation, names = self.group_of(run, 2)
        run.progressed(100, 50)
        run.tell(signal.SIGSTOP, run.pid_of(names[0]))
        generation, _ = self.group_of(run, 1, generation)
        run.progressed(100, 50)
        self.group_of(run, 2, generation)
        self.assertIn(f"{names[0]} is killed: it answered no ping", run.log())
        run.progressed(100, 50)
        self.stop(run)

    def test_the_last_learner_carries_the_run(self):
        run = self.start({**self.TWO, "supervision.restarts": 0})
        generation, names = self.group_of(run, 2)
        run.tell(signal.SIGKILL, run.pid_of(names[1]))
        self.group_of(run, 1, generation)
        run.progressed(100, 50)
        run.tell(signal.SIGKILL, run.pid_of(names[0]))
        self.assertEqual(run.wait(20), 1, run.told())
        self.assertIn(f"{names[0]} cannot be kept alive", run.said())


if __name__ == "__main__":
    FACTOR = factor()
    unittest.main()
