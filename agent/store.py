"""The agent's own database: what it was told, what it saw, and the events that tell it.

One SQLite file, one connection behind a lock. Each commit is on disk before it returns
(``synchronous=FULL``; 0.2 ms on the machine where this was measured). A change of a lease and the
event that tells it are one transaction.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from agent import clock
from agent.wire import Desired, Event, Observed

KEEP_ACKNOWLEDGED = 10_000
KEEP_UNACKNOWLEDGED = 100_000
TRIM_EVERY = 1_000
UID_BASE = 2_000_000
UIDS_PER_AGENT = 10_000
UID_RANGES = 200_000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lease (
    lease_id TEXT PRIMARY KEY,
    generation INTEGER NOT NULL CHECK (generation >= 1),
    desired TEXT NOT NULL,
    observed TEXT NOT NULL,
    body TEXT NOT NULL,
    slice TEXT,
    process TEXT,
    gpu_uuid TEXT,
    uid INTEGER,
    boot_id TEXT NOT NULL,
    pid INTEGER,
    started_wall_ns INTEGER,
    started_mono_ns INTEGER,
    ended_wall_ns INTEGER,
    ended_mono_ns INTEGER,
    exit_code INTEGER,
    exit_signal INTEGER,
    end_reason TEXT,
    stop_reason TEXT,
    detail TEXT,
    problem TEXT,
    enforcement_memory TEXT,
    enforcement_compute TEXT,
    updated_wall_ns INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS lease_active ON lease (gpu_uuid)
    WHERE observed IN ('accepted', 'running');
CREATE UNIQUE INDEX IF NOT EXISTS lease_user ON lease (uid)
    WHERE observed IN ('accepted', 'running') AND uid IS NOT NULL;
CREATE TABLE IF NOT EXISTS event (seq INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);
"""

ACTIVE = (Observed.ACCEPTED, Observed.RUNNING)


@dataclass(frozen=True, slots=True)
class Lease:
    """One row: the newest order about a lease and what became of it.

    ``slice`` and ``process`` are the JSON texts that the lease started with; ``body`` is the
    newest order. ``stop_reason`` is why the agent itself asked the process to end.
    """

    lease_id: str
    generation: int
    desired: Desired
    observed: Observed
    body: str
    slice: str | None = None
    process: str | None = None
    gpu_uuid: str | None = None
    uid: int | None = None
    boot_id: str = ""
    pid: int | None = None
    started_wall_ns: int | None = None
    started_mono_ns: int | None = None
    ended_wall_ns: int | None = None
    ended_mono_ns: int | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    end_reason: str | None = None
    stop_reason: str | None = None
    detail: str | None = None
    problem: str | None = None
    enforcement_memory: str | None = None
    enforcement_compute: str | None = None
    updated_wall_ns: int = 0

    @property
    def active(self) -> bool:
        return self.observed in ACTIVE


