"""Classifiers as runs: data actors feed a learner, an evaluator judges it, and what it learns depends on nobody's
speed, death or return."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import unittest
import zipfile
import zlib

import numpy

from harness import PROGRAM, RunTest, wait_until

UPDATES_PER_EPOCH = 13  # 400 pictures in batches of 32, the last one of 16


def png(pixels):
    """A PNG file of rows of RGB bytes."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def torch_script(path, result):
    """A TorchScript file of a network without parameters that gives `result` of pictures x."""
    code = ("class Net(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
            "  def forward(self: __torch__.Net,\n    x: Tensor) -> Tuple[Tensor, Tensor]:\n"
            f"    return {result}\n")
    state = b"\x80\x02c__torch__\nNet\n)\x81}X\x08\0\0\0training\x89sb."    # {training: False}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in (("version", "3\n"), ("data.pkl", state), ("code/__torch__.py", code),
                              ("constants.pkl", b"\x80\x02).")):
            file.writestr(f"net/{name}", content)


class PictureTest(RunTest):
    SMALL = {**RunTest.QUICK, "checkpoint.every": "0s"}

    def setUp(self):
        super().setUp()
        self.config = self.root / "small.yaml"
        self.config.write_text("""
job: resnet
data: {kind: synthetic, synthetic_size: 400, synthetic_classes: 4, synthetic_side: 12, lease: 7,
       augment: {size: 12, cut: pad_crop, padding: 1, evaluation_resize: 0}}
actors: {count: 2}
learners: {threads: 1, metrics_every: 1, publish_every: 5, prefetch: 2}
resnet: {batch: 32, depth: 18, width: 8, small_stem: true, average: 0.9,
         schedule: {rate: 0.05, per_batch: 0, warm_up: 5}}
stop: {epochs: 4}
""")

    def begin(self, overrides=None, directory="run"):
        return self.start({**self.SMALL, **(overrides or {})}, directory, self.config)

    def end(self, run, code=0):
        self.assertEqual(run.wait(), code, run.told())
        self.assert_no_trace(run)

    def finish_pictures(self, overrides=None, directory="run", code=0):
        run = self.begin(overrides, directory)
        self.end(run, code)
        return run

    def files_of(self, run):
        """What the run has learnt, as bytes."""
        latest = run.directory / "checkpoints" / "latest"
        return [(latest / name).read_bytes() for name in
                ("parameters.safetensors", "optimizer.safetensors", "pictures.state")]

    def troupe(self, *words, code=0):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr


class Classifier(PictureTest):
    def test_a_run_learns_is_judged_and_answers(self):
        run = self.begin()
        nodes = wait_until(lambda: len(run.nodes()) == 4 and run.nodes(), what="four nodes")
        self.assertEqual(set(nodes), {"data-0", "data-1", "learner-0", "evaluator-0"})
        self.end(run)
        self.assertEqual(run.checkpoints()[-1][0]["version"], 4 * UPDATES_PER_EPOCH)
        lines = [json.loads(line) for line in (run.directory / "evaluations.jsonl").read_text().splitlines()]
        last = lines[-1]
        self.assertEqual(last["updates"], 4 * UPDATES_PER_EPOCH)
        self.assertGreater(last["top1"], 0.9)
        self.assertEqual(last["pictures"], 400)
        self.assertEqual(sum(count for _, _, count in last["confusion"]), 400)
        self.assertAlmostEqual(sum(count for a, p, count in last["confusion"] if a == p) / 400, last["top1"])
        with numpy.load(run.directory / "evaluations.npz") as evaluations:
            self.assertEqual(list(evaluations["timesteps"]), [line["updates"] for line in lines])
            self.assertEqual(evaluations["results"][-1, 0], last["top1"])
        self.assertIn("top-1", run.said())
        # How much of its time the learner waited for data.
        shares = [row["learner/pictures_blocked_share"] for row in run.metrics() if "learner/pictures_blocked_share" in row]
        self.assertTrue(shares and all(0 <= share <= 1 for share in shares), shares)
        judged = json.loads(self.troupe("eval", run.directory, "--json"))
        for key in ("top1", "top5", "loss", "confusion", "updates"):
            self.assertEqual(judged[key], last[key], key)
        self.check_predictions(run)

    def check_predictions(self, run):
        good, bad = self.root / "a.png", self.root / "b.png"
        good.write_bytes(png(numpy.full((20, 16, 3), 90, numpy.uint8)))
        bad.write_bytes(good.read_bytes()[:60])
        answer = json.loads(self.troupe("predict", run.directory, good, "--json", "--top", 4))
        shares = [entry["probability"] for entry in answer["classes"]]
        self.assertAlmostEqual(sum(shares), 1, 6)
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertEqual({entry["class"] for entry in answer["classes"]}, {"0", "1", "2", "3"})
        self.assertIn("b.png", self.troupe("predict", run.directory, good, bad, code=1))

    def test_two_replicas_see_the_same_pictures_and_learn_as_well(self):
        run = self.finish_pictures({"learners.replicas": 2, "resnet.batch_norm": "global"})
        last = json.loads((run.directory / "evaluations.jsonl").read_text().splitlines()[-1])
        self.assertGreater(last["top1"], 0.9)

    def test_a_run_stops_at_its_accuracy(self):
        run = self.finish_pictures({"stop.epochs": 0, "stop.accuracy": 0.5, "resnet.schedule.decay": "constant"})
        self.assertIn("stop.accuracy reached", run.told())
        again = self.begin({"stop.epochs": 0, "stop.accuracy": 0.5, "resnet.schedule.decay": "constant"})
        self.end(again)
        self.assertIn("has finished already: stop.accuracy", again.told())

    def test_everything_in_one_process_learns_the_same(self):
        self.assertEqual(self.files_of(self.finish_pictures({"processes": 0}, "one")),
                         self.files_of(self.finish_pictures(directory="many")))


