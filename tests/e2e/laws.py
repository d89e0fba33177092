"""What always holds (`design.md` section 10), checked on what portal, agent and jobs recorded.

Each law takes the records and gives a sentence per violation. Pure, apart from `read_records`.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

from tests.e2e.jobs import Witness, read_witness
from tests.e2e.probe_client import Probe
from tests.e2e.system import TERMINAL

Row = dict[str, Any]
_CAPACITY_MILLI = 1000
#: A witness and a lease are read by the same clock; this is what starting and reaping may take.
_WITNESS_SLACK_US = 50_000


@dataclass(frozen=True)
class Expected:
    """What was asked for: one job, its witness file and the ends that are right for it."""

    job_id: str
    witness: str
    ends: frozenset[tuple[str, int | None]]


@dataclass(frozen=True)
class Records:
    """Everything that was written down. Moments are microseconds since 1970."""

    portal: Mapping[str, Any]
    agent: tuple[Row, ...]
    witnesses: Mapping[str, Witness]
    strays: tuple[str, ...]

    def rows(self, table: str) -> list[Row]:
        found: list[Row] = self.portal[table]
        return found


class Watched(Protocol):
    """A running portal with its agents, as far as the laws look at it."""

    witness: Path

    @property
    def probe(self) -> Probe: ...

    @property
    def agent_folders(self) -> Sequence[Path]: ...

    def supervisors(self) -> list[psutil.Process]: ...


def read_records(system: Watched) -> Records:
    witnesses = {path.name: read_witness(path) for path in system.witness.iterdir()}
    return Records(
        portal=system.probe.ask("state"),
        agent=tuple(row for folder in system.agent_folders for row in _agent_rows(folder)),
        witnesses=witnesses,
        strays=tuple(" ".join(process.cmdline()) for process in system.supervisors()),
    )


def _agent_rows(folder: Path) -> list[Row]:
    path = folder / "agent.sqlite3"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as connection:
        connection.row_factory = sqlite3.Row
        query = (
            "SELECT lease_id, generation, observed, end_reason, exit_code, gpu_uuid, "
            "json_extract(slice, '$.memory_mib') AS memory_mib, "
            "json_extract(slice, '$.compute_milli') AS compute_milli, "
            "started_wall_ns, started_mono_ns, ended_wall_ns, ended_mono_ns FROM lease"
        )
        return [dict(row) for row in connection.execute(query)]


def violations(records: Records, expected: Iterable[Expected]) -> list[str]:
    """Check every law, once everything has come to rest."""
    expected = list(expected)
    found = [sentence for law in LAWS for sentence in law(records)]
    return found + list(_asked_for(records, expected))


def _proofs(records: Records) -> Iterator[str]:
    yield from records.portal["proofs"]


def _at_rest(records: Records) -> Iterator[str]:
    for job in records.rows("jobs"):
        if job["state"] not in TERMINAL:
            yield f"job {job['id']} is {job['state']}"
    for attempt in records.rows("attempts"):
        if attempt["ended_at"] is None:
            yield f"attempt {attempt['id']} is open"
    for lease in records.rows("leases"):
        if lease["released_at"] is None:
            yield f"lease {lease['id']} is not released"
    for hold in records.rows("open_holds"):
        yield f"attempt {hold['attempt_id']} still holds quota"
    for message in records.rows("outbox"):
        yield f"the outbox still has a message about {message['ref']}"
    for lease in records.agent:
        if lease["observed"] in ("accepted", "running"):
            yield f"the agent still has lease {lease['lease_id']} as {lease['observed']}"
    for command in records.strays:
        yield f"a process is left: {command}"


def _ends_once(records: Records) -> Iterator[str]:
    """The story of each job is a chain that enters a final state once, as its last step."""
    stories: dict[str, list[Row]] = defaultdict(list)
    for step in records.rows("transitions"):
        stories[step["job_id"]].append(step)
    for job in records.rows("jobs"):
        story = stories[job["id"]]
        state = ""
        for step in story:
            if step["from_state"] != state or state in TERMINAL:
                yield f"the story of job {job['id']} goes from {state} by {step}"
            state = step["to_state"]
        if state != job["state"]:
            yield f"job {job['id']} is {job['state']}; its story ends with {state}"


def _exit_codes(records: Records) -> Iterator[str]:
    """A job's exit code is that of its last attempt, and that is what the agent saw."""
    agent = {row["lease_id"]: row for row in records.agent}
    last: dict[str, Row] = {}
    for attempt in records.rows("attempts"):
        if attempt["number"] > last.get(attempt["job_id"], {"number": 0})["number"]:
            last[attempt["job_id"]] = attempt
        seen = agent.get(attempt["lease_id"])
        if seen is not None and seen["exit_code"] != attempt["exit_code"]:
            yield (
                f"attempt {attempt['id']} has exit code {attempt['exit_code']}; "
                f"the agent saw {seen['exit_code']}"
            )
    for job in records.rows("jobs"):
        attempt = last.get(job["id"], {"exit_code": None})
        if job["exit_code"] != attempt["exit_code"]:
            yield f"job {job['id']} has exit code {job['exit_code']}, its attempt another"


