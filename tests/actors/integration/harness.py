"""Starts real runs of the built program and looks at them from outside.

Every process of a run inherits a marker in its environment; that is how a Run finds its own children, orphans
included, and why nothing else is ever signalled. Limits are those a user is promised, never measured speed.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

PROGRAM = os.environ["TROUPE_PROGRAM"]
SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
SMOKE = SOURCE / "configs" / "smoke.yaml"
PATIENCE = 120.0  # s; for what must happen but has no promised time


def factor():
    """How many times longer a long test lasts: the number behind --factor, which is taken out of the arguments."""
    if "--factor" not in sys.argv:
        return 1
    at = sys.argv.index("--factor")
    value = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    return value


def wait_until(condition, limit=PATIENCE, what="the condition"):
    """The condition's first true value; AssertionError after `limit` seconds."""
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {limit} s")
        time.sleep(0.02)


def processes_with(marker):
    """{pid: command line} of the live processes that inherited the marker."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if marker.encode() not in (entry / "environ").read_bytes():
                continue
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if state not in "ZX":
            found[int(entry.name)] = " ".join(word.decode() for word in words)
    return found


class Run:
    """One start of `troupe run` on a directory."""

    def __init__(self, directory, overrides=None, config=SMOKE, temporary=None):
        self.directory = pathlib.Path(directory)
        self.marker = "TROUPE_TEST_RUN=" + uuid.uuid4().hex
        name, value = self.marker.split("=")
        environment = dict(os.environ, **{name: value})
        if temporary is not None:
            environment.update(TMPDIR=str(temporary), XDG_RUNTIME_DIR=str(temporary))
        self.environment = environment
        words = [PROGRAM, "run", str(config), "--run-directory", str(self.directory)]
        for key, setting in (overrides or {}).items():
            words += ["--set", f"{key}={setting}"]
        self._errors = tempfile.TemporaryFile()
        # What an earlier start in this directory left does not count as this one's.
        self._started = time.time()
        path = self.directory / "log" / "coordinator.log"
        self._log_start = path.stat().st_size if path.exists() else 0
        self.process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self._errors,
                                        process_group=0)

    def said(self):
        """Everything on stderr so far."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def log(self):
        """What the coordinator's log got from this start."""
        path = self.directory / "log" / "coordinator.log"
        return path.read_bytes()[self._log_start:].decode(errors="replace") if path.exists() else ""

    def told(self):
        return self.said() + self.log()

    def troupe(self, *words, limit=60):
        """A verb of the program in the run's environment."""
        return subprocess.run([PROGRAM, *map(str, words)], env=dict(self.environment, TROUPE_TEST_RUN=""),
                              capture_output=True, text=True, timeout=limit)

    def control(self, verb, *words):
        """What the run answers to a verb that it carries out."""
        done = self.troupe(verb, self.directory, *words)
        assert done.returncode == 0, (done.stdout, done.stderr, self.told())
        return done.stdout.strip()

    def status(self):
        return json.loads(self.control("status", "--json"))

    def wait(self, limit=PATIENCE):
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the run did not end within {limit} s; it said:\n{self.told()}") from None

    def nodes(self):
        """{name: (pid, incarnation)} of the node processes."""
        nodes = {}
        for pid, line in processes_with(self.marker).items():
            match = re.search(r" node .*--name (\S+) --incarnation (\d+)", line)
            if match:
                nodes[match[1]] = (pid, int(match[2]))
        return nodes

    def pid_of(self, name):
        return wait_until(lambda: self.nodes().get(name), what=f"{name} in the process list")[0]

    def tell(self, number, pid=None):
        """Sends a signal to the run's own process, or to one of its nodes."""
        if pid is not None:
            assert pid in processes_with(self.marker), "only processes of this run"
        os.kill(self.process.pid if pid is None else pid, number)

    def metrics(self):
        """The complete rows of metrics.jsonl that this start wrote."""
        path = self.directory / "metrics.jsonl"
        if not path.exists():
            return []
        rows = [json.loads(line) for line in path.read_text().split("\n")[:-1] if line]
        return [row for row in rows if row["time"] >= self._started]

    def last(self, key, missing=0):
        rows = self.metrics()
        return rows[-1].get(key, missing) if rows else missing

    def checkpoints(self):
        """(manifest, state) of the complete checkpoints, oldest first."""
        found = []
        for path in (self.directory / "checkpoints").glob("step_*/manifest.json"):
            try:
                state = json.loads((path.parent / "state.json").read_text())
                found.append((json.loads(path.read_text()), state, path.parent))
            except (OSError, ValueError):
                continue  # removed meanwhile, or damaged by the test
        return sorted(found, key=lambda entry: entry[0]["sequence"])

    def ready(self, *names):
        """Waits until the coordinator says that these nodes serve."""
        for name in names:
            wait_until(lambda: f"{name} serves" in self.log() or self.process.poll() is not None,
                       what=f"{name} serves")
            assert self.process.poll() is None, self.told()

    def progressed(self, actor_steps=1, updates=1):
        """Waits until so many steps and updates are reported beyond the present ones."""
        steps, version = self.last("actor_steps"), self.last("learner_updates")
        wait_until(lambda: self.last("actor_steps") >= steps + actor_steps and
                   self.last("learner_updates") >= version + updates, what="progress")

    def kill_all(self):
        for _ in range(100):
            left = processes_with(self.marker)
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if self.process.poll() is not None and not left:
                break
            time.sleep(0.02)
        self._errors.close()


