"""One scheduling cycle: read a view, plan without the database, apply in short transactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from agent.wire import SliceKind
from jobs.domain.readiness import throttle
from jobs.domain.states import JobState, Wish
from jobs.domain.transitions import EventKind
from jobs.models import Attempt, Job, JobArray, Transition
from jobs.scheduling.schedule import schedule
from jobs.scheduling.view import ClusterView, Level, Placed, QueuedJob, Waiting
from jobs.selectors import gpu_states, queue_head, running_of_throttled_arrays
from jobs.services.conditions import settle_dependencies
from jobs.services.outbox import LEASE
from jobs.services.story import move
from portal.accounts import selectors as accounts
from portal.core import crash, outbox
from portal.core.errors import Conflict, PortalError
from portal.core.ids import new_id
from portal.core.locks import guarded, lock_rows
from portal.fleet import services as fleet
from portal.fleet.selectors import nodes_of_gpus
from portal.fleet.services import NewLease
from quotas.selectors import levels_of
from quotas.services import holds

_log = structlog.get_logger(__name__)
QUEUE_READ = 5_000
BATCH = 50


def run_cycle(now: datetime, *, clock: Callable[[], datetime] | None = None) -> int:
    """Place what can be placed and write why the rest waits; how many jobs were admitted.

    Safe to run anywhere at any time, also beside another cycle: what a plan takes is taken again
    under locks, and a batch that lost a race is applied job by job.

    ``clock`` is read once the view is: a lease then begins after the end that made room for it,
    also when that end was taken in since ``now``. Without it leases begin at ``now``.
    """
    settle_dependencies(now)
    head = queue_head(QUEUE_READ, now)
    _explain([_throttled(job_id, most) for job_id, most in head.throttled])
    queue = head.jobs
    if not queue:
        return 0
    view = ClusterView(gpu_states(), queue, levels_above(queue))
    placed_at = clock() if clock else now
    plan = schedule(view)
    crash.point("cycle.planned")
    jobs = {job.job_id: job for job in queue}
    admitted = 0
    for start in range(0, len(plan.placed), BATCH):
        batch = plan.placed[start : start + BATCH]
        try:
            admitted += _admit(batch, jobs, placed_at)
        except PortalError as error:
            _log.info("cycle.batch_lost_a_race", code=error.code)
            admitted += sum(_admit_alone(placed, jobs, placed_at) for placed in batch)
    _explain(plan.waiting)
    return admitted


def _throttled(job_id: str, most: int) -> Waiting:
    told = throttle(most)
    return Waiting(job_id, told.code, told.reason)


def levels_above(queue: Sequence[QueuedJob]) -> dict[str, Level]:
    """The quota accounts above the jobs, with their names."""
    owner_ids = {owner_id for job in queue for owner_id in job.owner_ids}
    names = accounts.owner_names(owner_ids)
    return {
        owner_id: Level(names[owner_id], level.limit_milli, level.held_milli)
        for owner_id, level in levels_of(owner_ids).items()
    }


def _admit_alone(placed: Placed, jobs: dict[str, QueuedJob], now: datetime) -> int:
    try:
        return _admit([placed], jobs, now)
    except PortalError as error:
        _explain([Waiting(placed.job_id, error.code, error.detail)])
        return 0


def _admit(batch: Sequence[Placed], jobs: dict[str, QueuedJob], now: datetime) -> int:
    """Quota held, slices leased, STARTING and the outbox row: all of the batch or nothing.

    Only a job whose quota another admitter took meanwhile is left out, with the reason.
    """
    attempts = {placed.job_id: new_id() for placed in batch}
    leases = {placed.job_id: new_id() for placed in batch}
    with guarded():
        refused = holds.hold_many(
            [
                holds.NewHold(
                    attempt_id=attempts[placed.job_id],
                    project_id=jobs[placed.job_id].project_id,
                    owner_ids=jobs[placed.job_id].owner_ids,
                    equivalent_milli=placed.equivalent_milli,
                )
                for placed in batch
            ],
            now=now,
        )
        batch = [placed for placed in batch if attempts[placed.job_id] not in refused]
        crash.point("admit.held")
        fleet.open_leases(
            [
                NewLease(
                    lease_id=leases[placed.job_id],
                    attempt_id=attempts[placed.job_id],
                    gpu_id=placed.gpu_id,
                    kind=SliceKind(placed.kind),
                    memory_mib=placed.memory_mib,
                    compute_milli=placed.compute_milli,
                    mig_profile=placed.instance.profile if placed.instance else None,
                    mig_start=placed.instance.start if placed.instance else None,
                    mig_size=placed.instance_size,
                )
                for placed in batch
            ],
            now=now,
        )
        crash.point("admit.leased")
        admitted = [placed.job_id for placed in batch]
        arrays = lock_rows(
            JobArray.objects.filter(
                max_running__isnull=False,
                pk__in=Job.objects.filter(pk__in=admitted).values("array_id"),
            )
        )
        rows = lock_rows(Job.objects.filter(pk__in=admitted, state=JobState.QUEUED, wish=Wish.RUN))
        if len(rows) != len(batch):
            raise Conflict("jobs.changed", "A job was changed while it was being placed.")
        _check_arrays(arrays, rows)
        numbers = _next_attempt_numbers(rows)
        node_of = nodes_of_gpus({placed.gpu_id for placed in batch})
        gpu_of = {placed.job_id: placed.gpu_id for placed in batch}
        Attempt.objects.bulk_create(
            Attempt(
                id=attempts[job.pk],
                job=job,
                number=numbers[job.pk],
                lease_id=leases[job.pk],
                node_id=node_of[gpu_of[job.pk]],
                created_at=now,
            )
            for job in rows
        )
        Transition.objects.bulk_create(
            move(
                job,
                EventKind.ADMITTED,
                now=now,
                actor="scheduler",
                attempt_number=numbers[job.pk],
            )
            for job in rows
        )
        Job.objects.filter(pk__in=admitted).update(
            state=JobState.STARTING, wait_code="", wait_reason=""
        )
        outbox.put(LEASE, [leases[job_id] for job_id in admitted], now=now)
        crash.point("admit.written")
    crash.point("admit.committed")
    _explain(
        [
            Waiting(job_id, refusal.code, refusal.detail)
            for job_id, attempt_id in attempts.items()
            if (refusal := refused.get(attempt_id))
        ]
    )
    return len(batch)


def _check_arrays(arrays: Sequence[JobArray], admitted: Sequence[Job]) -> None:
    """Another cycle may have taken what an array lets run; the arrays are locked."""
    if not arrays:
        return
    running = running_of_throttled_arrays(array.pk for array in arrays)
    new = Counter(job.array_id for job in admitted)
    for array in arrays:
        if running.get(array.pk, 0) + new[array.pk] > (array.max_running or 0):
            told = throttle(array.max_running or 0)
            raise Conflict(told.code, told.reason)


def _next_attempt_numbers(jobs: Sequence[Job]) -> dict[str, int]:
    made: dict[str, int] = {}
    for job_id, number in Attempt.objects.filter(job__in=jobs).values_list("job_id", "number"):
        made[job_id] = max(number, made.get(job_id, 0))
    return {job.pk: made.get(job.pk, 0) + 1 for job in jobs}


def _explain(waiting: Sequence[Waiting]) -> None:
    """Write the reasons that differ from what the rows say."""
    if not waiting:
        return
    rows = Job.objects.filter(state=JobState.QUEUED)
    told = {
        pk: (code, reason)
        for pk, code, reason in rows.values_list("pk", "wait_code", "wait_reason")
    }
    groups: dict[tuple[str, str], list[str]] = {}
    for wait in waiting:
        text = (wait.code, wait.reason[:500])
        if wait.job_id in told and told[wait.job_id] != text:
            groups.setdefault(text, []).append(wait.job_id)
    for (code, reason), job_ids in groups.items():
        for start in range(0, len(job_ids), 500):
            with guarded():
                Job.objects.filter(
                    pk__in=job_ids[start : start + 500], state=JobState.QUEUED
                ).update(wait_code=code, wait_reason=reason)
    crash.point("cycle.explained")