class Exactness(PictureTest):
    # Slow enough to be interrupted.
    EPOCHS = 40
    LONG = {"stop.epochs": EPOCHS, "resnet.width": 16}

    def reference(self):
        return self.files_of(self.finish_pictures({**self.LONG, "actors.count": 1, "evaluation.epochs": 0}, "reference"))

    def test_deaths_of_data_actors_change_no_bit(self):
        run = self.begin({**self.LONG, "actors.count": 3}, "killed")
        for name in ("data-0", "data-1", "data-2", "data-0"):
            run.progressed(updates=5)
            run.tell(signal.SIGKILL, run.pid_of(name))
        self.end(run)
        self.assertGreaterEqual(run.told().count("and is started again"), 4, run.told())
        self.assertEqual(self.files_of(run), self.reference())

    def test_a_learner_that_dies_goes_back_and_a_stopped_run_goes_on_to_the_same_bits(self):
        run = self.begin({**self.LONG, "checkpoint.every": "500ms"}, "interrupted")
        wait_until(run.checkpoints, what="a checkpoint")
        run.progressed(updates=3)
        run.tell(signal.SIGKILL, run.pid_of("learner-0"))
        wait_until(lambda: run.log().count("learner-0 serves") == 2, what="the next learner")
        run.progressed(updates=3)
        run.tell(signal.SIGINT)
        self.end(run, 130)
        self.assertLess(run.checkpoints()[-1][0]["version"], self.EPOCHS * UPDATES_PER_EPOCH)
        again = self.begin({**self.LONG, "checkpoint.every": "500ms"}, "interrupted")
        self.end(again)
        self.assertEqual(self.files_of(again), self.reference())

    def test_a_frozen_data_actor_is_replaced_and_changes_no_bit(self):
        run = self.begin({**self.LONG, "supervision.silent_after": "2s"}, "frozen")
        run.progressed(updates=2)
        run.tell(signal.SIGSTOP, run.pid_of("data-1"))
        self.end(run)
        self.assertEqual(self.files_of(run), self.reference())


