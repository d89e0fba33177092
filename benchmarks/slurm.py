"""Slurm from Debian's packages on this machine, as a baseline: one node, all in a temporary folder.

Runs as whoever starts it; nothing of the system's own Slurm or munge is used or changed.
"""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from benchmarks.api import Failed
from benchmarks.embedded import end_as_interrupted, end_process, free_port

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo", "scancel", "munged")
CPUS = 64
READY_S = 30
STOP_S = 20
_POLL_S = 0.02
_LOG_TAIL = 2_000

SETTINGS = {
    # A batch job may start at once; the default waits 3 s for a prolog. The queue is looked at
    # every second and without a pause after a change, deep enough for the whole burst.
    "SchedulerType": "sched/builtin",
    "SchedulerParameters": (
        "batch_sched_delay=0,sched_interval=1,sched_min_interval=0,default_queue_depth=1000,"
        "sched_max_job_start=0"
    ),
    # A job takes one CPU. The node claims many, whatever the machine has: Slurm fills them about
    # once a second, so that fewer would bound its throughput (8 CPUs: 8 jobs a second).
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU",
    "SlurmdParameters": "config_overrides",
    # Nothing is kept, counted or confined for a job.
    "ProctrackType": "proctrack/pgid",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none",
    "JobCompType": "jobcomp/none",
    "MpiDefault": "none",
    "SwitchType": "switch/none",
    "CompleteWait": "0",
    "KillWait": "1",
    # Ended jobs are remembered until the run has read their states.
    "MinJobAge": "600",
    "MaxJobCount": "10000",
    "SlurmctldDebug": "error",
    "SlurmdDebug": "error",
}


def require_programs() -> None:
    """Say what is missing in one line."""
    missing = [name for name in PROGRAMS if not _where(name)]
    if missing:
        raise Failed(
            f"--slurm needs {', '.join(missing)}; on Debian: "
            "apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
        )


def _where(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class Cluster:
    """munged, slurmctld and slurmd as children of this program, as a context."""

    def __init__(self) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="gpucommons-slurm-"))
        self._place.chmod(0o711)
        self._conf = self._place / "slurm.conf"
        self._env = {**os.environ, "SLURM_CONF": str(self._conf)}
        self._running = ExitStack()
        self.version = ""

    def __enter__(self) -> Cluster:
        end_as_interrupted()
        try:
            self._start()
        except BaseException:
            self._show_logs()
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    # -- jobs ------------------------------------------------------------------------------------

    def submit(self, command: str) -> str:
        """Give the id of a batch job that runs a line of shell."""
        return self._ask("sbatch", "--parsable", "--output=/dev/null", f"--wrap={command}")

    def start_latency(self) -> float:
        """Seconds from just before ``sbatch`` is started until the job's own note of the time."""
        noted = self._place / "work" / secrets.token_hex(8)
        before = time.time()
        job_id = self.submit(f"date +%s.%N >{noted}")
        self.wait_empty(READY_S)
        self.all_completed([job_id], 1)
        return float(noted.read_text()) - before

    def wait_empty(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while self._ask("squeue", "--noheader"):
            if time.monotonic() > deadline:
                raise Failed(f"Slurm still has jobs after {timeout_s:g} s")
            time.sleep(_POLL_S)

    def all_completed(self, job_ids: list[str], count: int) -> None:
        lines = self._ask("scontrol", "--oneliner", "show", "job").splitlines()
        words = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
        good = {job["JobId"] for job in words if job["JobState"] == "COMPLETED"} & set(job_ids)
        if len(good) != count:
            raise Failed(f"{len(good)} of {count} jobs of Slurm COMPLETED")

    def _ask(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [_where(program) or program, *arguments],
            env=self._env,
            cwd=self._place / "work",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Failed(f"{program}: {done.stderr.strip()}")
        return done.stdout.strip()

    # -- daemons ---------------------------------------------------------------------------------

    def _start(self) -> None:
        for name in ("munge", "state", "spool", "work"):
            (self._place / name).mkdir(mode=0o711)
        self._conf.write_text(self._configuration())
        munge = self._place / "munge"
        key = munge / "key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
        self._spawn(
            "munged",
            "--foreground",
            *(f"--{name}={munge / name}" for name in ("socket", "pid-file", "log-file")),
            f"--key-file={key}",
            f"--seed-file={munge / 'seed'}",
        )
        self._wait_for("munged", (munge / "socket").exists)
        self._spawn("slurmctld", "-D", "-f", str(self._conf))
        self._spawn("slurmd", "-D", "-f", str(self._conf), "-N", "bench")
        self._wait_for("slurmd", self._node_idle)
        self.version = self._ask("sinfo", "--version").removeprefix("slurm-wlm ")

    def _configuration(self) -> str:
        host, user = socket.gethostname(), getpass.getuser()
        lines = {
            "ClusterName": "bench",
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": free_port(),
            "SlurmdPort": free_port(),
            "SlurmUser": user,
            "SlurmdUser": user,
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self._place / 'munge' / 'socket'}",
            "StateSaveLocation": self._place / "state",
            "SlurmdSpoolDir": self._place / "spool",
            "SlurmctldPidFile": self._place / "slurmctld.pid",
            "SlurmdPidFile": self._place / "slurmd.pid",
            "ReturnToService": 2,
            **SETTINGS,
        }
        return "".join(f"{name}={value}\n" for name, value in lines.items()) + (
            f"NodeName=bench NodeHostname={host} NodeAddr=127.0.0.1 CPUs={CPUS} State=UNKNOWN\n"
            "PartitionName=all Nodes=bench Default=YES MaxTime=INFINITE State=UP\n"
        )

    def _spawn(self, program: str, *arguments: str) -> None:
        log = self._running.enter_context((self._place / f"{program}.log").open("wb"))
        process = subprocess.Popen(
            [_where(program) or program, *arguments],
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self._running.callback(end_process, process, signal.SIGTERM, STOP_S)

    def _node_idle(self) -> bool:
        try:
            return self._ask("sinfo", "--noheader", "--format=%t") == "idle"
        except Failed:
            return False

    def _wait_for(self, what: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_S
        while not ready():
            if time.monotonic() > deadline:
                raise Failed(f"{what} did not become ready")
            time.sleep(_POLL_S)

    def _show_logs(self) -> None:
        for log in sorted(self._place.glob("**/*log*")):
            if log.is_file():
                sys.stderr.write(f"{log.name}: {log.read_text(errors='replace')[-_LOG_TAIL:]}\n")

    def _stop(self) -> None:
        """Daemons end in the opposite order; what still runs is cancelled first."""
        try:
            if self.version:
                self._ask("scancel", f"--user={getpass.getuser()}")
        except Failed as failure:
            sys.stderr.write(f"{failure}\n")
        finally:
            self._running.close()
            shutil.rmtree(self._place, ignore_errors=True)
