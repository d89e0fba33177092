from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agent.gpu.simulated import SimulatedGpus
from agent.inventory import GpuInventory
from agent.leases import Leases
from agent.runtime.process import ProcessRuntime, can_isolate, make_work_base
from agent.store import UIDS_PER_AGENT, Store
from tests.agent.support import SUPERVISOR, AgentProcess, Authority


@contextmanager
def passable_folder() -> Iterator[Path]:
    """A folder that jobs of other users may pass through, unlike pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="gpucommons-test-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def folder() -> Iterator[Path]:
    with passable_folder() as path:
        yield path


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@contextmanager
def running_agent(authority: Authority, *, start: bool = True) -> Iterator[AgentProcess]:
    with passable_folder() as folder:
        process = AgentProcess(folder / "data", authority, stop_jobs=True)
        process.enrol()
        if start:
            process.start()
        try:
            yield process
        finally:
            process.close()


@pytest.fixture
def agent(authority: Authority) -> Iterator[AgentProcess]:
    """An agent of the test's own, with two simulated GPUs."""
    with running_agent(authority) as process:
        yield process


@pytest.fixture(scope="module")
def shared_agent(authority: Authority) -> Iterator[AgentProcess]:
    """An agent for tests that leave it as it is but for leases of their own."""
    with running_agent(authority) as process:
        yield process


class Node:
    """The agent without its port, in this process: may be left and come back."""

    def __init__(self, folder: Path, supervisor: Path = SUPERVISOR) -> None:
        self.data = folder / "data"
        self.data.mkdir(mode=0o700, exist_ok=True)
        self.store = Store(self.data / "agent.sqlite3")
        make_work_base(folder / "work")
        self.source = SimulatedGpus("H200:share,H200:mig", seed=self.store.stream_id)
        self.inventory = GpuInventory(self.source, self.store)
        self.runtime = ProcessRuntime(self.data, folder / "work", supervisor)
        self.leases = Leases(
            self.store,
            self.runtime,
            self.inventory,
            isolated=can_isolate(self.store.uid_base, UIDS_PER_AGENT),
            user="somebody",
        )
        self.share, self.mig = (gpu.uuid for gpu in self.inventory.all())

    def close(self) -> None:
        self.leases.close()
        self.store.close()


@pytest.fixture
def node(folder: Path) -> Iterator[Node]:
    with ExitStack() as stack:
        made = Node(folder)
        made.leases.resume()
        stack.callback(made.close)
        stack.callback(made.leases.stop_jobs)
        yield made
