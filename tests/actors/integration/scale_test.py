"""Runs that grow and shrink while they go on: actors, shards, learners and data actors, with an exact ledger."""
import re
import signal
import unittest

from harness import wait_until
from learners_test import Learners
from pictures_test import Exactness, UPDATES_PER_EPOCH
from replay_test import ReplayRun


def names(run, role):
    return [node["name"] for node in run.status()["nodes"] if node["role"] == role]


def has_left(run, *nodes):
    for node in nodes:
        wait_until(lambda: f"{node} has left" in run.log(), 20, f"the end of {node}")


class Actors(ReplayRun):
    def test_actors_come_and_go_and_every_step_counts_once(self):
        run = self.start(self.ENDLESS)
        run.ready("learner-0", "actor-0", "actor-1")
        run.progressed(300, 50)
        self.assertEqual(run.control("scale", "actors=8"), "actors: 2 -> 8")
        run.ready(*(f"actor-{i}" for i in range(8)))
        run.progressed(300, 50)
        self.assertEqual(run.control("scale", "actors=3"), "actors: 8 -> 3")
        has_left(run, *(f"actor-{i}" for i in range(3, 8)))
        self.assertEqual(names(run, "environment"), ["actor-0", "actor-1", "actor-2"])
        wait_until(lambda: len(run.nodes()) == 5, what="the end of the processes")
        self.assertIn("actor-1 is drained", run.troupe("drain", f"{run.directory}/actor-1").stdout)
        has_left(run, "actor-1")
        run.progressed(200, 20)
        for word in ("is killed", "is started again", "came back without"):
            self.assertNotIn(word, run.log())
        checkpoint = self.stop(run)
        self.assertEqual(checkpoint[1]["lost_with_shard"], 0)
        # All that the actors have answers for is in the tables.
        self.assertEqual(checkpoint[1]["scaled"]["actors"], {"scaled": 2, "configured": 2})
        again = self.start(self.ENDLESS)
        again.ready("learner-0", "actor-0", "actor-1")
        again.progressed(100, 10)
        self.assertEqual(names(again, "environment"), ["actor-0", "actor-1"])
        self.stop(again)


class Shards(ReplayRun):
    ONE = {**ReplayRun.OWN, "replay.shards": 1}

    def test_shards_come_and_go_and_what_they_held_is_removed_with_them(self):
        run = self.start(self.ONE)
        run.ready("learner-0", "shard-0", "actor-0", "actor-1")
        run.progressed(500, 100)
        run.control("scale", "shards=2")
        run.ready("shard-1")
        wait_until(lambda: run.last("shard/shard1/held_steps") > 100, what="steps in shard-1")
        self.assertEqual(run.control("scale", "shards=1"), "shards: 2 -> 1")
        has_left(run, "shard-1")
        removed = int(re.search(r"the (\d+) steps that shard-1 held are removed", run.log())[1])
        self.assertGreater(removed, 100)
        run.progressed(300, 50)
        ledger = run.status()["ledger"]
        self.assertEqual(ledger["inserted"], ledger["held"] + ledger["removed"] + ledger["lost_with_shard"])
        self.assertGreaterEqual(ledger["removed"], removed)
        # It may come back, empty, and the first one may go.
        run.control("scale", "shards=2")
        wait_until(lambda: run.log().count("shard-1 serves") == 2, what="the next shard-1")
        run.progressed(300, 50)
        self.assertIn("shard-0 is drained", run.troupe("drain", "shard-0", "--run", run.directory).stdout)
        has_left(run, "shard-0")
        run.progressed(300, 50)
        for word in ("is killed", "is started again", "came back without"):
            self.assertNotIn(word, run.log())
        checkpoint = self.stop(run)
        self.assert_ratio(checkpoint, died=True)
        self.assertEqual(checkpoint[1]["lost_with_shard"], 0)
        self.assertEqual([path.name for path in checkpoint[2].glob("replay-*.table")], ["replay-1.table"])
        again = self.start(self.ONE)
        again.ready("learner-0", "shard-1", "actor-0")
        again.progressed(300, 50)
        self.assertEqual(names(again, "shard"), ["shard-1"])
        checkpoint = self.stop(again)
        self.assert_ratio(checkpoint, died=True)
        self.assertEqual(checkpoint[1]["lost_with_shard"], 0)

    def test_the_last_step_is_the_wanted_one_though_a_shard_has_left(self):
        run = self.start({**self.ONE, "replay.shards": 2, "stop.actor_steps": 4000})
        run.ready("learner-0", "shard-0", "shard-1", "actor-0")
        wait_until(lambda: run.last("actor_steps") > 500, what="steps")
        run.control("scale", "shards=1")
        self.assertEqual(run.wait(), 0, run.told())
        self.assert_no_trace(run)
        ledger = self.assert_ledger(run)[1]["ledger"]
        self.assertGreaterEqual(ledger["inserted"], 4000)
        self.assertLess(ledger["inserted"], 4000 + 2 * 50)
        self.assertEqual(ledger["lost_with_shard"], 0)


class ElasticLearners(Learners):
    ONE = {**Learners.TWO, "learners.count": 1, "learners.max": 2}

    def test_learners_come_and_go_in_step(self):
        run = self.start(self.ONE)
        generation, _ = self.group_of(run, 1)
        run.progressed(200, 50)
        self.assertEqual(run.control("scale", "learners=2"), "learners: 1 -> 2")
        generation, group = self.group_of(run, 2, generation)
        self.assertEqual(group, ("learner-0", "learner-1"))
        run.progressed(200, 50)
        # The one that leads hands over.
        self.assertIn("learner-0 is drained", run.troupe("drain", f"{run.directory}/learner-0").stdout)
        generation, group = self.group_of(run, 1, generation)
        self.assertEqual(group, ("learner-1",))
        has_left(run, "learner-0")
        run.progressed(200, 50)
        run.control("scale", "learners=2")
        generation, group = self.group_of(run, 2, generation)
        self.assertEqual(group, ("learner-1", "learner-0"))
        run.progressed(200, 50)
        run.control("scale", "learners=1")
        self.group_of(run, 1, generation)
        run.progressed(200, 50)
        self.assertNotIn("is started again", run.log())
        self.stop(run)


# Their tests run where they are.
for base in (Learners, ReplayRun, Exactness):
    for name in [name for name in vars(base) if name.startswith("test_")]:
        delattr(base, name)


class DataActors(Exactness):
    def test_data_actors_come_and_go_in_mid_epoch_and_change_no_bit(self):
        run = self.begin({**self.LONG, "actors.count": 1}, "scaled")
        run.progressed(updates=5)
        self.assertEqual(run.control("scale", "actors=3"), "actors: 1 -> 3")
        run.ready("data-1", "data-2")
        run.progressed(updates=5)
        self.assertEqual(run.control("scale", "actors=1"), "actors: 3 -> 1")
        has_left(run, "data-1", "data-2")
        self.assertLess(run.last("learner_updates"), self.EPOCHS * UPDATES_PER_EPOCH)
        self.end(run)
        self.assertNotIn("is killed", run.log())
        self.assertEqual(self.files_of(run), self.reference())


del Learners, ReplayRun, Exactness

if __name__ == "__main__":
    unittest.main()
