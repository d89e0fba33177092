"""Jobs and arrays as callers may see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from billing.selectors import Use, usage_of_job, usage_of_jobs
from jobs.domain.readiness import WaitCode
from jobs.domain.retries import write_ranges
from jobs.domain.states import ACTIVE, CLASS_OF, JobState
from jobs.models import Attempt, Job, JobArray
from jobs.selectors.conditions import DependencyView, dependency_views
from jobs.selectors.leases import Span, lease_uses
from portal.accounts import access
from portal.accounts.access import Principal
from portal.accounts.roles import Scope
from portal.core.clock import utc_now
from portal.core.errors import NotFound
from portal.fleet import selectors as fleet
from portal.fleet.selectors import LeaseView


@dataclass(frozen=True)
class AttemptView:
    """One try, with the four numbers' first three: promised, enforced, measured."""

    number: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None
    exit_signal: int | None
    end_reason: str
    lease: LeaseView


@dataclass(frozen=True)
class TransitionView:
    at: datetime
    from_state: str
    to_state: str
    event: str
    actor: str
    attempt_number: int | None
    detail: str


@dataclass(frozen=True)
class JobRow:
    """A job as a list shows it. ``node_unreachable``: its node has not answered for a while."""

    id: str
    number: int
    name: str
    project_id: str
    project_slug: str
    user_name: str
    state: str
    wish: str
    memory_mib: int | None
    compute_milli: int | None
    form: str
    gpu_model: str
    priority: str
    submitted_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None
    exit_signal: int | None
    reason_code: str
    reason: str
    wait_code: str
    wait_reason: str
    wait_position: int | None
    array_id: str | None
    array_index: int | None
    node_unreachable: bool


@dataclass(frozen=True)
class JobDetail:
    row: JobRow
    command: tuple[str, ...]
    env_names: tuple[str, ...]
    secrets: tuple[str, ...]
    files: tuple[str, ...]
    time_limit_s: int | None
    max_attempts: int
    retry_exit_codes: tuple[str, ...]
    not_before: datetime | None
    dependencies: tuple[DependencyView, ...]
    array_max_running: int | None
    attempts: tuple[AttemptView, ...]
    transitions: tuple[TransitionView, ...]
    usage: Use
    usage_is_final: bool


@dataclass(frozen=True)
class JobPage:
    rows: tuple[JobRow, ...]
    next_before: str | None


@dataclass(frozen=True)
class ArrayView:
    id: str
    project_id: str
    size: int
    max_running: int | None
    state: JobState
    counts: dict[str, int]
    submitted_at: datetime
    job_ids: tuple[str, ...]


@dataclass(frozen=True)
class JobName:
    """How people call a job: ``vision/12`` and the name that its owner gave it."""

    id: str
    short_name: str
    name: str


def access_job(principal: Principal, job_id: str, *, need: Scope) -> Job:
    """The job by its id or its short name ``project/number``, if the caller may."""
    slug, _, number = job_id.rpartition("/")
    wanted = (
        Q(project__slug=slug, number=int(number))
        if slug and number.isdecimal() and len(number) < 10
        else Q(pk=job_id)
    )
    job = (
        Job.objects.filter(wanted)
        .select_related("project", "submitted_by", "array", "bundle")
        .first()
    )
    if job is None:
        raise _no_job(job_id)
    try:
        access.access_project(principal, job.project_id, need=need)
    except NotFound:
        raise _no_job(job_id) from None
    return job


def access_array(principal: Principal, array_id: str, *, need: Scope) -> JobArray:
    array = JobArray.objects.filter(pk=array_id).first()
    if array is None:
        raise _no_job(array_id)
    try:
        access.access_project(principal, array.project_id, need=need)
    except NotFound:
        raise _no_job(array_id) from None
    return array


def _no_job(job_id: str) -> NotFound:
    return NotFound(
        "jobs.not_found",
        f"There is no job {job_id!r} that you may see.",
        hint="`gpucommons ps --all` lists your jobs.",
    )


def job_state_reader(principal: Principal, job_id: str) -> Callable[[], str]:
    """Check the caller's right once; the result reads only the state, for long polls."""
    rows = Job.objects.filter(pk=access_job(principal, job_id, need=Scope.JOBS_READ).pk)
    return lambda: rows.values_list("state", flat=True).get()


def array_state_reader(principal: Principal, array_id: str) -> Callable[[], JobState]:
    """The same for an array, whose state `array_view` explains."""
    array = access_array(principal, array_id, need=Scope.JOBS_READ)
    return lambda: _array_state(_counts(array))


