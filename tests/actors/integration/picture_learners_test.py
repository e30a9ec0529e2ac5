"""Jobs on pictures with several learner processes: killed, frozen and added again in the middle of an epoch, while
every picture stays in exactly one committed update of each epoch."""
import json
import signal
import struct
import unittest

from learners_test import Groups
from pictures_test import UPDATES_PER_EPOCH, PictureTest


class PictureLearners(Groups, PictureTest):
    EPOCHS = 60
    TWO = {"learners.count": 2, "learners.timeout": "2s", "supervision.silent_after": "10m",
           "supervision.restarts": 1000, "checkpoint.every": "1s", "checkpoint.keep": 1000,
           "stop.epochs": EPOCHS}
    GENERATOR = """
job: sngan
data: {kind: synthetic, synthetic_size: 400, synthetic_classes: 4, synthetic_side: 32, lease: 7,
       augment: {size: 32, cut: none, evaluation_resize: 0}}
actors: {count: 2}
learners: {threads: 1, metrics_every: 1, publish_every: 5, prefetch: 2}
sngan: {batch: 16, generator_batch: 16, discriminator_steps: 2, generator_width: 8, discriminator_width: 8, samples: 20}
evaluation: {epochs: 0}
"""

    def place(self, run):
        """(epoch, positions of it that are committed, left out) in the newest checkpoint."""
        data = (run.checkpoints()[-1][2] / "pictures.state").read_bytes()
        _, corrupt, size, epoch, ignored, open_epochs = struct.unpack_from("<6Q", data)
        self.assertEqual((size, ignored), (400, 0))
        if open_epochs == 0:
            return epoch, 0, corrupt
        self.assertEqual(open_epochs, 1)
        number, ranges, begin, end = struct.unpack_from("<4Q", data, 48)
        self.assertEqual((number, ranges, begin), (epoch, 1, 0), "positions with holes")
        return epoch, end, corrupt

    def check_ledger(self, run):
        """Every update of the newest checkpoint has consumed the batch of its own, and no other."""
        manifest, _, _ = run.checkpoints()[-1]
        epoch, committed, corrupt = self.place(run)
        self.assertEqual(corrupt, 0)
        self.assertEqual(manifest["version"], epoch * UPDATES_PER_EPOCH + committed // 32)
        self.check_groups(run)

    def end_at(self, run, epochs):
        self.end(run)
        self.assertEqual(self.place(run), (epochs, 0, 0))
        self.check_ledger(run)

    def test_two_learners_finish_and_both_resume(self):
        run = self.finish_pictures({"learners.count": 2, "stop.epochs": 8, "learners.replicas": 2})
        self.assertEqual(self.newest(run), (1, ("learner-0", "learner-1")))
        self.assertEqual(self.place(run), (8, 0, 0))
        self.assertGreaterEqual(run.last("learner/states_compared"), 1)
        last = json.loads((run.directory / "evaluations.jsonl").read_text().splitlines()[-1])
        self.assertGreater(last["top1"], 0.9)
        run = self.finish_pictures({"stop.epochs": 10})
        self.assertRegex(run.log(), f"learner 1 of 2 in generation 1 at update {8 * UPDATES_PER_EPOCH}")
        self.end_at(run, 10)

    def test_the_same_learners_resume_to_the_same_bits(self):
        for job, more in (("resnet", {"stop.epochs": 30}), ("sngan", {"stop.epochs": 12})):
            if job == "sngan":
                self.config.write_text(self.GENERATOR)
            more = {"learners.count": 2, "checkpoint.every": "1s", **more}
            whole = self.finish_pictures(more, f"{job}_whole")
            run = self.begin(more, f"{job}_stopped")
            run.progressed(updates=20)
            run.tell(signal.SIGINT)
            self.end(run, 130)
            self.assertNotEqual(self.place(run), self.place(whole))
            again = self.finish_pictures(more, f"{job}_stopped")
            self.assertEqual(self.files_of(again), self.files_of(whole), job)

    def test_killed_learners_come_back_and_no_picture_is_lost_or_seen_twice(self):
        run = self.begin(self.TWO)
        generation, names = self.group_of(run, 2)
        for victim in (names[1], names[0], names[1]):  # the second time the one that leads
            run.progressed(updates=20)
            made = run.last("learner_updates")
            run.tell(signal.SIGKILL, run.pid_of(victim))
            generation, alone = self.group_of(run, 1, generation)
            self.assertNotIn(victim, alone)
            self.assertGreaterEqual(self.joined(run)[generation][0][2], made, "updates were lost")
            generation, both = self.group_of(run, 2, generation)
            self.assertEqual(both, (*alone, victim))
        self.end_at(run, self.EPOCHS)
        last = json.loads((run.directory / "evaluations.jsonl").read_text().splitlines()[-1])
        self.assertGreater(last["top1"], 0.9)

    def test_frozen_learners_are_left_out_until_they_thaw(self):
        run = self.begin(self.TWO)
        generation, names = self.group_of(run, 2)
        for victim in names:  # the one that leads first
            run.progressed(updates=20)
            pid = run.pid_of(victim)
            run.tell(signal.SIGSTOP, pid)
            generation, alone = self.group_of(run, 1, generation)
            self.assertNotIn(victim, alone)
            run.progressed(updates=20)
            run.tell(signal.SIGCONT, pid)
            generation, both = self.group_of(run, 2, generation)
            self.assertEqual(both, (*alone, victim))
        self.end_at(run, self.EPOCHS)
        self.assertNotIn("is killed", run.log())

    def test_a_generator_goes_on_without_the_one_that_led(self):
        self.config.write_text(self.GENERATOR)
        run = self.begin({**self.TWO, "stop.epochs": 20})
        generation, names = self.group_of(run, 2)
        run.progressed(updates=20)
        run.tell(signal.SIGKILL, run.pid_of(names[0]))
        generation, _ = self.group_of(run, 1, generation)
        self.group_of(run, 2, generation)
        self.end_at(run, 20)


if __name__ == "__main__":
    unittest.main()
