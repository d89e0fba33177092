"""Jobs as plain processes, each under a supervisor of its own that outlives the agent.

For each lease there is a folder of records below the data folder, which only the agent can read,
and a work folder, which belongs to the job's user. Nothing here remembers anything: the folders
and the supervisors' claims are the truth, so a new agent goes on where the last one died.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent import crash
from agent.runtime import files, process_tree, records
from agent.runtime.environment import LEASE_VARIABLE
from agent.wire import EndReason, FileSpec

NOTIFY_SOCKET = "notify.sock"
_KILLS_TRIED = 20
_KILL_PAUSE_S = 0.01
_FROM_LEASE_FOLDER = f"../../{NOTIFY_SOCKET}"


@dataclass(frozen=True, slots=True)
class Launch:
    """One process to start. ``uid`` is None where the agent cannot give jobs their own user."""

    lease_id: str
    argv: Sequence[str]
    env: Mapping[str, str]
    uid: int | None
    time_limit_ms: int
    grace_ms: int
    files: Sequence[FileSpec] = ()


class UnsafeFolder(Exception):
    """The work folder exists but is not ours alone; the text says what is wrong."""


def can_isolate(uid_base: int, count: int) -> bool:
    """Whether this process may start others as any of these users."""
    if os.geteuid() != 0:
        return False
    return all(
        any(
            int(inside) <= uid_base and uid_base + count <= int(inside) + int(length)
            for inside, _, length in (
                line.split() for line in Path(f"/proc/self/{kind}").read_text().splitlines()
            )
        )
        for kind in ("uid_map", "gid_map")
    )


def make_work_base(path: Path) -> None:
    """Makes the folder that holds the jobs' work folders. Raises `UnsafeFolder`."""
    mode = 0o711 if os.geteuid() == 0 else 0o700
    try:
        path.mkdir(mode=mode, parents=True)
        path.chmod(mode)
    except FileExistsError:
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise UnsafeFolder(f"{path} is not a folder of this user") from None
        if stat.S_IMODE(found.st_mode) & 0o066:
            raise UnsafeFolder(f"{path} can be read or written by others") from None


