"""Whose process a process is, by its parents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """``start`` counts clock ticks since boot; with the pid it names a process for good."""

    state: str
    parent: int
    start: int


def stat(pid: int) -> ProcessStat | None:
    """None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return ProcessStat(fields[0], int(fields[1]), int(fields[19]))


def roots(jobs: Mapping[int, str]) -> dict[int, str]:
    """Lease ids by the pids of jobs and of their supervisors, who inherit orphans."""
    found = dict(jobs)
    for pid, lease_id in jobs.items():
        seen = stat(pid)
        if seen is not None and seen.parent > 1:
            found[seen.parent] = lease_id
    return found


def owner(pid: int, known: Mapping[int, str]) -> str | None:
    """The lease whose job or supervisor is the process or an ancestor of it."""
    for _ in range(_DEEPEST):
        if pid in known:
            return known[pid]
        seen = stat(pid)
        if seen is None or seen.parent <= 1:
            return None
        pid = seen.parent
    return None
