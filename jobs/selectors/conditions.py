"""What waiting jobs wait for before the scheduler may see them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from jobs.domain import readiness
from jobs.domain.readiness import Conditions, Need
from jobs.domain.states import TERMINAL, JobState, Wish
from jobs.models import Attempt, Dependency, Job
from portal.accounts.access import Principal, accessible_project_ids
from portal.accounts.roles import Scope


@dataclass(frozen=True)
class DependencyView:
    """Another job that this one waits or waited for."""

    job_id: str
    short_name: str
    need: str
    state: str


def ready_jobs(now: datetime) -> QuerySet[Job]:
    """Waiting jobs that have no condition of their own open."""
    open_ = Dependency.objects.filter(job=OuterRef("pk"), settled=False)
    return Job.objects.filter(
        Q(not_before__isnull=True) | Q(not_before__lte=now),
        ~Exists(open_),
        state=JobState.QUEUED,
        wish=Wish.RUN,
    )


def conditions_of(jobs: Iterable[Job]) -> dict[str, Conditions]:
    """The conditions of jobs by id; a job of another project is not named in them."""
    jobs = list(jobs)
    found: dict[str, list[readiness.Dependency]] = {}
    for row in _dependencies([job.pk for job in jobs]):
        name = dependency_name(row.on, row.job.project_id)
        found.setdefault(row.job_id, []).append(
            readiness.Dependency(name, Need(row.need), JobState(row.on.state))
        )
    return {
        job.pk: Conditions(job.wish == Wish.HOLD, tuple(found.get(job.pk, ())), job.not_before)
        for job in jobs
    }


def dependency_name(on: Job, project_id: str) -> str:
    """How members of the waiting job's project may know the other one."""
    if on.project_id != project_id:
        return "a job of another project"
    return f"{on.project.slug}/{on.number}"


def dependency_views(principal: Principal, job: Job) -> tuple[DependencyView, ...]:
    """Those of the job's dependencies that lie in projects which the caller may read."""
    rows = list(_dependencies([job.pk]))
    if not rows:
        return ()
    allowed = accessible_project_ids(principal, need=Scope.JOBS_READ)
    return tuple(
        DependencyView(row.on_id, f"{row.on.project.slug}/{row.on.number}", row.need, row.on.state)
        for row in rows
        if allowed is None or row.on.project_id in allowed
    )


def _dependencies(job_ids: list[str]) -> QuerySet[Dependency]:
    rows = Dependency.objects.filter(job__in=job_ids)
    return rows.select_related("job", "on__project").order_by("pk")


def jobs_with_ended_dependencies(limit: int) -> list[str]:
    """Jobs that wait for one whose end the scheduler has not yet looked at."""
    rows = Dependency.objects.filter(settled=False, on__state__in=TERMINAL)
    return list(rows.order_by("job_id").values_list("job_id", flat=True).distinct()[:limit])


def ended_dependencies(job_ids: Iterable[str]) -> list[int]:
    """Of these jobs, the dependencies that have ended and are not settled."""
    rows = Dependency.objects.filter(job__in=list(job_ids), settled=False, on__state__in=TERMINAL)
    return list(rows.values_list("pk", flat=True))


def running_of_throttled_arrays(array_ids: Iterable[str] | None = None) -> dict[str, int]:
    """How many members hold a lease, of arrays that limit it and have any."""
    rows = Attempt.objects.filter(ended_at__isnull=True, job__array__max_running__isnull=False)
    if array_ids is not None:
        rows = rows.filter(job__array__in=list(array_ids))
    counted = rows.values("job__array_id").annotate(members=Count("pk")).order_by()
    return {row["job__array_id"]: row["members"] for row in counted}


def unexplained_members(array_ids: Iterable[str], now: datetime) -> list[tuple[str, str]]:
    """(job, array) of members that could start but for their array's limit, and are not told so."""
    rows = ready_jobs(now).filter(array__in=list(array_ids))
    rows = rows.exclude(wait_code=readiness.WaitCode.ARRAY_THROTTLE)
    return [(pk, array or "") for pk, array in rows.values_list("pk", "array_id")]