class RunTest(unittest.TestCase):
    """A test with a directory of its own, where all its runs are over at the end."""

    # Written often, so that what a test waits for is seen soon.
    QUICK = {"telemetry.every": "100ms", "telemetry.endpoint": "tcp://127.0.0.1:*"}
    # Goes on until it is told to stop.
    ENDLESS = {**QUICK, "stop.actor_steps": 0, "evaluation.every": 0, "checkpoint.every": "0s"}

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="troupe-integration-"))
        self.temporary = self.root / "tmp"
        self.temporary.mkdir()
        self.runs = []

    def tearDown(self):
        for run in self.runs:
            run.kill_all()
        shutil.rmtree(self.root, ignore_errors=True)

    def start(self, overrides=None, directory="run", config=SMOKE):
        path = directory if isinstance(directory, pathlib.Path) else self.root / directory
        self.runs.append(Run(path, overrides, config, self.temporary))
        return self.runs[-1]

    def finish(self, overrides=None, directory="run", code=0, limit=PATIENCE):
        """A run from start to end."""
        run = self.start(overrides, directory)
        self.assertEqual(run.wait(limit), code, run.told())
        self.assert_no_trace(run)
        return run

    def refused(self, overrides, code, *words, directory="run", config=SMOKE):
        """A run that must not start; each word must be in its message."""
        run = self.start(overrides, directory, config)
        self.assertEqual(run.wait(20), code, run.told())
        said = run.said()
        for word in words:
            self.assertIn(word, said)
        self.assertLessEqual(len([line for line in said.split("\n") if line]), 3, said)
        self.assert_no_trace(run)
        return said

    def assert_no_trace(self, run, limit=10.0):
        """Neither a process nor a socket directory is left."""
        wait_until(lambda: not processes_with(run.marker), limit, "the end of all processes")
        if run.process.poll() is not None and run.process.returncode >= 0:
            self.assertEqual(list(self.temporary.glob("troupe-*")), [])

    def assert_ledger(self, run):
        """Of the newest checkpoint, to the step."""
        checkpoints = run.checkpoints()
        self.assertTrue(checkpoints, "there is no complete checkpoint")
        ledger = checkpoints[-1][1]["ledger"]
        self.assertEqual(ledger["inserted"] + ledger.get("prefilled", 0),
                         ledger["held"] + ledger["removed"] + ledger["lost_with_shard"], ledger)
        return checkpoints[-1]
