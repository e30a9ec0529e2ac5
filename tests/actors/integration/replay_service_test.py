"""`troupe replay serve` and its Python client: real processes, real sockets, wrong bytes, sudden ends."""
import json
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import numpy as np
import zmq

from harness import PROGRAM, SOURCE, wait_until

sys.path.insert(0, str(SOURCE / "replay" / "python"))
import troupe_replay  # noqa: E402
from troupe_replay import Client, ConnectionLost, LimiterTimeout, RefusedError  # noqa: E402

OBSERVATION, STEP = {"observation": ("f32", (3,))}, {"action": ("f32", (2,))}
WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
import troupe_replay
client = troupe_replay.Client(sys.argv[1])
writer = client.table("t").writer(chunk_steps=4)
print("writing", flush=True)
while True:
    writer.append([1, 2, 3], [0, 0], 1.0)
"""


class Service:
    """One `troupe replay serve`."""

    def __init__(self, *options, endpoint="tcp://127.0.0.1:*"):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([PROGRAM, "replay", "serve", "--endpoint", endpoint, *map(str, options)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True)
        first = self.process.stdout.readline()
        match = re.match(r"serving (\S+)", first)
        assert match, first + self.said()
        self.endpoint = match[1]

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def resident(self):
        """Bytes of memory in use."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) * 1024

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(30)
        self.process.stdout.close()
        return code

    def end(self):
        self.stop(signal.SIGKILL)
        self.errors.close()


class ServiceTest(unittest.TestCase):
    def setUp(self):
        self.service = self.serve()

    def serve(self, *options, **words):
        service = Service(*options, **words)
        self.addCleanup(service.end)
        return service

    def client(self, service=None, timeout=30.0):
        client = Client((service or self.service).endpoint, timeout=timeout)
        self.addCleanup(client.close)
        return client

    def table(self, client=None, name="t", **options):
        return (client or self.client()).declare(name, OBSERVATION, STEP, **{"capacity": 1000, **options})

    @staticmethod
    def write(table, steps, episode=10, start=0):
        """Steps whose numbers are in every field, in episodes of one length."""
        with table.writer(chunk_steps=4) as writer:
            for i in range(start, start + steps):
                writer.append(np.full(3, i), np.full(2, -i), i, terminated=(i + 1) % episode == 0,
                              next_observation=np.full(3, i + 1))
        return writer.items