class Generator(PictureTest):
    def test_a_generator_trains_is_judged_by_a_classifier_and_is_sampled(self):
        small = {"data.synthetic_side": 32, "data.augment.size": 32}
        classifier = self.finish_pictures({**small, "stop.epochs": 2}, "classifier")
        self.config.write_text("""
job: sngan
data: {kind: synthetic, synthetic_size: 400, synthetic_classes: 4, synthetic_side: 32,
       augment: {size: 32, cut: none, evaluation_resize: 0}}
learners: {threads: 1, metrics_every: 1, publish_every: 1, prefetch: 2}
sngan: {batch: 8, generator_batch: 8, discriminator_steps: 2, generator_width: 8, discriminator_width: 8, samples: 300}
evaluation: {every: 4, epochs: 0}
stop: {updates: 8}
""")
        run = self.finish_pictures({"sngan.classifier": classifier.directory}, "generator")
        last = json.loads((run.directory / "evaluations.jsonl").read_text().splitlines()[-1])
        self.assertEqual((last["updates"], last["pictures"]), (8, 300))
        self.assertGreater(last["frechet_distance"], 0)
        self.assertTrue(0 <= last["agreement"] <= 1)
        self.assertGreater(last["real_variance_within_classes"], 0)
        self.assertEqual(last["features"], str(classifier.directory))
        self.assertTrue(1 <= last["inception_score"] <= 4, last)    # of four classes
        self.assertEqual(last["collapsed"], last["variance_share"] < 0.25)
        sheet = run.directory / "samples" / last["samples"]
        self.assertEqual(sheet.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        out = self.root / "out.png"
        self.troupe("sample", run.directory, "--file", out, "--class", "2", "--rows", 2, "--interpolate")
        self.assertGreater(out.stat().st_size, 100)
        self.assertIn("there is no class 9", self.troupe("sample", run.directory, "--class", "9", code=2))
        self.assertIn("not of sngan", self.troupe("sample", classifier.directory, code=2))

    def test_a_generator_is_judged_by_a_network_of_the_users_and_its_collapse_is_told(self):
        random = numpy.random.default_rng(1)    # no generator varies as much as black and white noise
        for label in ("one", "other"):
            (self.root / "noise" / label).mkdir(parents=True)
            for i in range(40):
                pixels = (255 * random.integers(0, 2, (32, 32, 3))).astype(numpy.uint8)
                (self.root / "noise" / label / f"{i}.png").write_bytes(png(pixels))
        self.config.write_text(f"""
job: sngan
data: {{kind: image_folder, path: {self.root / "noise"}, augment: {{size: 32, cut: none, evaluation_resize: 0}}}}
learners: {{threads: 1, metrics_every: 1, publish_every: 1, prefetch: 2}}
sngan: {{batch: 8, generator_batch: 8, discriminator_steps: 2, generator_width: 8, discriminator_width: 8, samples: 60}}
evaluation: {{every: 4, epochs: 0}}
stop: {{updates: 8}}
""")
        network = self.root / "means.pt"
        torch_script(network, "(torch.mean(x, [2, 3]), torch.zeros([torch.size(x, 0), 5]))")
        run = self.finish_pictures({"sngan.features": network, "sngan.collapse_share": 0.9, "stop.updates": 40,
                                    "telemetry.every": "50ms"}, "told")
        last = json.loads((run.directory / "evaluations.jsonl").read_text().splitlines()[-1])
        self.assertEqual(last["features"], str(network))
        self.assertGreater(last["frechet_distance"], 100)
        self.assertAlmostEqual(last["inception_score"], 1)    # of classes that are all alike
        self.assertNotIn("agreement", last)
        self.assertTrue(last["collapsed"])
        self.assertEqual(run.log().count("less than sngan.collapse_share"), 1)    # not at every evaluation
        self.assertEqual(max(row.get("evaluator/collapsed", 0) for row in run.metrics()), 1)
        run = self.finish_pictures({"sngan.collapse_share": last["variance_share"] / 2}, "not_told")
        last = json.loads((run.directory / "evaluations.jsonl").read_text().splitlines()[-1])
        self.assertFalse(last["collapsed"])
        self.assertNotIn("frechet_distance", last)
        self.assertNotIn("less than sngan.collapse_share", run.log())
        torch_script(network, "(x, torch.zeros([torch.size(x, 0), 5]))")
        run = self.begin({"sngan.features": network, "stop.updates": 100000}, "refused")
        self.end(run, 1)
        self.assertIn("sngan.features: ", run.told())
        self.assertIn("its features of 2 pictures are [2, 3, 32, 32]", run.told())


class Corrupt(PictureTest):
    def folder(self):
        """Two classes of ten pictures, one of them cut short."""
        random = numpy.random.default_rng(1)
        for label, level in (("dark", 40), ("light", 200)):
            (self.root / "set" / label).mkdir(parents=True)
            for i in range(10):
                pixels = random.integers(level - 30, level + 30, (16, 16, 3)).astype(numpy.uint8)
                (self.root / "set" / label / f"{i}.png").write_bytes(png(pixels))
        bad = self.root / "set" / "light" / "7.png"
        bad.write_bytes(bad.read_bytes()[:100])
        return {"data.kind": "image_folder", "data.path": self.root / "set", "resnet.batch": 8,
                "data.lease": 3, "data.augment.cut": "random_resized", "data.augment.size": 8}

    def test_a_picture_that_cannot_be_decoded_is_named_counted_and_left_out(self):
        run = self.finish_pictures({**self.folder(), "stop.epochs": 3})
        self.assertIn(os.path.join("light", "7.png"), run.log())
        self.assertEqual(run.checkpoints()[-1][0]["version"], 9)
        last = json.loads((run.directory / "evaluations.jsonl").read_text().splitlines()[-1])
        self.assertEqual((last["pictures"], last["corrupt"]), (19, 1))
        self.assertEqual(run.last("learner/left_out_pictures_per_second", None) is None, False)

    def test_or_ends_the_run_by_policy(self):
        run = self.begin({**self.folder(), "data.corrupt": "fatal"})
        self.end(run, 1)
        self.assertIn(os.path.join("light", "7.png"), run.said())

    def test_a_set_that_is_not_there_is_refused_before_anything_runs(self):
        said = self.refused({**self.SMALL, "data.kind": "cifar10", "data.path": self.root / "none"}, 2,
                            str(self.root / "none"), config=self.config)
        self.assertIn("data", said)
        self.refused({**self.SMALL, "replay.shards": 2}, 2, "replay.shards", "job: resnet", config=self.config)

    def test_a_run_does_not_go_on_with_another_set(self):
        self.finish_pictures({"stop.epochs": 1})
        run = self.begin({"stop.epochs": 2, "data.synthetic_size": 500})
        self.end(run, 1)
        self.assertIn("the data set is another one", run.told())


if __name__ == "__main__":
    unittest.main()
