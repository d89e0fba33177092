"""What was used and what it costs, as a table."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from billing.selectors import Group
from jobs.services.usage import UNLESS_TOLD, read_usage
from portal.accounts.access import Principal
from portal.accounts.selectors import projects_of
from portal.core.clock import utc_now
from portal.core.errors import Rejected
from portal.web.base import page

_DAY = timedelta(days=1)


@require_GET
@page
def usage(request: HttpRequest, principal: Principal) -> HttpResponse:
    """Days are whole and UTC; the last day of the form is in the sum."""
    now = utc_now()
    first = _day(request, "since", (now - UNLESS_TOLD).date())
    last = _day(request, "until", now.date())
    by = request.GET.get("by", "")
    group = Group(by) if by in set(Group) else Group.PROJECT
    report = read_usage(
        principal,
        project=request.GET.get("project") or None,
        since=datetime.combine(first, time(), UTC),
        until=datetime.combine(last, time(), UTC) + _DAY,
        group=group,
        now=now,
    )
    return render(
        request,
        "web/usage.html",
        {
            "report": report,
            "projects": projects_of(principal),
            "project": request.GET.get("project", ""),
            "first": first,
            "last": last,
            "groups": list(Group),
            "most_micros": max((line.cost.amount_micros for line in report.lines), default=0),
        },
    )


def _day(request: HttpRequest, name: str, otherwise: date) -> date:
    text = request.GET.get(name, "")
    try:
        day = date.fromisoformat(text) if text else otherwise
    except ValueError as error:
        raise Rejected(
            "web.day_invalid", f"{text[:40]!r} is no day.", hint="Write 2026-03-31.", field=name
        ) from error
    if not 2000 <= day.year <= 2200:
        raise Rejected("web.day_invalid", f"{day} is out of range.", field=name)
    return day
