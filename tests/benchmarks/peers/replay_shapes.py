"""The items that both sides of the replay comparison move, and the pictures both insert.

Run by itself it prints the pictures as bytes.

state:  17 floats seen, 6 floats done, reward; an item is one transition (n = 1).
pixels: frames of 84 x 84 x 3 bytes, a stack of 3 seen; an item is one transition of stacks.
"""
import json
import sys
import time

import numpy as np

BATCH = 256
ITEMS = {"state": 100_000, "pixels": 4_000}
STACK = 3


def frames(count=64):
    """[count, 84, 84, 3]: a ground in perspective, a sky, and a body that moves; sensor noise of one bit."""
    random = np.random.default_rng(0)
    y, x = np.mgrid[0:84, 0:84]
    result = np.empty((count, 84, 84, 3), np.uint8)
    for t in range(count):
        ground = ((x * 8 // (y + 4) + (t + y) // 6) % 2) * 40 + 90
        picture = np.where(y < 30, 180 - y, ground)
        body = (x - 20 - t % 44) ** 2 + (y - 50) ** 2 < 120
        for channel, shade in enumerate((200, 120, 60)):
            result[t, :, :, channel] = np.where(body, shade, picture + 10 * channel)
    return result ^ (random.random(result.shape) < 0.02).astype(np.uint8)


class Writing:
    """What both peers do alike: `_append` takes a step, `writer.flush` waits until all are in, `steps` counts."""

    steps = 0

    def write_until(self, steps):
        while self.steps < steps:
            self._append()
        self.writer.flush()

    def insert(self, deadline):
        before = self.steps
        while time.perf_counter() < deadline:
            for _ in range(16):
                self._append()
        self.writer.flush()
        return self.steps - before


def answer(commands):
    """Reads "NAME SECONDS" lines and prints {"rate": calls of that command per second of its own}."""
    print("ready", flush=True)
    for line in sys.stdin:
        name, seconds = line.split()
        start = time.perf_counter()
        count = commands[name](start + float(seconds))
        print(json.dumps({"rate": count / (time.perf_counter() - start)}), flush=True)


if __name__ == "__main__":
    sys.stdout.buffer.write(frames().tobytes())