def _metered(records: Records) -> Iterator[str]:
    """Metered = observed by the portal = observed by the agent, to the millisecond."""
    agent = {row["lease_id"]: row for row in records.agent}
    segments: dict[str, list[Row]] = defaultdict(list)
    for segment in records.rows("segments"):
        segments[segment["lease_id"]].append(segment)
    for lease in records.rows("leases"):
        pieces = sorted(segments.pop(lease["id"], []), key=lambda piece: piece["started_at"])
        seen = agent.get(lease["id"])
        if lease["started_at"] is None:
            if pieces:
                yield f"lease {lease['id']} never started and is metered"
            if seen is not None and seen["started_wall_ns"] is not None:
                yield f"lease {lease['id']} started on the node only"
            continue
        if lease["ended_at"] is None:
            continue
        observed_us = lease["ended_at"] - lease["started_at"]
        metered_ms = sum(piece["duration_ms"] for piece in pieces)
        if abs(metered_ms * 1000 - observed_us) > 1000:
            yield f"lease {lease['id']} ran {observed_us} us and is metered {metered_ms} ms"
        for before, after in itertools.pairwise(pieces):
            if after["started_at"] < before["ended_at"]:
                yield f"lease {lease['id']} is metered twice at {after['started_at']}"
        yield from _as_the_agent_saw(lease, seen, observed_us)
    for lease_id in segments:
        yield f"lease {lease_id}, which does not exist, is metered"


