"""Prices, metering and usage."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import DatabaseError, transaction

from billing.domain.metering import LeaseUse
from billing.models import PriceVersion, Rate, Segment
from billing.selectors import (
    Group,
    price_now,
    price_versions,
    usage_of_job,
    usage_of_jobs,
    usage_of_projects,
)
from billing.services.metering import meter
from billing.services.prices import publish_price
from portal.core.audit import SYSTEM
from portal.core.errors import Conflict, Rejected
from tests.racing import race

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
H200 = "NVIDIA H200"
RATES = {H200: 2_800_000, "*": 1_000_000}
LONG_BEFORE = NOON - timedelta(days=30)


def publish(effective_from=LONG_BEFORE, rates=RATES, now=LONG_BEFORE, currency="EUR"):
    return publish_price(
        actor=SYSTEM, effective_from=effective_from, currency=currency, rates=rates, now=now
    )


def use(lease_id="lease", *, hours=1.0, started_at=NOON, equivalent=1000, final=True, **facts):
    known = LeaseUse(
        lease_id=lease_id,
        job_id=f"job of {lease_id}",
        project_id="vision",
        tenant_id="research",
        user_id="ada",
        gpu_model=H200,
        equivalent_milli=equivalent,
        compute_milli=equivalent,
        memory_mib=8192,
        started_at=started_at,
        until=started_at + HOUR * hours,
        final=final,
    )
    return replace(known, **facts)


def metered(*uses):
    return meter(list(uses), now=NOON + timedelta(days=1))


def usage(since=NOON - HOUR, until=NOON + timedelta(days=1), group=Group.PROJECT, projects=None):
    return usage_of_projects(projects, since=since, until=until, group=group)


@pytest.mark.django_db
def test_one_gpu_for_an_hour_costs_its_rate():
    publish()

    metered(use())

    line = usage_of_job("job of lease")
    assert (line.seconds, line.gpu_seconds) == (3600, 3600)
    assert line.cost.display() == "2.80 EUR"


@pytest.mark.django_db
def test_four_quarters_for_an_hour_cost_what_one_gpu_costs():
    publish(rates={"*": 1_000_001})
    metered(use("whole", project_id="language"))

    metered(*(use(f"quarter {number}", equivalent=250) for number in range(4)))

    language, vision = usage()
    assert vision.use.cost == language.use.cost
    assert (vision.use.seconds, vision.use.gpu_seconds) == (4 * 3600, 3600)


@pytest.mark.django_db
def test_metering_again_changes_nothing():
    publish()
    metered(use(hours=2.5))
    before = list(Segment.objects.order_by("started_at").values_list())

    metered(use(hours=2.5))
    metered(use(hours=1.25, final=False))

    assert list(Segment.objects.order_by("started_at").values_list()) == before
    assert len(before) == 3


@pytest.mark.django_db
def test_a_lease_that_goes_on_is_metered_in_full_hours_and_completed_at_its_end():
    publish()
    metered(use(started_at=NOON + HOUR / 2, hours=1.25, final=False))
    so_far = usage_of_job("job of lease").seconds

    metered(use(started_at=NOON + HOUR / 2, hours=2))

    assert (so_far, usage_of_job("job of lease").seconds) == (1800, 7200)


@pytest.mark.django_db
def test_use_is_cut_where_the_price_changes():
    publish()
    publish(NOON + HOUR / 4, {"*": 8_000_000}, now=NOON)

    metered(use())

    lines = Segment.objects.order_by("started_at").values_list(
        "duration_ms", "rate_micros_per_gpu_hour"
    )
    assert list(lines) == [(900_000, 2_800_000), (2_700_000, 8_000_000)]
    assert usage_of_job("job of lease").cost.amount_micros == 700_000 + 6_000_000


@pytest.mark.django_db
def test_a_running_lease_is_estimated_as_it_will_be_metered():
    publish()
    metered(use(hours=2.5, final=False))

    estimate = usage_of_jobs(["job of lease"], running=[use(hours=2.5)])["job of lease"]

    metered(use(hours=2.5))
    assert estimate == usage_of_job("job of lease")
    assert estimate.seconds == 9000


@pytest.mark.django_db
def test_use_is_grouped_and_limited_to_projects():
    publish()
    metered(
        use("one"),
        use("two", user_id="grace", equivalent=500),
        use("three", project_id="language"),
    )

    by_user = usage(group=Group.USER, projects=["vision"])
    by_job = usage(group=Group.JOB)

    assert [(line.user_id, line.use.gpu_seconds) for line in by_user] == [
        ("ada", 3600),
        ("grace", 1800),
    ]
    assert [line.job_id for line in by_job] == ["job of three", "job of one", "job of two"]
    assert sum(line.use.cost.amount_micros for line in by_job) == 7_000_000


@pytest.mark.django_db
def test_only_the_part_inside_the_period_counts():
    publish()
    metered(use(hours=3))

    early = usage(until=NOON + HOUR * 1.5)[0].use
    late = usage(since=NOON + HOUR * 1.5)[0].use

    assert (early.seconds, late.seconds) == (5400, 5400)
    assert early.cost.amount_micros + late.cost.amount_micros == 8_400_000
    assert usage(since=NOON + HOUR * 3) == []


@pytest.mark.django_db
def test_sums_do_not_overflow():
    publish(rates={"*": 10**12})

    metered(use(hours=24 * 60))

    line = usage(until=NOON + timedelta(days=60))[0]
    assert line.use.cost.amount_micros == 24 * 60 * 10**12


@pytest.mark.django_db
def test_a_batch_of_any_size_takes_as_many_queries(django_assert_max_num_queries):
    publish()

    with django_assert_max_num_queries(5):
        metered(*(use(f"lease {number}") for number in range(50)))


@pytest.mark.django_db
def test_nothing_is_metered_without_a_price():
    with pytest.raises(Conflict, match=r"billing\.no_price"):
        metered(use())
    assert price_now(H200, now=NOON) is None


@pytest.mark.django_db
def test_a_later_price_needs_notice_and_the_first_does_not():
    publish(now=NOON)
    for soon in (NOON - HOUR, NOON, NOON + timedelta(seconds=59)):
        with pytest.raises(Rejected, match=r"billing\.price_too_soon"):
            publish(soon, now=NOON)

    publish(None, {"*": 5}, now=NOON)

    assert price_versions()[-1].effective_from == NOON + timedelta(minutes=1)
    assert price_now(H200, now=NOON) == 2_800_000
    assert price_now(H200, now=NOON + timedelta(minutes=1)) == 5


@pytest.mark.django_db
def test_two_versions_cannot_begin_at_once():
    publish()
    publish(NOON + HOUR, now=NOON)

    with pytest.raises(Conflict, match=r"billing\.price_taken"):
        publish(NOON + HOUR, now=NOON)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"rates": {H200: 1}}, "billing.rate_missing"),
        ({"rates": {"*": -1}}, "billing.rate_invalid"),
        ({"rates": {"*": 10**12 + 1}}, "billing.rate_invalid"),
        ({"currency": "USD"}, "billing.currency"),
    ],
)
def test_impossible_prices_are_refused(terms, code):
    with pytest.raises(Rejected) as refused:
        publish(**terms)

    assert refused.value.code == code
    assert not PriceVersion.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "rewrite",
    [
        lambda: Segment.objects.update(equivalent_milli=1),
        lambda: Segment.objects.all().delete(),
        lambda: Rate.objects.update(micros_per_gpu_hour=0),
        lambda: Rate.objects.all().delete(),
        lambda: PriceVersion.objects.update(currency="USD"),
    ],
)
def test_the_database_refuses_to_rewrite_what_was_billed(rewrite):
    publish()
    metered(use())

    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        rewrite()


@pytest.mark.django_db(transaction=True)
def test_racing_meters_write_each_segment_once():
    publish()

    race(*(partial(metered, use(hours=2.5)) for _ in range(6)))

    assert Segment.objects.count() == 3
    assert usage_of_job("job of lease").seconds == 9000
