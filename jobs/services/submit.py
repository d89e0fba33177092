"""Accepting a submission: valid, allowed, within the caps, can it ever fit. No hold yet."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from billing.selectors import prices_exist
from jobs.domain import files
from jobs.domain.files import JobFile
from jobs.domain.readiness import Conditions, Need, Waits, judge
from jobs.domain.readiness import Dependency as Awaited
from jobs.domain.retries import read_ranges
from jobs.domain.states import PRIORITY_OF, Form, JobState, PriorityClass, Wish
from jobs.models import Bundle, Dependency, Job, JobArray, Transition
from jobs.scheduling.schedule import can_ever_fit, smallest_equivalent
from jobs.scheduling.view import QueuedJob, Request
from jobs.selectors import (
    access_job,
    dependency_name,
    kinds_of_gpus,
    queued_jobs_of_project,
)
from jobs.selectors.presets import secret_names
from jobs.services.conditions import explain
from portal.accounts import access, selectors, services
from portal.accounts.access import Principal, ProjectRef
from portal.accounts.roles import Scope
from portal.core import audit, crash, hints
from portal.core.errors import Forbidden, NotFound, Rejected, TooMany
from portal.core.ids import new_id
from portal.core.locks import guarded
from quotas.selectors import levels_of, queued_limit

MAX_ARRAY = 10_000
MAX_COMMAND_BYTES = 64 * 1024
MAX_DEPENDENCIES = 100
MAX_DEPENDENCY_ROWS = 10_000
LATEST_START = timedelta(days=366)
_RESERVED_ENV = "GPUCOMMONS_"


@dataclass(frozen=True)
class JobRequest:
    """What a door passes on; sizes as in `jobs.models.Job`.

    ``after_ok`` and ``after_any`` name other jobs, ``retry_exit_codes`` are ``75`` or ``100-110``.
    """

    command: tuple[str, ...]
    memory_mib: int | None = None
    compute_milli: int | None = None
    form: Form = Form.ANY
    gpu_model: str = ""
    name: str = ""
    env: dict[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    files: tuple[JobFile, ...] = ()
    priority: PriorityClass = PriorityClass.NORMAL
    time_limit_s: int | None = None
    max_attempts: int = 3
    array_size: int | None = None
    max_running: int | None = None
    retry_exit_codes: tuple[str, ...] = ()
    not_before: datetime | None = None
    after_ok: tuple[str, ...] = ()
    after_any: tuple[str, ...] = ()
    hold: bool = False


@dataclass(frozen=True)
class Submitted:
    """``id`` names the array if there is one, else the job."""

    id: str
    state: JobState
    job_ids: tuple[str, ...]
    numbers: tuple[int, ...]
    is_array: bool


def submit_job(
    *, principal: Principal, project: str, request: JobRequest, now: datetime
) -> Submitted:
    """Write the job or the array as QUEUED and hint the scheduler.

    Raises `Rejected` with the field at fault, `NotFound`/`Forbidden` for the project, `TooMany`
    when the project's cap on waiting jobs is reached.
    """
    place = access.access_project(principal, project, need=Scope.JOBS_WRITE)
    _check_fields(request)
    _check_conditions(request, now)
    awaited = _awaited(principal, request)
    _check_secrets(request, place)
    _check_price()
    _check_fit(request, place, now)
    count = request.array_size or 1
    with guarded():
        # Taking numbers locks the project, so that racing submissions are counted in turn.
        numbers = services.next_job_numbers(place.id, count)
        _check_queue(place.id, place.name, count)
        array = (
            JobArray.objects.create(
                project_id=place.id, size=count, max_running=request.max_running, submitted_at=now
            )
            if request.array_size
            else None
        )
        bundle = _bundle(request, place.id, now)
        jobs = [
            _job(
                principal,
                request,
                project_id=place.id,
                number=number,
                array=array,
                bundle=bundle,
                index=index,
                now=now,
            )
            for index, number in enumerate(numbers)
        ]
        verdict = _verdict(request, place.id, awaited, now)
        for job in jobs:
            explain(job, verdict)
        Job.objects.bulk_create(jobs)
        Dependency.objects.bulk_create(
            Dependency(job=job, on=on, need=need) for job in jobs for on, need in awaited.items()
        )
        Transition.objects.bulk_create(
            Transition(
                job=job, at=now, to_state=JobState.QUEUED, event="submitted", actor=principal.name
            )
            for job in jobs
        )
        submitted = Submitted(
            id=array.pk if array else jobs[0].pk,
            state=JobState.QUEUED,
            job_ids=tuple(job.pk for job in jobs),
            numbers=tuple(numbers),
            is_array=array is not None,
        )
        audit.record(
            actor=principal.actor,
            verb="job.submitted",
            object_type="array" if array else "job",
            object_id=submitted.id,
            project_id=place.id,
            tenant_id=place.tenant_id,
            now=now,
            detail={"name": jobs[0].name, "jobs": count},
        )
        crash.point("submit.written")
        hints.give_on_commit(hints.Hint.SCHEDULE)
    crash.point("submit.committed")
    return submitted


def _bundle(request: JobRequest, project_id: str, now: datetime) -> Bundle | None:
    if not request.files:
        return None
    return Bundle.objects.create(
        project_id=project_id,
        files=[
            [file.path, base64.b64encode(file.content).decode(), file.mode]
            for file in request.files
        ],
        created_at=now,
    )


def _job(
    principal: Principal,
    request: JobRequest,
    *,
    project_id: str,
    number: int,
    array: JobArray | None,
    bundle: Bundle | None,
    index: int,
    now: datetime,
) -> Job:
    return Job(
        id=new_id(),
        project_id=project_id,
        number=number,
        submitted_by_id=principal.user_id,
        array=array,
        array_index=index if array else None,
        name=request.name or request.command[0].rsplit("/", 1)[-1][:100],
        command=list(request.command),
        env=request.env,
        bundle=bundle,
        secrets=sorted(set(request.secrets)),
        memory_mib=request.memory_mib,
        compute_milli=request.compute_milli,
        form=request.form,
        gpu_model=request.gpu_model,
        priority=PRIORITY_OF[request.priority],
        time_limit_s=request.time_limit_s,
        max_attempts=request.max_attempts,
        retry_exit_codes=[list(pair) for pair in read_ranges(request.retry_exit_codes)],
        not_before=request.not_before,
        wish=Wish.HOLD if request.hold else Wish.RUN,
        submitted_at=now,
        queued_at=now,
    )


def _check_fields(request: JobRequest) -> None:
    command_bytes = sum(len(word.encode(errors="surrogatepass")) + 1 for word in request.command)
    if not request.command or not request.command[0]:
        raise Rejected("jobs.command_empty", "There is no command to run.", field="command")
    if command_bytes > MAX_COMMAND_BYTES:
        raise Rejected(
            "jobs.command_too_long",
            f"The command has {command_bytes} bytes, more than {MAX_COMMAND_BYTES}.",
            hint="Put the script into a file.",
            field="command",
        )
    if fault := files.fault(request.files):
        raise Rejected(
            "jobs.files_invalid",
            fault,
            hint="Put larger data where the job can fetch it.",
            field="files",
        )
    _check_range("memory_mib", request.memory_mib, 1, 100_000_000)
    _check_range("compute_milli", request.compute_milli, 1, 1000)
    _check_range("time_limit_s", request.time_limit_s, 1, 366 * 86_400)
    _check_range("max_attempts", request.max_attempts, 1, 100)
    _check_range("array_size", request.array_size, 1, MAX_ARRAY)
    for name, text in (("name", request.name), ("gpu_model", request.gpu_model)):
        if len(text) > 100 or not _storable(text):
            raise Rejected(
                "jobs.text_invalid",
                f"{name} has {len(text)} characters; it may have 100, and no NUL.",
                field=name,
            )
    for key, value in request.env.items():
        if not key or "=" in key or not _storable(key + value):
            raise Rejected("jobs.env_invalid", f"{key!r} is no name of a variable.", field="env")
        if key.startswith(_RESERVED_ENV):
            raise Rejected(
                "jobs.env_reserved",
                f"{key} is set by the platform.",
                hint=f"Use a name that does not begin with {_RESERVED_ENV}.",
                field="env",
            )
    if not all(_storable(word) for word in request.command):
        raise Rejected(
            "jobs.command_invalid",
            "A word contains a NUL or half of a surrogate pair.",
            hint="Put the bytes into a file.",
            field="command",
        )


def _check_conditions(request: JobRequest, now: datetime) -> None:
    _check_range("max_running", request.max_running, 1, MAX_ARRAY)
    if request.max_running is not None and request.array_size is None:
        raise Rejected(
            "jobs.throttle_without_array",
            "Only an array can limit how many of its members run at once.",
            hint="Give array_size too.",
            field="max_running",
        )
    if request.not_before is not None and request.not_before > now + LATEST_START:
        raise Rejected(
            "jobs.start_too_late",
            "A job can be scheduled at most 366 days ahead.",
            field="not_before",
        )
    try:
        read_ranges(request.retry_exit_codes)
    except ValueError as error:
        raise Rejected(
            "jobs.exit_codes_invalid",
            str(error),
            hint="Write 75 or 100-110.",
            field="retry_exit_codes",
        ) from error


def _check_secrets(request: JobRequest, place: ProjectRef) -> None:
    unknown = set(request.secrets) - secret_names(place.id) if request.secrets else set()
    if unknown:
        raise Rejected(
            "jobs.secret_unknown",
            f"Project {place.slug} has no secret {min(unknown)[:60]!r}.",
            hint="An administrator of the project can set it.",
            field="secrets",
        )


def _awaited(principal: Principal, request: JobRequest) -> dict[Job, Need]:
    """The jobs that this one waits for; of one that is named twice the stronger need counts."""
    named = [("after_any", ref, Need.ANY) for ref in request.after_any]
    named += [("after_ok", ref, Need.OK) for ref in request.after_ok]
    rows = len(named) * (request.array_size or 1)
    if len(named) > MAX_DEPENDENCIES or rows > MAX_DEPENDENCY_ROWS:
        raise Rejected(
            "jobs.too_many_dependencies",
            f"The submission waits for {len(named)} jobs; at most {MAX_DEPENDENCIES} are allowed, "
            f"and {MAX_DEPENDENCY_ROWS} over all members of an array.",
            hint="Wait for one job that waits for the others.",
            field=named[-1][0],
        )
    awaited = {}
    for name, ref, need in named:
        job = _seen(principal, ref) if _storable(ref) else None
        if job is None:
            raise Rejected(
                "jobs.dependency_unknown",
                f"There is no job {ref[:100]!r} that you may see.",
                hint="Name it by its id or as project/number.",
                field=name,
            )
        awaited[job] = need
    return awaited


def _seen(principal: Principal, ref: str) -> Job | None:
    try:
        return access_job(principal, ref, need=Scope.JOBS_READ)
    except (Forbidden, NotFound):
        return None


def _verdict(
    request: JobRequest, project_id: str, awaited: dict[Job, Need], now: datetime
) -> Waits | None:
    """What a job waits for besides room, said from the first moment."""
    conditions = Conditions(
        request.hold,
        tuple(
            Awaited(dependency_name(on, project_id), need, JobState(on.state))
            for on, need in awaited.items()
        ),
        request.not_before,
    )
    verdict = judge(conditions, now)
    return verdict if isinstance(verdict, Waits) else None


def _storable(text: str) -> bool:
    """Whether a text can be stored and handed to a process as UTF-8."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _check_price() -> None:
    """Use that has no price could not be metered, and its job never end."""
    if not prices_exist():
        raise Rejected(
            "billing.no_price",
            "No price was ever published, so use cannot be metered.",
            hint="Ask an administrator to publish prices.",
        )


