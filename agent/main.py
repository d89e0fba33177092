"""The node agent's command: ``gpucommons-agent enrol`` once, ``gpucommons-agent run`` for good."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pwd
import resource
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from agent import crash, enrol, log
from agent.collector import Collector
from agent.gpu.base import GpuSource, GpuUnavailable
from agent.gpu.nvml import NvmlGpus
from agent.gpu.simulated import SimulatedGpus
from agent.inventory import GpuInventory
from agent.leases import Leases
from agent.metrics import Metrics
from agent.runtime.process import (
    ProcessRuntime,
    UnsafeFolder,
    can_isolate,
    make_work_base,
)
from agent.server import AgentServer, Services, tls_context
from agent.store import UIDS_PER_AGENT, Store

#: How long an orderly stop waits for the portal to read how the jobs ended.
LAST_EVENTS_S = 3.0
SIMULATED = "H200:share,H200:mig"
_FAULTS = "simulated_faults.json"
_BUILT = Path(__file__).parent.parent / "native" / "build" / "gpucommons-supervisor"


class CannotRun(Exception):
    """The agent cannot start; the text says what to do."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpucommons-agent", description="GPU Commons node agent")
    commands = parser.add_subparsers(dest="command", required=True)
    join = commands.add_parser("enrol", help="make this machine a node of a portal")
    join.add_argument("--portal", required=True, metavar="URL")
    code = join.add_mutually_exclusive_group(required=True)
    code.add_argument("--code", help="one-time code from the portal")
    code.add_argument("--code-file", type=Path, metavar="FILE", help="holds the code")
    join.add_argument("--address", required=True, help="https://host:port of this agent")
    join.add_argument("--name", default=socket.gethostname(), help="default: %(default)s")
    join.add_argument("--data", required=True, type=Path, metavar="DIR")
    join.add_argument("--once", action="store_true", help="do nothing where a node is enrolled")
    run = commands.add_parser("run", help="serve the portal until SIGTERM")
    run.add_argument("--data", required=True, type=Path, metavar="DIR")
    run.add_argument("--listen", required=True, metavar="HOST:PORT")
    run.add_argument("--gpus", choices=("auto", "nvml", "simulated"), default="auto")
    run.add_argument(
        "--simulated",
        default=SIMULATED,
        metavar="MODEL:MODE,...",
        help="default: %(default)s",
    )
    run.add_argument("--work", type=Path, metavar="DIR", help="holds the jobs' work folders")
    run.add_argument("--supervisor", type=Path, default=_BUILT, metavar="FILE")
    run.add_argument("--stop-jobs", action="store_true", help="end running jobs on SIGTERM")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 done, 1 failed with a line on standard error."""
    options = _parser().parse_args(arguments)
    options.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        if options.command == "enrol":
            _enrol(options)
        else:
            _run(options)
    except (
        CannotRun,
        GpuUnavailable,
        UnsafeFolder,
        enrol.EnrolmentFailed,
        enrol.NotEnrolled,
    ) as error:
        log.error("agent.failed", error=str(error))
        return 1
    return 0


def _enrol(options: argparse.Namespace) -> None:
    if options.once and _is_enrolled(options.data):
        return
    try:
        code = options.code or options.code_file.read_text().strip()
    except OSError as error:
        raise CannotRun(f"no code in {options.code_file}: {error.strerror}") from error
    identity = enrol.enrol(
        options.data,
        portal=options.portal,
        code=code,
        address=options.address,
        node_name=options.name,
    )
    _print({"node_id": identity.node_id, "node_name": identity.node_name})


def _is_enrolled(data: Path) -> bool:
    try:
        enrol.load(data)
    except enrol.NotEnrolled:
        return False
    return True


def _print(values: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def _lock(data: Path) -> int:
    """Held as long as the process lives: one agent per data folder."""
    fd = os.open(data / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CannotRun(f"another agent runs on {data}") from None
    return fd


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise CannotRun(f"--listen takes host:port, not {text}")
    return host, int(port)


def _gpus(options: argparse.Namespace, seed: str) -> GpuSource:
    if options.gpus != "simulated":
        try:
            source = NvmlGpus()
            if source.gpus() or options.gpus == "nvml":
                return source
            source.close()
        except GpuUnavailable as error:
            if options.gpus == "nvml":
                raise
            log.info("gpus.simulated", reason=str(error))
    return SimulatedGpus(options.simulated, seed=seed, faults=options.data / _FAULTS)


def _allow_many_files() -> None:
    """Each running lease costs a descriptor or two."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _run(options: argparse.Namespace) -> None:
    data: Path = options.data.resolve()
    if not os.access(options.supervisor, os.X_OK):
        raise CannotRun(f"no supervisor at {options.supervisor}: make -C native")
    address = _address(options.listen)
    identity = enrol.load(data)
    lock = _lock(data)
    data.chmod(0o700)
    crash.arm(data)
    _allow_many_files()
    wanted = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: wanted.set())
    store = Store(data / "agent.sqlite3")
    work = options.work or Path(tempfile.gettempdir()) / store.work_name
    make_work_base(work)
    source = _gpus(options, seed=store.stream_id)
    inventory = GpuInventory(source, store)
    isolated = can_isolate(store.uid_base, UIDS_PER_AGENT)
    leases = Leases(
        store,
        ProcessRuntime(data, work, options.supervisor.resolve()),
        inventory,
        isolated=isolated,
        user=pwd.getpwuid(os.geteuid()).pw_name,
    )
    collector = Collector(source, inventory, store)
    services = Services(
        node_name=identity.node_name,
        isolated=isolated,
        store=store,
        leases=leases,
        inventory=inventory,
        collector=collector,
        metrics=Metrics(store, inventory, collector),
    )
    try:
        server = AgentServer(address, tls_context(identity), services)
    except OSError as error:
        raise CannotRun(f"cannot listen on {options.listen}: {error.strerror}") from error
    leases.resume()
    collector.start()
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    _announce(data, identity, server)
    wanted.wait()
    log.info("agent.stopping", stop_jobs=options.stop_jobs)
    if options.stop_jobs:
        leases.stop_jobs()
        store.wait_until_read(LAST_EVENTS_S)
    server.shutdown()
    server.server_close()
    collector.stop()
    leases.close()
    source.close()
    (data / "agent.json").unlink(missing_ok=True)
    store.close()
    os.close(lock)


def _announce(data: Path, identity: enrol.Identity, server: AgentServer) -> None:
    host, port = server.server_address[:2]
    values: dict[str, object] = {
        "pid": os.getpid(),
        "address": f"https://{host!s}:{port}",
        "node_id": identity.node_id,
        "node_name": identity.node_name,
    }
    new = data / "agent.json.new"
    new.write_text(json.dumps(values) + "\n")
    new.rename(data / "agent.json")
    _print(values)


if __name__ == "__main__":
    sys.exit(main())
