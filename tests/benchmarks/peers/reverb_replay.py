"""dm-reverb as its own documentation uses it: TrajectoryWriter in, TrajectoryDataset out.

reverb_replay.py serve SHAPE          prints the port, serves until its input closes; says its memory
reverb_replay.py client SHAPE PORT    answers commands (replay_shapes.answer) against that server
reverb_replay.py in_process SHAPE     the same against a server in this process, without its sockets
"""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np  # noqa: E402
import reverb  # noqa: E402
import tensorflow as tf  # noqa: E402

import replay_shapes as shapes  # noqa: E402

TABLE = "table"


def serve(shape):
    return reverb.Server([reverb.Table(
        name=TABLE, sampler=reverb.selectors.Uniform(), remover=reverb.selectors.Fifo(),
        max_size=shapes.ITEMS[shape], rate_limiter=reverb.rate_limiters.MinSize(1))])


class Peer(shapes.Writing):
    def __init__(self, shape, port):
        self.shape, self.address = shape, f"localhost:{port}"
        self.pixels = shape == "pixels"
        self.column = "pixels" if self.pixels else "observation"
        # s and s': two rows, or four frames from which both stacks are taken.
        self.rows = shapes.STACK + 1 if self.pixels else 2
        self.seen = shapes.frames() if self.pixels else np.ones((64, 17), np.float32)
        self.client = reverb.Client(self.address)
        self.writer = self.client.trajectory_writer(num_keep_alive_refs=self.rows)
        self.batches = None

    def _append(self):
        column, rows = self.column, self.rows
        self.writer.append({column: self.seen[self.steps % 64], "action": np.zeros(6, np.float32),
                            "reward": np.float32(self.steps)})
        self.steps += 1
        if self.steps < rows:
            return
        history = self.writer.history
        self.writer.create_item(TABLE, 1.0, {column: history[column][-rows:], "action": history["action"][-2:-1],
                                             "reward": history["reward"][-2:-1]})

    def fill(self):
        self.write_until(shapes.ITEMS[self.shape] + self.rows)

    def _dataset(self):
        shape = (self.rows, *self.seen.shape[1:])
        dataset = reverb.TrajectoryDataset(
            server_address=self.address, table=TABLE, max_in_flight_samples_per_worker=2 * shapes.BATCH,
            dtypes={self.column: tf.uint8 if self.pixels else tf.float32, "action": tf.float32,
                    "reward": tf.float32},
            shapes={self.column: tf.TensorShape(shape), "action": tf.TensorShape((1, 6)),
                    "reward": tf.TensorShape((1,))})
        return dataset.batch(shapes.BATCH).prefetch(1).as_numpy_iterator()

    def sample(self, deadline):
        """Items per second with the dataset, kept open between rounds as a learner keeps it."""
        if self.batches is None:
            self.batches = self._dataset()
            next(self.batches)
        count = 0
        while time.perf_counter() < deadline:
            batch = next(self.batches)
            assert batch.data[self.column].shape[:2] == (shapes.BATCH, self.rows)
            count += shapes.BATCH
        return count

    def sample_client(self, deadline):
        """Items per second with Client.sample."""
        count = 0
        while time.perf_counter() < deadline:
            for sample in self.client.sample(TABLE, shapes.BATCH, emit_timesteps=False):
                assert sample.data is not None
                count += 1
        return count


def main():
    mode, shape, *port = sys.argv[1:]
    if mode == "serve":
        server = serve(shape)
        print(server.port, flush=True)
        sys.stdin.read()
        return
    server = serve(shape) if mode == "in_process" else None
    peer = Peer(shape, server.port if server else port[0])
    peer.fill()
    shapes.answer({"insert": peer.insert, "sample": peer.sample, "sample_client": peer.sample_client})
    os._exit(0)    # the dataset's threads wait for ever


if __name__ == "__main__":
    main()
