"""Rows, bounds and figures of runs on real data, from directories as runs leave them; and one short run, where
TROUPE_PROGRAM names the program and the data are there."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zlib

import figures
import results

HERE = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")


def good_rows():
    return [{"name": results.CLASSIFIER, "top1": "0.9360"}, {"name": results.REPLICATED, "top1": "0.9330"},
            {"name": results.GENERATOR, "distance_first": "180", "distance_last": "20", "agreement": "0.9",
             "variance_share": "0.6"}]


class Bounds(unittest.TestCase):
    def test_good_results_fall_short_of_nothing(self):
        self.assertEqual(results.short_of(good_rows()), [])

    def test_every_bound_is_one_that_can_be_missed(self):
        for index, column, value, word in (
                (0, "top1", "0.929", "below 0.93"), (1, "top1", "0.9300", "further than 0.005"),
                (2, "distance_first", "99", "not by 5 times"), (2, "distance_first", "", "there is no distance_first"),
                (2, "agreement", "0.849", "below 0.85"), (2, "variance_share", "0.49", "below 0.5")):
            rows = good_rows()
            rows[index][column] = value
            short = results.short_of(rows)
            self.assertEqual(len(short), 1, short)
            self.assertIn(word, short[0])

    def test_the_newest_row_of_a_name_counts_and_a_name_without_a_row_is_missing(self):
        rows = [{"name": results.CLASSIFIER, "top1": "0.5"}, *good_rows()]
        self.assertEqual(results.short_of(rows), [])
        self.assertIn("run tests/learning/run resnet_fashion_mnist", results.short_of(rows[2:])[0])


class Rows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.run_directory = pathlib.Path(self.folder.name) / "short_seed1"
        (self.run_directory / "samples").mkdir(parents=True)
        (self.run_directory / "config.yaml").write_text("data: {augment: {size: 4}}\n")
        (self.run_directory / "versions.json").write_text(json.dumps([{"time": "t", "versions": {"troupe": "1"}}]))
        (self.run_directory / "metrics.jsonl").write_text('{"elapsed": 90.0}\n{"elapsed": 120.0}\n{"elap')

    def tearDown(self):
        self.folder.cleanup()

    def evaluated(self, *evaluations):
        lines = "".join(json.dumps(evaluation) + "\n" for evaluation in evaluations)
        (self.run_directory / "evaluations.jsonl").write_text(lines)

    def draw(self):
        to = pathlib.Path(self.folder.name) / "to"
        said = subprocess.run([sys.executable, "-B", HERE / "draw", self.run_directory, "--to", to], check=True,
                              capture_output=True, text=True).stdout
        for path in to.iterdir():
            xml.etree.ElementTree.parse(path)
            self.assertLess(path.stat().st_size, figures.MOST_BYTES)
        return said, {path.name: path.read_text() for path in to.iterdir()}

    def test_a_classifiers_row_is_written_once_and_its_figures_show_it(self):
        self.evaluated({"updates": 10, "top1": 0.5}, {"updates": 20, "top1": 0.91, "classes": ["a & b", "c"],
                                                      "confusion": [[0, 0, 7], [1, 0, 1], [1, 1, 2]]})
        row = results.row_of("resnet_fashion_mnist", 1, "abc", self.run_directory)
        self.assertEqual((row["top1"], row["minutes"], row["updates"]), ("0.9100", "2.0", "20"))
        path = pathlib.Path(self.folder.name) / "results.csv"
        results.append(path, row)
        results.append(path, row)
        self.assertEqual(results.read(path), [row, row])
        said, drawn = self.draw()
        self.assertEqual(set(drawn), {"short_seed1_accuracy.svg", "short_seed1_confusion.svg"})
        self.assertIn("a &amp; b", drawn["short_seed1_confusion.svg"])
        self.assertIn("| 20 | 0.91 |", said)

    def test_a_generators_row_has_the_distance_at_its_beginning(self):
        sheet = figures.encode_png(22, [bytes(range(22))] * 22, 3 - 2)
        raw = b"".join(b"\0" + bytes(22) for _ in range(22))
        sheet = sheet[:16] + sheet[16:24] + b"\x08\0\0\0\0" + sheet[29:33]    # the same in 8 bits
        sheet += len(zlib.compress(raw)).to_bytes(4, "big") + b"IDAT" + zlib.compress(raw) + bytes(16)
        (self.run_directory / "samples" / "a.png").write_bytes(sheet)
        later = {"samples": "a.png", "agreement": 0.8, "variance_share": 0.7}
        self.evaluated({"updates": 100, "frechet_distance": 180.0}, {"updates": 3000, "frechet_distance": 20.0, **later})
        row = results.row_of("sngan_fashion_mnist", 1, "abc", self.run_directory)
        self.assertEqual((row["distance_first"], row["distance_last"], row["agreement"]), ("180.00", "20.00", "0.8000"))
        _, drawn = self.draw()
        self.assertEqual(set(drawn), {"short_seed1_distance.svg", "short_seed1_samples.svg"})
        self.evaluated({"updates": 250, "frechet_distance": 90.0}, {"updates": 3000, "frechet_distance": 20.0, **later})
        self.assertEqual(results.row_of("sngan_fashion_mnist", 1, "abc", self.run_directory)["distance_first"], "")


class Pictures(unittest.TestCase):
    def test_filtered_rows_of_a_png_come_back(self):
        # One row for each filter: none, left, above, mean, Paeth.
        rows = [bytes((37 * y + 11 * x) & 255 for x in range(6)) for y in range(5)]
        raw, above = b"", bytes(6)
        for rule, line in enumerate(rows):
            filtered = []
            for x in range(6):
                a, b, c = (line[x - 1] if x else 0), above[x], (above[x - 1] if x else 0)
                guess = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
                filtered.append((line[x] - (0, a, b, (a + b) // 2, guess)[rule]) & 255)
            raw += bytes([rule]) + bytes(filtered)
            above = line
        data = (b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + b"IHDR" + (6).to_bytes(4, "big") +
                (5).to_bytes(4, "big") + b"\x08\0\0\0\0" + bytes(4))
        packed = zlib.compress(raw)
        data += len(packed).to_bytes(4, "big") + b"IDAT" + packed + bytes(4)
        self.assertEqual(figures.decode_png(data), (6, 5, 1, b"".join(rows)))

    def test_sheets_are_cut_between_samples_until_they_are_small_enough(self):
        random, pixels = 1, []
        for _ in range(340):
            line = []
            for _ in range(340):
                random = random * 1103515245 + 12345 & 0x7FFFFFFF
                line.append(random >> 16 & 255)
            pixels.append(bytes(line))
        raw = zlib.compress(b"".join(b"\0" + line for line in pixels))
        data = (b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + b"IHDR" + (340).to_bytes(4, "big") +
                (340).to_bytes(4, "big") + b"\x08\0\0\0\0" + bytes(4) + len(raw).to_bytes(4, "big") + b"IDAT" + raw +
                bytes(4))
        svg = figures.samples(data, 32)
        self.assertLess(len(svg), figures.MOST_BYTES)
        height = int(svg.split('height="')[1].split('"')[0]) // 2
        self.assertEqual((height + 2) % 34, 0)
        self.assertGreater(height, 150)


@unittest.skipUnless("TROUPE_PROGRAM" in os.environ and DATA.exists(), "without the program or Fashion-MNIST")
class ShortRuns(unittest.TestCase):
    def run_named(self, name, folder, *settings):
        words = [sys.executable, "-B", HERE / "run", name, "--program", os.environ["TROUPE_PROGRAM"],
                 "--results", folder / "results.csv", "--runs", folder / "runs"]
        for setting in ("resnet.width=4" if name != results.GENERATOR else "sngan.generator_width=4", *settings):
            words += ["--set", setting]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def test_a_classifier_and_a_generator_leave_rows_and_figures(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for _ in range(2):    # the second time it has finished already
                self.run_named(results.CLASSIFIER, folder, "stop.epochs=0", "stop.updates=20", "data.augment.size=32",
                               "resnet.schedule.warm_up=5", "evaluation.epochs=0", "evaluation.every=10")
            self.run_named(results.GENERATOR, folder, "stop.updates=4", "evaluation.every=2", "sngan.samples=100",
                           "sngan.discriminator_width=4")
            rows = results.read(folder / "results.csv")
            self.assertEqual([(row["name"], row["updates"]) for row in rows],
                             [(results.CLASSIFIER, "20"), (results.GENERATOR, "4")])
            self.assertTrue(float(rows[0]["top1"]) > 0 and float(rows[1]["distance_first"]) > 0, rows)
            for run in (folder / "runs").iterdir():
                subprocess.run([sys.executable, "-B", HERE / "draw", run, "--to", folder / "figures"], check=True,
                               stdout=subprocess.DEVNULL)
            self.assertEqual(len(list((folder / "figures").iterdir())), 4)
            done = subprocess.run([sys.executable, "-B", HERE / "run", "--check", "--results", folder / "results.csv"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("below 0.93", done.stdout)


if __name__ == "__main__":
    unittest.main()
