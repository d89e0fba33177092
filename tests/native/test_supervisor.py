"""The supervisor as a program: what it starts, records and leaves behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.runtime import process_tree, records
from agent.wire import EndReason
from tests.agent.support import DEADLINE_S, ROOT, SUPERVISOR, eventually

IS_ROOT = os.geteuid() == 0
JOB_UID = 1_999_999


@dataclass
class Bench:
    """A lease folder, a work folder, and the agent's end of the socket."""

    lease: Path
    work: Path
    inbox: socket.socket
    program: Path

    def spec(
        self,
        *argv: str,
        time_limit_ms: int = 0,
        grace_ms: int = 10_000,
        env: tuple[str, ...] = ("PATH=/usr/bin:/bin",),
        extra: tuple[str, ...] = (),
    ) -> None:
        fields = [
            *("lease=L1", f"work={self.work}", "notify=../notify.sock"),
            *(f"time_limit_ms={time_limit_ms}", f"grace_ms={grace_ms}", *extra),
            *(f"argv={word}" for word in argv),
            *(f"env={variable}" for variable in env),
        ]
        (self.lease / "spec").write_bytes(b"".join(f"{text}\0".encode() for text in fields))

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([self.program, self.lease], env={})

    def run(self, *argv: str, **options: object) -> records.Exit:
        self.spec(*argv, **options)  # type: ignore[arg-type]
        assert self.start().wait(DEADLINE_S) == 0
        return self.end()

    def end(self) -> records.Exit:
        found = records.look(self.lease).exit
        assert found is not None
        return found

    def started(self) -> records.Started:
        return eventually(lambda: records.look(self.lease).started)

    def output(self) -> str:
        return (self.lease / "log").read_text()

    def output_with(self, words: int) -> list[str]:
        """The output's words once there are so many."""

        def enough() -> list[str] | None:
            found = self.output().split()
            return found if len(found) >= words else None

        return eventually(enough)


@pytest.fixture
def bench() -> Iterator[Bench]:
    folder = Path(tempfile.mkdtemp(prefix="gpucommons-test-"))
    folder.chmod(0o711)
    lease, work = folder / "lease", folder / "work"
    lease.mkdir(mode=0o700)
    work.mkdir(mode=0o700)
    inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    inbox.bind(str(folder / "notify.sock"))
    inbox.settimeout(DEADLINE_S)
    yield Bench(lease, work, inbox, Path(os.environ.get("GPUCOMMONS_SUPERVISOR", SUPERVISOR)))
    inbox.close()
    shutil.rmtree(folder)


def gone(pid: int) -> bool:
    found = process_tree.stat(pid)
    return found is None or found.state in "ZX"


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exit_code_is_recorded(bench: Bench, code: int) -> None:
    end = bench.run("sh", "-c", f"exit {code}")
    assert (end.reason, end.code, end.signal) == (EndReason.EXITED, code, None)


def test_signal_is_recorded(bench: Bench) -> None:
    end = bench.run("sh", "-c", "kill -SEGV $$")
    assert (end.reason, end.code, end.signal) == (EndReason.SIGNALLED, None, signal.SIGSEGV)


def test_times_enclose_the_process(bench: Bench) -> None:
    before = time.time_ns()
    end = bench.run("sleep", "0.2")
    started = bench.started()
    assert before <= started.wall_ns <= end.wall_ns <= time.time_ns()
    assert end.mono_ns is not None
    assert end.mono_ns - started.mono_ns >= 200_000_000


def test_both_records_are_told(bench: Bench) -> None:
    bench.run("true")
    assert [bench.inbox.recv(64) for _ in range(2)] == [b"L1", b"L1"]


def test_a_lost_socket_does_not_matter(bench: Bench) -> None:
    (bench.lease.parent / "notify.sock").unlink()
    assert bench.run("true").code == 0


def test_output_goes_to_the_log_which_is_appended_to(bench: Bench) -> None:
    (bench.lease / "log").write_text("earlier\n")
    bench.run("sh", "-c", "echo out; echo err >&2")
    assert bench.output() == "earlier\nout\nerr\n"


