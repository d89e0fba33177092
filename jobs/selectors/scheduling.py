"""What the scheduler and the estimate read: the fleet as it is leased, and the queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agent.wire import MigGeometry
from jobs.domain.readiness import beyond_room
from jobs.domain.states import Form, JobState
from jobs.models import Job, JobArray
from jobs.scheduling.mig import Family, Placement, Profile
from jobs.scheduling.view import GpuState, QueuedJob, Request
from jobs.selectors.conditions import (
    ready_jobs,
    running_of_throttled_arrays,
    unexplained_members,
)
from portal.accounts import selectors as accounts
from portal.fleet import selectors as fleet


def gpu_states() -> tuple[GpuState, ...]:
    return tuple(
        GpuState(
            gpu_id=gpu.id,
            node_name=gpu.node_name,
            index=gpu.index,
            model=gpu.model,
            memory_mib=gpu.memory_mib,
            mode=gpu.mode,
            usable=gpu.healthy and gpu.node_ready and not gpu.node_drained,
            compute_leased_milli=gpu.compute_leased_milli,
            memory_leased_mib=gpu.memory_leased_mib,
            family=_family(gpu.mig) if gpu.mig else None,
            instances=frozenset(Placement(profile, start) for profile, start in gpu.instances),
            in_maintenance=gpu.healthy and gpu.node_ready and gpu.node_drained,
        )
        for gpu in fleet.gpu_loads()
    )


def kinds_of_gpus() -> tuple[GpuState, ...]:
    """One empty GPU of each kind that the fleet has, in service or not."""
    return tuple(
        GpuState(
            gpu_id=str(number),
            node_name="",
            index=number,
            model=kind.model,
            memory_mib=kind.memory_mib,
            mode=kind.mode,
            usable=True,
            family=_family(kind.mig) if kind.mig else None,
        )
        for number, kind in enumerate(fleet.gpu_kinds())
    )


def _family(geometry: MigGeometry) -> Family:
    return Family(
        geometry.compute_slices,
        geometry.memory_units,
        tuple(
            Profile(
                profile.name,
                profile.compute_slices,
                profile.size,
                tuple(profile.starts),
                profile.memory_mib,
                profile.media,
            )
            for profile in geometry.profiles
        ),
    )


def owner_ids_of(project_id: str) -> tuple[str, ...]:
    """The quota accounts above a job: tenants from the root down, then the project."""
    return accounts.project_line(project_id).owner_ids


@dataclass(frozen=True)
class QueueHead:
    """The next jobs that may be placed, and those that only their array's limit keeps waiting.

    ``throttled`` holds (job, what its array lets run), of jobs that are not yet told so.
    """

    jobs: tuple[QueuedJob, ...]
    throttled: tuple[tuple[str, int], ...]


def queue_head(limit: int, now: datetime) -> QueueHead:
    """The next jobs of the queue in its order, at most ``limit``.

    Jobs that are held, wait for others or for their time do not appear.
    """
    running = running_of_throttled_arrays()
    most: dict[str, int] = {
        pk: number or 0
        for pk, number in JobArray.objects.filter(pk__in=running).values_list("pk", "max_running")
    }
    full = {array_id for array_id, number in running.items() if number >= most[array_id]}
    rows = (
        ready_jobs(now)
        .exclude(array_id__in=full)
        .order_by("-priority", "queued_at", "pk")
        .values_list(
            "pk",
            "project_id",
            "priority",
            "queued_at",
            "compute_milli",
            "memory_mib",
            "form",
            "gpu_model",
            "array_id",
            "array__max_running",
        )[:limit]
    )
    owners: dict[str, tuple[str, ...]] = {}
    requests: dict[tuple[int | None, int | None, str, str], Request] = {}
    queue = []
    members: list[tuple[str, str | None]] = []
    for pk, project_id, priority, queued_at, compute, memory, form, model, array, at_once in rows:
        members.append((pk, array))
        if array and at_once is not None:
            most[array] = at_once
        if project_id not in owners:
            owners[project_id] = owner_ids_of(project_id)
        asked = (compute, memory, form, model)
        if asked not in requests:
            requests[asked] = Request(compute, memory, Form(form), model)
        queue.append(
            QueuedJob(pk, project_id, owners[project_id], priority, queued_at, requests[asked])
        )
    room = {array_id: number - running.get(array_id, 0) for array_id, number in most.items()}
    beyond = beyond_room(members, room)
    told = [(pk, most[array]) for pk, array in members if pk in beyond and array]
    told += [(pk, most[array]) for pk, array in unexplained_members(full, now)] if full else []
    return QueueHead(tuple(job for job in queue if job.job_id not in beyond), tuple(told))


def queued_jobs_of_project(project_id: str) -> int:
    return Job.objects.filter(project_id=project_id, state=JobState.QUEUED).count()


def oldest_waiting_since() -> datetime | None:
    rows = Job.objects.filter(state=JobState.QUEUED).order_by("queued_at")
    return rows.values_list("queued_at", flat=True).first()