def job_names(job_ids: Iterable[str]) -> dict[str, JobName]:
    """Names of jobs for lines that tell of them."""
    rows = Job.objects.filter(pk__in=set(job_ids)).select_related("project")
    return {job.pk: _job_name(job) for job in rows}


def jobs_on_leases(principal: Principal, lease_ids: Iterable[str]) -> dict[str, JobName]:
    """Which job is on which lease, of the jobs that the caller may see."""
    rows = Attempt.objects.filter(lease_id__in=set(lease_ids)).select_related("job__project")
    allowed = access.accessible_project_ids(principal, need=Scope.JOBS_READ)
    if allowed is not None:
        rows = rows.filter(job__project_id__in=allowed)
    return {attempt.lease_id: _job_name(attempt.job) for attempt in rows}


def jobs_of_attempts(attempt_ids: Iterable[str]) -> dict[str, JobName]:
    """Names of the jobs of attempts."""
    rows = Attempt.objects.filter(pk__in=set(attempt_ids)).select_related("job__project")
    return {attempt.pk: _job_name(attempt.job) for attempt in rows}


def _job_name(job: Job) -> JobName:
    return JobName(job.pk, f"{job.project.slug}/{job.number}", job.name)


def job_detail(principal: Principal, job_id: str, *, now: datetime | None = None) -> JobDetail:
    job = access_job(principal, job_id, need=Scope.JOBS_READ)
    attempts = list(job.attempts.order_by("number"))
    leases = fleet.lease_views([attempt.lease_id for attempt in attempts])
    unreachable = _unreachable_jobs([job])
    return JobDetail(
        row=_row(job, _positions([job]), unreachable),
        command=tuple(job.command),
        env_names=tuple(sorted(job.env)),
        secrets=tuple(job.secrets),
        files=tuple(path for path, *_ in job.bundle.files) if job.bundle else (),
        time_limit_s=job.time_limit_s,
        max_attempts=job.max_attempts,
        retry_exit_codes=write_ranges(job.retry_exit_codes),
        not_before=job.not_before,
        dependencies=dependency_views(principal, job),
        array_max_running=job.array.max_running if job.array else None,
        attempts=tuple(_attempt_view(attempt, leases[attempt.lease_id]) for attempt in attempts),
        transitions=tuple(
            TransitionView(
                row.at,
                row.from_state,
                row.to_state,
                row.event,
                row.actor,
                row.attempt_number,
                row.detail,
            )
            for row in job.transitions.order_by("pk")
        ),
        usage=_usage(job, attempts, leases, now or utc_now()),
        usage_is_final=job.ended_at is not None,
    )


def _attempt_view(attempt: Attempt, lease: LeaseView) -> AttemptView:
    return AttemptView(
        number=attempt.number,
        created_at=attempt.created_at,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        exit_code=attempt.exit_code,
        exit_signal=attempt.exit_signal,
        end_reason=attempt.end_reason,
        lease=lease,
    )


def _usage(job: Job, attempts: list[Attempt], leases: dict[str, LeaseView], now: datetime) -> Use:
    """What is metered, and for a running job what it would be if it ended now."""
    running = lease_uses(
        [
            Span(attempt, leases[attempt.lease_id], attempt.started_at, now)
            for attempt in attempts
            if attempt.started_at and not attempt.ended_at and attempt.started_at < now
        ],
        final=True,
    )
    used = usage_of_jobs([job.pk], running=running)
    return used.get(job.pk) or usage_of_job(job.pk)


def job_page(
    principal: Principal,
    *,
    project: str | None = None,
    states: Iterable[str] = (),
    array_id: str | None = None,
    own: bool = False,
    before: str | None = None,
    limit: int = 50,
) -> JobPage:
    """Jobs that the caller may see, newest first; ``before`` is the id that a page ended with.

    ``own``: only those that the caller submitted.
    """
    rows = Job.objects.select_related("project", "submitted_by")
    if project:
        rows = rows.filter(
            project_id=access.access_project(principal, project, need=Scope.JOBS_READ).id
        )
    else:
        allowed = access.accessible_project_ids(principal, need=Scope.JOBS_READ)
        if allowed is not None:
            rows = rows.filter(project_id__in=allowed)
    if states := list(states):
        rows = rows.filter(state__in=states)
    if array_id:
        rows = rows.filter(array_id=array_id)
    if own:
        rows = rows.filter(submitted_by=principal.user_id)
    if before:
        last = Job.objects.filter(pk=before).values_list("submitted_at", "pk").first()
        if last:
            rows = rows.filter(
                Q(submitted_at__lt=last[0]) | Q(submitted_at=last[0], pk__lt=last[1])
            )
    page = list(rows.order_by("-submitted_at", "-pk")[: limit + 1])
    shown = page[:limit]
    positions = _positions(shown)
    unreachable = _unreachable_jobs(shown)
    return JobPage(
        rows=tuple(_row(job, positions, unreachable) for job in shown),
        next_before=shown[-1].pk if len(page) > limit else None,
    )