def test_environment_and_folder_are_the_given_ones(bench: Bench) -> None:
    bench.run("sh", "-c", "env; pwd", env=("PATH=/usr/bin:/bin", "X=a b"))
    assert "X=a b\n" in bench.output()
    assert f"{bench.work}\n" in bench.output()
    assert "GPUCOMMONS" not in bench.output()


def test_the_job_has_no_terminal_no_descriptors_and_default_signals(bench: Bench) -> None:
    script = (
        "import os, signal\n"
        "print(os.getsid(0) == os.getpid(), sorted(map(int, os.listdir('/proc/self/fd')))[:3],\n"
        "      len(os.listdir('/proc/self/fd')),\n"
        "      signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,\n"
        "      signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
    )
    bench.run("python3", "-c", script)
    assert bench.output() == "True [0, 1, 2] 4 True set()\n"


@pytest.mark.parametrize("command", ["no-such-command", "/etc/passwd", "/etc", "/etc/passwd/x"])
def test_a_command_that_cannot_be_executed_is_not_found(bench: Bench, command: str) -> None:
    end = bench.run(command)
    assert end.reason is EndReason.COMMAND_NOT_FOUND
    assert end.detail is not None
    assert end.detail.startswith("cannot be executed: ")
    assert records.look(bench.lease).started is None


def test_a_missing_work_folder_is_a_failed_start(bench: Bench) -> None:
    bench.work.rmdir()
    end = bench.run("true")
    assert end.reason is EndReason.START_FAILED
    assert end.detail == "entering the work folder: No such file or directory"


def test_time_limit_ends_the_process(bench: Bench) -> None:
    end = bench.run("sleep", "100", time_limit_ms=200)
    assert (end.reason, end.signal) == (EndReason.TIME_LIMIT, signal.SIGTERM)


def test_a_process_that_ignores_the_time_limit_is_killed_after_the_grace(bench: Bench) -> None:
    end = bench.run(
        "sh", "-c", "trap '' TERM; while :; do sleep 0.05; done", time_limit_ms=200, grace_ms=200
    )
    assert (end.reason, end.signal) == (EndReason.TIME_LIMIT, signal.SIGKILL)


def test_stop_reaches_the_whole_group_and_keeps_the_exit_code(bench: Bench) -> None:
    bench.spec("sh", "-c", "trap 'echo bye; exit 7' TERM; echo up; sleep 100 & wait")
    supervisor = bench.start()
    bench.started()
    bench.output_with(1)
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(DEADLINE_S) == 0
    assert (bench.end().reason, bench.end().code) == (EndReason.STOPPED, 7)
    assert bench.output() == "up\nbye\n"


def test_stop_at_once_does_not_wait_for_the_grace(bench: Bench) -> None:
    bench.spec("sh", "-c", "trap '' TERM; while :; do sleep 0.05; done", grace_ms=3_600_000)
    supervisor = bench.start()
    bench.started()
    supervisor.send_signal(signal.SIGTERM)
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait(DEADLINE_S) == 0
    assert (bench.end().reason, bench.end().signal) == (EndReason.STOPPED, signal.SIGKILL)


def test_a_stop_file_before_the_start_means_never_started(bench: Bench) -> None:
    (bench.lease / "stop").touch()
    assert bench.run("touch", "ran").reason is EndReason.NEVER_STARTED
    assert not (bench.work / "ran").exists()


def test_nothing_outlives_the_job(bench: Bench) -> None:
    bench.run(
        "sh",
        "-c",
        "setsid sh -c 'trap \"\" TERM HUP; echo $$; exec sleep 100' & "
        "(sleep 100 & echo $!) & sleep 0.3",
    )
    pids = [int(word) for word in bench.output().split()]
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_of_many_supervisors_one_starts(bench: Bench) -> None:
    bench.spec("sh", "-c", "echo once >> ran; sleep 0.2")
    supervisors = [bench.start() for _ in range(8)]
    assert {supervisor.wait(DEADLINE_S) for supervisor in supervisors} == {0}
    assert (bench.work / "ran").read_text() == "once\n"
    assert sorted(path.name for path in bench.lease.iterdir()) == [
        *("claim", "exit", "log", "spec", "started")
    ]


