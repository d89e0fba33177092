"""Fixtures of the tests that start the whole product."""

from collections.abc import Generator, Iterator

import pytest

from tests.e2e.system import Makes, Stand, System, attach_outputs


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    attach_outputs(report)
    return report


@pytest.fixture
def make_system() -> Iterator[Makes]:
    with Makes() as makes:
        yield makes


@pytest.fixture(scope="session")
def stand() -> Iterator[Stand]:
    with Stand() as stand:
        yield stand


@pytest.fixture
def system(stand: Stand) -> System:
    """A started system that other tests have used and will use: nothing of it is broken."""
    return stand.sound()
