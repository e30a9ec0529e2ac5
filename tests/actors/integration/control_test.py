"""A run is found by name, directory and address, shows how it stands, and obeys whoever has its secret. Two runs
side by side never touch each other."""
import json
import os
import re
import signal
import stat
import unittest

from harness import RunTest, processes_with, wait_until


class Control(RunTest):
    def stop(self, run, *words):
        done = run.troupe("stop", run.directory, *words)
        self.assertEqual(done.returncode, 0, done.stderr + run.told())
        self.assertEqual(run.wait(10), 130, run.told())
        self.assert_no_trace(run)
        return done.stdout

    def test_a_run_shows_how_it_stands_under_each_of_its_names(self):
        run = self.start(self.ENDLESS, directory="first")
        run.ready("learner-0", "actor-0", "actor-1", "evaluator-0")
        run.progressed(500, 50)
        entry = json.loads((run.directory / "control.json").read_text())
        self.assertEqual(stat.S_IMODE((run.directory / "control.json").stat().st_mode), 0o600)
        for name in (run.directory, "first", f"{entry['host']}:{entry['port']}"):
            status = json.loads(run.troupe("status", name, "--json").stdout)
            self.assertEqual((status["run"], status["pid"], status["state"]), ("first", run.process.pid, "running"))
        ledger = status["ledger"]
        self.assertGreater(ledger["inserted"], 400)
        self.assertEqual(ledger["inserted"] + ledger["prefilled"],
                         ledger["held"] + ledger["removed"] + ledger["lost_with_shard"])
        nodes = {node["name"]: node for node in status["nodes"]}
        self.assertEqual({name: node["pid"] for name, node in nodes.items()},
                         {name: pid for name, (pid, _) in run.nodes().items()})
        self.assertEqual(nodes["actor-0"]["state"], "ready")
        self.assertLess(nodes["actor-0"]["lag"], status["version"] + 1)
        self.assertEqual(nodes["learner-0"]["restarts"], {"left": 10, "allowed": 10})
        run.tell(signal.SIGKILL, run.pid_of("actor-1"))
        wait_until(lambda: {n["name"]: n["restarts"]["left"] for n in run.status()["nodes"]}["actor-1"] == 9,
                   what="one restart less")
        text = run.control("status")
        self.assertRegex(text, r"first  running  pid \d+")
        self.assertRegex(text, r"actor-0 +\S+ +environment +ready")
        listed = run.troupe("status")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn(str(run.directory), listed.stdout)
        self.assertIn("exit code 130", self.stop(run))
        outcome = json.loads((run.directory / "outcome.json").read_text())
        self.assertEqual((outcome["state"], outcome["exit_code"]), ("interrupted", 130))
        self.assert_ledger(run)
        over = run.troupe("status", run.directory)
        self.assertEqual(over.returncode, 2)
        self.assertIn("the last run there was interrupted: `troupe stop`", over.stderr)
        self.assertIn("no run is alive", run.troupe("status").stdout)

    def test_two_runs_side_by_side_never_touch_each_other(self):
        runs = [self.start(self.ENDLESS, directory=name) for name in ("one", "two")]
        for run in runs:
            run.ready("learner-0", "actor-0")
        one, two = runs
        said = one.troupe("stop")
        self.assertEqual(said.returncode, 2)
        self.assertIn("several runs are alive, say which: one, two", said.stderr)
        self.assertIn("did you mean two?", one.troupe("stop", "twoo").stderr)
        # A second one in the same directory is refused by name and process.
        again = self.start(self.ENDLESS, directory="one")
        self.assertEqual(again.wait(20), 1)
        self.assertIn(f"process {one.process.pid} runs one in {one.directory}", again.said())
        # What a crashed one leaves is removed by the next, and only that.
        two.tell(signal.SIGKILL)
        two.wait(10)
        wait_until(lambda: not processes_with(two.marker), 10, "the end of its nodes")
        self.assertEqual(len(list(self.temporary.glob("troupe-*"))), 2)
        self.assertNotIn("two", one.troupe("status").stdout)
        third = self.start(self.ENDLESS, directory="two")
        third.ready("learner-0", "actor-0")
        self.assertEqual(len(list(self.temporary.glob("troupe-*"))), 2)
        one.progressed(200, 20)
        self.assertEqual(one.nodes().keys(), {"learner-0", "actor-0", "actor-1", "evaluator-0"})
        self.assertNotIn("is started again", one.log())
        for run in (third, one):
            run.tell(signal.SIGINT)
            self.assertEqual(run.wait(10), 130, run.told())
        self.assert_no_trace(one)

    def test_whoever_has_no_secret_is_refused_and_changes_nothing(self):
        run = self.start(self.ENDLESS)
        run.ready("learner-0", "actor-0")
        entry = json.loads((run.directory / "control.json").read_text())
        forged = self.root / "forged.json"
        forged.write_text(json.dumps(dict(entry, secret="0" * 32)))
        address = f"{entry['host']}:{entry['port']}"
        for words in (["stop", address, "--now"], ["status", address], ["scale", address, "actors=3"],
                      ["drain", f"{address}/actor-0"]):
            done = run.troupe(*words, "--secret", forged)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("that is not the secret of this run", done.stderr)
        self.assertEqual(run.log().count("does not know the run's secret"), 4)
        run.progressed(200, 20)
        good = self.root / "copy.json"
        good.write_text(json.dumps(entry))
        self.assertEqual(run.troupe("status", address, "--secret", good).returncode, 0)
        # Nothing that a node knows is the secret.
        for pid in processes_with(run.marker):
            for name in ("environ", "cmdline"):
                self.assertNotIn(entry["secret"].encode(), open(f"/proc/{pid}/{name}", "rb").read())
        self.assertIn("without a checkpoint", self.stop(run, "--now"))
        self.assertEqual(run.checkpoints(), [])

    def test_what_cannot_be_done_is_refused_with_the_reason(self):
        run = self.start(self.ENDLESS)
        run.ready("learner-0", "actor-0", "actor-1")
        for words, text in ((["scale", run.directory, "actros=3"], "did you mean actors?"),
                            (["scale", run.directory, "actors=many"], "a number of nodes is expected"),
                            (["scale", run.directory], "say how many"),
                            (["scale", run.directory, "actors=65"], "actors.max = 64"),
                            (["scale", run.directory, "shards=2"], "live in the learner's process"),
                            (["scale", run.directory, "learners=2"], "learners.max"),
                            (["drain", f"{run.directory}/actor-9"], "there is no node actor-9"),
                            (["status", self.root / "nowhere"], "no run is called")):
            done = run.troupe(*words)
            self.assertEqual(done.returncode, 2, (words, done.stdout))
            self.assertIn(text, done.stderr)
        self.stop(run)


if __name__ == "__main__":
    unittest.main()