class Together(ServiceTest):
    """Several tables that one writer feeds."""

    def pair(self, client=None, **limits):
        client = client or self.client()
        return client, self.table(client, "transitions", n_step=3), self.table(
            client, "sequences", items="sequence", length=8, period=4, capacity=200, **limits)

    def test_each_step_is_stored_once_and_drawn_from_both(self):
        client, transitions, sequences = self.pair()
        with client.writer([transitions, sequences], chunk_steps=5) as writer:
            for i in range(200):
                writer.append(np.full(3, i), np.full(2, -i), i, truncated=i % 20 == 19,
                              next_observation=np.full(3, i + 1))
        info = client.info()
        one, two = (table.info() for table in (transitions, sequences))
        self.assertEqual((one["inserted_steps"], two["inserted_steps"]), (200, 200))
        self.assertEqual((info["chunks"], info["bytes_held"]), (one["chunks"], one["bytes_held"]))
        self.assertEqual(info["memory_bytes"], one["memory_bytes"] + two["memory_bytes"] - two["chunk_memory_bytes"])
        batch = transitions.sample(64)
        self.assertTrue((batch["observation"][:, 0] % 20 <= 19).all())
        self.assertEqual(sequences.sample(16)["observation"].shape, (16, 9, 3))    # and the one after the last

    def test_one_limiter_holds_both_and_says_whose_it_is(self):
        client, transitions, sequences = self.pair(limiter="ratio", min_size=1, samples_per_insert=1.0, error_buffer=2.0)
        writer = client.writer([transitions, sequences], chunk_steps=8, timeout=0.5)
        with self.assertRaises(LimiterTimeout) as held:
            for i in range(200):
                writer.append(np.full(3, i), np.zeros(2), i)
            writer.flush()
        self.assertIn("insert waits", str(held.exception))
        self.assertEqual(transitions.info()["inserted_steps"], sequences.info()["inserted_steps"])

    def test_unacknowledged_chunks_reach_both_tables_of_the_next_start(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        service = self.serve("--checkpoint-directory", folder.name)
        client, transitions, sequences = self.pair(self.client(service))
        writer = client.writer([transitions, sequences], chunk_steps=4)
        for i in range(40):
            writer.append(np.full(3, i), np.zeros(2), i)
        writer.flush()
        transitions.checkpoint()    # and none of the other table
        service.stop(signal.SIGKILL)
        self.serve("--checkpoint-directory", folder.name, endpoint=service.endpoint)
        for i in range(40, 48):
            writer.append(np.full(3, i), np.zeros(2), i)
        writer.flush(30)
        self.assertEqual(transitions.info()["inserted_steps"], 48)
        self.assertEqual(sequences.info()["inserted_steps"], 8)


class OnDisk(ServiceTest):
    def test_steps_lie_on_disk_and_are_drawn_from_there(self):
        service = self.serve("--disk", tempfile.gettempdir(), "--disk-mib", 64)
        client = self.client(service)
        table = client.declare("frames", {"frame": ("u8", (64, 64))}, capacity=4000, compression={"frame": "none"})
        with table.writer(chunk_steps=10) as writer:
            for i in range(1000):
                writer.append(np.full((64, 64), i % 251, np.uint8), {}, i, truncated=i % 50 == 49,
                              next_observation=np.full((64, 64), 0, np.uint8))
        info = client.info()
        self.assertGreater(info["disk_bytes"], 4_000_000)
        self.assertLess(info["memory_bytes"], 1_000_000)
        batch = table.sample(64)
        self.assertTrue((batch["frame"] == (batch["reward"] % 251).astype(np.uint8)[:, None, None]).all())
        with self.assertRaises(RefusedError) as refused:
            client.declare("more", {"frame": ("u8", (64, 64))}, capacity=20000)
        self.assertIn("MiB of disk", str(refused.exception))

    def test_a_disk_that_is_too_small_is_an_error_with_the_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder],
                                     capture_output=True, text=True)
            if mounted.returncode != 0:
                self.skipTest("mount is not permitted here: " + mounted.stderr.strip())
            try:
                served = subprocess.run([PROGRAM, "replay", "serve", "--disk", folder, "--disk-mib", "8"],
                                        capture_output=True, text=True, timeout=60)
            finally:
                subprocess.run(["umount", folder], check=True)
        self.assertEqual(served.returncode, 1)
        self.assertIn("1048576 are free", served.stderr)