def array_view(principal: Principal, array_id: str) -> ArrayView:
    """An array's state is that of its least advanced member; ended, of its worst."""
    array = access_array(principal, array_id, need=Scope.JOBS_READ)
    members = array.members.order_by("array_index")
    counts = _counts(array)
    return ArrayView(
        id=array.pk,
        project_id=array.project_id,
        size=array.size,
        max_running=array.max_running,
        state=_array_state(counts),
        counts=counts,
        submitted_at=array.submitted_at,
        job_ids=tuple(members.values_list("pk", flat=True)),
    )


def _counts(array: JobArray) -> dict[str, int]:
    rows = array.members.values("state").annotate(jobs=Count("pk")).order_by()
    return {row["state"]: row["jobs"] for row in rows}


def _array_state(counts: dict[str, int]) -> JobState:
    return next(state for state in _ARRAY_ORDER if counts.get(state))


_ARRAY_ORDER = (
    JobState.RUNNING,
    JobState.STARTING,
    JobState.QUEUED,
    JobState.FAILED,
    JobState.TIMED_OUT,
    JobState.CANCELLED,
    JobState.SUCCEEDED,
)


def counts_by_state() -> dict[str, int]:
    rows = Job.objects.values("state").annotate(jobs=Count("pk")).order_by()
    return {row["state"]: row["jobs"] for row in rows}


def has_submitted(principal: Principal) -> bool:
    """Whether the caller ever submitted a job."""
    return Job.objects.filter(submitted_by=principal.user_id).exists()


def _row(job: Job, positions: dict[str, int], unreachable: set[str]) -> JobRow:
    return JobRow(
        id=job.pk,
        number=job.number,
        name=job.name,
        project_id=job.project_id,
        project_slug=job.project.slug,
        user_name=job.submitted_by.name,
        state=job.state,
        wish=job.wish,
        memory_mib=job.memory_mib,
        compute_milli=job.compute_milli,
        form=job.form,
        gpu_model=job.gpu_model,
        priority=CLASS_OF[job.priority],
        submitted_at=job.submitted_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        exit_code=job.exit_code,
        exit_signal=job.exit_signal,
        reason_code=job.reason_code,
        reason=job.reason,
        wait_code=job.wait_code,
        wait_reason=job.wait_reason,
        wait_position=positions.get(job.pk),
        array_id=job.array_id,
        array_index=job.array_index,
        node_unreachable=job.pk in unreachable,
    )


def _positions(jobs: Iterable[Job]) -> dict[str, int]:
    """Places in the platform's queue, the next job first, of those that wait for room.

    Reads no further than the last of them; for a single job it only counts.
    """
    codes = set(WaitCode)
    waiting = [job for job in jobs if job.state == JobState.QUEUED and job.wait_code not in codes]
    if not waiting:
        return {}
    last = max(waiting, key=lambda job: (-job.priority, job.queued_at, job.pk))
    until = Job.objects.filter(state=JobState.QUEUED).exclude(wait_code__in=codes)
    until = until.filter(
        Q(priority__gt=last.priority)
        | Q(priority=last.priority, queued_at__lt=last.queued_at)
        | Q(priority=last.priority, queued_at=last.queued_at, pk__lte=last.pk)
    )
    if len(waiting) == 1:
        return {last.pk: until.count()}
    ordered = until.order_by("-priority", "queued_at", "pk").values_list("pk", flat=True)
    place = {pk: number for number, pk in enumerate(ordered, start=1)}
    return {job.pk: place[job.pk] for job in waiting if job.pk in place}


def _unreachable_jobs(jobs: Iterable[Job]) -> set[str]:
    active = [job.pk for job in jobs if job.state in ACTIVE]
    silent = fleet.silent_node_ids() if active else set()
    if not silent:
        return set()
    rows = Attempt.objects.filter(job__in=active, ended_at__isnull=True, node_id__in=silent)
    return set(rows.values_list("job_id", flat=True))


def attempt_for_log(job: Job, number: int | None) -> Attempt | None:
    rows = job.attempts.order_by("-number")
    return (rows if number is None else rows.filter(number=number)).first()
