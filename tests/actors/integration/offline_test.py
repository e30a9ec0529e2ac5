"""From a run's experience to a file, and from the file to a run that never steps an environment to learn."""
import json
import subprocess
import unittest

import h5py
import numpy

from harness import PROGRAM, RunTest


class Offline(RunTest):
    OFFLINE = {**RunTest.QUICK, "actors.count": 0, "stop.actor_steps": 0, "stop.updates": 600,
               "evaluation.every": 250, "checkpoint.every": "0s"}

    def verb(self, *words):
        done = subprocess.run([PROGRAM, "replay", *map(str, words)], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def info(self, path):
        return json.loads(self.verb("info", path, "--json"))["files"]

    def episodes(self, **overrides):
        """A smoke run, and the file of its experience."""
        run = self.finish({**self.QUICK, **overrides}, directory="online")
        file = self.root / "episodes.hdf5"
        self.verb("export", run.directory, file)
        return run, file

    def test_a_run_is_exported_looked_at_imported_and_trained_from(self):
        online, file = self.episodes()
        held = self.info(online.directory)[0]
        with h5py.File(file) as opened:
            self.assertEqual(opened.attrs["environment"], "pendulum")
            lengths = [group["rewards"].shape[0] for group in opened.values()]
            self.assertEqual(sum(lengths), opened.attrs["total_steps"])
            whole = [numpy.sum(group["rewards"]) for group in opened.values()
                     if group.attrs["complete"]]
        self.assertAlmostEqual(held["mean_return"], numpy.mean(whole), places=3)
        self.assertEqual(held["environment"], "pendulum")
        self.assertEqual(held["steps"], sum(lengths) + len(lengths) - len(whole))

        table = self.root / "imported.table"
        self.verb("import", file, table, "--config", online.directory / "config.yaml")
        self.assertEqual(self.info(table)[0]["items"], held["items"])

        offline = self.finish({**self.OFFLINE, "replay.prefill": file}, directory="offline")
        manifest, state, directory = self.assert_ledger(offline)
        self.assertEqual(manifest["actor_steps"], manifest["version"])
        self.assertEqual(manifest["version"], 600)
        self.assertEqual(state["ledger"]["inserted"], 0)
        self.assertEqual(state["ledger"]["prefilled"], held["steps"])
        with numpy.load(offline.directory / "evaluations.npz") as evaluations:
            # How many come before depends on the machine; the last one is of the last checkpoint.
            self.assertEqual(evaluations["timesteps"][-1], 600)
        rows = offline.metrics()
        self.assertGreater(len(rows), 0)
        self.assertEqual(self.info(directory)[0]["items"], held["items"])

        # The same command goes on from the checkpoint, whether the file is still there or not.
        file.unlink()
        more = self.finish({"stop.updates": 900}, directory="offline")
        self.assertEqual(self.assert_ledger(more)[0]["version"], 900)

    def test_two_shards_share_a_file_and_a_table_serves_as_one(self):
        online, file = self.episodes()
        table = online.directory / "checkpoints" / "latest" / "replay-0.table"
        held = self.info(table)[0]
        for name, prefill in [("file", file), ("table", table)]:
            run = self.finish({**self.OFFLINE, "replay.prefill": prefill, "replay.shards": 2,
                               "replay.placement": "own"}, directory=name)
            shares = self.info(run.directory)
            self.assertEqual(len(shares), 2)
            self.assertEqual(sum(share["items"] for share in shares), held["items"])
            self.assertGreater(min(share["items"] for share in shares), held["items"] // 4)

    def test_a_prefilled_run_goes_on_with_environment_actors(self):
        _, file = self.episodes()
        run = self.finish({**self.QUICK, "replay.prefill": file}, directory="on")
        _, state, _ = self.assert_ledger(run)
        self.assertGreaterEqual(state["ledger"]["inserted"], 2000)
        self.assertGreater(state["ledger"]["prefilled"], 1900)

    def test_the_fixed_schedule_trains_offline_bit_for_bit(self):
        _, file = self.episodes()
        sums = []
        for name in ["one", "two"]:
            run = self.finish({**self.OFFLINE, "deterministic": "true", "replay.prefill": file},
                              directory=name)
            sums.append((self.assert_ledger(run)[2] / "parameters.safetensors").read_bytes())
        self.assertEqual(sums[0], sums[1])

    def test_a_bad_file_is_refused_before_anything_is_written(self):
        bad = self.root / "bad.hdf5"
        bad.write_bytes(b"no HDF5 and no table either")
        self.refused({**self.OFFLINE, "replay.prefill": bad}, 2, "replay.prefill", str(bad))
        self.refused({**self.OFFLINE}, 2, "replay.prefill names no file")
        self.assertFalse((self.root / "run" / "config.yaml").exists())

    def test_too_few_items_end_the_run_at_once(self):
        _, file = self.episodes()
        run = self.start({**self.OFFLINE, "replay.prefill": file, "replay.min_size": 9000}, "few")
        self.assertEqual(run.wait(), 1)
        self.assertIn("no environment actor will add any", run.told())


if __name__ == "__main__":
    unittest.main()
