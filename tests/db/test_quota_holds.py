"""Holds: never above a limit at any level, given back exactly once."""

from functools import partial

import pytest

from portal.core.audit import SYSTEM
from portal.core.errors import Rejected
from portal.core.ids import new_id
from portal.core.locks import guarded
from portal.core.models import AuditEntry
from quotas.selectors import levels_of, proof_of_holds, queued_limit
from quotas.services.holds import NewHold, hold_many, release_many
from quotas.services.limits import set_limit
from tests.builders import NOW, place
from tests.racing import race

RACERS = 12


def limit(owner_id, milli, queued=None):
    set_limit(actor=SYSTEM, owner_id=owner_id, limit_milli=milli, queued_limit=queued, now=NOW)


def held(owner_id):
    return levels_of([owner_id])[owner_id].held_milli


def new_hold(where, equivalent_milli=250):
    return NewHold(new_id(), where.project, where.owner_ids, equivalent_milli)


def hold(*wanted):
    with guarded():
        return hold_many(wanted, now=NOW)


def release(*attempt_ids):
    with guarded():
        return release_many(attempt_ids, now=NOW)


@pytest.mark.django_db
def test_a_hold_counts_at_every_level():
    where = place()

    hold(new_hold(where, 250), new_hold(where, 1000))

    assert [held(owner) for owner in where.owner_ids] == [1250] * 3
    assert proof_of_holds() == []


@pytest.mark.django_db
@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_full_level_refuses_with_its_numbers_and_nothing_is_held(level):
    where = place()
    limit(where.owner_ids[level], 1500)
    hold(new_hold(where, 1000))
    too_much = new_hold(where, 750)

    refusals = hold(too_much)

    refusal = refusals[too_much.attempt_id]
    name = ["tenant acme", "tenant research", "project vision"][level]
    assert refusal.code == "quotas.limit_reached"
    assert f"{name} may hold 1.5 GPUs at once and holds 1; this job needs 0.75" in refusal.detail
    assert [held(owner) for owner in where.owner_ids] == [1000] * 3


@pytest.mark.django_db
def test_a_batch_holds_in_order_what_fits_and_refuses_the_rest():
    where = place()
    limit(where.project, 1000)
    first, large, last = (new_hold(where, milli) for milli in (600, 600, 400))

    refusals = hold(first, large, last)

    assert list(refusals) == [large.attempt_id]
    assert held(where.project) == 1000


@pytest.mark.django_db
def test_a_batch_of_any_size_takes_as_many_queries(django_assert_max_num_queries):
    where = place()

    with django_assert_max_num_queries(7):
        hold(*(new_hold(where, 10) for _ in range(50)))


@pytest.mark.django_db
def test_releasing_again_gives_back_nothing():
    where = place()
    kept, ended = new_hold(where, 300), new_hold(where, 500)
    hold(kept, ended)

    first = release(ended.attempt_id)
    second = release(ended.attempt_id, "unknown")

    assert (first, second) == ({ended.attempt_id}, set())
    assert held(where.acme) == 300
    assert proof_of_holds() == []


@pytest.mark.django_db
def test_a_limit_below_what_is_held_ends_nothing_and_admits_nothing():
    where = place()
    hold(new_hold(where, 1000))

    limit(where.acme, 500, queued=7)

    assert hold(new_hold(where, 1))
    assert held(where.acme) == 1000
    assert queued_limit(where.acme) == 7
    change = AuditEntry.objects.get(verb="quota.set")
    assert change.detail["before"]["limit_milli"] is None
    assert change.detail["after"]["limit_milli"] == 500


@pytest.mark.django_db
def test_a_negative_limit_is_refused():
    with pytest.raises(Rejected, match=r"quotas\.limit_invalid"):
        limit("owner", -1)


@pytest.mark.django_db(transaction=True)
def test_racing_holds_never_pass_the_limit():
    where = place()
    limit(where.acme, 5 * 250)

    outcomes = race(*(partial(hold, new_hold(where, 250)) for _ in range(RACERS)))

    assert sum(not refusals for refusals in outcomes) == 5
    assert [held(owner) for owner in where.owner_ids] == [1250] * 3
    assert proof_of_holds() == []


@pytest.mark.django_db(transaction=True)
def test_racing_first_holds_make_each_account_once():
    where = place()

    race(*(partial(hold, new_hold(where, 10)) for _ in range(RACERS)))

    assert held(where.project) == 10 * RACERS
    assert proof_of_holds() == []


@pytest.mark.django_db(transaction=True)
def test_racing_releases_give_back_once():
    where = place()
    kept, ended = new_hold(where, 300), new_hold(where, 500)
    hold(kept, ended)

    outcomes = race(*(partial(release, ended.attempt_id) for _ in range(RACERS)))

    assert sorted(map(len, outcomes)) == [0] * (RACERS - 1) + [1]
    assert held(where.acme) == 300


@pytest.mark.django_db(transaction=True)
def test_holds_and_releases_at_once_keep_the_sums():
    where = place()
    running = [new_hold(where, 250) for _ in range(6)]
    hold(*running)

    race(
        *(partial(release, ended.attempt_id) for ended in running),
        *(partial(hold, new_hold(where, 100)) for _ in range(6)),
    )

    assert held(where.project) == 600
    assert proof_of_holds() == []
