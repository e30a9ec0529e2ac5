"""Runs of up to 1000 environment actors, simulated with measured costs: where more of them bring no more, and which
option moves that. Writes prediction.svg beside this file.

The run: walker_walk, D4PG with the default networks, 16 shards and 8 learners (a batch of 2048, 256 each) on 64 hosts
of 16 cores, 10 Gbit/s and 100 us apart."""

import json
import math
import pathlib

import simulation

FIGURE = pathlib.Path(__file__).resolve().parent / "prediction.svg"
COUNTS = (1, 4, 16, 64, 125, 250, 500, 1000)
RUN = {"hosts": 64, "cores": 16, "shards": 16, "learners": 8, "shards_with_learner": False, "batch": 2048,
       "samples_per_insert": 64, "min_size": 20000, "prefetch": 4, "n_step": 5, "publish_every": 50, "shared": 0.2,
       "latency": 100e-6, "bandwidth": 1.25e9, "parameter_bytes": 300e3, "gradient_bytes": 650e3, "warm_up": 4,
       "seconds": 4}
# Each beside the run with 1000 environment actors.
KNOBS = {
    "as it is": {},
    "16 learners, a batch of 4096": {"learners": 16, "batch": 4096},
    "samples_per_insert 8": {"samples_per_insert": 8},
    "samples_per_insert 2": {"samples_per_insert": 2},
    "samples_per_insert 0 (no ratio)": {"samples_per_insert": 0},
    "publish_every 5": {"publish_every": 5},
    "publish_every 500": {"publish_every": 500},
    "64 shards": {"shards": 64},
    "1 ms between hosts": {"latency": 1e-3},
    "1 Gbit/s": {"bandwidth": 1.25e8},
}
CURVES = (("samples_per_insert 64", {}, "#1b6ca8"), ("samples_per_insert 8", {"samples_per_insert": 8}, "#c8553d"),
          ("no ratio", {"samples_per_insert": 0}, "#2e7d32"))
LEFT, TOP, WIDTH, HEIGHT = 70, 20, 560, 320


def svg(curves):
    """A text picture: actor steps a second over environment actors, both on logarithmic axes."""
    largest = max(value for _, _, values in curves for value in values)
    smallest = min(value for _, _, values in curves for value in values)
    top, bottom = math.ceil(math.log10(largest)), math.floor(math.log10(smallest))

    def place(count, value):
        x = LEFT + WIDTH * math.log10(count) / math.log10(COUNTS[-1])
        y = TOP + HEIGHT * (top - math.log10(value)) / (top - bottom)
        return f"{x:.1f},{y:.1f}"

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 30}" height="{TOP + HEIGHT + 60}" '
             'font-family="sans-serif" font-size="13">', '<rect width="100%" height="100%" fill="white"/>']
    for power in range(bottom, top + 1):
        x, y = place(1, 10**power).split(",")
        lines.append(f'<path d="M{x},{y} h{WIDTH}" stroke="#dddddd"/>'
                     f'<text x="{LEFT - 8}" y="{float(y) + 4:.1f}" text-anchor="end">{10**power:,}</text>')
    for count in (1, 10, 100, 1000):
        x = place(count, 10**bottom).split(",")[0]
        lines.append(f'<path d="M{x},{TOP} v{HEIGHT}" stroke="#dddddd"/>'
                     f'<text x="{x}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{count}</text>')
    for index, (name, colour, values) in enumerate(curves):
        points = " ".join(place(count, value) for count, value in zip(COUNTS, values))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines.append(f'<text x="{LEFT + 14}" y="{TOP + 20 + 18 * index}" fill="{colour}">{name}</text>')
    lines.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 42}" text-anchor="middle">environment actors</text>')
    lines.append(f'<text x="{LEFT}" y="{TOP - 6}">actor steps a second</text></svg>')
    return "\n".join(lines) + "\n"


def predict(progress, write=True):
    """One object with the table of options and the curves; the picture is written too."""
    costs = json.loads(simulation.COSTS.read_text(encoding="utf-8"))["costs"]
    base = {**costs, **RUN, "messages": costs["messages"], "actors": COUNTS[-1]}
    table = dict(zip(KNOBS, simulation.simulate([{**base, **knob} for knob in KNOBS.values()])))
    progress(f"{'1000 environment actors':<34}{'steps/s':>9}{'updates/s':>10}{'blocked':>8}{'lag':>7}"
             f"{'sends':>7}  limited by")
    for name, row in table.items():
        progress(f"{name:<34}{row['actor_steps']:9.0f}{row['updates']:10.1f}{100 * row['actors_blocked']:7.0f}%"
                 f"{row['policy_lag']:7.0f}{100 * row['sends']:6.0f}%  {row['limit']}")
    curves = []
    for name, knob, colour in CURVES:
        figures = simulation.simulate([{**base, **knob, "actors": count} for count in COUNTS])
        curves.append((name, colour, [max(1.0, each["actor_steps"]) for each in figures]))
        progress(f"{name}: " + ", ".join(f"{count} actors {each['actor_steps']:.0f} ({each['limit']})"
                                         for count, each in zip(COUNTS, figures)))
    if write:
        FIGURE.write_text(svg(curves), encoding="utf-8")
    return {"name": "prediction", "table": table, "curves": {name: values for name, _, values in curves}}
