"""Environment actors at full speed: one, two and four of them, beside one and two bare physics loops.

The limiter is off and the learner only counts, so nothing but stepping, encoding and inserting is measured, by
wall-clock time, all in turns in the same run: two expensive environments and a cheap one, which has no physics to be
compared with."""

import glob
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RAW = pathlib.Path(__file__).resolve().parent / "peers" / "raw_physics.py"
SECONDS, ROUNDS = 4.0, 3
# Name, and model and physics steps of a control step of those on MuJoCo.
ENVIRONMENTS = {"walker": ("dmc/walker_walk", "walker.xml", 10), "cheetah": ("dmc/cheetah_run", "cheetah.xml", 1),
                "pendulum": ("pendulum", None, 0)}


def raw_rate(loops, seconds=SECONDS, model="walker.xml", substeps=10):
    """Control steps per second of so many raw loops at once, together."""
    path = glob.glob(f"{ROOT}/.venv/lib/python3*/site-packages/dm_control/suite/{model}")[0]
    python = ROOT / ".venv" / "bin" / "python"
    running = [subprocess.Popen([python, RAW, path, str(substeps), str(seconds)], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(loops)]
    for process in running:
        process.stdout.readline()
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in running)


def troupe_rate(actors, environment):
    """Actor steps per second of a run with so many environment actors, without its start."""
    with tempfile.TemporaryDirectory() as directory:
        settings = {"job": "null", "environment.name": environment, "actors.count": actors, "actors.min": 1,
                    "telemetry.every": "500ms", "replay.samples_per_insert": 0, "replay.min_size": 5000000,
                    "replay.capacity": 5000000, "checkpoint.every": "0s", "checkpoint.replay": "false",
                    "evaluation.every": 0, "evaluation.episodes": 1, "stop.wall_time": f"{SECONDS + 2:.0f}s"}
        command = [ROOT / "troupe", "run", ROOT / "configs" / "base.yaml", "--quiet",
                   "--run-directory", f"{directory}/run"]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(f"{directory}/run/metrics.jsonl", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
    stepping = [row for row in rows if row["actor_steps"] > 0]
    if len(stepping) < 6:
        raise RuntimeError(f"{actors} environment actors stepped for less than 3 s of {SECONDS + 2:.0f} s: "
                           "is the machine busy?")
    first, last = stepping[1], stepping[-2]
    return (last["actor_steps"] - first["actor_steps"]) / (last["time"] - first["time"])


def measure(progress):
    """One object with rates and their ratios."""
    rates = {}
    for turn in range(ROUNDS):
        for name, (environment, model, substeps) in ENVIRONMENTS.items():
            for loops in (1, 2) if model else ():
                rates.setdefault(f"{name}_raw_{loops}", []).append(raw_rate(loops, SECONDS, model, substeps))
            for count in (1, 2, 4):
                rates.setdefault(f"{name}_actors_{count}", []).append(troupe_rate(count, environment))
        progress(f"round {turn + 1} of {ROUNDS}: " +
                 ", ".join(f"{name} {values[-1]:.0f}/s" for name, values in rates.items()))

    def ratio(above, below):
        return statistics.median(a / b for a, b in zip(rates[above], rates[below]))

    ratios = {}
    for name, (_, model, _) in ENVIRONMENTS.items():
        if model:
            ratios[f"{name}: 1 actor / raw loop"] = ratio(f"{name}_actors_1", f"{name}_raw_1")
            ratios[f"{name}: 2 actors / 2 raw loops"] = ratio(f"{name}_actors_2", f"{name}_raw_2")
        ratios[f"{name}: 2 actors / 1"] = ratio(f"{name}_actors_2", f"{name}_actors_1")
        ratios[f"{name}: 4 actors / 2"] = ratio(f"{name}_actors_4", f"{name}_actors_2")
    return {"name": "actors", "rounds": ROUNDS, "ratios": ratios,
            "steps_per_second": {name: statistics.median(values) for name, values in rates.items()}}
