"""Logs are copied to the portal before their nodes forget them."""

from __future__ import annotations

import pytest
from django.core.files.storage import InMemoryStorage

from jobs.services import kept_logs
from jobs.services.kept_logs import keep_logs
from jobs.services.logs import read_log, search_log
from portal.config import config
from portal.core.errors import NotFound
from tests.factories import Desk
from tests.fakes.engine import Unreachable

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    monkeypatch.setattr(kept_logs, "storages", {"logs": InMemoryStorage()})


def ended(desk, text):
    job_id = desk.running()
    desk.engine.logs[desk.lease_of(job_id)] = text
    desk.engine.end(desk.lease_of(job_id), exit_code=0)
    desk.listen()
    return job_id


def read_all(desk, job_id):
    data, offset, final = b"", 0, False
    while not final:
        chunk = read_log(
            desk.engine, principal=desk.member, job_id=job_id, offset=offset, limit=700_001
        )
        data, offset, final = data + chunk.data, chunk.next_offset, chunk.final
    return data


def search(desk, job_id, wanted):
    return search_log(desk.engine, principal=desk.member, job_id=job_id, wanted=wanted)


def test_a_kept_log_is_read_after_its_node_forgot_it(desk):
    text = b"hello\n" * 500_000
    job_id = ended(desk, text)
    before = search(desk, job_id, "HELLO")
    assert keep_logs(desk.engine, now=desk.now) == 1
    assert keep_logs(desk.engine, now=desk.now) == 0
    desk.engine.lose_record(desk.node_id)
    assert read_all(desk, job_id) == text
    assert search(desk, job_id, "HELLO") == before
    assert len(before) == 100
    assert search(desk, job_id, "nothing") == []


def test_of_a_long_log_both_ends_are_kept_and_the_gap_is_told(desk):
    most = config.log_keep_mib * MIB
    text = b"first\n" + b"x" * (most + 5) + b"\nlast\n"
    job_id = ended(desk, text)
    assert keep_logs(desk.engine, now=desk.now) == 1
    read = read_all(desk, job_id)
    missing = len(text) - most
    assert f"[{missing} bytes of this log were not kept]".encode() in read
    assert read.startswith(b"first\n")
    assert read.endswith(b"\nlast\n")
    assert [line.offset for line in search(desk, job_id, "last")] == [len(text) - 5]


def test_copying_goes_on_where_it_was_stopped(desk, monkeypatch):
    text = bytes(range(256)) * 12_000
    job_id = ended(desk, text)
    saved = kept_logs._save
    passed = []

    def stop_at_the_second(attempt, offset, data):
        saved(attempt, offset, data)
        passed.append(offset)
        if len(passed) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(kept_logs, "_save", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        keep_logs(desk.engine, now=desk.now)
    assert keep_logs(desk.engine, now=desk.now) == 1
    assert passed == [0, MIB, MIB, 2 * MIB]
    desk.engine.lose_record(desk.node_id)
    assert read_all(desk, job_id) == text


def test_an_empty_log_and_one_that_is_gone_are_not_asked_for_again(desk):
    empty, gone = ended(desk, b""), ended(desk, b"x")
    del desk.engine.node(desk.node_id).leases[desk.lease_of(gone)]
    assert keep_logs(desk.engine, now=desk.now) == 1
    assert keep_logs(desk.engine, now=desk.now) == 0
    assert read_all(desk, empty) == b""
    with pytest.raises(NotFound, match="log_gone"):
        read_all(desk, gone)


def test_a_node_that_does_not_answer_is_asked_later(transactional_db):
    desk = Desk(Unreachable())
    desk.engine.silent = False
    job_id = ended(desk, b"x")
    desk.engine.silent = True
    assert keep_logs(desk.engine, now=desk.now) == 0
    desk.engine.silent = False
    assert keep_logs(desk.engine, now=desk.now) == 1
    desk.engine.silent = True
    assert read_all(desk, job_id) == b"x"
