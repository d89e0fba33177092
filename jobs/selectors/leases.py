"""What nodes are told of leases, and what of them is metered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.wire import Desired, FileSpec, LeaseSpec, ProcessSpec, SliceKind, SliceSpec
from billing.domain.metering import LeaseUse
from jobs.engines.base import NodeTarget
from jobs.models import Attempt, Job
from jobs.selectors.presets import open_secrets
from portal.accounts import selectors as accounts
from portal.fleet import selectors as fleet
from portal.fleet.selectors import LeaseView
from quotas.domain.accounts import equivalent_milli

DEFAULT_GRACE_S = 10


@dataclass(frozen=True)
class LeaseOrder:
    """What a node has to be told of a lease.

    With ``missing_secrets`` the order is not to be given: the job cannot start without them.
    """

    node: NodeTarget
    node_name: str
    spec: LeaseSpec
    missing_secrets: tuple[str, ...] = ()


def lease_order(lease_id: str) -> LeaseOrder | None:
    """What to tell the node of this lease; ``None`` once it is over, or runs as it should."""
    return lease_orders([lease_id]).get(lease_id)


def lease_orders(lease_ids: Iterable[str]) -> dict[str, LeaseOrder]:
    """What to tell the nodes of these leases, in two queries; nothing of those that are over.

    A lease that has started is never ordered to run again: its node could have lost its record.
    """
    attempts = Attempt.objects.filter(
        lease_id__in=list(lease_ids), ended_at__isnull=True
    ).select_related("job__project", "job__bundle")
    leases = fleet.lease_views(attempt.lease_id for attempt in attempts)
    return {
        attempt.lease_id: _order(attempt, lease)
        for attempt in attempts
        if (lease := leases.get(attempt.lease_id))
        and (lease.started_at is None or lease.desired != Desired.RUNNING)
    }


def _order(attempt: Attempt, lease: LeaseView) -> LeaseOrder:
    job = attempt.job
    missing: list[str] = []
    labels = {"job": f"{job.project.slug}/{job.number}", "name": job.name}
    if lease.desired == Desired.ABSENT:
        spec = LeaseSpec(
            lease_id=lease.id, generation=lease.generation, desired=Desired.ABSENT, labels=labels
        )
    else:
        secrets, missing = open_secrets(job.project_id, job.secrets)
        spec = LeaseSpec(
            lease_id=lease.id,
            generation=lease.generation,
            desired=Desired.RUNNING,
            slice=SliceSpec(
                gpu_uuid=lease.gpu_uuid,
                kind=SliceKind(lease.kind),
                memory_mib=lease.memory_mib,
                compute_milli=lease.compute_milli,
                mig_profile=lease.mig_profile,
                mig_start=lease.mig_start,
            ),
            process=ProcessSpec(
                argv=job.command,
                env={**secrets, **_environment(job, attempt)},
                time_limit_s=job.time_limit_s,
                stop_grace_s=DEFAULT_GRACE_S,
                files=[
                    FileSpec(path=path, content_base64=content, mode=mode)
                    for path, content, mode in (job.bundle.files if job.bundle else ())
                ],
            ),
            labels=labels,
            stream_id=lease.node_stream_id,
        )
    return LeaseOrder(
        NodeTarget(lease.node_id, lease.node_address), lease.node_name, spec, tuple(missing)
    )


def _environment(job: Job, attempt: Attempt) -> dict[str, str]:
    array = (
        {"GPUCOMMONS_ARRAY_ID": job.array_id, "GPUCOMMONS_ARRAY_INDEX": str(job.array_index)}
        if job.array_id
        else {}
    )
    return {
        **job.env,
        **array,
        "GPUCOMMONS_JOB_ID": job.pk,
        "GPUCOMMONS_JOB_NUMBER": str(job.number),
        "GPUCOMMONS_PROJECT": job.project.slug,
        "GPUCOMMONS_ATTEMPT": str(attempt.number),
    }


def running_jobs() -> list[str]:
    """The jobs that have an attempt which has started and not ended."""
    rows = Attempt.objects.filter(started_at__isnull=False, ended_at__isnull=True)
    return list(rows.order_by("job_id").values_list("job_id", flat=True))


@dataclass(frozen=True)
class Span:
    """A part of an attempt's time: what is metered of its lease."""

    attempt: Attempt
    lease: LeaseView
    started_at: datetime
    until: datetime


def lease_uses(spans: Sequence[Span], *, final: bool) -> list[LeaseUse]:
    """What is metered of leases: the share that each holds, from start to ``until``."""
    projects = accounts.project_lines(span.attempt.job.project_id for span in spans)
    return [
        LeaseUse(
            lease_id=span.lease.id,
            job_id=span.attempt.job_id,
            project_id=span.attempt.job.project_id,
            tenant_id=projects[span.attempt.job.project_id].tenant_id,
            user_id=span.attempt.job.submitted_by_id,
            gpu_model=span.lease.gpu_model,
            equivalent_milli=equivalent_milli(
                compute_milli=span.lease.compute_milli,
                memory_mib=span.lease.memory_mib,
                gpu_memory_mib=span.lease.gpu_memory_mib,
            ),
            compute_milli=span.lease.compute_milli,
            memory_mib=span.lease.memory_mib,
            started_at=span.started_at,
            until=span.until,
            final=final,
        )
        for span in spans
    ]
