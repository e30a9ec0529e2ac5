"""Environment actors at full speed: what two gain over one, beside what two bare physics loops gain.

The limiter is off and the learner only counts, so nothing but stepping, encoding and inserting is
measured: walker_walk, wall-clock time, both sides in turns in the same run."""

import glob
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RAW = pathlib.Path(__file__).resolve().parent / "peers" / "raw_physics.py"
SECONDS, ROUNDS, SUBSTEPS = 6.0, 5, 10


def raw_rate(loops):
    """Control steps per second of so many raw loops at once, together."""
    model = glob.glob(f"{ROOT}/.venv/lib/python3*/site-packages/dm_control/suite/walker.xml")[0]
    python = ROOT / ".venv" / "bin" / "python"
    running = [subprocess.Popen([python, RAW, model, str(SUBSTEPS), str(SECONDS)], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(loops)]
    for process in running:
        process.stdout.readline()
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in running)


def troupe_rate(actors):
    """Actor steps per second of a run with so many environment actors, without its start."""
    with tempfile.TemporaryDirectory() as directory:
        settings = {"job": "null", "actors.count": actors, "actors.min": 1, "telemetry.every": "500ms",
                    "replay.samples_per_insert": 0, "replay.min_size": 5000000,
                    "replay.capacity": 5000000, "checkpoint.every": "0s", "checkpoint.replay": "false",
                    "evaluation.every": 0, "evaluation.episodes": 1, "stop.wall_time": f"{SECONDS + 2:.0f}s"}
        command = [ROOT / "troupe", "run", ROOT / "configs" / "walker_walk.yaml", "--quiet",
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
    """One object with rates, gains and the ratio of the gains."""
    rates = {"raw_1": [], "raw_2": [], "actors_1": [], "actors_2": []}
    for turn in range(ROUNDS):
        rates["raw_1"].append(raw_rate(1))
        rates["actors_1"].append(troupe_rate(1))
        rates["raw_2"].append(raw_rate(2))
        rates["actors_2"].append(troupe_rate(2))
        progress(f"round {turn + 1} of {ROUNDS}: " +
                 ", ".join(f"{name} {values[-1]:.0f}/s" for name, values in rates.items()))
    gains = {side: [two / one for one, two in zip(rates[f"{side}_1"], rates[f"{side}_2"])]
             for side in ("raw", "actors")}
    # The share of the second loop's extra steps that the second actor brings too.
    share = [(actors - 1) / (raw - 1) for actors, raw in zip(gains["actors"], gains["raw"])]
    return {"name": "actors", "rounds": ROUNDS,
            "steps_per_second": {name: statistics.median(values) for name, values in rates.items()},
            "gains": {side: sorted(values) for side, values in gains.items()},
            "ratios": {"actor_gain_over_raw_gain": statistics.median(
                           a / r for a, r in zip(gains["actors"], gains["raw"])),
                       "extra_steps_share": statistics.median(share),
                       "one_actor_over_raw": statistics.median(
                           a / r for a, r in zip(rates["actors_1"], rates["raw_1"]))}}
