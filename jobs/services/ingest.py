"""What a node observed becomes state here: started, ended, settled; each exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agent.wire import LeaseReport, Observed
from billing.services.metering import meter
from jobs.domain import readiness
from jobs.domain.states import JobState, Wish
from jobs.domain.transitions import FREE_ENDS, End, EndKind, EventKind, judge_end
from jobs.models import Attempt, Job, Transition
from jobs.selectors import Span, lease_uses
from jobs.services.story import move
from portal.core import crash, hints
from portal.core.locks import guarded, lock_rows
from portal.core.rows import save_rows
from portal.fleet import services as fleet
from portal.fleet.selectors import node_target
from quotas.services import holds

_JOB_FIELDS = [
    "state",
    "queued_at",
    "started_at",
    "ended_at",
    "exit_code",
    "exit_signal",
    "reason_code",
    "reason",
    "wait_code",
    "wait_reason",
    "not_before",
]
LIVING = (Observed.ACCEPTED, Observed.RUNNING)
# Of several reports of one lease, in whatever order they came, the one that says most counts.
_SAYS_MOST = (
    Observed.ACCEPTED,
    Observed.RUNNING,
    Observed.ABSENT,
    Observed.REFUSED,
    Observed.ENDED,
)
_ATTEMPT_FIELDS = ["started_at", "ended_at", "exit_code", "exit_signal", "end_reason"]


@dataclass(frozen=True)
class Ended:
    """The end of a lease: when its process ran, as far as the node knows, and how it ended."""

    lease_id: str
    end: End
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True)
class Cursor:
    """How far a node's event log has been read."""

    node_id: str
    stream_id: str
    after: int


