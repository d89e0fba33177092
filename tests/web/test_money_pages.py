"""Whom a limit hits, what a price changes, and what was used, as table and CSV."""

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest

from billing.domain.metering import LeaseUse
from billing.services.metering import meter
from jobs.services.cycle import run_cycle
from jobs.services.usage import read_unused
from portal.core.clock import utc_now
from portal.core.ids import new_id
from portal.web.views.usage import PERIODS, _cell
from tests import builders

HOUR = timedelta(hours=1)


def used(here, *, at, job_id="", hours=1):
    """Hours of half a GPU, metered."""
    meter(
        [
            LeaseUse(
                lease_id=new_id(),
                job_id=job_id,
                project_id=here.place.project,
                tenant_id=here.place.research,
                user_id=here.people["member"].user_id,
                gpu_model=builders.H200,
                equivalent_milli=500,
                compute_milli=500,
                memory_mib=8192,
                started_at=at,
                until=at + hours * HOUR,
                final=True,
            )
        ],
        now=at + hours * HOUR,
    )


def last_month():
    return (utc_now().replace(day=1) - timedelta(days=1)).replace(hour=10, minute=0, second=0)


def test_a_limit_shows_whom_it_hits_and_ends_nothing(here):
    jobs = [here.job(name=f"held-{number}") for number in range(2)]
    run_cycle(utc_now())
    here.job(name="waits", compute_milli=250)
    browser = here.browser("tenant_admin")

    page = browser.post("/quotas/projects/vision", {"limit_gpus": "0.3", "preview": "1"})

    preview = page.context["preview"]
    assert (preview.held_milli, preview.over_milli, preview.above) == (500, 200, 1)
    assert (preview.waiting_now, preview.waiting, preview.never) == (0, 1, 0)
    assert "Nothing ends" in page.content.decode()
    assert [holder.above for holder in preview.holders] == [True, False]
    assert page.context["level"].limit_milli is None
    smaller = browser.post("/quotas/projects/vision", {"limit_gpus": "0.1", "preview": "1"})
    assert smaller.context["preview"].never == 1
    assert len(jobs) == 2


def test_a_limit_of_a_tenant_counts_the_projects_below(here):
    here.job()
    run_cycle(utc_now())

    page = here.browser("platform_admin").post(
        "/quotas/tenants/acme", {"limit_gpus": "0", "preview": "1"}
    )

    assert page.context["preview"].above == 1


def test_prices_are_compared_with_last_month(here):
    used(here, at=last_month(), hours=2)

    page = here.browser("platform_admin").post(
        "/prices", {"rate_0": "3", "rate_1": "1", "preview": "1"}
    )

    [effect] = page.context["preview"]
    assert (effect.before.amount_micros, effect.after.amount_micros) == (1_000_000, 3_000_000)
    assert "2.00 EUR" in page.content.decode()
    assert len(page.context["versions"]) == 1


def test_usage_by_day_shows_also_what_nobody_used(here):
    yesterday = (utc_now() - timedelta(days=1)).replace(hour=3, minute=0, second=0, microsecond=0)
    used(here, at=yesterday, hours=2)

    page = here.browser("viewer").get(
        f"/usage?by=day&since={yesterday:%Y-%m-%d}&until={yesterday:%Y-%m-%d}"
    )

    [line] = page.context["report"].lines
    [unused] = page.context["unused"]
    assert (line.day, line.seconds, line.gpu_seconds) == (yesterday.date(), 7200, 3600)
    assert (unused.used_s, unused.capacity_s) == (3600, 86_400)
    assert unused.unused_s == 82_800


def test_capacity_before_the_first_node_is_unknown_not_nothing(here):
    first = builders.NOW - timedelta(days=1)
    [before, partly] = read_unused(since=first, until=builders.NOW, now=builders.NOW)

    assert (before.capacity_s, before.unused_s) == (None, None)
    assert (partly.capacity_s, partly.unused_s) == (None, None)


def test_csv_has_stable_columns_and_no_formulas(here):
    job_id = here.job(name="=1+1")
    used(here, at=last_month(), job_id=job_id)

    answer = here.browser("viewer").get("/usage.csv?by=job&period=last-month")

    assert answer.headers["Content-Type"].startswith("text/csv")
    [row] = csv.DictReader(io.StringIO(answer.content.decode()))
    assert list(row) == [
        "since",
        "until",
        "day",
        "project",
        "user",
        "job",
        "metered_seconds",
        "gpu_seconds",
        "cost",
        "currency",
    ]
    assert (row["project"], row["user"], row["job"]) == ("vision", "member", "vision/1")
    assert (row["metered_seconds"], row["cost"]) == ("3600.000", "0.500000")


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\ta"])
def test_a_cell_is_never_a_formula(text):
    assert _cell(text) == f"'{text}"
    assert _cell("vision") == "vision"


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("this-week", "2026-03-02", "2026-03-04"),
        ("last-week", "2026-02-23", "2026-03-01"),
        ("this-month", "2026-03-01", "2026-03-04"),
        ("last-month", "2026-02-01", "2026-02-28"),
    ],
)
def test_periods_are_whole_days(name, first, last):
    days = PERIODS[name][1](datetime(2026, 3, 4, tzinfo=UTC).date())

    assert [day.isoformat() for day in days] == [first, last]
