"""The one way in which a job's state changes: by the table, with a row that tells it."""

from __future__ import annotations

from datetime import datetime

from jobs.domain.states import TERMINAL, JobState
from jobs.domain.transitions import EventKind, after
from jobs.models import Job, Transition


def move(
    job: Job,
    event: EventKind,
    *,
    now: datetime,
    actor: str,
    attempt_number: int | None = None,
    code: str = "",
    detail: str = "",
) -> Transition:
    """Change ``job`` in memory and give the row of its story; the caller saves both."""
    before = JobState(job.state)
    state = after(before, event, story=f"Job {job.pk}, attempt {attempt_number}.")
    job.state = state
    if state in TERMINAL:
        job.ended_at = now
        job.reason_code = code
        job.reason = detail[:500]
    if state is JobState.QUEUED and before is not JobState.QUEUED:
        job.queued_at = now
        job.reason_code = code
        job.reason = detail[:500]
        job.started_at = None
    if state is not JobState.QUEUED:
        job.wait_code = job.wait_reason = ""
    return Transition(
        job=job,
        at=now,
        from_state=before,
        to_state=state,
        event=event,
        actor=actor,
        attempt_number=attempt_number,
        detail=detail[:500],
    )
