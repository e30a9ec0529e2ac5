"""A client of `troupe replay serve`: NumPy arrays in, NumPy batches out. Needs numpy and pyzmq.

    with Client("tcp://127.0.0.1:7700") as client:
        table = client.declare("transitions", observation={"observation": ("f32", (17,))},
                               step={"action": ("f32", (6,))}, capacity=1_000_000, n_step=5)
        with table.writer() as writer:
            writer.append(observation, action, reward, terminated=done, next_observation=after)
        batch = table.sample(256)                 # {"observation": array of shape (256, 17), ...}
        table.update_priorities(batch["keys"], errors)

client.writer([transitions, sequences]) feeds several tables with each step stored once.
replay/PROTOCOL.md describes the messages. A Client and everything made from it belong to one thread.
"""

from __future__ import annotations

import collections
import fcntl
import itertools
import json
import mmap
import os
import secrets
import struct
import time
import warnings
import weakref
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import zmq

__all__ = ["Client", "Table", "Writer", "ReplayError", "RefusedError", "LimiterTimeout",
           "ConnectionLost", "KEY_DTYPE"]

# Names an item for update_priorities.
KEY_DTYPE = np.dtype([("shard", "<u4"), ("shard_epoch", "<u4"), ("slot", "<u4"), ("generation", "<u4")])

Columns = Mapping[str, tuple[str, Sequence[int]]]

_MAGIC, _VERSION = 0x53525254, 1
_HEADER = struct.Struct("<IHHQ")
_HELLO, _TABLE, _INSERT, _SAMPLE, _PRIORITIES, _INFO, _CHECKPOINT, _END_WRITER, _MEMORY = range(1, 10)
_REPLY, _ERROR = 0x80, 0xff
_NOT_FOUND_CODE, _TIMEOUT_CODE = 2, 5
_FRAME = 1 << 20            # bytes of a frame at most
_ALIGNMENT, _BATCH_HEAD = 64, 64
_ZLIB_CHECKSUM = 1          # insert flag: the chunk ends with zlib's CRC-32
_MORE_TABLES = 2            # insert flag: further tables take the chunk
_CHUNK_MAGIC, _CHUNK_VERSION = 0x4b435254, 1
_CHUNK_HEADER = struct.Struct("<IIQQIIQIQIIBQI")
_PROBE = 1.0                # s between two questions to a service that has not answered yet
_DTYPES = {"f32": "<f4", "f64": "<f8", "u8": "u1", "i32": "<i4", "i64": "<i8", "u32": "<u4", "u64": "<u8"}
_DTYPE_CODES = {name: code for code, name in enumerate(["f32", "f64", "u8", "i32", "i64", "u32", "u64"])}


class ReplayError(Exception):
    """Anything that the replay service or the way to it does not allow."""


class RefusedError(ReplayError):
    """The service refused a request and says why; `code` as in replay/PROTOCOL.md."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


class LimiterTimeout(ReplayError):
    """The table's rate limiter held a request back for too long; the message is its reason."""


class ConnectionLost(ReplayError):
    """The service does not answer. What was under way is kept; the next call tries again."""


class _Column:
    def __init__(self, name: str, dtype: str, shape: Sequence[int]):
        self.name, self.type_name, self.shape = name, dtype, tuple(shape)
        self.dtype = np.dtype(_DTYPES[dtype])
        self.row_bytes = self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))

    def described(self, rows: int) -> bytes:
        """Its description inside a chunk."""
        name = self.name.encode()
        return (struct.pack("<B", len(name)) + name +
                struct.pack(f"<BB{len(self.shape)}qQ", _DTYPE_CODES[self.type_name], len(self.shape),
                            *self.shape, rows))


def _columns(described: list[dict[str, Any]]) -> list[_Column]:
    return [_Column(entry["name"], entry["dtype"], entry["shape"]) for entry in described]


def _packed_insert_head(tables: Sequence[int], flags: int) -> bytes:
    if len(tables) == 1:
        return struct.pack("<II", tables[0], flags)
    return struct.pack(f"<III{len(tables) - 1}I", tables[0], flags | _MORE_TABLES, len(tables) - 1, *tables[1:])


