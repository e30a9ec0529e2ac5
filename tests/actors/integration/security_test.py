"""A run that other hosts may join, and strangers at its door: they are dropped in time, counted and named, and the
run goes on. With --factor 5 the flood has the 10 000 connections that are promised.
"""
import contextlib
import os
import pathlib
import re
import socket
import ssl
import statistics
import struct
import subprocess
import time
import unittest

from harness import PROGRAM, RunTest, factor, wait_until

FACTOR = factor()
HELLO_BEGIN = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


def troupe(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=60)


def listening(pid):
    """(address, port) of the TCP sockets at which a process listens."""
    inodes = set()
    with contextlib.suppress(OSError):
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link))
                if found:
                    inodes.add(found[1])
    found = set()
    for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in inodes:
            address, port = words[1].split(":")
            found.add((socket.inet_ntoa(struct.pack("<I", int(address, 16))), int(port, 16)))
    return found


def memory(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def descriptors(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


class Strangers(RunTest):
    def setUp(self):
        super().setUp()
        self.certificates = self.root / "certificates"
        self.issue_authority(self.certificates)
        self.head = self.issue("head", "--role", "coordinator")
        self.worker = self.issue("node-1")
        self.run_ = self.start({**self.ENDLESS, "cluster.listen": "127.0.0.1:*",
                                "cluster.certificates": self.head})
        said = wait_until(lambda: re.search(r"other hosts join at port (\d+)", self.run_.log()), what="the relay")
        self.port = int(said[1])
        self.run_.progressed()

    def issue_authority(self, folder):
        made = troupe("certificates", "init", folder)
        self.assertEqual(made.returncode, 0, made.stderr)

    def issue(self, name, *words, authority=None):
        made = troupe("certificates", "issue", authority or self.certificates, name, "--address", "127.0.0.1", *words)
        self.assertEqual(made.returncode, 0, made.stderr)
        return (authority or self.certificates) / name

    def tearDown(self):
        self.run_.progressed()  # whatever was done to it
        self.run_.tell(15)
        self.assertEqual(self.run_.wait(20), 130, self.run_.told())
        super().tearDown()

    def connect(self, data=b""):
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if data:
            with contextlib.suppress(OSError):
                raw.sendall(data)
        return raw

    def seconds_until_closed(self, raw, limit=10):
        start = time.monotonic()
        raw.settimeout(limit)
        with contextlib.suppress(ConnectionError):
            while raw.recv(4096):
                pass
        raw.close()
        return time.monotonic() - start

    def tls(self, bundle, version=b"troupe/1"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.head / "authority.pem")
        if bundle:
            context.load_cert_chain(bundle / "certificate.pem", bundle / "certificate.key")
        context.set_alpn_protocols([version.decode()])
        return context.wrap_socket(self.connect(), server_hostname="127.0.0.1")

    def version(self):
        """The application that this build asks for."""
        source = (pathlib.Path(os.environ["TROUPE_SOURCE"]) / "actors/runtime/system.hpp").read_text()
        return b"troupe/" + re.search(r"kProtocolVersion = (\d+)", source)[1].encode()

    def test_a_flood_of_junk_half_open_and_silent_connections(self):
        pid = self.run_.process.pid
        before, open_before = memory(pid), descriptors(pid)
        idle = [self.connect(b"" if i % 2 else HELLO_BEGIN) for i in range(300)]
        kinds = [b"\xff" * 60, b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 16, struct.pack(">BBBBI", 1, 0, 0, 0, 2**32 - 1),
                 b"\x16\x03\x01\xff\xff" + b"\0" * 3000]
        took = []
        for i in range(2000 * FACTOR):
            took.append(self.seconds_until_closed(self.connect(kinds[i % len(kinds)])))
        let_in = []
        for _ in range(5):
            start = time.monotonic()
            tested = troupe("certificates", "test", f"127.0.0.1:{self.port}", self.worker)
            let_in.append(time.monotonic() - start)
            self.assertEqual(tested.returncode, 0, tested.stderr)
        silent = [self.seconds_until_closed(raw) for raw in idle]
        print(f"junk: closed after {statistics.median(took) * 1000:.1f} ms (median), {max(took):.3f} s at most; "
              f"honest newcomer: {statistics.median(let_in) * 1000:.0f} ms with its process; "
              f"memory {before / 2**20:.0f} -> {memory(pid) / 2**20:.0f} MiB")
        self.assertLess(statistics.median(took), 1)
        self.assertLess(max(silent), 10)
        self.assertLess(memory(pid), before + 64 * 2**20)
        wait_until(lambda: descriptors(pid) <= open_before + 8, 20, "the descriptors of strangers")
        log = self.run_.log()
        self.assertRegex(log, r"dropped the connection of 127\.0\.0\.1:\d+: it does not speak TLS")
        self.assertLess(log.count("dropped"), 200)

    def test_everyone_refused_is_told_why_at_once(self):
        other = self.root / "other"
        self.issue_authority(other)
        cases = [(self.issue("thief", authority=other), "not of this cluster"),
                 (self.issue("watcher", "--role", "watch"), "lacks the role")]
        for bundle, reason in cases:
            start = time.monotonic()
            tested = troupe("certificates", "test", f"127.0.0.1:{self.port}", bundle)
            took = time.monotonic() - start
            print(f"{reason}: {took * 1000:.0f} ms with its process")
            self.assertEqual(tested.returncode, 1)
            self.assertIn(reason, tested.stderr)
            self.assertLess(took, 5)
        for bundle, version, reason in [(None, self.version(), "certificate"), (self.worker, b"troupe/0", "ALERT")]:
            start = time.monotonic()
            with self.assertRaisesRegex((ssl.SSLError, ConnectionError), f"(?i){reason}"):
                with self.tls(bundle, version) as session:
                    session.recv(1)
            print(f"{reason}: {(time.monotonic() - start) * 1000:.1f} ms")

    def test_a_member_that_announces_four_gibibytes_is_dropped(self):
        pid = self.run_.process.pid
        before = memory(pid)
        with self.tls(self.worker, self.version()) as session:
            self.assertEqual(session.recv(1), b"\0")
            start = time.monotonic()
            session.sendall(struct.pack(">BBBBI24x", 1, 0, 0, 0, 2**32 - 1) + b"x" * 1000)
            with contextlib.suppress(OSError):
                while session.recv(4096):
                    pass
            print(f"4 GiB announced: {(time.monotonic() - start) * 1000:.1f} ms")
            self.assertLess(time.monotonic() - start, 5)
        self.assertLess(memory(pid), before + 64 * 2**20)
        wait_until(lambda: "announces 4294967295 bytes" in self.run_.log(), 10, "the log line")


class Doors(RunTest):
    def test_nothing_but_what_was_asked_for_faces_other_hosts(self):
        certificates = self.root / "certificates"
        for words in (("init", certificates), ("issue", certificates, "head", "--role", "coordinator")):
            self.assertEqual(troupe("certificates", *words).returncode, 0)
        run = self.start({**self.ENDLESS, "transport": "tcp", "cluster.listen": "0.0.0.0:*",
                          "telemetry.endpoint": "tcp://0.0.0.0:*", "cluster.certificates": certificates / "head"})
        said = wait_until(lambda: re.search(r"other hosts join at port (\d+)", run.log()), what="the relay")
        run.progressed()
        pids = [run.process.pid] + [pid for pid, _ in run.nodes().values()]
        faces = {door for pid in pids for door in listening(pid) if door[0] != "127.0.0.1"}
        self.assertIn(("0.0.0.0", int(said[1])), faces)
        self.assertEqual(len(faces), 3, f"the relay and telemetry's two: {faces}")
        before = memory(run.process.pid)
        raw = []
        for _, port in faces:
            for i in range(200):
                raw.append(socket.create_connection(("127.0.0.1", port), timeout=10))
                if i % 2:
                    with contextlib.suppress(OSError):
                        raw[-1].sendall(b"\xff" + bytes(range(i)) * 10)
        run.progressed()
        for connection in raw:
            connection.close()
        self.assertLess(memory(run.process.pid), before + 64 * 2**20)
        run.tell(15)
        self.assertEqual(run.wait(20), 130, run.told())

    def test_what_faces_other_hosts_without_certificates_is_refused_or_warned_of(self):
        refused = self.start({**self.ENDLESS, "telemetry.endpoint": "tcp://0.0.0.0:*"})
        self.assertEqual(refused.wait(20), 2)
        self.assertIn("cluster.certificates is not set", refused.said())
        run = self.start({**self.ENDLESS, "telemetry.endpoint": "tcp://0.0.0.0:*", "cluster.insecure": "true"})
        run.progressed()
        self.assertIn("neither encrypted nor guarded", run.said())
        run.tell(15)
        self.assertEqual(run.wait(20), 130, run.told())


if __name__ == "__main__":
    unittest.main()
