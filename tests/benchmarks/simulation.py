"""The simulation of runs (actors/simulation/) beside real ones: measures what each part costs with one environment
actor, simulates 1, 2, 4 and 8 of them, and runs as many.

Costs are CPU times of single threads, so that a busy machine blurs them less. Real and simulated rates are compared;
an error is |simulated / real - 1|, real being the median of the rounds."""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

import actors

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "bin" / "troupe"
SIMULATE = ROOT / "build" / "actors" / "simulation" / "troupe_simulate"
COORDINATOR = ROOT / "build" / "tests" / "actors" / "roles" / "troupe_coordinator_benchmark"
ROUNDS, SECONDS, SETTLE = 3, 2.5, 0.7
COUNTS = (1, 2, 4, 8)

ENVIRONMENTS = {"cheap": {"name": "pendulum", "episode": 200, "observation": 3, "action": 1},
                "expensive": {"name": "dmc/walker_walk", "episode": 1000, "observation": 24, "action": 6}}
QUIET = {"telemetry.every": "200ms", "checkpoint.every": "0s", "checkpoint.replay": "false", "evaluation.every": 0,
         "evaluation.episodes": 1, "actors.min": 1, "learners.threads": 1, "stop.wall_time": "60s"}
FREE = {"job": "null", "replay.samples_per_insert": 0, "replay.min_size": 50000000, "replay.capacity": 50000000}
# Small chunks, and a ratio that holds nobody up.
CHUNKS = {"job": "null", "replay.samples_per_insert": 1, "replay.min_size": 1000, "replay.error_buffer": 128,
          "d4pg.batch": 64, "learners.prefetch": 1, "actors.credit": 16}
LEARNING = {"replay.samples_per_insert": 16, "replay.min_size": 2000, "d4pg.batch": 128, "learners.prefetch": 4,
            "d4pg.policy": [64, 64], "d4pg.critic": [128, 128], "d4pg.v_min": -2000, "d4pg.v_max": 1000}


class Failed(Exception):
    """One sentence that says what went wrong."""


def threads_of(pid):
    """{thread name: seconds of CPU time} of a process, of its present threads."""
    times = {}
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            name = (task / "comm").read_text().strip()
            times[name] = times.get(name, 0) + int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue  # it ended meanwhile
    return times


def nodes_of(pid):
    """{name of a node: its pid} of a run, "run" being its own process."""
    nodes = {"run": pid}
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            words = pathlib.Path(f"/proc/{child}/cmdline").read_text().split("\0")
            if "--name" in words:
                nodes[words[words.index("--name") + 1]] = int(child)
    return nodes


def busy_seconds():
    """Seconds of all cores of this machine in which something ran."""
    words = [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(words) - words[3] - words[4]) / os.sysconf("SC_CLK_TCK")


class Run:
    """A real run of some seconds: `rates` of actor steps and updates, `cpu[node][thread]` in cores, and `busy` cores of
    the machine."""

    def __init__(self, environment, count, *settings, seconds=SECONDS):
        merged = {**QUIET, "environment.name": environment["name"], "actors.count": count, "actors.max": 64}
        for more in settings:
            merged.update(more)
        self.learns = merged["replay.min_size"] < 1000000
        with tempfile.TemporaryDirectory() as directory:
            self.path = pathlib.Path(directory) / "run"
            command = [PROGRAM, "run", ROOT / "configs" / "base.yaml", "--quiet", "--run-directory", self.path]
            for key, value in merged.items():
                command += ["--set", f"{key}={json.dumps(value) if isinstance(value, list) else value}"]
            with open(pathlib.Path(directory) / "errors", "w+", encoding="utf-8") as errors:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
                try:
                    self._observe(process, seconds)
                except Failed:
                    errors.seek(0)
                    raise Failed(f"a run of {environment['name']} gave no figures: {errors.read()[-500:]}") from None
                finally:
                    for _ in range(2):
                        process.send_signal(signal.SIGINT)
                        time.sleep(0.3)
                    process.wait(30)

    def _rows(self):
        path = self.path / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []

    def _observe(self, process, seconds):
        deadline = time.time() + 30
        moving = "learner_updates" if self.learns else "actor_steps"
        while not any(row.get(moving, 0) > 0 for row in self._rows()):
            if process.poll() is not None or time.time() > deadline:
                raise Failed("it does not move")
            time.sleep(0.05)
        time.sleep(SETTLE)
        nodes = nodes_of(process.pid)
        begun, busy = time.time(), busy_seconds()
        before = {node: threads_of(pid) for node, pid in nodes.items()}
        time.sleep(seconds)
        after = {node: threads_of(pid) for node, pid in nodes.items()}
        ended = time.time()
        self.busy = (busy_seconds() - busy) / (ended - begun)
        self.cpu = {node: {name: (used - before[node].get(name, 0)) / (ended - begun) for name, used in times.items()}
                    for node, times in after.items()}
        time.sleep(0.3)
        rows = [row for row in self._rows() if begun - 0.25 <= row["time"] <= ended + 0.25]
        span = rows[-1]["time"] - rows[0]["time"]
        self.steps, self.updates = ((rows[-1].get(key, 0) - rows[0].get(key, 0)) / span
                                    for key in ("actor_steps", "learner_updates"))

    def of_process(self, node, without=()):
        """Cores of a node's process besides some threads."""
        return sum(used for name, used in self.cpu[node].items() if name not in without)


def full_speed():
    """Speed of each of two cores that are both busy, beside one alone: median of three rounds of raw physics."""
    return min(1.0, statistics.median(actors.raw_rate(2, 2.0) / actors.raw_rate(1, 2.0) / 2 for _ in range(3)))


