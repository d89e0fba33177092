"""The files by which the agent and a supervisor talk: lines of key=value, renamed into place."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from agent import clock
from agent.wire import EndReason

AGENT_CLAIM = "agent=1\n"


@dataclass(frozen=True, slots=True)
class Claim:
    """Who has the lease. ``alive``: the supervisor still holds the claim's lock."""

    by_agent: bool
    alive: bool = False
    pid: int | None = None
    pid_start: int | None = None
    boot_id: str | None = None


@dataclass(frozen=True, slots=True)
class Started:
    pid: int
    wall_ns: int
    mono_ns: int


@dataclass(frozen=True, slots=True)
class Exit:
    """``mono_ns`` is None where nobody saw the moment itself."""

    reason: EndReason
    wall_ns: int
    mono_ns: int | None
    code: int | None = None
    signal: int | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a lease's folder says, read so that a dead supervisor's exit record is not missed."""

    claim: Claim | None
    started: Started | None
    exit: Exit | None


def _values(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _read(path: Path) -> dict[str, str] | None:
    try:
        return _values(path.read_text(errors="replace"))
    except FileNotFoundError:
        return None


def _number(values: dict[str, str], key: str) -> int | None:
    return int(values[key]) if key in values else None


def read_claim(folder: Path) -> Claim | None:
    """The claim with the state of its lock; None when nobody has claimed."""
    try:
        fd = os.open(folder / "claim", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        values = _values(os.read(fd, 4096).decode(errors="replace"))
        if "agent" in values:
            return Claim(by_agent=True)
        alive = False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            alive = True
        return Claim(
            by_agent=False,
            alive=alive,
            pid=_number(values, "pid"),
            pid_start=_number(values, "pid_start"),
            boot_id=values.get("boot_id"),
        )
    finally:
        os.close(fd)


def look(folder: Path) -> Sighting:
    """Reads the claim first: a supervisor found dead there wrote its last record before."""
    claim = read_claim(folder)
    return Sighting(claim, _started(folder), _exit(folder))


def _started(folder: Path) -> Started | None:
    values = _read(folder / "started")
    if values is None:
        return None
    return Started(int(values["pid"]), int(values["wall_ns"]), int(values["mono_ns"]))


def _exit(folder: Path) -> Exit | None:
    values = _read(folder / "exit")
    if values is None:
        return None
    return Exit(
        EndReason(values["reason"]),
        int(values["wall_ns"]),
        int(values["mono_ns"]),
        _number(values, "code"),
        _number(values, "signal"),
        values.get("detail"),
    )


def _write_synced(path: Path, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)


def claim_for_agent(folder: Path) -> bool:
    """Takes the lease so that no supervisor can start; false when somebody has it already."""
    mine = folder / f"claim.agent.{os.getpid()}"
    _write_synced(mine, AGENT_CLAIM.encode())
    try:
        os.link(mine, folder / "claim")
    except FileExistsError:
        return False
    finally:
        mine.unlink()
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    return True


def write_exit(folder: Path, reason: EndReason, detail: str) -> None:
    """The exit record of a lease that the agent itself has claimed."""
    text = f"reason={reason}\nwall_ns={clock.wall_ns()}\nmono_ns={clock.monotonic_ns()}\n"
    line = " ".join(detail.split())
    new = folder / "exit.new"
    _write_synced(new, f"{text}detail={line}\n".encode())
    new.rename(folder / "exit")