def _insert_head(head: bytes) -> tuple[list[int], int]:
    words = struct.unpack(f"<{len(head) // 4}I", head)
    return [words[0], *words[3:]], words[1] & ~_MORE_TABLES


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class _Slots:
    """Memory shared with the service. A slot is free again once no array looks into it any more."""

    def __init__(self, count: int, size: int):
        self.size = _aligned(size)
        self.descriptor = os.memfd_create("troupe-replay", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, count * self.size)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        self._memory = mmap.mmap(self.descriptor, count * self.size)
        self.count = count
        self.free: list[int] = list(range(count))
        weakref.finalize(self, os.close, self.descriptor)

    def announcement(self) -> bytes:
        return struct.pack("<IIIIQ", os.getpid(), self.descriptor, self.count, 0, self.size)

    def view(self, slot: int) -> np.ndarray:
        """The slot's bytes after the header; frees the slot when no array made from it is left."""
        view = np.frombuffer(self._memory, np.uint8, self.size - _HEADER.size, slot * self.size + _HEADER.size)
        weakref.finalize(view, self.free.append, slot).atexit = False
        return view


class Client:
    """One connection. `timeout`: seconds until a service that says nothing counts as lost."""

    def __init__(self, endpoint: str, timeout: float = 10.0):
        self.endpoint, self.timeout = endpoint, timeout
        self._socket: zmq.Socket | None = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.setsockopt(zmq.ROUTING_ID, f"python-{os.getpid()}-{secrets.token_hex(8)}".encode())
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.IMMEDIATE, 1)
        self._socket.setsockopt(zmq.RECONNECT_IVL, 50)
        self._socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        self._socket.connect(endpoint)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[int, list[Any]]] = {}   # sent, unanswered: kind and body
        self._unsent: set[int] = set()                         # of those: the way was cut before them
        self._replies: dict[int, tuple[int, Any]] = {}         # answered, not fetched yet
        self._doubted: dict[int, tuple[int, Any]] = {}         # table unknown: is it another start?
        self._resolving = False
        self._tables: dict[str, Table] = {}
        self._session: str | None = None
        self._slots: _Slots | None = None
        try:
            hello = self._hello()
        except BaseException:
            self.close()
            raise
        self.credit: int = hello["credit"]
        self.max_message_bytes: int = hello["max_message_bytes"]

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection at once; flush writers before. May be called again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def declare(self, name: str, observation: Columns, step: Columns | None = None,
                **options: Any) -> Table:
        """The table of that name, made now if there is none.

        `observation` and `step` give each column's type (f32, f64, u8, i32, i64, u32, u64) and shape
        of one row. Options: capacity, n_step, discount, selector, remover, seed, min_size,
        samples_per_insert, error_buffer, max_chunk_steps, priority_exponent, importance_exponent,
        max_times_sampled, capacity_bytes; limiter ("ratio", or "queue" and "stack" of `capacity`
        items given once each); items ("n_step", "sequence", "episode"), length, period, burn_in,
        across_episodes, tail; compression ({column: "none", "lz4" or "zstd"}) and frame_stack
        ({observation column: rows that a batch shows}). RefusedError when the table exists with
        other columns; a warning for each option that an existing table has otherwise.
        """
        def listed(columns: Columns | None) -> list[dict[str, Any]]:
            return [{"name": key, "dtype": dtype, "shape": list(shape)}
                    for key, (dtype, shape) in (columns or {}).items()]
        return self._open({"name": name, "observation": listed(observation), "step": listed(step),
                           "options": options})

    def table(self, name: str) -> Table:
        """The table of that name, which somebody has declared before."""
        return self._open({"name": name})

    def writer(self, tables: Sequence[Table], chunk_steps: int = 0, timeout: float = 60.0) -> Writer:
        """A writer of one stream of steps that all of these tables take, or none does. See Writer.

        The tables have the same columns; the service stores each step once for all of them.
        """
        return Writer(tables, chunk_steps, timeout)

    def info(self) -> dict[str, Any]:
        """Counters of the service and statistics of all its tables."""
        return self._json(self._call(_INFO, [struct.pack("<I", 0xffffffff)]))

    def ping(self) -> float:
        """Seconds until the service answers; ConnectionLost after `timeout`."""
        start = time.monotonic()
        self._hello()
        return time.monotonic() - start

    # What follows moves messages. A request is a kind byte and a body of buffers; it is kept until
    # its reply is here, so that it can be sent again: every request may be repeated.

    def _open(self, request: dict[str, Any]) -> Table:
        answer = self._json(self._call(_TABLE, [json.dumps(request).encode()]))
        for note in answer.get("notes", []):
            if " was restored from " not in note:
                warnings.warn(f"table '{request['name']}': {note}", stacklevel=3)
        known = self._tables.get(answer["name"])
        if known is None:
            known = self._tables[answer["name"]] = Table(self, answer)
        else:
            known._describe(answer)
        return known

    def _hello(self) -> dict[str, Any]:
        hello = self._json(self._call(_HELLO, []))
        self._meet(hello["session"])
        return hello

    def _meet(self, session: str) -> None:
        """Another session is another start of the service: its tables must be opened again."""
        before, self._session = self._session, session
        if before in (None, session):
            return
        self._doubted.clear()    # they are sent again with the others
        unanswered = sorted(self._waiting)
        if self._slots is not None:
            self._call(_MEMORY, [self._slots.announcement()])
        ids = {}
        for table in list(self._tables.values()):
            old = table.id
            table._describe(self._json(self._call(_TABLE, [json.dumps(table._request).encode()])))
            ids[old] = table.id
        for number in unanswered:
            kind, body = self._waiting.get(number, (_HELLO, []))
            if kind == _INSERT:
                tables, flags = _insert_head(body[0])
                body = [_packed_insert_head([ids.get(old, old) for old in tables], flags), *body[1:]]
            elif kind not in (_HELLO, _TABLE) and body:
                old, = struct.unpack_from("<I", body[0])
                body = [struct.pack("<I", ids.get(old, old)) + body[0][4:], *body[1:]]
            self._waiting[number] = (kind, body)
            if kind != _HELLO:
                self._transmit(number)

    def _share(self, count: int, size: int) -> _Slots:
        """Memory of at least so many slots, each of at least that size, which the service knows."""
        slots = self._slots
        if slots is None or slots.count < count or slots.size < size:
            slots = _Slots(count, size)
            self._call(_MEMORY, [slots.announcement()])
            self._slots = slots
        return slots

    def _call(self, kind: int, body: list[Any], patience: float = 0.0) -> Any:
        """The reply's body. `patience`: seconds that the service itself may take."""
        number = self._register(kind, body)
        try:
            self._transmit(number)
            return self._fetch(number, patience)
        except ConnectionLost:
            self._forget([number])
            raise

    def _register(self, kind: int, body: list[Any]) -> int:
        number = next(self._numbers)
        self._waiting[number] = (kind, body)
        return number

    def _transmit(self, number: int) -> None:
        """Sends a registered request, after those before it that could not be sent."""
        for earlier in sorted(self._unsent):
            if earlier < number:
                self._transmit_one(earlier)
        self._transmit_one(number)

    def _transmit_one(self, number: int) -> None:
        if self._socket is None:
            raise ReplayError("the client is closed")
        kind, body = self._waiting[number]
        header = _HEADER.pack(_MAGIC, _VERSION, 0, number)
        frames: list[Any] = [bytes([kind])]
        if sum(len(part) for part in body) + len(header) <= _FRAME:
            frames.append(b"".join([header, *body]))
        else:
            frames.append(header)
            for part in body:
                view = memoryview(part).cast("B")
                frames += [view[at:at + _FRAME] for at in range(0, len(view), _FRAME)]
        self._unsent.add(number)
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                self._socket.send_multipart(frames, zmq.NOBLOCK, copy=False)
                self._unsent.discard(number)
                return
            except zmq.Again:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise self._lost() from None
                self._socket.poll(max(1, int(left * 1000)), zmq.POLLOUT)

    def _lost(self) -> ConnectionLost:
        return ConnectionLost(f"{self.endpoint} has not answered for {self.timeout:g} s; "
                              "is `troupe replay serve` running there?")

    def _pump(self, seconds: float) -> bool:
        """Takes one reply in; False when none came."""
        if self._socket is None:
            raise ReplayError("the client is closed")
        if not self._socket.poll(int(max(seconds, 0) * 1000)):
            return False
        frames = self._socket.recv_multipart(copy=False)
        payload = self._joined(frames[1:])
        if len(frames[0]) != 1 or len(payload) < _HEADER.size:
            raise ReplayError(f"{self.endpoint} does not speak the replay protocol")
        magic, version, _, number = _HEADER.unpack_from(payload)
        if magic != _MAGIC or version != _VERSION:
            raise ReplayError(f"{self.endpoint} does not speak version {_VERSION} of the replay protocol")
        reply = (frames[0].bytes[0], payload)
        if number in self._waiting and self._unknown_table(number, reply):
            self._doubted[number] = reply
        elif self._waiting.pop(number, None) is not None:
            self._unsent.discard(number)
            self._replies[number] = reply
        return True

    def _unknown_table(self, number: int, reply: tuple[int, Any]) -> bool:
        kind, payload = reply
        return (kind == _ERROR and self._waiting[number][0] not in (_HELLO, _TABLE) and
                struct.unpack_from("<I", payload, _HEADER.size)[0] == _NOT_FOUND_CODE)

    def _resolve(self) -> None:
        """A table that is unknown may be one of an earlier start: then _meet sends the requests again."""
        if not self._doubted or self._resolving:
            return
        self._resolving = True
        try:
            self._hello()
        finally:
            self._resolving = False
        for number, reply in self._doubted.items():
            if self._waiting.pop(number, None) is not None:
                self._replies[number] = reply
        self._doubted.clear()

    @staticmethod
    def _joined(frames: list[zmq.Frame]) -> memoryview:
        """The payload, in place when it came in one frame."""
        if len(frames) == 1:
            return frames[0].buffer
        whole = np.empty(sum(len(frame) for frame in frames), np.uint8)
        at = 0
        for frame in frames:
            whole[at:at + len(frame)] = np.frombuffer(frame.buffer, np.uint8)
            at += len(frame)
        return memoryview(whole)

    def _fetch(self, number: int, patience: float = 0.0) -> Any:
        """Waits for a reply. While the service takes its time it is asked whether it is there."""
        heard = time.monotonic()
        deadline = heard + patience
        probe: int | None = None
        while number not in self._replies:
            if number not in self._waiting:
                raise ReplayError("the request was given up")
            self._resolve()
            if number in self._replies:
                break
            if self._pump(_PROBE):
                heard = time.monotonic()
                if probe is not None and probe in self._replies:
                    hello, probe = self._json(self._take(probe)), None
                    self._meet(hello["session"])
                    if time.monotonic() > deadline + _PROBE and number in self._waiting:
                        self._transmit(number)   # it, or its reply, was lost
            elif time.monotonic() - heard > self.timeout:
                self._forget([] if probe is None else [probe])
                raise self._lost()
            elif probe is None and self._waiting[number][0] != _HELLO:
                probe = self._register(_HELLO, [])
                self._transmit(probe)
        self._forget([] if probe is None else [probe])
        return self._take(number)

    def _take(self, number: int) -> Any:
        kind, payload = self._replies.pop(number)
        if kind != _ERROR:
            return payload[_HEADER.size:]
        code, = struct.unpack_from("<I", payload, _HEADER.size)
        message = bytes(payload[_HEADER.size + 4:]).decode(errors="replace")
        if code == _TIMEOUT_CODE:
            raise LimiterTimeout(message)
        raise RefusedError(code, message)

    def _forget(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._waiting.pop(number, None)
            self._unsent.discard(number)
            self._replies.pop(number, None)

    @staticmethod
    def _json(body: Any) -> Any:
        return json.loads(bytes(body))


class Table:
    """A table of the service; made by Client.declare and Client.table."""

    def __init__(self, client: Client, answer: dict[str, Any]):
        self._client = client
        self._describe(answer)

    def _describe(self, answer: dict[str, Any]) -> None:
        self.id: int = answer["id"]
        self.name: str = answer["name"]
        self.options: dict[str, Any] = answer["options"]
        self.spec_hash = int(answer["spec_hash"])
        self.observation = _columns(answer["observation"])
        self.step = _columns(answer["step"])
        self.batch = _columns(answer["batch"])
        # Declares the same table again, at a service that was started again.
        self._request = {key: answer[key] for key in ("name", "observation", "step", "options")}

    def writer(self, chunk_steps: int = 0, timeout: float = 60.0) -> Writer:
        """A writer of one stream of steps. See Writer."""
        return Writer([self], chunk_steps, timeout)

    def sample(self, items: int, timeout: float = 60.0) -> dict[str, np.ndarray]:
        """A batch: the columns of C++'s replay::Batch by name, with "keys" (KEY_DTYPE) and "versions".

        Arrays are views of the message, read-only where it was not copied. LimiterTimeout with the
        limiter's reason after `timeout` seconds.
        """
        return self._unpack(self._client._call(_SAMPLE, self._asking(items, timeout), timeout))

    def sampler(self, items: int, prefetch: int = 2, timeout: float = 60.0,
                shared: bool = False) -> Iterator[dict[str, np.ndarray]]:
        """Batches without end, `prefetch` of them asked for ahead (at most the client's credit).

        With `shared`, for a service of the same user on the same host, batches are gathered straight
        into memory that both processes see: right for large ones. The arrays may be kept; while more
        than two batches are kept, further ones travel in messages.
        """
        client, ahead = self._client, max(1, min(prefetch, self._client.credit))
        slots = client._share(ahead + 2, self._batch_bytes(items)) if shared else None
        asked: collections.deque[tuple[int, int | None]] = collections.deque()    # number and slot
        try:
            while True:
                while len(asked) < ahead:
                    slot = slots.free.pop() if slots is not None and slots.free else None
                    body = self._asking(items, timeout)
                    if slot is not None:
                        body.append(struct.pack("<I", slot))
                    asked.append((client._register(_SAMPLE, body), slot))
                    client._transmit(asked[-1][0])
                number, slot = asked[0]
                body = client._fetch(number, timeout * len(asked))
                asked.popleft()
                if slot is not None and slots is not None:
                    body = slots.view(slot)
                yield self._unpack(body)
        finally:
            # Slots of requests under way are not free: the service may still write to them.
            client._forget([number for number, _ in asked])
            if slots is not None and any(slot is not None for _, slot in asked) and client._slots is slots:
                client._slots = None

    def update_priorities(self, keys: np.ndarray, values: np.ndarray) -> int:
        """Sets priorities (finite, >= 0) of items that are still there; returns how many were."""
        keys = np.ascontiguousarray(keys, KEY_DTYPE).reshape(-1)
        values = np.ascontiguousarray(values, "<f8").reshape(-1)
        if len(keys) != len(values):
            raise ValueError(f"{len(keys)} keys but {len(values)} values")
        body = self._client._call(_PRIORITIES, [
            struct.pack("<IIQ", self.id, 0, len(keys)), keys.tobytes(),
            struct.pack("<Q", len(values)), values.tobytes()])
        return int(struct.unpack_from("<Q", body)[0])

    def info(self) -> dict[str, Any]:
        """Statistics and the limiter's state, reasons for waiting included."""
        return self._client._json(self._client._call(_INFO, [struct.pack("<I", self.id)]))

    def checkpoint(self, timeout: float = 600.0) -> dict[str, Any]:
        """Has the service write the table's checkpoint; {"path", "bytes"} once it is on the disk."""
        return self._client._json(self._client._call(_CHECKPOINT, [struct.pack("<I", self.id)], timeout))

    def _asking(self, items: int, timeout: float) -> list[Any]:
        wait = min(int(timeout * 1000), 0xffffffff)
        return [struct.pack("<III", self.id, items, wait)]

    def _batch_bytes(self, items: int) -> int:
        return (_BATCH_HEAD + sum(_aligned(items * column.row_bytes) for column in self.batch) +
                _aligned(items * KEY_DTYPE.itemsize) + items * 8)

    def _unpack(self, body: Any) -> dict[str, np.ndarray]:
        items, columns = struct.unpack_from("<II", body)
        if columns != len(self.batch):
            raise ReplayError(f"a batch of '{self.name}' has {columns} columns instead of {len(self.batch)}")
        raw = np.frombuffer(body, np.uint8)
        if raw.ctypes.data % 8 != 0:    # a small message in the middle of ZeroMQ's buffer
            raw = raw.copy()
        at, batch = _BATCH_HEAD - _HEADER.size, {}

        def view(name: str, dtype: np.dtype, shape: tuple[int, ...], size: int) -> None:
            nonlocal at
            batch[name] = raw[at:at + size].view(dtype).reshape(shape)
            at += _aligned(size)

        for column in self.batch:
            view(column.name, column.dtype, (items, *column.shape), items * column.row_bytes)
        view("keys", KEY_DTYPE, (items,), items * KEY_DTYPE.itemsize)
        view("versions", np.dtype("<u8"), (items,), items * 8)
        return batch


class Writer:
    """Sends one stream of steps in chunks of `chunk_steps` (0: about 256 KiB, at most 64 steps).

    The table builds its items from the steps, never across episodes. Chunks are sent without waiting
    for the answers to the last few; a chunk that the limiter holds back makes append and flush wait,
    up to `timeout` seconds. After LimiterTimeout and ConnectionLost nothing is lost: call flush again.
    A chunk for several tables goes in once the limiters of all of them let it.
    """

    def __init__(self, tables: Sequence[Table], chunk_steps: int, timeout: float):
        if not tables:
            raise ValueError("a writer needs a table")
        table = tables[0]
        self._tables, self._client, self._timeout = list(tables), table._client, timeout
        for other in self._tables:
            if other._client is not table._client or other.spec_hash != table.spec_hash:
                raise ValueError(f"'{other.name}' is of another client, or has other columns or frame "
                                 f"stacks, than '{table.name}'")
        self._table = table
        row = sum(column.row_bytes for column in (*table.observation, *table.step)) + 4
        self._steps = chunk_steps or max(1, min(64, (1 << 18) // row))
        self._steps = max(1, min(self._steps, self._client.max_message_bytes // 2 // row))
        self._worker, self._incarnation = secrets.randbits(32), int(time.time()) & 0xffffffff
        self._sequence = self._episode = self._first = self._count = 0
        self._observation = [np.empty((self._steps + 1, *c.shape), c.dtype) for c in table.observation]
        self._step = [np.empty((self._steps, *c.shape), c.dtype) for c in table.step]
        self._reward = np.empty(self._steps, "<f4")
        self._under_way: collections.deque[int] = collections.deque()
        self._names = [[c.name for c in group] for group in (table.observation, table.step)]
        self.parameter_version = 0      # of the policy that acts; may be set before each append
        self._version = 0
        self.items = 0                  # completed by the chunks answered so far

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()

    def append(self, observation: Any, action: Any, reward: float, terminated: bool = False,
               truncated: bool = False, next_observation: Any = None) -> None:
        """One step: what was seen, what was done, what came of it.

        `observation` and `action`: an array, or a mapping by column name when the table has several
        (every step column is part of `action`). `next_observation`, what the episode ended in, is
        needed with `terminated` or `truncated` and not used otherwise.
        """
        ends = terminated or truncated
        if ends and next_observation is None:
            raise ValueError("the last step of an episode needs next_observation")
        row = self._count
        if row == 0:
            self._version = self.parameter_version
        self._put(self._observation, 0, row, observation)
        self._put(self._step, 1, row, action)
        self._reward[row] = reward
        if ends:
            self._put(self._observation, 0, row + 1, next_observation)
        self._count = row + 1
        if ends or self._count == self._steps:
            self._finish(1 if terminated else 2 if truncated else 0)

    def flush(self, timeout: float | None = None) -> None:
        """Sends what is left of a chunk and waits until the table has acknowledged everything."""
        if self._count:
            self._finish(0)
        self._settle(0, self._timeout if timeout is None else timeout)

    def close(self) -> None:
        """Flushes, and tells the tables that this stream is over."""
        self.flush()
        for table in self._tables:
            self._client._call(_END_WRITER, [struct.pack("<II", table.id, self._worker)])

    def _put(self, arrays: list[np.ndarray], group: int, row: int, value: Any) -> None:
        if len(arrays) == 1 and not isinstance(value, Mapping):
            arrays[0][row] = value
            return
        names = self._names[group]
        if not isinstance(value, Mapping) or len(value) != len(names):
            raise ValueError(f"expected a mapping with the columns {', '.join(names)}")
        for name, array in zip(names, arrays):
            array[row] = value[name]

    def _finish(self, end: int) -> None:
        """Encodes the chunk and sends it; waits while as many are under way as credit allows."""
        self._settle(self._client.credit - 1, self._timeout)
        table, steps = self._table, self._count
        parts: list[Any] = []
        for columns, arrays, rows in ((table.observation, self._observation, steps + (end > 0)),
                                      (table.step, self._step, steps)):
            parts += [memoryview(array[:rows]).cast("B") if array[:rows].size else b"" for array in arrays]
        described = b"".join([column.described(steps + (end > 0)) for column in table.observation] +
                             [column.described(steps) for column in table.step])
        parts.append(memoryview(self._reward[:steps]).cast("B"))
        size = _CHUNK_HEADER.size + 4 + len(described) + sum(len(part) for part in parts) + 4
        head = _CHUNK_HEADER.pack(_CHUNK_MAGIC, _CHUNK_VERSION, size, table.spec_hash, self._worker,
                                  self._incarnation, self._sequence, 0, self._episode, self._first,
                                  steps, end, self._version, 0)
        counts = struct.pack("<HH", len(table.observation), len(table.step))
        chunk = b"".join([head, counts, described, *parts])
        body = [_packed_insert_head([one.id for one in self._tables], _ZLIB_CHECKSUM), chunk,
                struct.pack("<I", zlib.crc32(chunk))]
        self._sequence += 1
        self._first, self._count = (0, 0) if end else (self._first + steps, 0)
        self._episode += end > 0
        self._under_way.append(self._client._register(_INSERT, body))
        self._client._transmit(self._under_way[-1])

    def _settle(self, left: int, timeout: float) -> None:
        """Takes answers until at most `left` chunks are under way."""
        while self._client._pump(0):
            pass
        deadline = time.monotonic() + timeout
        while self._under_way and (len(self._under_way) > left or self._under_way[0] in self._client._replies):
            number = self._under_way[0]
            while number not in self._client._replies:
                self._wait(number, deadline)
            self._under_way.popleft()
            body = self._client._take(number)
            self.items += struct.unpack_from("<QQ", body)[1]

    def _wait(self, number: int, deadline: float) -> None:
        """Until the chunk is answered; asks the table for the reason when it takes too long."""
        self._client._resolve()
        if number not in self._client._waiting:
            return
        if self._client._pump(min(_PROBE, max(deadline - time.monotonic(), 0))):
            return
        self._client.ping()             # notices a service that was started again
        blocked = [(table.name, reason) for table in self._tables
                   if (reason := table.info()["insert_block_reason"])]
        if number not in self._client._waiting:
            return
        if not blocked:
            self._client._transmit(number)   # it, or its answer, was lost on the way
        elif time.monotonic() >= deadline:
            name, reason = blocked[0]
            raise LimiterTimeout(f"a chunk for '{name}' waits: {reason}")
