"""Operators' commands, called as `manage.py` calls them."""

import io
import stat
import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from jobs.services import watch
from portal.accounts.models import User
from portal.core import row_leases
from portal.core.clock import utc_now
from portal.core.models import AuditEntry
from portal.fleet.models import EnrolmentCode, Gpu, NodeState
from portal.fleet.selectors import node_target
from portal.ops.processes import Stop, owner
from tests.builders import gpu_info, node
from tests.e2e.system import eventually


def said(*words, **options):
    out = io.StringIO()
    call_command(*words, stdout=out, **options)
    return out.getvalue()


@pytest.mark.django_db
def test_an_administrator_is_made_with_a_password_that_is_shown_once():
    shown = said("create_admin", "olga", "--email", "olga@example.org")

    olga = User.objects.get(name="olga")
    assert olga.is_platform_admin
    assert olga.check_password(shown.split("Password: ")[1].strip())


@pytest.mark.django_db
def test_an_administrator_is_made_with_a_password_from_a_file(tmp_path):
    (tmp_path / "password").write_text("a long enough word\nnot this line\n")

    shown = said("create_admin", "olga", "--password-file", str(tmp_path / "password"))

    assert "word" not in shown
    assert User.objects.get(name="olga").check_password("a long enough word")


@pytest.mark.django_db
def test_a_second_administrator_of_the_name_is_refused():
    said("create_admin", "olga")

    with pytest.raises(CommandError, match="There is a user 'olga'"):
        said("create_admin", "olga")


@pytest.mark.django_db
def test_an_enrolment_code_is_printed_or_written_for_its_owner_alone(tmp_path):
    printed = said("enrolment_code", "node-7").strip()
    written = said("enrolment_code", "node-8", "--file", str(tmp_path / "code"))

    assert printed.startswith("gpe_")
    assert written == ""
    assert (tmp_path / "code").read_text().startswith("gpe_")
    assert stat.S_IMODE((tmp_path / "code").stat().st_mode) == 0o600
    assert EnrolmentCode.objects.count() == 2


@pytest.mark.django_db
def test_a_lost_node_is_declared_with_the_reason():
    node_id = node("node-7", gpu_info())

    shown = said("declare_lost", "node-7", "--reason", "the rack burnt")

    assert "node-7 is lost; 0 attempts ended" in shown
    assert node_target(node_id).state is NodeState.LOST
    entry = AuditEntry.objects.get(verb="node.became_lost")
    assert (entry.actor_name, entry.detail) == ("operator", {"reason": "the rack burnt"})


@pytest.mark.django_db
def test_an_unknown_node_is_not_declared_lost():
    with pytest.raises(CommandError, match="There is no node node-9"):
        said("declare_lost", "node-9", "--reason", "typo")


@pytest.mark.django_db
def test_a_wrong_counter_is_proved_wrong():
    node("node-7", gpu_info("GPU-7"))
    assert "Every counter" in said("prove")

    Gpu.objects.update(compute_leased_milli=1)

    with pytest.raises(CommandError, match="GPU GPU-7 counts 1 milli"):
        said("prove")


def test_a_loop_shows_that_it_turns(tmp_path, monkeypatch):
    monkeypatch.setattr("portal.ops.processes.signal.signal", lambda *_: None)
    stop = Stop(tmp_path / "alive")
    assert not (tmp_path / "alive").exists()

    assert not stop.is_set()

    assert (tmp_path / "alive").exists()
    assert len(owner()) <= 64


@pytest.mark.django_db(transaction=True)
def test_of_two_watchers_one_watches_and_the_other_takes_over(monkeypatch):
    at_work = []

    def watching(engine, stop):
        at_work.append(engine)
        stop.wait()
        at_work.remove(engine)

    monkeypatch.setattr(watch, "watch_nodes", watching)

    def take_turns(name, stop):
        try:
            watch.watch_in_turn(name, name, stop)
        finally:
            connection.close()

    stops = {name: threading.Event() for name in ("first", "second")}
    watchers = {
        name: threading.Thread(target=take_turns, args=(name, stop)) for name, stop in stops.items()
    }
    try:
        watchers["first"].start()
        eventually(lambda: at_work == ["first"], "the first watches")
        watchers["second"].start()
        assert not row_leases.hold("watch", "second", now=utc_now(), ttl=watch.LEASE_TTL)

        stops["first"].set()

        eventually(lambda: at_work == ["second"], "the second has taken over")
    finally:
        for name, stop in stops.items():
            stop.set()
            watchers[name].join()
