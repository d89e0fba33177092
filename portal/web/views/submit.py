"""The form for a new job and its price."""

from __future__ import annotations

import shlex
from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from jobs.domain.states import Form, PriorityClass
from jobs.scheduling.view import Request
from jobs.selectors import job_detail
from jobs.selectors.presets import template_fields, template_views
from jobs.services.estimate import Estimate, estimates
from jobs.services.submit import JobRequest, submit_job
from portal.accounts.access import Principal, access_platform, accessible_project_ids
from portal.accounts.roles import Scope
from portal.accounts.selectors import projects_of
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.core.idempotency import Answer, fingerprint, once
from portal.core.ids import new_id
from portal.fleet.selectors import GpuView, fleet_view
from portal.web.base import page, put_error
from portal.web.forms import EstimateForm, SubmitForm, gib_to_mib

_FIELDS = {
    "memory_mib": "memory_gib",
    "compute_milli": "compute_percent",
    "time_limit_s": "time_limit_min",
    "files": "uploads",
}


@require_http_methods(["GET", "POST"])
@page
def submit(request: HttpRequest, principal: Principal) -> HttpResponse:
    """The form; ``?from=`` fills it with an earlier job."""
    writable = accessible_project_ids(principal, need=Scope.JOBS_WRITE)
    projects = [
        project.slug
        for project in projects_of(principal)
        if writable is None or project.id in writable
    ]
    gpus = _gpus()
    models = sorted({gpu.model for gpu in gpus})
    if request.method == "POST":
        form = SubmitForm(request.POST, request.FILES, projects=projects, models=models)
        if form.is_valid():
            try:
                return _submitted(request, principal, form)
            except PortalError as error:
                put_error(form, error, _FIELDS)
    else:
        form = SubmitForm(
            initial={"key": new_id(), **_initial(request, principal, projects)},
            projects=projects,
            models=models,
        )
    return render(
        request,
        "web/submit.html",
        {
            "form": form,
            "projects": projects,
            "templates": _templates(request, principal, projects),
            "estimates": _estimates(_sizes(form)),
            "simulated": {gpu.model for gpu in gpus if gpu.simulated},
            "largest_mib": max((gpu.memory_mib for gpu in gpus), default=None),
        },
        status=422 if form.errors else 200,
    )


@require_GET
@page
def estimate(request: HttpRequest, principal: Principal) -> HttpResponse:
    """A piece of the form: what an hour would cost."""
    access_platform(principal, need=Scope.FLEET_READ)
    form = EstimateForm(request.GET)
    wanted = form.cleaned_data if form.is_valid() else None
    return render(
        request,
        "web/_estimate.html",
        {
            "estimates": _estimates(wanted),
            "simulated": {gpu.model for gpu in _gpus() if gpu.simulated},
        },
    )


def _submitted(request: HttpRequest, principal: Principal, form: SubmitForm) -> HttpResponse:
    """Submit once for each form that was shown, however often it is sent."""
    data = form.cleaned_data
    limit = data["time_limit_min"]
    wanted = JobRequest(
        command=data["command"],
        memory_mib=form.memory_mib,
        compute_milli=form.compute_milli,
        form=Form(data["form"] or Form.ANY),
        gpu_model=data["gpu_model"],
        name=data["name"],
        env=data["env"],
        secrets=data["secrets"],
        files=form.job_files,
        priority=PriorityClass(data["priority"] or PriorityClass.NORMAL),
        time_limit_s=None if limit is None else limit * 60,
        max_attempts=data["max_attempts"] or JobRequest.max_attempts,
        array_size=data["array_size"],
        max_running=data["max_running"],
        retry_exit_codes=data["retry_exit_codes"],
        not_before=data["not_before"],
        after_ok=data["after_ok"],
        after_any=data["after_any"],
    )

    def effect() -> Answer:
        accepted = submit_job(
            principal=principal, project=data["project"], request=wanted, now=utc_now()
        )
        return Answer(201, {"id": accepted.id, "is_array": accepted.is_array})

    answer = once(
        principal_id=principal.user_id,
        key=f"form:{data['key']}",
        request_fingerprint=fingerprint("POST", request.path, [data["project"], repr(wanted)]),
        now=utc_now(),
        effect=effect,
    )
    if answer.body["is_array"]:
        messages.success(request, gettext("The array was accepted."))
        response = redirect("web:jobs")
        response["Location"] += f"?array={answer.body['id']}"
        return response
    messages.success(request, gettext("The job was accepted."))
    return redirect("web:job", ref=answer.body["id"])


