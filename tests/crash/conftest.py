"""Fixtures of the crash harness."""

from collections.abc import Generator, Iterator

import pytest

from tests.e2e.system import Makes, Stand, System, attach_outputs

SETTINGS = {"crash_points": True, "GPUCOMMONS_RECONCILE_INTERVAL_S": "1"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    attach_outputs(report)
    return report


@pytest.fixture
def make_system() -> Iterator[Makes]:
    with Makes(**SETTINGS) as makes:
        yield makes


@pytest.fixture(scope="session")
def stand() -> Iterator[Stand]:
    with Stand(**SETTINGS) as stand:
        yield stand


@pytest.fixture
def system(stand: Stand) -> System:
    return stand.sound()