def ended_of(report: LeaseReport) -> Ended | None:
    """The end that a report tells, if it tells one. Durations come from monotonic time."""
    if report.observed is Observed.REFUSED:
        return Ended(report.lease_id, End(EndKind.REFUSED, detail=report.detail), None, None)
    if report.observed is Observed.ABSENT:
        return Ended(report.lease_id, End(EndKind.NEVER_STARTED), None, None)
    if report.observed is not Observed.ENDED:
        return None
    kind = EndKind(report.end_reason) if report.end_reason else EndKind.SUPERVISOR_LOST
    ended_at = report.ended_at
    if report.started_at and report.duration_ns is not None:
        ended_at = report.started_at + timedelta(microseconds=report.duration_ns // 1000)
    end = End(kind, report.exit_code, report.exit_signal, report.detail)
    return Ended(report.lease_id, end, report.started_at, ended_at)


def ingest(
    reports: Iterable[LeaseReport], *, actor: str, now: datetime, cursor: Cursor | None = None
) -> None:
    """Apply reports in one transaction, with the cursor that they bring the log to.

    Reports of attempts that have ended here already change nothing, so the same report may come by
    an event, by the answer to a command and by reconciliation.
    """
    ordered = sorted(reports, key=lambda report: _SAYS_MOST.index(report.observed))
    latest: dict[str, LeaseReport] = {report.lease_id: report for report in ordered}
    if not latest and cursor is None:
        return
    ends = [ended for report in latest.values() if (ended := ended_of(report))]
    if cursor is None and not ends and not any(report.started_at for report in latest.values()):
        return
    with guarded():
        attempts = _lock(latest, [ended.lease_id for ended in ends])
        story: list[Transition] = []
        for lease_id, report in latest.items():
            if lease_id in attempts and report.started_at:
                story += _started(attempts[lease_id], report, actor=actor, now=now)
        story += _settle(attempts, ends, actor=actor, now=now)
        _save(attempts.values(), story)
        if cursor is not None:
            fleet.advance_cursor(
                node_id=cursor.node_id, stream_id=cursor.stream_id, cursor=cursor.after
            )
        crash.point("ingest.written")
    crash.point("ingest.committed")


def settle(ends: Iterable[Ended], *, actor: str, now: datetime) -> None:
    """End attempts that no report will end: refused by the node, or lost with it."""
    ends = list(ends)
    if not ends:
        return
    with guarded():
        lease_ids = [ended.lease_id for ended in ends]
        attempts = _lock(lease_ids, lease_ids)
        story = _settle(attempts, ends, actor=actor, now=now)
        _save(attempts.values(), story)
        crash.point("settle.written")
    crash.point("settle.committed")


def _lock(lease_ids: Iterable[str], ending: list[str]) -> dict[str, Attempt]:
    """Lock what the reports touch, in the house's order, and give the open attempts by lease."""
    rows = Attempt.objects.filter(lease_id__in=list(lease_ids), ended_at__isnull=True)
    known = list(rows.values_list("pk", "job_id", "lease_id"))
    ending_ids = {pk: lease_id for pk, _, lease_id in known if lease_id in ending}
    if ending_ids:
        holds.lock_accounts_of(ending_ids)
        fleet.lock_gpus_of(ending_ids.values())
    job_ids = {job_id for _, job_id, _ in known}
    jobs = {job.pk: job for job in lock_rows(Job.objects.filter(pk__in=job_ids))}
    attempts: dict[str, Attempt] = {}
    for attempt in rows:
        if attempt.job_id in jobs:
            attempt.job = jobs[attempt.job_id]
            attempts[attempt.lease_id] = attempt
    return attempts


def _started(
    attempt: Attempt, report: LeaseReport, *, actor: str, now: datetime
) -> list[Transition]:
    if attempt.started_at is not None or report.started_at is None:
        return []
    attempt.started_at = report.started_at
    attempt.job.started_at = report.started_at
    fleet.lease_started(
        attempt.lease_id,
        started_at=report.started_at,
        enforcement_memory=report.enforcement_memory,
        enforcement_compute=report.enforcement_compute,
    )
    return [
        move(attempt.job, EventKind.STARTED, now=now, actor=actor, attempt_number=attempt.number)
    ]


def _settle(
    attempts: Mapping[str, Attempt], ends: Iterable[Ended], *, actor: str, now: datetime
) -> list[Transition]:
    """Release and meter the leases, give the holds back, and decide what the ends mean."""
    ends = [
        _completed(ended, attempts[ended.lease_id], now=now)
        for ended in ends
        if ended.lease_id in attempts
    ]
    if not ends:
        return []
    holds.release_many([attempts[ended.lease_id].pk for ended in ends], now=now)
    leases = fleet.release_leases(
        [
            fleet.Release(ended.lease_id, started_at=ended.started_at, ended_at=ended.ended_at)
            for ended in ends
        ],
        now=now,
    )
    spans = [
        Span(attempts[ended.lease_id], lease, ended.started_at, ended.ended_at)
        for ended in ends
        if (lease := leases.get(ended.lease_id)) and ended.started_at and ended.ended_at
    ]
    meter(lease_uses(spans, final=True), now=now)
    hints.give_on_commit(hints.Hint.SCHEDULE)
    return [_end(attempts[ended.lease_id], ended, actor=actor, now=now) for ended in ends]


def _completed(ended: Ended, attempt: Attempt, *, now: datetime) -> Ended:
    """Fill in what the node does not know (any more): it ran until the node was last seen."""
    started_at = ended.started_at or attempt.started_at
    if started_at is None or ended.ended_at is not None:
        return replace(ended, started_at=started_at)
    end = ended.end
    if end.kind is EndKind.NEVER_STARTED:
        end = End(EndKind.SUPERVISOR_LOST, detail="The node lost its record of the lease.")
    last_seen = node_target(attempt.node_id).last_seen_at or now
    return Ended(ended.lease_id, end, started_at, max(started_at, min(last_seen, now)))


def _end(attempt: Attempt, ended: Ended, *, actor: str, now: datetime) -> Transition:
    job = attempt.job
    attempt.ended_at = ended.ended_at or now
    attempt.exit_code = ended.end.exit_code
    attempt.exit_signal = ended.end.exit_signal
    attempt.end_reason = ended.end.kind
    used = _used(attempt, ended.end.kind)
    judgement = judge_end(
        ended.end,
        wish=Wish(job.wish),
        attempts_left=job.max_attempts - used,
        attempts_used=used,
        retry_exit_codes=job.retry_exit_codes,
        time_limit_s=job.time_limit_s,
    )
    transition = move(
        job,
        judgement.event,
        now=now,
        actor=actor,
        attempt_number=attempt.number,
        code=judgement.code,
        detail=judgement.reason,
    )
    if judgement.pause_s:
        job.not_before = now + timedelta(seconds=judgement.pause_s)
        pause = readiness.not_before(job.not_before)
        job.wait_code, job.wait_reason = pause.code, pause.reason
    if job.state != JobState.QUEUED:
        job.exit_code = ended.end.exit_code
        job.exit_signal = ended.end.exit_signal
        job.ended_at = ended.ended_at or now
    return transition


def _used(attempt: Attempt, kind: EndKind) -> int:
    """How many of its attempts the job has used up, with this one."""
    this = int(kind not in FREE_ENDS)
    if attempt.number == 1:
        return this
    earlier = Attempt.objects.filter(job=attempt.job, number__lt=attempt.number)
    return this + earlier.exclude(end_reason__in=FREE_ENDS).count()


def _save(attempts: Iterable[Attempt], story: list[Transition]) -> None:
    if not story:
        return
    touched = {transition.job_id for transition in story}
    changed = [attempt for attempt in attempts if attempt.job_id in touched]
    save_rows(changed, _ATTEMPT_FIELDS)
    save_rows([attempt.job for attempt in changed], _JOB_FIELDS)
    Transition.objects.bulk_create(story)
