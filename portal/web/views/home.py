"""The first page: my jobs, my projects, this month's cost and what would start now."""

from __future__ import annotations

from datetime import datetime

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from billing.selectors import Group
from jobs.domain.states import ACTIVE, JobState
from jobs.selectors import has_submitted, job_page
from jobs.services.capacity import free_capacity
from jobs.services.usage import UsageReport, read_usage
from portal.accounts.access import Principal, access_platform, accessible_project_ids
from portal.accounts.roles import Scope
from portal.core.clock import utc_now
from portal.core.ids import new_id
from portal.fleet.selectors import any_simulated
from portal.web.base import page
from portal.web.quota_tree import QuotaLine, quota_lines

JOBS_SHOWN = 8
PROJECTS_SHOWN = 8
MONTH_KEPT_S = 60


@require_GET
@page
def home(request: HttpRequest, principal: Principal) -> HttpResponse:
    access_platform(principal, need=Scope.FLEET_READ)
    now = utc_now()
    mine = job_page(principal, states={JobState.QUEUED, *ACTIVE}, own=True, limit=JOBS_SHOWN)
    projects = [line for line in quota_lines(principal) if line.kind == "project"]
    return render(
        request,
        "web/home.html",
        {
            "mine": mine,
            "is_new": not mine.rows and not has_submitted(principal),
            "first_project": _first_project(principal, projects),
            "key": new_id(),
            "lines": projects[:PROJECTS_SHOWN],
            "more_projects": max(0, len(projects) - PROJECTS_SHOWN),
            "month": _month(principal, now),
            "now": now,
            "rooms": free_capacity(),
            "simulated": any_simulated(),
        },
    )


def _month(principal: Principal, now: datetime) -> UsageReport:
    """What each project cost since the first of the month (UTC); at most a minute old.

    Running jobs are in it up to the last full hour anyway, and the sum over a month is dear.
    """
    since = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    key = f"home-month:{principal.user_id}:{since:%Y-%m}"
    known: UsageReport | None = cache.get(key)
    if known is None:
        known = read_usage(
            principal, project=None, since=since, until=now, group=Group.PROJECT, now=now
        )
        cache.set(key, known, MONTH_KEPT_S)
    return known


def _first_project(principal: Principal, lines: list[QuotaLine]) -> str | None:
    """A project that the caller may submit to."""
    writable = accessible_project_ids(principal, need=Scope.JOBS_WRITE)
    names = (line.name for line in lines if writable is None or line.owner_id in writable)
    return min(names, default=None)
