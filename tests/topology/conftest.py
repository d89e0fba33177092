"""One topology for each test, in a folder and a database of its own."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.plugin import POSTGRES_PORT, new_service_addresses, run_folder
from tests.topology.topology import Topology, shown_logs

_numbers = itertools.count(200)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections.extend(shown_logs())
    return report


@pytest.fixture
def topology() -> Iterator[Topology]:
    if POSTGRES_PORT not in os.environ:
        pytest.fail("production needs PostgreSQL: run this folder with --backend postgres")
    folder = Path(tempfile.mkdtemp(prefix="t-", dir=run_folder()))
    folder.chmod(0o711)
    addresses = new_service_addresses(next(_numbers))
    topology = Topology(folder, addresses["GPUCOMMONS_DATABASE_URL"])
    try:
        yield topology
    finally:
        topology.close()
        shutil.rmtree(folder, ignore_errors=True)
