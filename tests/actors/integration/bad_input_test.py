"""What a user or a machine can get wrong: one message that names the thing, exit code 2 or 1, nothing lost."""
import signal
import socket
import subprocess
import unittest

from harness import SMOKE, RunTest, wait_until


class Configuration(RunTest):
    def config(self, text):
        path = self.root / "mine.yaml"
        path.write_text(SMOKE.read_text() + text)
        return path

    def line_of(self, path, key):
        lines = path.read_text().split("\n")
        return next(number for number, line in enumerate(lines, 1) if key in line)

    def test_an_unknown_key_is_named_with_line_and_nearest_name(self):
        for text, nearest in [("repaly: {capacity: 5}\n", "replay"), ("sede: 3\n", "seed")]:
            path = self.config(text)
            key = text.split(":")[0]
            self.refused({}, 2, f"{path}:{self.line_of(path, key)}", key, nearest, config=path)

    def test_a_learning_rate_under_the_wrong_name_is_refused_in_every_notation(self):
        for number in ["1e-4", "1e4"]:
            said = self.refused({"d4pg.lr": number}, 2, "d4pg.lr")
            self.assertIn("learning_rate", said)

    def test_a_number_in_exponent_form_is_a_number(self):
        self.finish({**self.QUICK, "d4pg.learning_rate": "1e-4", "stop.actor_steps": 300, "seed": 0})

    def test_a_value_of_the_wrong_type_is_named(self):
        self.refused({"actors.count": "many"}, 2, "actors.count", "many")
        self.refused({"d4pg.learning_rate": "[1, 2]"}, 2, "d4pg.learning_rate")
        path = self.config("telemetry: {every: soon}\n")
        self.refused({}, 2, f"{path}:{self.line_of(path, 'soon')}", "telemetry.every", config=path)

    def test_a_missing_file_is_named(self):
        path = self.root / "none.yaml"
        self.refused({}, 2, str(path), config=path)
        self.assertFalse((self.root / "run").exists())

    def test_an_environment_without_bounds_is_refused_with_the_reason(self):
        said = self.refused({"environment.name": "probe/unbounded"}, 2, "probe/unbounded", "bound")
        self.assertNotIn("restart", said)

    def test_an_unknown_environment_is_refused_with_its_name(self):
        self.refused({"environment.name": "dmc/cartpole_swingupp"}, 2, "dmc/cartpole_swingupp",
                     "dmc/cartpole_swingup")

    def test_a_limiter_that_cannot_work_is_refused_with_the_arithmetic(self):
        self.refused({"replay.error_buffer": 5}, 2, "replay: 2 x error_buffer", "raise error_buffer to 20")


class Machine(RunTest):
    def test_a_telemetry_port_in_use_is_named(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            endpoint = f"tcp://127.0.0.1:{other.getsockname()[1]}"
            self.refused({"telemetry.endpoint": endpoint}, 1, endpoint, "in use")

    def test_a_directory_that_cannot_be_written_is_named(self):
        file = self.root / "file"
        file.write_text("not a directory")
        for path in [file / "run", file]:
            run = self.start({}, directory=path)
            self.assertIn(run.wait(20), (1, 2), run.told())
            self.assertIn(str(path), run.said())
        self.assertEqual(file.read_text(), "not a directory")
        run = self.start({}, directory=type(self.root)("/proc/troupe"))
        self.assertEqual(run.wait(20), 1, run.told())
        self.assertIn("/proc/troupe", run.said())

    def test_a_directory_of_something_else_is_left_alone(self):
        other = self.root / "thesis"
        other.mkdir()
        (other / "chapter1.txt").write_text("It was a dark night.")
        run = self.start({}, directory=other)
        self.assertEqual(run.wait(20), 2, run.told())
        self.assertIn(str(other), run.said())
        self.assertEqual([path.name for path in other.iterdir()], ["chapter1.txt"])

    def test_a_full_disk_costs_checkpoints_but_not_the_run(self):
        disk = self.root / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)],
                                 capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("mount is not permitted here: " + mounted.stderr.strip())
        try:
            # A small table and few rows: what is kept must fit however fast this machine is.
            run = self.start({**self.ENDLESS, "checkpoint.every": "300ms", "checkpoint.keep": 2,
                              "replay.capacity": 300, "telemetry.every": "1s"}, directory=disk / "run")
            wait_until(run.checkpoints, what="a checkpoint while there was room")
            ballast = disk / "ballast"
            with open(ballast, "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(b"x" * 4096)
                except OSError:
                    pass
            wait_until(lambda: "checkpoint not written" in run.told(), what="the failure is told")
            self.assertIn("No space left on device", run.told())
            self.assertIsNone(run.process.poll())
            # What stood before stands: complete, and of no half-written part beside it.
            older = run.checkpoints()
            self.assertTrue(older)
            for part in older[-1][0]["files"]:
                self.assertEqual((older[-1][2] / part["path"]).stat().st_size, part["bytes"], part)
            ballast.unlink()
            newest = older[-1][0]["sequence"]
            wait_until(lambda: run.checkpoints()[-1][0]["sequence"] > newest, what="a checkpoint again")
            run.tell(signal.SIGINT)
            self.assertEqual(run.wait(10), 130, run.told())
            self.assert_ledger(run)
        finally:
            run.kill_all()
            subprocess.run(["umount", str(disk)], check=True)


if __name__ == "__main__":
    unittest.main()
