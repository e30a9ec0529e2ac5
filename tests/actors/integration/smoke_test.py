"""The whole ring on real processes, from one command to its end; and its other shapes."""
import unittest

import numpy

from harness import RunTest, wait_until


def check_ratio(test, run, band, shards=1, batch=16):
    """Samples per insert since the start, as the last checkpoint counts them: within the band that the limiters keep,
    plus batches drawn ahead (twice two: they may wait with the shards too), one chunk on its way into each shard,
    and steps whose n-step items are not complete yet."""
    state = test.assert_ledger(run)[1]
    items, samples = state["ledger"]["inserted"], state["version"] * batch
    slack = band + 4 * batch + 4 * (64 * shards + 2 * 3)
    test.assertLess(abs(samples - 4 * (items - 100)), slack, f"{samples} samples of {items} items")


class Smoke(RunTest):
    def test_a_run_trains_in_real_processes_and_leaves_its_files_and_nothing_else(self):
        run = self.start({**self.QUICK, "stop.actor_steps": 20000})
        nodes = wait_until(lambda: len(run.nodes()) == 4 and run.nodes(), what="four nodes")
        self.assertEqual(set(nodes), {"actor-0", "actor-1", "learner-0", "evaluator-0"})
        sockets = wait_until(lambda: list(self.temporary.glob("troupe-*")), what="the socket directory")
        self.assertEqual(sockets[0].stat().st_mode & 0o777, 0o700)
        self.assertEqual(run.wait(), 0, run.told())
        self.assert_no_trace(run)
        names = {path.name for path in run.directory.iterdir()}
        self.assertLessEqual({"config.yaml", "command.txt", "versions.json", "log", "metrics.jsonl",
                              "progress.csv", "checkpoints", "evaluations.npz"}, names)
        self.assertEqual({path.stem for path in (run.directory / "log").iterdir()},
                         {"coordinator", *nodes})
        latest = run.directory / "checkpoints" / "latest"
        self.assertTrue((latest / "manifest.json").exists())
        self.assertEqual(latest.resolve(), self.assert_ledger(run)[2].resolve())
        self.check_evaluations(run)
        check_ratio(self, run, band=40)
        self.assertLess(self.assert_ledger(run)[1]["ledger"]["inserted"], 20000 + 64)

    def check_evaluations(self, run):
        with numpy.load(run.directory / "evaluations.npz") as evaluations:
            steps = evaluations["timesteps"]
            self.assertGreaterEqual(len(steps), 2)
            self.assertTrue((numpy.diff(steps) > 0).all(), steps)
            self.assertEqual(evaluations["results"].shape, (len(steps), 2))
            self.assertTrue((evaluations["ep_lengths"] == 50).all())



class Stops(RunTest):
    def test_a_run_stops_at_its_update(self):
        run = self.finish({**self.QUICK, "stop.actor_steps": 0, "stop.updates": 300})
        self.assertEqual(self.assert_ledger(run)[0]["version"], 300)


class Shapes(RunTest):
    def finish_and_check(self, overrides):
        # A wide band: nobody waits for anybody long, however slow the machine.
        run = self.finish({**self.QUICK, "replay.error_buffer": 200, **overrides})
        self.assertGreaterEqual(run.last("actor_steps"), 2000)
        check_ratio(self, run, band=200, shards=overrides.get("replay.shards", 1))
        return run

    def test_everything_in_one_process_finishes(self):
        self.finish_and_check({"processes": 0})

    def test_one_shard_in_its_own_process_finishes(self):
        self.finish_and_check({"replay.placement": "own"})

    def test_two_shards_in_their_own_processes_finish(self):
        run = self.finish_and_check({"replay.placement": "own", "replay.shards": 2})
        latest = run.directory / "checkpoints" / "latest"
        self.assertTrue((latest / "replay-0.table").exists() and (latest / "replay-1.table").exists())

    def test_two_shards_in_the_learner_finish(self):
        self.finish_and_check({"replay.shards": 2})

    def test_blobs_travel_over_tcp_too(self):
        self.finish_and_check({"transport": "tcp"})

    def test_two_shards_over_tcp_and_two_replicas_finish(self):
        self.finish_and_check({"transport": "tcp", "replay.placement": "own", "replay.shards": 2,
                               "learners.replicas": 2})


if __name__ == "__main__":
    unittest.main()