class Costs:
    """Options of the simulation, from runs with one environment actor."""

    def __init__(self, full, environment, progress):
        self.full = full
        free = Run(environment, 1, FREE)
        chunks = Run(environment, 1, CHUNKS)
        learning = Run(environment, 1, LEARNING)
        progress(f"{environment['name']}: alone {free.steps:.0f} steps/s, in chunks of 4 {chunks.steps:.0f}, learning "
                 f"{learning.steps:.0f} and {learning.updates:.0f} updates/s")
        # A node without work; what is beyond it in the others' processes carries chunks.
        node = free.of_process("evaluator-0")
        learning_threads = ["learner-0", "prefetch"]
        step, chunk = self.two(free, chunks, environment, lambda run: run.cpu["actor-0"]["actor-0"])
        send_step, send_chunk = self.two(
            free, chunks, environment, lambda run: max(0, run.of_process("actor-0", ["actor-0"]) - node))
        receive_step, receive_chunk = self.two(
            free, chunks, environment, lambda run: max(0, run.of_process("learner-0", ["shard", *learning_threads]) - node))
        insert_step, insert_chunk = self.two(free, chunks, environment, lambda run: run.cpu["learner-0"]["shard"])
        row = 4 * (environment["observation"] + environment["action"] + 4)
        self.options = {
            "cores": os.cpu_count(), "full_speed": full, "episode_steps": environment["episode"],
            "step": step, "chunk": chunk, "insert_step": insert_step, "insert_chunk": insert_chunk,
            "send_step": send_step, "send_chunk": send_chunk, "receive_step": receive_step,
            "receive_chunk": receive_chunk,
            "step_bytes": row, "item_bytes": 2 * row, "poll": 0, "publish": 0, "publish_each": 0, "take_parameters": 0,
            "local_latency": 50e-6, "messages": 0, "node": node,
            "shared": free.of_process("run") + 2 * node + sum(free.cpu["learner-0"][name] for name in learning_threads)}
        speed = self.speed(learning)
        self.learning = {"update": learning.cpu["learner-0"]["learner-0"] / learning.updates * speed,
                         "sample_batch": learning.cpu["learner-0"]["prefetch"] / learning.updates * speed,
                         "sample_item": 0}

    def speed(self, run):
        """Of its cores, beside that of one which is busy alone."""
        return 1 - (1 - self.full) * min(1, max(0, run.busy - 1))

    def two(self, large, small, environment, cores):
        """Cost of a step and of a chunk, from the cores taken in runs with large and small chunks."""
        each, chunks = [], []
        for run, steps in zip((large, small), (256, 4)):  # by the flush rule
            each.append(cores(run) / run.steps * self.speed(run))
            chunks.append(-(-environment["episode"] // steps) / environment["episode"])  # a step
        chunk = max(0.0, (each[1] - each[0]) / (chunks[1] - chunks[0]))
        return max(1e-9, each[0] - chunk * chunks[0]), chunk


def measure_coordinator(_progress, nodes=300):
    """The coordinator with light nodes: tests/benchmarks/coordinator_main.cpp."""
    done = subprocess.run([COORDINATOR, str(nodes), "8"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"{COORDINATOR.name} ended with exit code {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def simulate(runs):
    """The figures of each run, options by name."""
    done = subprocess.run([SIMULATE], input="\n".join(map(json.dumps, runs)) + "\n", text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Failed(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def cases(names):
    """(name, environment, settings of the real run, options of the simulated one)"""
    learning = {"samples_per_insert": 16, "min_size": 2000, "batch": 128, "prefetch": 4, "n_step": 5}
    for name in names:
        environment = ENVIRONMENTS[name]
        yield f"{name}, no limiter, null learner", environment, FREE, {"min_size": 50000000}
        yield f"{name}, limiter, d4pg", environment, LEARNING, learning


def measure(progress, names=tuple(ENVIRONMENTS), rounds=ROUNDS):
    """One object with rates, errors and costs."""
    full = full_speed()
    before, begun = busy_seconds(), time.time()
    time.sleep(1)
    progress(f"two busy cores run at {full:.2f} of the speed of one; without work {busy_seconds() - before:.2f} of "
             f"{os.cpu_count()} cores are busy for {time.time() - begun:.1f} s")
    costs = {name: Costs(full, ENVIRONMENTS[name], progress) for name in names}
    real, table = {}, []
    for turn in range(rounds):
        for name, environment, settings, _ in cases(names):
            for count in COUNTS:
                run = Run(environment, count, settings)
                real.setdefault((name, count), []).append((run.steps, run.updates))
        progress(f"round {turn + 1} of {rounds} is over")
    for name, environment, settings, options in cases(names):
        kind = name.split(",")[0]
        base = {**costs[kind].options, **(costs[kind].learning if settings is LEARNING else {}), **options}
        for count, figures in zip(COUNTS, simulate([{**base, "actors": count} for count in COUNTS])):
            steps = statistics.median(each[0] for each in real[name, count])
            table.append({"case": name, "actors": count, "real": steps, "simulated": figures["actor_steps"],
                          "error": abs(figures["actor_steps"] / steps - 1), "limit": figures["limit"],
                          "rounds": [each[0] for each in real[name, count]]})
            progress(f"{name}, {count} actors: real {steps:.0f} steps/s, simulated {figures['actor_steps']:.0f}, "
                     f"error {100 * table[-1]['error']:.0f} %")
    return {"name": "simulation", "rounds": rounds, "full_speed": full,
            "costs": {name: {**costs[name].options, **costs[name].learning} for name in names}, "runs": table,
            "ratios": {f"{row['case']}, {row['actors']}": row["simulated"] / row["real"] for row in table},
            "largest_error": max(row["error"] for row in table)}
