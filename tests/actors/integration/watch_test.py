"""`troupe watch` on a live run, on one that it joins late, and on none."""
import json
import signal
import subprocess
import unittest

from harness import PROGRAM, RunTest, wait_until

KINDS = {"metrics", "status"}


class Watch(RunTest):
    def watch(self, *words, **options):
        return subprocess.run([PROGRAM, "watch", *words], capture_output=True, text=True, timeout=30, **options)

    def endpoint(self, run):
        path = run.directory / "telemetry.json"
        wait_until(path.exists, what="the announcement")
        return json.loads(path.read_text())["endpoint"]

    def test_json_lines_come_until_the_run_ends(self):
        run = self.start(self.ENDLESS)
        endpoint = self.endpoint(run)
        with subprocess.Popen([PROGRAM, "watch", endpoint, "--json"], stdout=subprocess.PIPE, text=True) as watcher:
            seen = [json.loads(watcher.stdout.readline()) for _ in range(20)]
            self.assertLessEqual(KINDS, {message["kind"] for message in seen})
            for message in seen:
                self.assertLessEqual({"run", "node", "seq", "time", "actor_steps", "learner_updates"}, set(message))
            run.progressed()
            run.tell(signal.SIGINT)
            rest = [json.loads(line) for line in watcher.stdout]
            self.assertEqual(run.wait(10), 130, run.told())
            self.assertEqual(watcher.wait(10), 0)
        statuses = [message for message in seen + rest if message["kind"] == "status"]
        self.assertEqual(statuses[-1]["payload"]["state"], "interrupted")

    def test_a_late_joiner_gets_what_it_missed(self):
        run = self.start({**self.ENDLESS, "evaluation.every": 500, "telemetry.every": "2s"})
        wait_until(lambda: "evaluation at" in run.said(), what="an evaluation")
        once = self.watch(self.endpoint(run), "--once", "--json")
        self.assertEqual(once.returncode, 0, once.stderr)
        messages = [json.loads(line) for line in once.stdout.splitlines()]
        self.assertIn("evaluations", {message["kind"] for message in messages})
        self.assertEqual(len([m for m in messages if m["kind"] == "status"]), 1)
        shown = self.watch("--once", "--runs-directory", str(self.root))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"steps \d")
        run.tell(signal.SIGINT)
        self.assertEqual(run.wait(10), 130, run.told())

    def test_after_the_end_there_is_nothing_to_watch(self):
        run = self.start(self.ENDLESS)
        endpoint = self.endpoint(run)
        run.ready("learner-0")
        run.tell(signal.SIGTERM)
        run.wait(10)
        self.assertFalse((run.directory / "telemetry.json").exists())
        gone = self.watch(endpoint, "--once", "--timeout", "1")
        self.assertEqual(gone.returncode, 1)
        self.assertIn(endpoint, gone.stderr)
        none = self.watch("--once", "--runs-directory", str(self.root))
        self.assertEqual(none.returncode, 1)
        self.assertNotEqual(none.stderr, "")


if __name__ == "__main__":
    unittest.main()