def _as_the_agent_saw(lease: Row, seen: Row | None, observed_us: int) -> Iterator[str]:
    if seen is None or seen["started_wall_ns"] is None:
        yield f"lease {lease['id']} started here and not on the node"
        return
    if abs(seen["started_wall_ns"] // 1000 - lease["started_at"]) > 1:
        yield f"lease {lease['id']} started at another time on the node"
    if seen["ended_mono_ns"] is None:
        return
    ran_us = (seen["ended_mono_ns"] - seen["started_mono_ns"]) // 1000
    if abs(ran_us - observed_us) > 1:
        yield f"lease {lease['id']} ran {ran_us} us on the node, {observed_us} us here"


def _never_too_much(records: Records) -> Iterator[str]:
    """At no instant do the leases of a GPU exceed it, nor two leases share a slice."""
    memory = {gpu["uuid"]: gpu["memory_mib"] for gpu in records.rows("gpus")}
    yield from _overfull(
        "portal",
        memory,
        [
            (row["gpu__uuid"], row["created_at"], row["released_at"], row)
            for row in records.rows("leases")
        ],
    )
    yield from _overfull(
        "agent",
        memory,
        [
            (row["gpu_uuid"], row["started_wall_ns"], row["ended_wall_ns"], row)
            for row in records.agent
            if row["started_wall_ns"] is not None
        ],
    )
    by_slice: dict[str, list[Row]] = defaultdict(list)
    for lease in records.rows("leases"):
        by_slice[lease["slice_id"]].append(lease)
    for slice_id, leases in by_slice.items():
        leases.sort(key=lambda lease: int(lease["created_at"]))
        for before, after in itertools.pairwise(leases):
            if before["released_at"] is None or after["created_at"] < before["released_at"]:
                yield f"slice {slice_id} is leased twice at {after['created_at']}"


def _overfull(
    who: str, memory: Mapping[str, int], spans: Iterable[tuple[str, int, int | None, Row]]
) -> Iterator[str]:
    changes: dict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
    for gpu_uuid, start, end, row in spans:
        size = row["compute_milli"], row["memory_mib"]
        changes[gpu_uuid].append((start, 1, *size))
        if end is not None:
            changes[gpu_uuid].append((end, 0, -size[0], -size[1]))
    for gpu_uuid, steps in changes.items():
        compute_sum = memory_sum = 0
        for at, _, compute, mib in sorted(steps):
            compute_sum += compute
            memory_sum += mib
            if compute_sum > _CAPACITY_MILLI or memory_sum > memory.get(gpu_uuid, 0):
                yield (
                    f"by the {who}'s record GPU {gpu_uuid} gave away {compute_sum} thousandths "
                    f"and {memory_sum} MiB at {at}"
                )


def _one_job_per_key(records: Records) -> Iterator[str]:
    jobs = {job["id"] for job in records.rows("jobs")}
    answered: Counter[str] = Counter()
    for key in records.rows("keys"):
        if key["status"] == 0:
            yield f"key {key['key']} was kept without an answer"
        answered.update(key["body"].get("job_ids", []))
    for job_id in jobs:
        if answered[job_id] != 1:
            yield f"job {job_id} belongs to {answered[job_id]} keys"
    for job_id in answered:
        if job_id not in jobs:
            yield f"a key answers with job {job_id}, which does not exist"


def _asked_for(records: Records, expected: Iterable[Expected]) -> Iterator[str]:
    """Each job ran as often as it has started attempts, inside its leases, and ended rightly."""
    jobs = {job["id"]: job for job in records.rows("jobs")}
    leases = {lease["id"]: lease for lease in records.rows("leases")}
    started: dict[str, list[Row]] = defaultdict(list)
    for attempt in records.rows("attempts"):
        if attempt["started_at"] is not None:
            started[attempt["job_id"]].append(attempt)
    for wish in expected:
        job = jobs.get(wish.job_id)
        if job is None:
            yield f"job {wish.job_id} is lost"
            continue
        if (job["state"], job["exit_code"]) not in wish.ends:
            yield f"job {wish.job_id} ended as {job}, not as one of {sorted(wish.ends, key=str)}"
        witness = records.witnesses.get(wish.witness, Witness((), ()))
        attempts = sorted(started[wish.job_id], key=lambda attempt: int(attempt["started_at"]))
        if len(witness.starts) > len(attempts):
            yield (
                f"job {wish.job_id} wrote {len(witness.starts)} starts in {len(attempts)} attempts"
            )
        if job["state"] == "SUCCEEDED" and len(witness.ends) != 1:
            yield f"job {wish.job_id} succeeded and wrote {len(witness.ends)} ends"
        for at in (*witness.starts, *witness.ends):
            if not any(_inside(at, leases[attempt["lease_id"]]) for attempt in attempts):
                yield f"job {wish.job_id} ran at {at}, outside its leases"


def _inside(at: int, lease: Row) -> bool:
    start, end = lease["started_at"], lease["ended_at"]
    return bool(
        start is not None
        and end is not None
        and start - _WITNESS_SLACK_US <= at <= end + _WITNESS_SLACK_US
    )


LAWS: tuple[Callable[[Records], Iterator[str]], ...] = (
    _proofs,
    _at_rest,
    _ends_once,
    _exit_codes,
    _metered,
    _never_too_much,
    _one_job_per_key,
)
