"""What a project keeps for its jobs: templates and secrets."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from jobs.selectors import job_detail
from jobs.selectors.presets import secret_views, template_views
from jobs.services.presets import delete_secret, delete_template, save_template, set_secret
from portal.accounts.access import Principal, access_project
from portal.accounts.roles import Scope
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.web.base import page, put_error
from portal.web.forms import SecretForm


@require_GET
@page
def presets(request: HttpRequest, principal: Principal, project: str) -> HttpResponse:
    return _shown(request, principal, project, SecretForm())


@require_POST
@page
def secret_set(request: HttpRequest, principal: Principal, project: str) -> HttpResponse:
    form = SecretForm(request.POST)
    access_project(principal, project, need=Scope.PROJECT_ADMIN)
    if form.is_valid():
        try:
            set_secret(principal=principal, project=project, now=utc_now(), **form.cleaned_data)
        except PortalError as error:
            put_error(form, error, {})
        else:
            messages.success(request, _("The secret is set."))
            return redirect("web:presets", project=project)
    return _shown(request, principal, project, form)


@require_POST
@page
def secret_delete(
    request: HttpRequest, principal: Principal, project: str, name: str
) -> HttpResponse:
    delete_secret(principal=principal, project=project, name=name, now=utc_now())
    messages.success(request, _("The secret is deleted."))
    return redirect("web:presets", project=project)


@require_POST
@page
def template_delete(
    request: HttpRequest, principal: Principal, project: str, name: str
) -> HttpResponse:
    delete_template(principal=principal, project=project, name=name, now=utc_now())
    messages.success(request, _("The template is deleted."))
    return redirect("web:presets", project=project)


@require_POST
@page
def template_save(request: HttpRequest, principal: Principal, ref: str) -> HttpResponse:
    """Keep what a job asked for, without its environment, under a name."""
    detail = job_detail(principal, ref)
    row = detail.row
    fields: dict[str, Any] = {
        "command": list(detail.command),
        "memory_mib": row.memory_mib,
        "compute_milli": row.compute_milli,
        "form": row.form,
        "gpu_model": row.gpu_model,
        "name": row.name,
        "priority": row.priority,
        "time_limit_s": detail.time_limit_s,
        "max_attempts": detail.max_attempts,
        "retry_exit_codes": list(detail.retry_exit_codes),
        "secrets": list(detail.secrets),
    }
    save_template(
        principal=principal,
        project=row.project_id,
        name=request.POST.get("name", ""),
        fields={name: value for name, value in fields.items() if value not in (None, "", [])},
        now=utc_now(),
    )
    messages.success(request, _("The template is saved."))
    return redirect("web:presets", project=row.project_slug)


def _shown(
    request: HttpRequest, principal: Principal, project: str, form: SecretForm
) -> HttpResponse:
    place = access_project(principal, project, need=Scope.JOBS_READ)
    administers = Scope.PROJECT_ADMIN in place.scopes
    return render(
        request,
        "web/presets.html",
        {
            "project": place,
            "templates": template_views(principal, place.id),
            "secrets": secret_views(principal, place.id) if administers else [],
            "may_administer": administers,
            "form": form,
        },
        status=422 if form.errors else 200,
    )
