"""Jobs on pictures beside the same networks in Python PyTorch, in turns in the same run.

torch_resnet, torch_sngan: steps per second of whole runs, from files to updates (`troupe run` with its
            data actors, no evaluation) beside a PyTorch program with a DataLoader, channels-last, with
            as many threads; of 0, 1 and 2 workers the count that is fastest there. A step of SN-GAN is
            one of the generator with those of the discriminator before it.
decode:     JPEGs to normalised random cuts of 224 x 224, pictures per second of one thread, beside
            torchvision on Pillow.
"""

import contextlib
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = pathlib.Path(__file__).resolve().parent / "peers"
ROUNDS, SECONDS, DECODE_SECONDS, THREADS, WORKERS = 5, 8.0, 3.0, 2, (0, 1, 2)
# Settings beside those of the shipped configuration: other data, no evaluation while it runs.
RUNS = {
    "resnet": ("resnet_fashion_mnist.yaml", {
        "data.kind": "image_folder", "data.path": "{folder}/small/train",
        "data.evaluation_path": "{folder}/small/val", "data.classes": "[]",
        "resnet.mean": "[128, 128, 128]", "resnet.deviation": "[64, 64, 64]", "evaluation.epochs": 0,
        "stop.epochs": 1000}),
    "sngan": ("sngan_fashion_mnist.yaml", {"data.path": "{folder}/idx", "data.classes": "[]",
                                           "stop.updates": 100000}),
}


class PeerFailed(Exception):
    """One sentence that says what went wrong."""


class Asked:
    """A program that prints "ready", then answers each line of seconds with a JSON line."""

    def __init__(self, *command):
        self.command = [str(part) for part in command]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise PeerFailed(f"'{' '.join(self.command)}' ended with exit code {self.process.wait()}")
        return line

    def rate(self, seconds):
        with contextlib.suppress(BrokenPipeError):    # a dead program gives no answer, said by line()
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
        return json.loads(self.line())["rate"]

    def __enter__(self):
        self.line()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def own_rate(program, folder, job):
    """(updates per second, share of that time in which the learner waited for pictures) of a run."""
    config, settings = RUNS[job]
    settings = settings | {
        "learners.threads": THREADS, "telemetry.every": "200ms", "evaluation.every": 0,
        "checkpoint.every": "0s", "stop.wall_time": f"{SECONDS + 4:.0f}s"}
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "run", ROOT / "configs" / config, "--quiet", "--run-directory",
                   f"{directory}/run"]
        for key, value in settings.items():
            command += ["--set", f"{key}={str(value).format(folder=folder)}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise PeerFailed(f"the run of {config} ended with exit code {done.returncode}: {done.stdout}")
        with open(f"{directory}/run/metrics.jsonl", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
    # Where the count moves on: not the start, and not what comes after the last update.
    moves = [after for before, after in zip(rows, rows[1:])
             if after["learner_updates"] > before["learner_updates"] > 0]
    if len(moves) < 6:
        raise PeerFailed(f"the run of {config} made too few updates to be timed: is the machine busy?")
    first, last = moves[1], moves[-1]
    time = last["time"] - first["time"]
    waited = statistics.mean(row.get("learner/pictures_blocked_share", 0) for row in moves[1:])
    return (last["learner_updates"] - first["learner_updates"]) / time, waited


def spread(values):
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def job(progress, program, python, folder, name):
    """Rates and ratios of one job beside its peer."""
    own, blocked, peers = [], [], {workers: [] for workers in WORKERS}
    with contextlib.ExitStack() as stack:
        running = {workers: stack.enter_context(
            Asked(python, PEERS / f"torch_{name}.py", folder, "--workers", workers, "--threads", THREADS))
            for workers in WORKERS}
        for turn in range(ROUNDS):
            rate, waited = own_rate(program, folder, name)
            own.append(rate)
            blocked.append(waited)
            for workers, peer in running.items():
                peers[workers].append(peer.rate(SECONDS))
            progress(f"{name}, round {turn + 1} of {ROUNDS}: troupe {rate:.2f}/s (waits {waited:.1%}), " +
                     ", ".join(f"torch with {workers} workers {rates[-1]:.2f}/s"
                               for workers, rates in peers.items()))
    best = max(WORKERS, key=lambda workers: statistics.median(peers[workers]))
    return {"ratio": spread([a / b for a, b in zip(own, peers[best])]), "troupe": spread(own),
            "waiting_share": spread(blocked), "best_workers": best,
            "torch": {str(workers): spread(rates) for workers, rates in peers.items()}}


def decode(progress, program, python, folder):
    own, other = [], []
    with Asked(program, folder / "large") as troupe, \
         Asked(python, PEERS / "torch_decode.py", folder / "large") as pillow:
        for turn in range(ROUNDS):
            own.append(troupe.rate(DECODE_SECONDS))
            other.append(pillow.rate(DECODE_SECONDS))
            progress(f"decode, round {turn + 1} of {ROUNDS}: troupe {own[-1]:.0f}/s, "
                     f"torchvision {other[-1]:.0f}/s")
    return {"ratio": spread([a / b for a, b in zip(own, other)]), "troupe": spread(own),
            "torchvision": spread(other)}


def measure(progress, program, decode_program, python):
    """One object with the ratios and everything that they come from."""
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        progress("making pictures")
        subprocess.run([python, PEERS / "make_pictures.py", folder], check=True)
        details = {f"torch_{name}": job(progress, program, python, folder, name) for name in RUNS}
        details["decode"] = decode(progress, decode_program, python, folder)
    return {"name": "supervised", "rounds": ROUNDS, "threads": THREADS,
            "ratios": {name: found["ratio"]["median"] for name, found in details.items()},
            "details": details}
