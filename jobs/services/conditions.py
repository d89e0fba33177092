"""What a job waits for besides room: a person's hold, other jobs, a time."""

from __future__ import annotations

from datetime import datetime

from jobs.domain.readiness import Never, Waits, judge
from jobs.domain.states import JobState, Wish
from jobs.domain.transitions import EventKind
from jobs.models import Dependency, Job, Transition
from jobs.selectors import (
    access_job,
    conditions_of,
    ended_dependencies,
    jobs_with_ended_dependencies,
)
from jobs.services.story import move
from portal.accounts.access import Principal
from portal.accounts.roles import Scope
from portal.accounts.selectors import tenant_ids_of_projects
from portal.core import audit, hints
from portal.core.errors import Conflict
from portal.core.locks import guarded, lock_rows
from portal.core.rows import save_rows

_BATCH = 500
_FIELDS = [
    "state",
    "wish",
    "ended_at",
    "reason_code",
    "reason",
    "wait_code",
    "wait_reason",
]


def hold_job(*, principal: Principal, job_id: str, now: datetime) -> str:
    """Keep a waiting job from starting until it is released; give its id. Twice is as once."""
    return _wish(principal, job_id, Wish.HOLD, EventKind.HELD, now)


def release_job(*, principal: Principal, job_id: str, now: datetime) -> str:
    """Let a held job start again; it keeps its place in the queue. Twice is as once."""
    return _wish(principal, job_id, Wish.RUN, EventKind.RELEASED, now)


def _wish(principal: Principal, job_id: str, wish: Wish, event: EventKind, now: datetime) -> str:
    job_id = access_job(principal, job_id, need=Scope.JOBS_WRITE).pk
    with guarded():
        (job,) = lock_rows(Job.objects.filter(pk=job_id))
        if job.state != JobState.QUEUED:
            raise Conflict(
                "jobs.not_waiting",
                f"The job is {job.state}; only a waiting job can be held or released.",
                hint="Cancel it, if it should not run.",
            )
        if job.wish == wish:
            return job_id
        job.wish = wish
        step = move(job, event, now=now, actor=principal.name)
        verdict = judge(conditions_of([job])[job.pk], now)
        # Who waits in vain is cancelled by the next cycle.
        explain(job, None if isinstance(verdict, Never) else verdict)
        save_rows([job], _FIELDS)
        step.save(force_insert=True)
        audit.record(
            actor=principal.actor,
            verb=f"job.{event}",
            object_type="job",
            object_id=job_id,
            project_id=job.project_id,
            tenant_id=tenant_ids_of_projects([job.project_id])[job.project_id],
            now=now,
        )
        hints.give_on_commit(hints.Hint.SCHEDULE)
    return job_id


def explain(job: Job, verdict: Waits | None) -> None:
    """Write in memory what the job waits for; the caller saves it."""
    job.wait_code = verdict.code if verdict else ""
    job.wait_reason = verdict.reason[:500] if verdict else ""


def settle_dependencies(now: datetime) -> int:
    """Take note of jobs that ended and that others wait for; how many of those were looked at.

    A job whose dependency can never be met is cancelled. A chain of them is followed to its end.
    """
    looked_at = 0
    while job_ids := jobs_with_ended_dependencies(_BATCH):
        looked_at += len(job_ids)
        with guarded():
            jobs = lock_rows(Job.objects.filter(pk__in=job_ids))
            # Read before the conditions: what ends meanwhile is settled the next time.
            ended = list(ended_dependencies(job_ids))
            conditions = conditions_of(jobs)
            waiting = [job for job in jobs if job.state == JobState.QUEUED]
            story = []
            for job in waiting:
                verdict = judge(conditions[job.pk], now)
                if isinstance(verdict, Never):
                    story.append(_cancelled(job, verdict, now))
                else:
                    explain(job, verdict)
            save_rows(waiting, _FIELDS)
            Transition.objects.bulk_create(story)
            Dependency.objects.filter(pk__in=ended).update(settled=True)
    return looked_at


def _cancelled(job: Job, verdict: Never, now: datetime) -> Transition:
    return move(
        job,
        EventKind.CANCELLED,
        now=now,
        actor="scheduler",
        code=verdict.code,
        detail=verdict.reason,
    )
