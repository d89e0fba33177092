"""Submit, list, read and cancel jobs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import selectors
from jobs.domain.files import JobFile
from jobs.domain.states import Form, JobState, PriorityClass
from jobs.selectors.presets import template_fields
from jobs.services.cancel import cancel_job
from jobs.services.conditions import hold_job, release_job
from jobs.services.rerun import rerun_job
from jobs.services.submit import JobRequest, Submitted, submit_job
from portal.accounts.access import Principal
from portal.api.base import View, answer_once
from portal.api.schema import IDEMPOTENCY_KEY, JOB_REF, problems
from portal.api.serializers.jobs import (
    AcceptedJobOut,
    JobFilterIn,
    JobIn,
    JobOut,
    JobPageOut,
    WaitIn,
)
from portal.api.waiting import wait_while
from portal.core.clock import utc_now
from portal.core.errors import Rejected
from portal.core.idempotency import Answer


class Jobs(View):
    @extend_schema(
        operation_id="jobs_list",
        parameters=[JobFilterIn],
        responses={200: JobPageOut, **problems(401, 403, 404, 422)},
    )
    def get(self, request: Request) -> Response:
        """List the jobs that the caller may see, newest first."""
        query = self.query(JobFilterIn)
        page = selectors.job_page(
            self.principal,
            project=query.get("project"),
            states=states_of(query.get("state", ""), "state"),
            before=query.get("cursor"),
            limit=query["limit"],
            array_id=query.get("array"),
        )
        return Response(JobPageOut(page).data)

    @extend_schema(
        operation_id="jobs_submit",
        parameters=[IDEMPOTENCY_KEY],
        request=JobIn,
        responses={
            201: AcceptedJobOut,
            **problems(400, 401, 403, 404, 409, 413, 415, 422, 429, 503),
        },
    )
    def post(self, request: Request) -> Response:
        """Accept a job, or an array of jobs. It waits, with the reason, until there is room."""
        body = self.body(JobIn)
        principal = self.principal

        def effect() -> Answer:
            accepted = submit_job(
                principal=principal,
                project=body["project"],
                request=job_request(principal, body),
                now=utc_now(),
            )
            return Answer(201, accepted_json(accepted))

        return answer_once(request, principal, effect)


class OneJob(View):
    @extend_schema(
        operation_id="jobs_read",
        parameters=[JOB_REF, WaitIn],
        responses={200: JobOut, **problems(401, 403, 404, 422)},
    )
    def get(self, request: Request, ref: str) -> Response:
        """Read a job with its story, attempts, use and cost; or wait until its state changes."""
        query = self.query(WaitIn)
        unless = states_of(query["unless_state"], "unless_state")
        if query["wait_ms"] and unless:
            state = selectors.job_state_reader(self.principal, ref)
            wait_while(lambda: state() in unless, query["wait_ms"])
        return Response(JobOut(selectors.job_detail(self.principal, ref)).data)


class CancelJob(View):
    @extend_schema(
        operation_id="jobs_cancel",
        parameters=[JOB_REF, IDEMPOTENCY_KEY],
        request=None,
        responses={202: JobOut, **problems(401, 403, 404, 409, 422, 503)},
    )
    def post(self, request: Request, ref: str) -> Response:
        """Wish that the job ends. It is CANCELLED once its process is gone."""
        principal = self.principal

        def effect() -> Answer:
            job_id = cancel_job(principal=principal, job_id=ref, now=utc_now())
            return Answer(202, dict(JobOut(selectors.job_detail(principal, job_id)).data))

        return answer_once(request, principal, effect)


class HoldJob(View):
    @extend_schema(
        operation_id="jobs_hold",
        parameters=[JOB_REF, IDEMPOTENCY_KEY],
        request=None,
        responses={200: JobOut, **problems(401, 403, 404, 409, 422, 503)},
    )
    def post(self, request: Request, ref: str) -> Response:
        """Keep a waiting job from starting until it is released."""
        principal = self.principal

        def effect() -> Answer:
            job_id = hold_job(principal=principal, job_id=ref, now=utc_now())
            return Answer(200, dict(JobOut(selectors.job_detail(principal, job_id)).data))

        return answer_once(request, principal, effect)


class ReleaseJob(View):
    @extend_schema(
        operation_id="jobs_release",
        parameters=[JOB_REF, IDEMPOTENCY_KEY],
        request=None,
        responses={200: JobOut, **problems(401, 403, 404, 409, 422, 503)},
    )
    def post(self, request: Request, ref: str) -> Response:
        """Let a held job start again."""
        principal = self.principal

        def effect() -> Answer:
            job_id = release_job(principal=principal, job_id=ref, now=utc_now())
            return Answer(200, dict(JobOut(selectors.job_detail(principal, job_id)).data))

        return answer_once(request, principal, effect)


class RerunJob(View):
    @extend_schema(
        operation_id="jobs_rerun",
        parameters=[JOB_REF, IDEMPOTENCY_KEY],
        request=None,
        responses={201: AcceptedJobOut, **problems(401, 403, 404, 409, 422, 429, 503)},
    )
    def post(self, request: Request, ref: str) -> Response:
        """Submit the same request as a new job; what the old one waited for is left out."""
        principal = self.principal

        def effect() -> Answer:
            accepted = rerun_job(principal=principal, job_id=ref, now=utc_now())
            return Answer(201, accepted_json(accepted))

        return answer_once(request, principal, effect)


_LISTS = ("command", "retry_exit_codes", "after_ok", "after_any", "secrets")


def job_request(principal: Principal, body: dict[str, Any]) -> JobRequest:
    """What was sent, without the project; what was not, the template or the service says."""
    sent = {name: value for name, value in body.items() if value is not None}
    project, template = sent.pop("project"), sent.pop("template", None)
    if template is not None:
        sent = {**template_fields(principal, project, template), **sent}
    files = [
        JobFile(one["path"], one["content_base64"], 0o755 if one["executable"] else 0o644)
        for one in sent.pop("files", ())
    ]
    script, script_name = sent.pop("script", None), sent.pop("script_name", "script.sh")
    if script is not None:
        files.append(JobFile(script_name, script.encode(), 0o755))
        sent.setdefault("command", ["bash", script_name])
    sent.setdefault("command", [])
    return JobRequest(
        **{
            **sent,
            "files": tuple(files),
            **{name: tuple(sent[name]) for name in _LISTS if name in sent},
            "form": Form(sent.get("form", Form.ANY)),
            "priority": PriorityClass(sent.get("priority", PriorityClass.NORMAL)),
        }
    )


def accepted_json(accepted: Submitted) -> dict[str, Any]:
    return {
        "id": accepted.id,
        "kind": "array" if accepted.is_array else "job",
        "state": str(accepted.state),
        "number": accepted.numbers[0],
        "size": len(accepted.job_ids),
        "job_ids": list(accepted.job_ids),
    }


def states_of(text: str, field: str) -> frozenset[JobState]:
    """Read states separated by commas."""
    try:
        return frozenset(JobState(name.strip().upper()) for name in text.split(",") if name.strip())
    except ValueError as error:
        raise Rejected(
            "api.state_unknown",
            f"{error}: there is no such state.",
            hint="States are " + ", ".join(JobState) + ".",
            field=field,
        ) from error
