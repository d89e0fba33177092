"""Reading what was used, with the names that people know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from billing.selectors import Group, leased_by_day, usage_of_projects
from jobs.selectors import job_names
from portal.accounts.access import Principal, access_project, accessible_project_ids
from portal.accounts.roles import Scope
from portal.accounts.selectors import project_lines, user_names
from portal.config import config
from portal.core.errors import Rejected
from portal.core.money import Money
from portal.fleet.selectors import gpus_since

UNLESS_TOLD = timedelta(days=30)


@dataclass(frozen=True)
class UsageTotal:
    seconds: float
    gpu_seconds: float
    cost: Money


@dataclass(frozen=True)
class UsageRow:
    project_id: str
    project_slug: str
    user_name: str | None
    job_id: str | None
    job_name: str | None
    day: date | None
    seconds: float
    gpu_seconds: float
    cost: Money


@dataclass(frozen=True)
class UsageReport:
    """Metered use in ``[since, until)``; running jobs are in it up to the last full hour."""

    since: datetime
    until: datetime
    group: Group
    lines: tuple[UsageRow, ...]
    total: UsageTotal


def read_usage(
    principal: Principal,
    *,
    project: str | None,
    since: datetime | None,
    until: datetime | None,
    group: Group,
    now: datetime,
) -> UsageReport:
    """Sum the use of one project or of all that the caller may see; 30 days unless told."""
    until = until or now
    since = since or until - UNLESS_TOLD
    if since >= until:
        raise Rejected(
            "jobs.usage_period_empty",
            f"The period from {since.isoformat()} to {until.isoformat()} is empty.",
            hint="since must lie before until.",
            field="since",
        )
    project_ids = (
        {access_project(principal, project, need=Scope.USAGE_READ).id}
        if project
        else accessible_project_ids(principal, need=Scope.USAGE_READ)
    )
    used = usage_of_projects(project_ids, since=since, until=until, group=group)
    projects = project_lines(line.project_id for line in used)
    users = user_names(line.user_id for line in used if line.user_id)
    jobs = job_names(line.job_id for line in used if line.job_id)
    return UsageReport(
        since=since,
        until=until,
        group=group,
        lines=tuple(
            UsageRow(
                project_id=line.project_id,
                project_slug=projects[line.project_id].slug,
                user_name=users.get(line.user_id or ""),
                job_id=line.job_id,
                job_name=jobs[line.job_id].short_name if line.job_id else None,
                day=line.day,
                seconds=line.use.seconds,
                gpu_seconds=line.use.gpu_seconds,
                cost=line.use.cost,
            )
            for line in used
        ),
        total=UsageTotal(
            seconds=sum(line.use.metered_ms for line in used) / 1000,
            gpu_seconds=sum(line.use.gpu_milli_ms for line in used) / 1_000_000,
            cost=Money(sum(line.use.cost.amount_micros for line in used), config.currency),
        ),
    )


@dataclass(frozen=True)
class UnusedDay:
    """GPU time of all GPUs on a UTC day; ``unused_s`` is None where the capacity is not known.

    The capacity counts the GPUs that are known now from the day on which their node joined.
    """

    day: date
    capacity_s: float | None
    used_s: float
    unused_s: float | None


def read_unused(*, since: datetime, until: datetime, now: datetime) -> list[UnusedDay]:
    """What nobody used, day by day (UTC), up to now; running jobs count up to the last hour."""
    joined = gpus_since()
    used = leased_by_day(since=since, until=until)
    days = []
    day = since.astimezone(UTC).date()
    while (begins := datetime.combine(day, time(), UTC)) < min(until, now):
        ends = min(begins + _DAY, until, now)
        begins = max(begins, since)
        known = [max(begins, moment) for moment in joined if moment < ends]
        capacity = sum(((ends - moment).total_seconds() for moment in known), 0.0)
        used_s = used.get(day, 0) / 1_000_000
        days.append(
            UnusedDay(
                day=day,
                capacity_s=capacity if known else None,
                used_s=used_s,
                unused_s=max(0.0, capacity - used_s) if known else None,
            )
        )
        day += _DAY
    return days


_DAY = timedelta(days=1)
