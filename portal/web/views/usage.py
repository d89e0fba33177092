"""What was used and what it costs, as a table and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from billing.selectors import Group
from jobs.services.usage import UNLESS_TOLD, UsageReport, read_unused, read_usage
from portal.accounts.access import Principal
from portal.accounts.selectors import projects_of
from portal.core.clock import utc_now
from portal.core.errors import Rejected
from portal.web.base import page

_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)
COLUMNS = (
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
)
MOST_UNUSED_DAYS = 92


def _monday(today: date) -> date:
    return today - timedelta(days=today.weekday())


def _first(today: date) -> date:
    return today.replace(day=1)


def _last_month(today: date) -> tuple[date, date]:
    last = _first(today) - _DAY
    return _first(last), last


#: Periods by name: first and last day, both in it.
PERIODS: dict[str, tuple[object, Callable[[date], tuple[date, date]]]] = {
    "this-week": (_("This week"), lambda today: (_monday(today), today)),
    "last-week": (
        _("Last week"),
        lambda today: (_monday(today) - _WEEK, _monday(today) - _DAY),
    ),
    "this-month": (_("This month"), lambda today: (_first(today), today)),
    "last-month": (_("Last month"), _last_month),
}
GROUP_LABELS = {
    Group.PROJECT: _("project"),
    Group.USER: _("user"),
    Group.DAY: _("day"),
    Group.JOB: _("job"),
}


@dataclass(frozen=True)
class Asked:
    """What the address asks for; days are whole and UTC, the last one is in the sum."""

    first: date
    last: date
    period: str
    project: str
    group: Group

    @property
    def since(self) -> datetime:
        return datetime.combine(self.first, time(), UTC)

    @property
    def until(self) -> datetime:
        return datetime.combine(self.last, time(), UTC) + _DAY

    @property
    def query(self) -> str:
        return urlencode(
            {
                "project": self.project,
                "since": self.first.isoformat(),
                "until": self.last.isoformat(),
                "by": self.group.value,
            }
        )


@require_GET
@page
def usage(request: HttpRequest, principal: Principal) -> HttpResponse:
    now = utc_now()
    asked = _asked(request, now)
    report = _report(principal, asked, now)
    shows_unused = (
        asked.group is Group.DAY
        and not asked.project
        and asked.until - asked.since <= MOST_UNUSED_DAYS * _DAY
    )
    return render(
        request,
        "web/usage.html",
        {
            "report": report,
            "asked": asked,
            "projects": projects_of(principal),
            "periods": [(name, label) for name, (label, _days) in PERIODS.items()],
            "groups": [(group.value, label) for group, label in GROUP_LABELS.items()],
            "most_micros": max((line.cost.amount_micros for line in report.lines), default=0),
            "unused": [
                day
                for day in read_unused(since=asked.since, until=asked.until, now=now)
                if day.capacity_s is not None or day.used_s
            ]
            if shows_unused
            else [],
        },
    )


@require_GET
@page
def usage_csv(request: HttpRequest, principal: Principal) -> HttpResponse:
    """The same lines for a spreadsheet; the columns and their order stay."""
    now = utc_now()
    asked = _asked(request, now)
    report = _report(principal, asked, now)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"usage-{asked.group.value}-{asked.first}-{asked.last}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    rows = csv.writer(response)
    rows.writerow(COLUMNS)
    for line in report.lines:
        rows.writerow(
            _cell(value)
            for value in (
                report.since.isoformat(),
                report.until.isoformat(),
                line.day.isoformat() if line.day else "",
                line.project_slug,
                line.user_name or "",
                line.job_name or "",
                f"{line.seconds:.3f}",
                f"{line.gpu_seconds:.3f}",
                f"{line.cost.amount_micros / 1_000_000:.6f}",
                line.cost.currency,
            )
        )
    return response


def _cell(text: str) -> str:
    """No spreadsheet takes what a user typed for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _report(principal: Principal, asked: Asked, now: datetime) -> UsageReport:
    return read_usage(
        principal,
        project=asked.project or None,
        since=asked.since,
        until=asked.until,
        group=asked.group,
        now=now,
    )


def _asked(request: HttpRequest, now: datetime) -> Asked:
    today = now.date()
    period = request.GET.get("period", "")
    if period in PERIODS:
        first, last = PERIODS[period][1](today)
    else:
        period = ""
        first = _day(request, "since", (now - UNLESS_TOLD).date())
        last = _day(request, "until", today)
    by = request.GET.get("by", "")
    return Asked(
        first=first,
        last=last,
        period=period,
        project=request.GET.get("project", ""),
        group=Group(by) if by in set(Group) else Group.PROJECT,
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
