"""Cancelling: a wish. A waiting job is cancelled at once, another when its node has stopped it."""

from __future__ import annotations

from datetime import datetime

from jobs.domain.states import ACTIVE, TERMINAL, JobState, Wish
from jobs.domain.transitions import EventKind
from jobs.models import Attempt, Job, Transition
from jobs.selectors import access_array, access_job
from jobs.services.outbox import LEASE
from jobs.services.story import move
from portal.accounts.access import Principal
from portal.accounts.roles import Scope
from portal.accounts.selectors import tenant_ids_of_projects
from portal.core import audit, crash, hints, outbox
from portal.core.audit import Actor
from portal.core.locks import guarded, lock_rows
from portal.core.rows import save_rows
from portal.fleet import services as fleet


def cancel_job(*, principal: Principal, job_id: str, now: datetime) -> str:
    """Wish the job cancelled; give its id. Wishing twice, or after its end, changes nothing."""
    job = access_job(principal, job_id, need=Scope.JOBS_WRITE)
    _cancel([job.pk], actor=principal.actor, now=now)
    return job.pk


def cancel_array(*, principal: Principal, array_id: str, now: datetime) -> None:
    """Wish every member of the array cancelled that has not ended."""
    array = access_array(principal, array_id, need=Scope.JOBS_WRITE)
    members = Job.objects.filter(array=array).exclude(state__in=TERMINAL)
    _cancel(list(members.values_list("pk", flat=True)), actor=principal.actor, now=now)


def _cancel(job_ids: list[str], *, actor: Actor, now: datetime) -> None:
    with guarded():
        wished = [
            job
            for job in lock_rows(Job.objects.filter(pk__in=job_ids).exclude(wish=Wish.CANCEL))
            if job.state not in TERMINAL
        ]
        tenants = tenant_ids_of_projects(job.project_id for job in wished)
        story: list[Transition] = []
        for job in wished:
            job.wish = Wish.CANCEL
            audit.record(
                actor=actor,
                verb="job.cancelled",
                object_type="job",
                object_id=job.pk,
                tenant_id=tenants[job.project_id],
                project_id=job.project_id,
                now=now,
            )
            if job.state == JobState.QUEUED:
                story.append(
                    move(
                        job,
                        EventKind.CANCELLED,
                        now=now,
                        actor=actor.name,
                        code="cancelled",
                        detail="Cancelled while it waited.",
                    )
                )
        save_rows(
            wished,
            ["wish", "state", "ended_at", "reason_code", "reason", "wait_code", "wait_reason"],
        )
        Transition.objects.bulk_create(story)
        if story:
            hints.give_on_commit(hints.Hint.SCHEDULE)
        active = [job.pk for job in wished if job.state in ACTIVE]
        lease_ids = list(
            Attempt.objects.filter(job__in=active, ended_at__isnull=True).values_list(
                "lease_id", flat=True
            )
        )
        for lease_id in lease_ids:
            fleet.want_absent(lease_id)
        outbox.put(LEASE, lease_ids, now=now)
        crash.point("cancel.written")
    crash.point("cancel.committed")
