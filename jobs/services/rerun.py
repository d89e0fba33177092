"""Submitting the request of an earlier job once more."""

from __future__ import annotations

import base64
from datetime import datetime

from jobs.domain.files import JobFile
from jobs.domain.retries import write_ranges
from jobs.domain.states import CLASS_OF, Form
from jobs.models import Job
from jobs.selectors import access_job
from jobs.services.submit import JobRequest, Submitted, submit_job
from portal.accounts.access import Principal
from portal.accounts.roles import Scope


def rerun_job(*, principal: Principal, job_id: str, now: datetime) -> Submitted:
    """Submit a new job with the same request, without what the old one waited for.

    Environment and all are those of the old job; it is checked as any new submission is.
    """
    job = access_job(principal, job_id, need=Scope.JOBS_WRITE)
    return submit_job(
        principal=principal, project=job.project_id, request=_request_of(job), now=now
    )


def _request_of(job: Job) -> JobRequest:
    return JobRequest(
        command=tuple(job.command),
        memory_mib=job.memory_mib,
        compute_milli=job.compute_milli,
        form=Form(job.form),
        gpu_model=job.gpu_model,
        name=job.name,
        env=dict(job.env),
        secrets=tuple(job.secrets),
        files=tuple(
            JobFile(path, base64.b64decode(content), mode)
            for path, content, mode in (job.bundle.files if job.bundle else ())
        ),
        priority=CLASS_OF[job.priority],
        time_limit_s=job.time_limit_s,
        max_attempts=job.max_attempts,
        retry_exit_codes=write_ranges(job.retry_exit_codes),
    )
