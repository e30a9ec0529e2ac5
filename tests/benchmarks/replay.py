"""Replay beside dm-reverb, in turns in the same run.

in process: Troupe's C++ table (`troupe bench replay`) beside Reverb's Python API against a server in
            the same process, which is the only way its wheel offers; one thread inserts, then one samples.
tcp:        `troupe replay serve` beside a Reverb server, each with its own Python client in a process of
            its own, over loopback; one writer, then one reader that keeps requests under way.

shm:        batches of 32 MB of unpacked pixel items from `troupe replay serve` to a process of its own
            through shared memory, beside a copy of as many bytes within that process.

The items and the frames are those of peers/replay_shapes.py: uniform draws from a full table of the same
size, batches of 256. Reverb always packs, by delta coding and Snappy. Troupe's pixels are measured as they
come (`reverb_…`) and packed by LZ4, its default (`packed_…`): speed is the first's, memory the second's. A
ratio is the smallest of insert and sample over its shapes, each the median of its rounds; that of memory is
how many times more of it Reverb's server took to be filled with pixel items."""

import contextlib
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = pathlib.Path(__file__).resolve().parent / "peers"
COMMANDS = ("insert", "sample")
# Shape of the items, how Troupe keeps them, and the ratio that they count in.
CASES = (("state", "state", "reverb"), ("pixels", "pixels", "reverb"), ("pixels", "packed", "packed"))
ROUNDS, SECONDS = 5, 3.0
ITEMS = {"state": 100_000, "pixels": 4_000}     # as in peers/replay_shapes.py
ITEM_BYTES = 4 * 84 * 84 * 3                    # of a pixel item
SHARED_BATCH = 32 * 10**6 // ITEM_BYTES


class PeerFailed(Exception):
    """One sentence that names the peer."""