class ProcessRuntime:
    """Starts, stops, finds again and forgets the processes of leases.

    Calls for one lease must not overlap; those for different leases may.
    """

    def __init__(self, data: Path, work: Path, supervisor: Path) -> None:
        self._leases = data / "leases"
        self._leases.mkdir(mode=0o700, exist_ok=True)
        self._work = work
        self._supervisor = str(supervisor)
        self.notify_path = data / NOTIFY_SOCKET

    def folder(self, lease_id: str) -> Path:
        return self._leases / lease_id

    def work_folder(self, lease_id: str) -> Path:
        return self._work / lease_id

    def start(self, launch: Launch) -> int:
        """Spawns a supervisor and returns its pid; harmless when the lease is claimed already.

        The process has not begun when this returns. Raises `OSError` when nothing was spawned.
        """
        folder = self.folder(launch.lease_id)
        folder.mkdir(mode=0o700, exist_ok=True)
        work = self.work_folder(launch.lease_id)
        written = folder / "files"
        if launch.files and not written.exists():
            # No supervisor was ever spawned: what is there is ours, perhaps half written.
            shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700, exist_ok=True)
        if launch.files and not written.exists():
            files.write(work, launch.files, launch.uid)
            written.touch(mode=0o600)
        if launch.uid is not None:
            os.chown(work, launch.uid, launch.uid)
        new = folder / "spec.new"
        with open(new, "wb", opener=_private) as file:
            file.write(self._spec(launch, work))
        new.rename(folder / "spec")
        crash.point("agent.folder.prepared")
        pid = os.posix_spawn(self._supervisor, [self._supervisor, str(folder)], {})
        crash.point("agent.spawn.done")
        return pid

    def _spec(self, launch: Launch, work: Path) -> bytes:
        fields = [
            f"lease={launch.lease_id}",
            f"work={work}",
            f"notify={_FROM_LEASE_FOLDER}",
            f"time_limit_ms={launch.time_limit_ms}",
            f"grace_ms={launch.grace_ms}",
        ]
        if launch.uid is not None:
            fields += [f"uid={launch.uid}", f"gid={launch.uid}"]
        fields += [f"argv={value}" for value in launch.argv]
        fields += [f"env={key}={value}" for key, value in launch.env.items()]
        return "".join(f"{field}\0" for field in fields).encode("utf-8", "surrogateescape")

    def look(self, lease_id: str) -> records.Sighting:
        return records.look(self.folder(lease_id))

    def stop(self, lease_id: str, *, at_once: bool = False) -> None:
        """Makes sure that the process ends or never begins; may be repeated.

        The process has its grace, unless it must end at once.

        The mark comes first, then the claim: a supervisor that is on its way sees the one or
        loses the other.
        """
        folder = self.folder(lease_id)
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "stop").touch(mode=0o600)
        crash.point("agent.stop.marked")
        if records.claim_for_agent(folder):
            crash.point("agent.claim.taken")
            records.write_exit(folder, EndReason.NEVER_STARTED, "stopped before it began")
            return
        claim = records.read_claim(folder)
        if claim is not None and claim.alive and claim.pid is not None:
            number = signal.SIGINT if at_once else signal.SIGTERM
            _send(claim.pid, claim.pid_start, number)
            crash.point("agent.stop.signalled")

    def give_up(self, lease_id: str, detail: str) -> None:
        """Records that the process could not be started, unless a supervisor has the lease."""
        folder = self.folder(lease_id)
        folder.mkdir(mode=0o700, exist_ok=True)
        if records.claim_for_agent(folder):
            records.write_exit(folder, EndReason.START_FAILED, detail)

    def kill_leftovers(self, lease_id: str, uid: int | None) -> bool:
        """Kills what a dead supervisor left behind; true when nothing is left.

        Finds processes by the job's own user or, where jobs have none, by the lease's mark in
        their environment.
        """
        mark = f"{LEASE_VARIABLE}={lease_id}".encode()
        for _ in range(_KILLS_TRIED):
            found = [
                int(entry.name)
                for entry in os.scandir("/proc")
                if entry.name.isdigit() and _belongs(int(entry.name), mark, uid)
            ]
            if not found:
                crash.point("agent.leftovers.killed")
                return True
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_KILL_PAUSE_S)
        return False

    def tidy(self, lease_id: str) -> None:
        """Removes the work folder of a lease that is over."""
        shutil.rmtree(self.work_folder(lease_id), ignore_errors=True)
        crash.point("agent.cleanup.done")

    def forget(self, lease_id: str) -> None:
        """Removes the records and the log of a lease that is over."""
        shutil.rmtree(self.folder(lease_id), ignore_errors=True)

    def work_folders(self) -> list[str]:
        return [entry.name for entry in os.scandir(self._work)]

    def read_log(self, lease_id: str, offset: int, limit: int) -> tuple[bytes, int]:
        """Bytes of the output from an offset, and the size so far. No output yet is empty."""
        try:
            with open(self.folder(lease_id) / "log", "rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(offset)
                return file.read(max(0, min(limit, size - offset))), size
        except FileNotFoundError:
            return b"", 0


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _send(pid: int, pid_start: int | None, number: signal.Signals) -> None:
    """Signals a process, never another one that got its number since."""
    with suppress(ProcessLookupError):
        fd = os.pidfd_open(pid)
        try:
            found = process_tree.stat(pid)
            if found is not None and found.start == pid_start:
                signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)


def _belongs(pid: int, mark: bytes, uid: int | None) -> bool:
    try:
        if uid is None:
            return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if os.stat(f"/proc/{pid}").st_uid != uid:
            return False
    except OSError:
        return False
    found = process_tree.stat(pid)
    return found is not None and found.state not in "ZX"