_COLUMNS = [field.name for field in fields(Lease)]
_PUT = (
    f"INSERT INTO lease ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "  # noqa: S608
    "ON CONFLICT (lease_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[1:])
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM lease"  # noqa: S608 - own column names


def _lease(row: tuple[Any, ...]) -> Lease:
    values = dict(zip(_COLUMNS, row, strict=True))
    values["desired"] = Desired(values["desired"])
    values["observed"] = Observed(values["observed"])
    return Lease(**values)


class Store:
    """The database of one data folder. Safe for use by several threads."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._last_seq = 0
        self._told = threading.Condition()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(_SCHEMA)
        with self.transaction():
            self.stream_id = self._constant("stream_id", str(uuid.uuid4()))
            self.work_name = self._constant("work_name", f"gpucommons-{secrets.token_hex(8)}")
            self.uid_base = int(
                self._constant(
                    "uid_base",
                    str(UID_BASE + secrets.randbelow(UID_RANGES) * UIDS_PER_AGENT),
                )
            )
            self._acknowledged = int(self._constant("acknowledged", "0"))
            self._next_uid = int(self._constant("next_uid", "0"))
        self._last_seq = self._read_last_seq()
        self._trimmed_at = self._last_seq

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits at the end, rolls back on any exception; may be nested. Wakes event readers."""
        with self._lock:
            if self._depth:
                yield
                return
            before = self._last_seq
            self._depth = 1
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                self._last_seq = before
                raise
            else:
                self._connection.execute("COMMIT")
            finally:
                self._depth = 0
            told = self._last_seq != before
        if told:
            with self._told:
                self._told.notify_all()

    def _constant(self, key: str, value: str) -> str:
        self._connection.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", (key, value)
        )
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0])

    def _set(self, key: str, value: str) -> None:
        self._connection.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))

    # -- leases ----------------------------------------------------------------------------------

    def lease(self, lease_id: str) -> Lease | None:
        with self._lock:
            row = self._connection.execute(f"{_SELECT} WHERE lease_id = ?", (lease_id,)).fetchone()
        return None if row is None else _lease(row)

    def leases(self) -> list[Lease]:
        with self._lock:
            rows = self._connection.execute(f"{_SELECT} ORDER BY lease_id").fetchall()
        return [_lease(row) for row in rows]

    def active(self, gpu_uuid: str | None = None) -> list[Lease]:
        """Leases that are accepted or running, of one GPU or of all."""
        query = f"{_SELECT} WHERE observed IN ('accepted', 'running')"
        with self._lock:
            if gpu_uuid is None:
                rows = self._connection.execute(query).fetchall()
            else:
                rows = self._connection.execute(f"{query} AND gpu_uuid = ?", (gpu_uuid,)).fetchall()
        return [_lease(row) for row in rows]

    def put(self, lease: Lease) -> None:
        with self.transaction():
            self._connection.execute(_PUT, astuple(lease))

    def allocate_uid(self) -> int:
        """A user id of this agent's own range that no living lease has; the oldest use first."""
        with self.transaction():
            for _ in range(UIDS_PER_AGENT):
                uid = self.uid_base + self._next_uid
                self._next_uid = (self._next_uid + 1) % UIDS_PER_AGENT
                taken = self._connection.execute(
                    "SELECT 1 FROM lease WHERE uid = ? AND observed IN ('accepted', 'running')",
                    (uid,),
                ).fetchone()
                if taken is None:
                    self._set("next_uid", str(self._next_uid))
                    return uid
        raise RuntimeError("every user id of this agent's range is taken by a living lease")

    def forget_before(self, wall_ns: int) -> list[str]:
        """Removes leases that are over and unchanged since then; returns their ids."""
        with self.transaction():
            rows = self._connection.execute(
                "DELETE FROM lease WHERE observed NOT IN ('accepted', 'running') "
                "AND updated_wall_ns < ? RETURNING lease_id",
                (wall_ns,),
            ).fetchall()
        return [row[0] for row in rows]

    # -- events ----------------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Appends an event and gives it its ``seq``, in the transaction of its cause."""
        with self.transaction():
            body = event.model_dump_json(exclude={"seq"})
            cursor = self._connection.execute("INSERT INTO event (body) VALUES (?)", (body,))
            self._last_seq = int(cursor.lastrowid or 0)
            if self._last_seq - self._trimmed_at >= TRIM_EVERY:
                self._trim()

    def _trim(self) -> None:
        self._trimmed_at = self._last_seq
        oldest = max(
            min(self._acknowledged, self._last_seq - KEEP_ACKNOWLEDGED),
            self._last_seq - KEEP_UNACKNOWLEDGED,
        )
        self._connection.execute("DELETE FROM event WHERE seq <= ?", (oldest,))
        self._set("acknowledged", str(self._acknowledged))

    def _read_last_seq(self) -> int:
        row = self._connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'event'"
        ).fetchone()
        return 0 if row is None else int(row[0])

    @property
    def last_seq(self) -> int:
        return self._last_seq

    def snapshot(self) -> tuple[int, list[Lease]]:
        """The last event's number and every lease, of one instant."""
        with self._lock:
            return self._last_seq, self.leases()

    def events(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Events with a greater ``seq``, in order. Asking for more acknowledges up to ``after``."""
        with self._lock:
            self._acknowledge(after)
            rows = self._connection.execute(
                "SELECT seq, body FROM event WHERE seq > ? ORDER BY seq LIMIT ?",
                (after, limit),
            ).fetchall()
        return [{"seq": seq, **json.loads(body)} for seq, body in rows]

    def _acknowledge(self, after: int) -> None:
        if after > self._acknowledged:
            self._acknowledged = min(after, self._last_seq)
            self.wake_readers()

    def wait_until_read(self, timeout_s: float) -> bool:
        """Blocks until the portal has asked for what follows the last event; false in time."""
        deadline_ns = clock.monotonic_ns() + int(timeout_s * 1e9)
        with self._told:
            while self._acknowledged < self._last_seq:
                left = deadline_ns - clock.monotonic_ns()
                if left <= 0:
                    return False
                self._told.wait(left / 1e9)
        return True

    def wait_for_event(self, after: int, deadline_ns: int) -> bool:
        """Blocks until an event with a greater ``seq`` exists; false at the deadline."""
        with self._told:
            while self._last_seq <= after:
                left = deadline_ns - clock.monotonic_ns()
                if left <= 0:
                    return False
                self._told.wait(left / 1e9)
        return True

    def wait_for_news(self, timeout_s: float) -> None:
        """Blocks until any event is told, at most this long."""
        with self._told:
            self._told.wait(timeout_s)

    def wake_readers(self) -> None:
        with self._told:
            self._told.notify_all()
