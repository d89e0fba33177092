from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent import clock, store
from agent.store import Lease, Store
from agent.wire import Desired, Event, EventKind, Observed


def lease(lease_id: str = "L", observed: Observed = Observed.RUNNING, **more: Any) -> Lease:
    return replace(Lease(lease_id, 1, Desired.RUNNING, observed, "{}"), **more)


def event() -> Event:
    return Event(
        seq=0, kind=EventKind.STARTED, at=clock.now(), boot_id="b", monotonic_ns=1, lease=None
    )


@pytest.fixture
def opened(tmp_path: Path) -> Store:
    return Store(tmp_path / "agent.sqlite3")


def test_a_row_comes_back_as_it_was_put(opened: Store) -> None:
    row = lease(pid=7, uid=2_000_001, detail="why", ended_wall_ns=2**62, updated_wall_ns=5)
    opened.put(row)
    assert opened.lease("L") == row
    assert opened.lease("M") is None


def test_everything_survives_reopening(tmp_path: Path) -> None:
    first = Store(tmp_path / "db")
    first.put(lease())
    first.tell(event())
    uid = first.allocate_uid()
    first.close()
    second = Store(tmp_path / "db")
    assert (second.stream_id, second.work_name) == (first.stream_id, first.work_name)
    assert second.leases() == [lease()]
    assert second.last_seq == 1
    assert second.allocate_uid() == uid + 1


def test_a_failed_transaction_leaves_neither_row_nor_event(opened: Store) -> None:
    def fail() -> None:
        with opened.transaction():
            opened.put(lease())
            opened.tell(event())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert opened.leases() == []
    assert opened.last_seq == 0
    assert opened.events(0, 10) == []


def test_event_numbers_are_never_used_again(opened: Store) -> None:
    for _ in range(3):
        opened.tell(event())
    assert [found["seq"] for found in opened.events(1, 10)] == [2, 3]
    assert [found["seq"] for found in opened.events(0, 1)] == [1]


def test_only_acknowledged_events_are_dropped(
    opened: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "TRIM_EVERY", 1)
    monkeypatch.setattr(store, "KEEP_ACKNOWLEDGED", 2)
    for _ in range(10):
        opened.tell(event())
    assert len(opened.events(0, 100)) == 10
    opened.events(9, 100)
    opened.tell(event())
    assert [found["seq"] for found in opened.events(0, 100)] == [10, 11]


def test_unacknowledged_events_are_bounded(opened: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "TRIM_EVERY", 1)
    monkeypatch.setattr(store, "KEEP_UNACKNOWLEDGED", 5)
    for _ in range(9):
        opened.tell(event())
    assert [found["seq"] for found in opened.events(0, 100)] == [5, 6, 7, 8, 9]


def test_a_reader_wakes_at_once(opened: Store) -> None:
    woken = threading.Event()

    def read() -> None:
        if opened.wait_for_event(0, clock.monotonic_ns() + 30 * 10**9):
            woken.set()

    thread = threading.Thread(target=read)
    thread.start()
    opened.tell(event())
    assert woken.wait(30)
    thread.join()


def test_a_reader_gives_up_at_its_deadline(opened: Store) -> None:
    assert not opened.wait_for_event(0, clock.monotonic_ns())


def test_a_user_is_never_shared_by_living_leases(
    opened: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "UIDS_PER_AGENT", 3)
    for number in range(3):
        opened.put(lease(f"L{number}", uid=opened.allocate_uid()))
    with pytest.raises(RuntimeError, match="taken by a living lease"):
        opened.allocate_uid()
    freed = opened.lease("L1")
    assert freed is not None
    opened.put(replace(freed, observed=Observed.ENDED))
    assert opened.allocate_uid() == freed.uid


def test_only_leases_that_are_over_are_forgotten(opened: Store) -> None:
    opened.put(lease("old", Observed.ENDED, updated_wall_ns=1))
    opened.put(lease("new", Observed.ENDED, updated_wall_ns=10))
    opened.put(lease("running", Observed.RUNNING, updated_wall_ns=1))
    assert opened.forget_before(5) == ["old"]
    assert [found.lease_id for found in opened.leases()] == ["new", "running"]