class Serving(ServiceTest):
    def test_what_was_appended_is_what_is_sampled(self):
        table = self.table(n_step=1)
        self.assertEqual(self.write(table, 500), 500)
        batch = table.sample(256)
        number = batch["reward"]
        self.assertGreater(len(np.unique(number)), 100)
        self.assertTrue((batch["observation"] == number[:, None]).all())
        self.assertTrue((batch["action"] == -number[:, None]).all())
        self.assertTrue((batch["next_observation"] == number[:, None] + 1).all())
        self.assertTrue((batch["discount"] == np.where((number + 1) % 10 == 0, 0, np.float32(0.99))).all())
        self.assertTrue((batch["weight"] == 1).all())

    def test_n_step_returns_and_sequences_come_from_the_same_steps(self):
        client = self.client()
        table = self.table(client, n_step=3, discount=0.5)
        self.write(table, 10)
        batch = table.sample(64)
        first, k = batch["observation"][:, 0], np.minimum(3, 10 - batch["observation"][:, 0])
        expected = [sum(0.5 ** i * (f + i) for i in range(int(n))) for f, n in zip(first, k)]
        np.testing.assert_allclose(batch["reward"], expected, rtol=1e-6)
        sequences = self.table(client, "sequences", items="sequence", length=4, period=1)
        self.write(sequences, 10)
        batch = sequences.sample(16)
        self.assertEqual(batch["observation"].shape, (16, 5, 3))
        steps = batch["observation"][:, :, 0]
        self.assertTrue((np.diff(steps, axis=1)[batch["mask"] == 1] == 1).all())

    def test_stacked_and_packed_frames_come_back_as_they_were_seen(self):
        def frame(step):
            return np.full((40, 40), step, np.uint8) + np.arange(40, dtype=np.uint8)
        with Client(self.service.endpoint) as client:
            table = client.declare("frames", {"pixels": ("u8", (40, 40))}, STEP, n_step=2,
                                   frame_stack={"pixels": 3}, compression={"pixels": "lz4"})
            with table.writer(chunk_steps=2) as writer:
                for step in range(9):
                    writer.append(frame(step), [step, 0], 1.0, truncated=step == 8, next_observation=frame(9))
            batch = table.sample(64)
            self.assertEqual(batch["pixels"].shape, (64, 3, 40, 40))
            for row, step in enumerate(batch["action"][:, 0].astype(int)):
                for name, newest in (("pixels", step), ("next_pixels", min(step + 2, 9))):
                    expected = [frame(max(newest - back, 0)) for back in (2, 1, 0)]
                    np.testing.assert_array_equal(batch[name][row], expected)
            info = table.info()
            self.assertLess(info["bytes_held"], info["raw_bytes"] / 4)
            self.assertGreater(info["memory_bytes"], info["bytes_held"])
            with self.assertRaisesRegex(RefusedError, "frame_stack"):
                client.declare("more", {"pixels": ("u8", (4,))}, STEP, frame_stack={"picture": 3})

    def test_two_clients_share_a_table_and_later_options_are_warned_about(self):
        one, two = self.client(), self.client()
        mine = self.table(one)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            theirs = self.table(two, capacity=7)
        self.assertIn("capacity is 1000", str(caught[0].message))
        self.write(mine, 100)
        self.write(theirs, 100, start=100)
        self.assertEqual(two.table("t").info()["held_items"], 200)
        with self.assertRaisesRegex(RefusedError, "other columns"):
            two.declare("t", {"observation": ("f64", (3,))}, STEP)
        with self.assertRaisesRegex(RefusedError, "no table 'nobody'"):
            two.table("nobody")
        with self.assertRaisesRegex(RefusedError, "unknown key 'capcity'"):
            self.table(two, "misspelt", capcity=3)
        with self.assertRaisesRegex(RefusedError, "MiB allowed"):
            self.table(two, "vast", capacity=4_000_000_000)

    def test_priorities_reach_the_items_that_are_still_there(self):
        table = self.table(capacity=50)
        self.write(table, 50)
        keys = np.unique(table.sample(200)["keys"])
        self.assertEqual(table.update_priorities(keys, np.ones(len(keys))), len(keys))
        self.write(table, 50, start=50)
        self.assertEqual(table.update_priorities(keys, np.ones(len(keys))), 0)

    def test_large_rows_travel_in_several_frames(self):
        client = self.client()
        table = client.declare("pixels", {"pixels": ("u8", (512, 1024))}, STEP, capacity=32, n_step=1)
        random_rows = np.random.default_rng(1).integers(0, 255, (12, 512, 1024), np.uint8)
        with table.writer(chunk_steps=5) as writer:
            for i in range(12):
                writer.append(random_rows[i], [0, 0], i, truncated=i == 11, next_observation=random_rows[0])
        batch = table.sample(16)
        for row, number in zip(batch["pixels"], batch["reward"]):
            self.assertTrue((row == random_rows[int(number)]).all())

    def test_shared_memory_gives_the_same_batches_and_reuses_no_slot_that_is_kept(self):
        table = self.table(n_step=1)
        self.write(table, 200)
        batches = table.sampler(64, shared=True)
        kept = [next(batches) for _ in range(12)]
        copies = [batch["reward"].copy() for batch in kept]
        for _ in range(20):
            self.assertTrue((next(batches)["observation"][:, 0] >= 0).all())
        for batch, copy in zip(kept, copies):
            self.assertTrue((batch["reward"] == copy).all())
            self.assertTrue((batch["observation"] == copy[:, None]).all())
        slots = table._client._slots
        self.assertEqual(slots.free, [], "every slot is kept")
        del kept, batch
        self.assertEqual(sorted(slots.free), list(range(slots.count)))

    def test_memory_that_could_shrink_is_refused(self):
        client = self.client()
        descriptor = os.memfd_create("unsealed")
        self.addCleanup(os.close, descriptor)
        os.ftruncate(descriptor, 1 << 20)
        for number in (descriptor, 0, 9999):
            with self.assertRaises(RefusedError):
                client._call(troupe_replay._MEMORY, [struct.pack("<IIIIQ", os.getpid(), number, 4, 0, 1 << 16)])

    def test_nan_is_refused_and_the_table_unchanged(self):
        table = self.table()
        writer = table.writer(chunk_steps=1)
        writer.append([1, np.nan, 3], [0, 0], 0.0)
        with self.assertRaisesRegex(RefusedError, "NaN"):
            writer.flush()
        info = table.info()
        self.assertEqual((info["inserted_steps"], info["not_finite_chunks"]), (0, 1))

    def test_an_ipc_endpoint_works_and_another_host_s_address_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            service = self.serve(endpoint=f"ipc://{folder}/replay")
            self.assertEqual(self.write(self.table(self.client(service)), 20), 20)
            self.assertEqual(service.stop(), 0)
        for endpoint in ("tcp://0.0.0.0:*", "tcp://*:*"):
            done = subprocess.run([PROGRAM, "replay", "serve", "--endpoint", endpoint], capture_output=True,
                                  text=True, timeout=30)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--insecure", done.stderr)

    def test_tables_of_a_file_are_there_and_a_wrong_key_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "replay.yaml"
            path.write_text("tables:\n  - name: ready\n    observation: [{name: o, dtype: f32, shape: [2]}]\n"
                            "    options: {capacity: 10, min_size: 2}\n", encoding="ascii")
            service = self.serve("--config", path)
            self.assertEqual(self.client(service).table("ready").options["min_size"], 2)
            path.write_text("tables: [{name: x, observation: [{name: o, dtype: f32}], options: {capasity: 1}}]",
                            encoding="ascii")
            done = subprocess.run([PROGRAM, "replay", "serve", "--config", str(path)], capture_output=True,
                                  text=True, timeout=30)
            self.assertEqual(done.returncode, 2)
            self.assertIn("capasity", done.stderr)
            self.assertIn(str(path), done.stderr)


