"""Troupe's Python client against `troupe replay serve`: troupe_replay_peer.py SHAPE ENDPOINT [BATCH].

SHAPE is "state", "pixels" (as they come), "packed" (pixels by LZ4), or "shared": pixels as they come, with
batches through shared memory; it also answers "copy"."""
import pathlib
import sys
import time

import numpy as np

import replay_shapes as shapes

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "replay" / "python"))
import troupe_replay  # noqa: E402


class Peer(shapes.Writing):
    def __init__(self, shape, endpoint, batch):
        pixels, self.batch = shape != "state", batch
        self.shape = "pixels" if pixels else "state"
        if pixels:
            # Each frame is stored once; an item of 3 steps has 4 frames, from which both stacks are taken.
            self.seen = shapes.frames()
            observation = {"pixels": ("u8", (84, 84, 3))}
            options = {"items": "sequence", "length": shapes.STACK, "period": 1}
            options["compression"] = {"pixels": "lz4" if shape == "packed" else "none"}
        else:
            options = {"n_step": 1}
            self.seen = np.ones((64, 17), np.float32)
            observation = {"observation": ("f32", (17,))}
        self.client = troupe_replay.Client(endpoint)
        self.table = self.client.declare("table", observation, {"action": ("f32", (6,))},
                                         capacity=shapes.ITEMS[self.shape], **options)
        self.writer = self.table.writer()
        self.batches = self.table.sampler(batch, shared=shape == "shared")

    def _append(self):
        self.writer.append(self.seen[self.steps % 64], np.zeros(6, np.float32), self.steps)
        self.steps += 1

    def fill(self):
        self.write_until(shapes.ITEMS[self.shape] + shapes.STACK)

    def sample(self, deadline):
        count = 0
        while time.perf_counter() < deadline:
            batch = next(self.batches)
            assert len(batch["reward"]) == self.batch
            count += self.batch
        return count

    def copy(self, deadline):
        """Items per second when a batch of them is copied within this process."""
        source = np.ones(self.batch * 4 * 84 * 84 * 3, np.uint8)
        target, count = np.empty_like(source), 0
        np.copyto(target, source)
        while time.perf_counter() < deadline:
            np.copyto(target, source)
            count += self.batch
        return count


def main():
    shape, endpoint, *batch = sys.argv[1:]
    peer = Peer(shape, endpoint, int(batch[0]) if batch else shapes.BATCH)
    peer.fill()
    shapes.answer({"insert": peer.insert, "sample": peer.sample, "copy": peer.copy})


if __name__ == "__main__":
    main()
