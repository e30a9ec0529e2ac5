"""What named runs on real data reached: rows of results.csv, and the bounds they have to meet. Pure functions."""
import csv
import hashlib
import json

COLUMNS = ["name", "seed", "commit", "config", "versions", "minutes", "updates", "top1", "distance_first", "distance_last",
           "agreement", "variance_share"]
ACCURACY, REPLICAS_WITHIN = 0.93, 0.005
DISTANCE_FALLS, AGREEMENT, VARIANCE_SHARE = 5, 0.85, 0.5
CLASSIFIER, REPLICATED, GENERATOR = "resnet_fashion_mnist", "resnet_fashion_mnist_2_replicas", "sngan_fashion_mnist"
FIRST_BY = 110    # updates; the first judgement of a generator is of its beginning


def read(path):
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def append(path, row):
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def lines_of(path):
    """The objects of a file of JSON lines; a line that a crash cut short is passed over."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def row_of(name, seed, commit, directory):
    """The row of a finished run."""
    evaluations = lines_of(directory / "evaluations.jsonl")
    versions = json.loads((directory / "versions.json").read_text(encoding="utf-8"))[-1]["versions"]    # of its last start
    elapsed = lines_of(directory / "metrics.jsonl")[-1]["elapsed"]
    last = evaluations[-1]
    row = dict.fromkeys(COLUMNS, "")
    row |= {"name": name, "seed": str(seed), "commit": commit,
            "config": hashlib.sha256((directory / "config.yaml").read_bytes()).hexdigest()[:12],
            "versions": " ".join(f"{key}={value}" for key, value in versions.items()),
            "minutes": f"{elapsed / 60:.1f}", "updates": str(last["updates"])}
    if "top1" in last:
        row["top1"] = f"{last['top1']:.4f}"
    if "frechet_distance" in last:
        first = evaluations[0]
        if first["updates"] <= FIRST_BY:
            row["distance_first"] = f"{first['frechet_distance']:.2f}"
        row["distance_last"] = f"{last['frechet_distance']:.2f}"
    for key in ("agreement", "variance_share"):
        if key in last:
            row[key] = f"{last[key]:.4f}"
    return row


def short_of(rows):
    """Sentences, one for each bound that the newest row of a name does not meet."""
    newest = {row["name"]: row for row in rows}
    short = []

    def number(name, column):
        value = newest.get(name, {}).get(column, "")
        if not value:
            short.append(f"{name}: there is no {column}; run tests/learning/run {name}")
        return float(value) if value else None

    def at_least(name, column, bound):
        value = number(name, column)
        if value is not None and value < bound:
            short.append(f"{name}: {column} is {value:g}, below {bound:g}")
        return value

    one, two = at_least(CLASSIFIER, "top1", ACCURACY), number(REPLICATED, "top1")
    if one is not None and two is not None and abs(one - two) > REPLICAS_WITHIN:
        short.append(f"{REPLICATED}: top1 is {two:g}, further than {REPLICAS_WITHIN:g} from {one:g} with one replica")
    first, last = number(GENERATOR, "distance_first"), number(GENERATOR, "distance_last")
    if first is not None and last is not None and first < DISTANCE_FALLS * last:
        short.append(f"{GENERATOR}: the distance falls from {first:g} to {last:g} only, not by {DISTANCE_FALLS} times")
    at_least(GENERATOR, "agreement", AGREEMENT)
    at_least(GENERATOR, "variance_share", VARIANCE_SHARE)
    return short