class Limits(ServiceTest):
    OPTIONS = {"n_step": 1, "min_size": 10, "samples_per_insert": 1.0, "error_buffer": 20.0}

    def test_both_sides_time_out_with_the_limiter_s_reason_and_go_on_afterwards(self):
        client = self.client()
        table = self.table(client, **self.OPTIONS)
        with self.assertRaisesRegex(LimiterTimeout, "min_size"):
            table.sample(4, timeout=0.2)
        writer = table.writer(chunk_steps=1, timeout=0.5)
        with self.assertRaisesRegex(LimiterTimeout, "insert"):
            for i in range(100):
                writer.append([i, i, i], [0, 0], i)
        self.assertGreater(table.info()["waiting_inserts"], 0)
        for _ in range(10):
            table.sample(4)
        writer.flush()
        self.assertEqual(table.info()["waiting_inserts"], 0)
        info = table.info()
        self.assertEqual(info["dropped_steps"], 0, "the order was kept")
        self.assertGreater(info["insert_blocked_ms"], 0)

    def test_more_requests_than_credit_are_answered_with_an_error(self):
        client = self.client()
        table = self.table(client, **self.OPTIONS)
        numbers = []
        for _ in range(client.credit + 3):
            numbers.append(client._register(troupe_replay._SAMPLE, table._asking(1, 0.5)))
            client._transmit(numbers[-1])
        codes = []
        for number in numbers:
            try:
                client._fetch(number, 1.0)
            except RefusedError as error:
                codes.append(error.code)
            except LimiterTimeout:
                codes.append(5)
        self.assertEqual(sorted(codes), [5] * client.credit + [8] * 3)
        self.assertEqual(client.info()["over_credit"], 3)