def test_a_lease_claimed_by_the_agent_never_starts(bench: Bench) -> None:
    bench.spec("touch", "ran")
    assert records.claim_for_agent(bench.lease)
    assert bench.start().wait(DEADLINE_S) == 0
    assert not (bench.work / "ran").exists()
    assert not records.claim_for_agent(bench.lease)


def test_the_claim_tells_a_living_supervisor_from_a_dead_one(bench: Bench) -> None:
    bench.spec("sleep", "100")
    supervisor = bench.start()
    bench.started()
    claim = records.read_claim(bench.lease)
    assert claim is not None
    assert (claim.by_agent, claim.alive, claim.pid) == (False, True, supervisor.pid)
    supervisor.kill()
    supervisor.wait(DEADLINE_S)
    eventually(lambda: not (records.read_claim(bench.lease) or claim).alive)


def test_the_job_dies_with_its_supervisor(bench: Bench) -> None:
    bench.spec("sleep", "100")
    supervisor = bench.start()
    job = bench.started().pid
    supervisor.kill()
    supervisor.wait(DEADLINE_S)
    eventually(lambda: gone(job))
    assert records.look(bench.lease).exit is None


@pytest.mark.parametrize(
    "content",
    [b"", b"lease=L1", b"lease=L1\0", b"lease=L1\0work=/\0notify=x\0argv=true\0grace_ms=-1\0"],
)
def test_an_unusable_spec_claims_nothing(bench: Bench, content: bytes) -> None:
    (bench.lease / "spec").write_bytes(content)
    done = subprocess.run([bench.program, bench.lease], stderr=subprocess.PIPE, check=False)
    assert done.returncode == 65
    assert b"no usable spec" in done.stderr
    assert not (bench.lease / "claim").exists()


def test_no_job_runs_as_root_by_its_spec(bench: Bench) -> None:
    bench.spec("true", extra=("uid=0", "gid=0"))
    done = subprocess.run([bench.program, bench.lease], stderr=subprocess.PIPE, check=False)
    assert done.returncode == 65


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a job its own user")
def test_the_job_has_its_own_user_and_cannot_reach_its_records(bench: Bench) -> None:
    os.chown(bench.work, JOB_UID, JOB_UID)
    bench.run(
        "sh",
        "-c",
        f"id -u; id -G; umask; touch here && echo works; cat {bench.lease}/spec; sudo -n id",
        extra=(f"uid={JOB_UID}", f"gid={JOB_UID}"),
    )
    lines = bench.output().splitlines()
    assert lines[:4] == [str(JOB_UID), str(JOB_UID), "0022", "works"]
    assert "Permission denied" in lines[4]
    assert (bench.lease / "log").stat().st_mode & 0o777 == 0o600
    assert (bench.lease / "log").stat().st_uid == 0


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a job its own user")
def test_a_users_runaway_processes_are_killed_by_user(bench: Bench) -> None:
    os.chown(bench.work, JOB_UID, JOB_UID)
    script = (
        "for i in 1 2 3 4 5; do setsid sh -c 'while :; do (sleep 0.01 &); done' & done; sleep 0.3"
    )
    bench.run("sh", "-c", script, extra=(f"uid={JOB_UID}", f"gid={JOB_UID}"))
    alive = [
        entry.name
        for entry in os.scandir("/proc")
        if entry.name.isdigit() and _owner(entry.name) == JOB_UID and not gone(int(entry.name))
    ]
    assert alive == []


def _owner(pid: str) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except FileNotFoundError:
        return None


@pytest.mark.soak
def test_the_same_holds_under_sanitizers() -> None:
    native = ROOT / "native"
    subprocess.run(["make", "-s", "-C", str(native), "sanitize"], check=True)  # noqa: S607
    program = native / "build" / "sanitize" / "gpucommons-supervisor"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        cwd=ROOT,
        env={**os.environ, "GPUCOMMONS_SUPERVISOR": str(program)},
        check=False,
    )
    assert done.returncode == 0
