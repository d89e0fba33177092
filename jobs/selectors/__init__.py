"""Reads of jobs. To other rooms they give frozen data; to callers only what they may see."""

from __future__ import annotations

from jobs.selectors.jobs import (
    ArrayView,
    AttemptView,
    JobDetail,
    JobName,
    JobPage,
    JobRow,
    TransitionView,
    access_array,
    access_job,
    array_state_reader,
    array_view,
    attempt_for_log,
    counts_by_state,
    job_detail,
    job_names,
    job_page,
    job_state_reader,
    jobs_on_leases,
)
from jobs.selectors.leases import LeaseOrder, Span, lease_order, lease_uses, running_jobs
from jobs.selectors.scheduling import (
    gpu_states,
    oldest_waiting_since,
    owner_ids_of,
    queue_head,
    queued_jobs_of_project,
)

__all__ = [
    "ArrayView",
    "AttemptView",
    "JobDetail",
    "JobName",
    "JobPage",
    "JobRow",
    "LeaseOrder",
    "Span",
    "TransitionView",
    "access_array",
    "access_job",
    "array_state_reader",
    "array_view",
    "attempt_for_log",
    "counts_by_state",
    "gpu_states",
    "job_detail",
    "job_names",
    "job_page",
    "job_state_reader",
    "jobs_on_leases",
    "lease_order",
    "lease_uses",
    "oldest_waiting_since",
    "owner_ids_of",
    "queue_head",
    "queued_jobs_of_project",
    "running_jobs",
]