class WrongBytes(ServiceTest):
    def dealer(self):
        dealer = zmq.Context.instance().socket(zmq.DEALER)
        dealer.setsockopt(zmq.ROUTING_ID, b"stranger-%d" % random.getrandbits(60))
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(self.service.endpoint)
        self.addCleanup(dealer.close)
        return dealer

    def assert_serves(self, table, before):
        self.write(table, 20)
        self.assertEqual(len(table.sample(8)["reward"]), 8)
        self.assertIsNone(self.service.process.poll(), self.service.said())
        self.assertLess(self.service.resident() - before, 200 << 20)

    def test_random_and_truncated_messages_are_counted_and_hurt_nobody(self):
        client = self.client()
        table = self.table(client)
        self.write(table, 50)
        before = self.service.resident()
        dealer, choose = self.dealer(), random.Random(7)
        header = struct.pack("<IHHQ", 0x53525254, 1, 0, 9)
        good = header + struct.pack("<III", table.id, 4, 10)
        sent = 0
        for _ in range(600):
            kind = bytes([choose.randrange(256)])
            if choose.random() < 0.5:
                body = choose.randbytes(choose.randrange(200))
            else:
                body = bytearray(good + choose.randbytes(choose.randrange(40)))[:choose.randrange(60)]
                if body:
                    body[choose.randrange(len(body))] ^= 1 << choose.randrange(8)
            dealer.send_multipart([kind, bytes(body)])
            sent += 1
            while dealer.poll(0):
                dealer.recv_multipart()
        wait_until(lambda: client.info()["requests"] >= sent, what="all requests were taken")
        self.assertGreater(client.info()["malformed"], 200)
        self.assert_serves(table, before)

    def test_huge_lengths_are_refused_without_their_memory(self):
        table = self.table()
        before = self.service.resident()
        dealer = self.dealer()
        header = struct.pack("<IHHQ", 0x53525254, 1, 0, 9)
        huge = [
            (troupe_replay._SAMPLE, struct.pack("<III", table.id, 0xffffffff, 0)),
            (troupe_replay._PRIORITIES, struct.pack("<IIQ", table.id, 0, 1 << 60)),
            (troupe_replay._INSERT, struct.pack("<II", table.id, 1) +
             troupe_replay._CHUNK_HEADER.pack(0x4b435254, 1, 1 << 40, table.spec_hash, 1, 1, 0, 0, 0, 0,
                                              0xffffffff, 0, 0, 0)),
            (troupe_replay._TABLE, b"[" * 60000),
            (troupe_replay._TABLE, json.dumps({"name": "x", "observation": [
                {"name": "o", "dtype": "f64", "shape": [1 << 40, 1 << 40]}]}).encode()),
        ]
        for kind, body in huge:
            dealer.send_multipart([bytes([kind]), header + body])
            self.assertTrue(dealer.poll(20000), kind)
            reply = dealer.recv_multipart()
            self.assertEqual(reply[0], b"\xff", (kind, reply))
        self.assert_serves(table, before)

    def test_every_changed_byte_of_a_chunk_is_refused(self):
        client = self.client()
        table = self.table(client)
        writer = table.writer(chunk_steps=2)
        kept = {}
        transmit, client._transmit = client._transmit, lambda number: kept.update({number: client._waiting[number]})
        writer.append([1, 2, 3], [4, 5], 6.0)
        writer.append([1, 2, 3], [4, 5], 6.0)
        client._transmit = transmit
        (number, (kind, body)), = kept.items()
        whole = b"".join(map(bytes, body))
        for at in range(8, len(whole)):
            changed = bytearray(whole)
            changed[at] ^= 1 << (at % 8)
            with self.assertRaises(RefusedError, msg=f"byte {at}"):
                client._call(kind, [bytes(changed)])
            if at % 7 == 0:
                with self.assertRaises(RefusedError, msg=f"cut at {at}"):
                    client._call(kind, [whole[:at]])
        self.assertEqual(table.info()["inserted_steps"], 0)
        client._transmit(number)
        writer.flush()
        self.assertEqual(table.info()["inserted_steps"], 2)

    def test_plain_sockets_with_noise_do_not_disturb(self):
        table = self.table()
        before = self.service.resident()
        host, port = self.service.endpoint.removeprefix("tcp://").split(":")
        noise = [socket.create_connection((host, int(port))) for _ in range(20)]
        for index, stranger in enumerate(noise):
            stranger.sendall(random.Random(index).randbytes(3000))
        self.assert_serves(table, before)
        for stranger in noise:
            stranger.close()