class Process(contextlib.AbstractContextManager):
    """A child that is told things on its stdin and answers in lines."""

    def __init__(self, *command):
        self.command = " ".join(map(str, command[-3:]))
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def line(self):
        text = self.process.stdout.readline()
        if not text:
            raise PeerFailed(f"'{self.command}' ended with exit code {self.process.wait()}")
        return text.strip()

    def rate(self, command):
        with contextlib.suppress(BrokenPipeError):    # a dead peer gives no answer, said by line()
            self.process.stdin.write(f"{command} {SECONDS}\n")
            self.process.stdin.flush()
        return json.loads(self.line())["rate"]

    def resident(self):
        """Bytes of memory in use."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as lines:
            return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.terminate()
        self.process.wait()


def own_in_process(program, shape, kept, frames):
    """One round of the C++ table."""
    command = [str(program), "bench", "replay", shape, "--frames", str(frames),
               "--compression", "lz4" if kept == "packed" else "none", "--seconds", str(SECONDS / 2), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise PeerFailed(f"'{' '.join(command)}' ended with exit code {done.returncode}")
    measured = json.loads(done.stdout.strip().splitlines()[-1])
    return {"insert": measured["inserts_per_second"], "sample": measured["samples_per_second"]}


def in_process(program, python, shape, kept, progress, frames):
    """{side: {command: rates}} without sockets, the same frames on both sides."""
    rates = {side: {command: [] for command in COMMANDS} for side in ("troupe", "reverb")}
    with Process(python, PEERS / "reverb_replay.py", "in_process", shape) as reverb:
        reverb.line()
        for turn in range(ROUNDS):
            for command, rate in own_in_process(program, shape, kept, frames).items():
                rates["troupe"][command].append(rate)
            for command in COMMANDS:
                rates["reverb"][command].append(reverb.rate(command))
            tell(progress, f"{kept} in process", turn, rates)
    return rates


def tcp(program, python, shape, kept, progress, memory):
    """{side: {command: rates}} over loopback TCP; puts what an item costs each server into `memory`."""
    rates = {side: {command: [] for command in COMMANDS} for side in ("troupe", "reverb")}
    with Process(program, "replay", "serve", "--endpoint", "tcp://127.0.0.1:*") as own_server, \
         Process(python, PEERS / "reverb_replay.py", "serve", shape) as reverb_server:
        endpoint, port = own_server.line().split()[-1], reverb_server.line()
        servers = {"troupe": own_server, "reverb": reverb_server}
        before = {name: server.resident() for name, server in servers.items()}
        with Process(python, PEERS / "troupe_replay_peer.py", kept, endpoint) as own, \
             Process(python, PEERS / "reverb_replay.py", "client", shape, port) as reverb:
            sides = {"troupe": own, "reverb": reverb}
            for side in sides.values():
                side.line()    # its table is full now
            memory[kept] = {name: (server.resident() - before[name]) / ITEMS[shape]
                             for name, server in servers.items()}
            for turn in range(ROUNDS):
                for command in COMMANDS:
                    for name, side in sides.items():
                        rates[name][command].append(side.rate(command))
                tell(progress, f"{kept} over tcp", turn, rates)
    return rates


def shared_memory(program, python, progress):
    """[bytes per second] of batches through shared memory, and of copies, in turns."""
    batches, copies = [], []
    with Process(program, "replay", "serve", "--endpoint", "tcp://127.0.0.1:*") as server, \
         Process(python, PEERS / "troupe_replay_peer.py", "shared", server.line().split()[-1],
                 str(SHARED_BATCH)) as peer:
        peer.line()
        for turn in range(ROUNDS):
            batches.append(ITEM_BYTES * peer.rate("sample"))
            copies.append(ITEM_BYTES * peer.rate("copy"))
            progress(f"shared memory, round {turn + 1} of {ROUNDS}: {batches[-1] / 1e9:.2f} GB/s, "
                     f"copies {copies[-1] / 1e9:.2f} GB/s")
    return batches, copies


def tell(progress, what, turn, rates):
    last = ", ".join(f"{side} {command} {values[-1]:.0f}/s" for side, commands in rates.items()
                     for command, values in commands.items())
    progress(f"{what}, round {turn + 1} of {ROUNDS}: {last}")


def spread(values):
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def measure(progress, program, python):
    """One object with the ratios and everything that they come from."""
    ratios, details, memory = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        frames = pathlib.Path(folder) / "frames"
        frames.write_bytes(subprocess.run([str(python), str(PEERS / "replay_shapes.py")], check=True,
                                          stdout=subprocess.PIPE).stdout)
        compare(progress, program, python, frames, ratios, details, memory)
    batches, copies = shared_memory(program, python, progress)
    ratios["shm_over_memcpy"] = statistics.median(a / b for a, b in zip(batches, copies))
    details["shm/pixels"] = {"batches_bytes": spread(batches), "copies_bytes": spread(copies)}
    ratios["reverb_memory"] = memory["packed"]["reverb"] / memory["packed"]["troupe"]
    return {"name": "replay", "rounds": ROUNDS, "seconds": SECONDS, "batch": 256, "ratios": ratios,
            "server_bytes_per_item": memory, "rates_per_second": details}


def compare(progress, program, python, frames, ratios, details, memory):
    """Beside Reverb; fills what `measure` gives."""
    for way in ("in_process", "tcp"):
        for shape, kept, side in CASES:
            if way == "tcp":
                rates = tcp(program, python, shape, kept, progress, memory)
            else:
                rates = in_process(program, python, shape, kept, progress, frames)
            name = f"{side}_{way}"
            for command in COMMANDS:
                gains = [own / other for own, other in zip(rates["troupe"][command],
                                                           rates["reverb"][command])]
                details[f"{way}/{kept}/{command}"] = {
                    "ratio": spread(gains), "troupe": spread(rates["troupe"][command]),
                    "reverb": spread(rates["reverb"][command])}
                ratios[name] = min(ratios.get(name, float("inf")), statistics.median(gains))