def _check_range(name: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise Rejected(
            "jobs.out_of_range",
            f"{name} is {value}; it must lie between {least} and {most}.",
            field=name,
        )


def _check_fit(request: JobRequest, place: ProjectRef, now: datetime) -> None:
    """Refuse what no GPU and no limit could ever grant. Without any GPU known it may wait."""
    gpus = kinds_of_gpus()
    wanted = Request(request.compute_milli, request.memory_mib, request.form, request.gpu_model)
    job = QueuedJob("", place.id, place.owner_ids, 0, now, wanted)
    if gpus and not can_ever_fit(job, gpus):
        largest = max(gpu.memory_mib for gpu in gpus)
        models = ", ".join(sorted({gpu.model for gpu in gpus}))
        raise Rejected(
            "jobs.never_fits",
            "No GPU of this platform could serve the request, even if it were empty.",
            hint=f"The largest GPU has {largest} MiB; models here: {models}.",
            field="gpu_model" if request.gpu_model else "memory_mib",
        )
    least = smallest_equivalent(job, gpus)
    if least is None:
        return
    for owner_id, level in levels_of(place.owner_ids).items():
        if level.limit_milli is not None and least > level.limit_milli:
            name = selectors.owner_names([owner_id])[owner_id]
            raise Rejected(
                "quotas.never_fits",
                f"The job takes {least} thousandths of a GPU; the {name} may hold at most "
                f"{level.limit_milli} at once.",
                hint="Ask for less, or ask an administrator to raise the limit.",
                field="memory_mib" if request.memory_mib else "compute_milli",
            )


def _check_queue(project_id: str, project_name: str, count: int) -> None:
    limit = queued_limit(project_id)
    if limit is None:
        return
    waiting = queued_jobs_of_project(project_id)
    if waiting + count > limit:
        raise TooMany(
            "jobs.queue_full",
            f"Project {project_name} may have {limit} waiting jobs and has {waiting}; "
            f"{count} more do not fit.",
            hint="Wait until some have started, or cancel some.",
        )