class SuddenEnds(ServiceTest):
    def test_a_killed_client_costs_nobody_anything(self):
        table = self.table(capacity=100000)
        child = subprocess.Popen([sys.executable, "-c", WRITER, self.service.endpoint,
                                  str(SOURCE / "replay" / "python")], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.assertEqual(child.stdout.readline(), "writing\n")
        wait_until(lambda: table.info()["held_items"] > 100, what="the child's items")
        child.kill()
        child.wait()
        self.write(table, 20)
        info = table.info()
        self.assertEqual(info["inserted_steps"], info["held_steps"] + info["removed_steps"])
        self.assertEqual(len(table.sample(64)["reward"]), 64)

    def test_a_killed_service_is_a_clear_error(self):
        client = self.client(timeout=2.0)
        table = self.table(client)
        self.write(table, 20)
        self.service.stop(signal.SIGKILL)
        for call in (lambda: table.sample(4), table.info, lambda: client.table("t")):
            with self.assertRaisesRegex(ConnectionLost, "is `troupe replay serve` running there"):
                call()
        with self.assertRaisesRegex(ConnectionLost, "127.0.0.1:1 "):
            Client("tcp://127.0.0.1:1", timeout=0.5)

    def test_a_service_started_again_gets_the_tables_and_the_open_chunks(self):
        with tempfile.TemporaryDirectory() as folder:
            service = self.serve("--checkpoint-directory", folder)
            client = self.client(service, timeout=2.0)
            self.table(client, "other")
            table = self.table(client)
            self.write(table, 40)
            written = table.checkpoint()
            self.assertEqual(written["bytes"], os.path.getsize(written["path"]))
            writer = table.writer(chunk_steps=1, timeout=2.0)
            service.stop(signal.SIGKILL)
            with self.assertRaises(ConnectionLost):
                for i in range(20):
                    writer.append([i, i, i], [0, 0], i)
            self.serve("--checkpoint-directory", folder, endpoint=service.endpoint)
            writer.flush(30)
            info = table.info()
            self.assertEqual(info["inserted_steps"], 40 + writer._sequence)
            self.assertEqual(info["dropped_steps"], 0)

    def test_a_stop_writes_the_tables_and_the_next_start_has_them(self):
        with tempfile.TemporaryDirectory() as folder:
            service = self.serve("--checkpoint-directory", folder)
            self.write(self.table(self.client(service)), 60)
            self.assertEqual(service.stop(), 0)
            again = self.serve("--checkpoint-directory", folder)
            self.assertEqual(self.table(self.client(again)).info()["held_items"], 60)


class ManyClients(ServiceTest):
    def test_writers_and_readers_at_once_lose_nothing(self):
        self.table(n_step=1, capacity=100000)
        failures = []

        def write(index):
            try:
                with Client(self.service.endpoint, timeout=30.0) as client:
                    self.write(client.table("t"), 500, start=1000 * index)
            except Exception as error:    # a thread's failure must fail the test
                failures.append(error)

        def read():
            try:
                with Client(self.service.endpoint, timeout=30.0) as client:
                    batches = client.table("t").sampler(64)
                    for _ in range(50):
                        batch = next(batches)
                        assert (batch["observation"][:, 0] == batch["reward"]).all()
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
        threads += [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.client().table("t").info()["held_items"], 2000)


if __name__ == "__main__":
    unittest.main()