def _initial(request: HttpRequest, principal: Principal, projects: list[str]) -> dict[str, Any]:
    source = request.GET.get("from")
    project = request.GET.get("project", "")
    template = request.GET.get("template")
    if source:
        return _initial_of_job(request, principal, source)
    if project not in projects:
        return {}
    fields = template_fields(principal, project, template) if template else {}
    return {"project": project, **_initial_of_fields(fields)}


def _initial_of_job(request: HttpRequest, principal: Principal, source: str) -> dict[str, Any]:
    detail = job_detail(principal, source)
    row = detail.row
    if detail.env_names:
        names = ", ".join(detail.env_names)
        messages.info(
            request, gettext("Values of the environment are not copied; it had %s.") % names
        )
    fields = {
        "command": detail.command,
        "name": row.name,
        "memory_mib": row.memory_mib,
        "compute_milli": row.compute_milli,
        "form": row.form,
        "gpu_model": row.gpu_model,
        "priority": row.priority,
        "time_limit_s": detail.time_limit_s,
        "max_attempts": detail.max_attempts,
        "retry_exit_codes": detail.retry_exit_codes,
        "secrets": detail.secrets,
    }
    return {"project": row.project_slug, **_initial_of_fields(fields)}


def _initial_of_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a request as people type them; what is not given stays as the form has it."""
    memory, compute = fields.get("memory_mib"), fields.get("compute_milli")
    limit = fields.get("time_limit_s")
    same = ("name", "form", "gpu_model", "priority", "max_attempts", "array_size", "max_running")
    shown = {
        "command": shlex.join(fields.get("command", ())),
        "memory_gib": None if memory is None else _trimmed(memory, 1024),
        "compute_percent": None if compute is None else _trimmed(compute, 10),
        "time_limit_min": limit and max(1, limit // 60),
        "retry_exit_codes": ", ".join(fields.get("retry_exit_codes", ())),
        "secrets": ", ".join(fields.get("secrets", ())),
        "env": "".join(f"{name}={value}\n" for name, value in fields.get("env", {}).items()),
        **{name: fields[name] for name in same if name in fields},
    }
    return {name: value for name, value in shown.items() if value not in (None, "")}


def _templates(
    request: HttpRequest, principal: Principal, projects: list[str]
) -> list[tuple[str, str]]:
    """(project, name) of what may be started from: of the project that was named, or the first."""
    project = request.GET.get("project", "")
    chosen = project if project in projects else next(iter(projects), None)
    if chosen is None:
        return []
    return [(chosen, one.name) for one in template_views(principal, chosen)]


def _trimmed(value: int, unit: int) -> Decimal:
    """Without needless zeros, as a person would type it."""
    return Decimal(f"{value / unit:.3f}".rstrip("0").rstrip("."))


def _sizes(form: SubmitForm) -> dict[str, Any] | None:
    if form.is_bound:
        return None if form.errors else form.cleaned_data
    return dict(form.initial)


def _gpus() -> list[GpuView]:
    return [gpu for node in fleet_view() for gpu in node.gpus]


def _estimates(wanted: dict[str, Any] | None) -> list[Estimate]:
    """None when the input is unreadable: its fields say why."""
    if wanted is None:
        return []
    compute = wanted.get("compute_percent")
    request = Request(
        compute_milli=None if compute is None else int(Decimal(compute) * 10),
        memory_mib=gib_to_mib(wanted.get("memory_gib")),
        form=Form(wanted.get("form") or Form.ANY),
        gpu_model=wanted.get("gpu_model") or "",
    )
    return estimates(request, now=utc_now())
