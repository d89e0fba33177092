"""The list of jobs and one job."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from jobs.domain.states import ACTIVE, TERMINAL, JobState, Wish
from jobs.selectors import array_view, job_detail, job_page
from jobs.services.cancel import cancel_array, cancel_job
from jobs.services.conditions import hold_job, release_job
from jobs.services.engine import agent_engine
from jobs.services.logs import search_log
from portal.accounts.access import Principal, access_project
from portal.accounts.roles import Scope
from portal.accounts.selectors import projects_of
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.web.base import page

PAGE_SIZE = 50
TABS = {
    "": (_("Current"), frozenset({JobState.QUEUED, *ACTIVE})),
    "ended": (_("Ended"), TERMINAL),
    "all": (_("All"), frozenset(JobState)),
    **{state.value: (state.value, frozenset({state})) for state in JobState},
}
_SHOWN_TABS = ("", "ended", "all")


@require_GET
@page
def job_list(request: HttpRequest, principal: Principal) -> HttpResponse:
    """Jobs by project and state, newest first; the address holds the filters."""
    project = request.GET.get("project", "")
    tab = request.GET.get("state", "")
    array_id = request.GET.get("array", "")
    if tab not in TABS:
        tab = ""
    listed = job_page(
        principal,
        project=project or None,
        states=() if tab == "all" or array_id else TABS[tab][1],
        array_id=array_id or None,
        before=request.GET.get("before") or None,
        limit=PAGE_SIZE,
    )
    kept = {"project": project, "state": tab, "array": array_id}
    return render(
        request,
        "web/jobs.html",
        {
            "page": listed,
            "projects": projects_of(principal),
            "project": project,
            "tab": tab,
            "tabs": [(name, TABS[name][0]) for name in _SHOWN_TABS],
            "states": list(JobState),
            "array": array_view(principal, array_id) if array_id else None,
            "older": urlencode({**kept, "before": listed.next_before})
            if listed.next_before
            else None,
            "is_first": "before" not in request.GET,
        },
    )


@require_GET
@page
def one_job(request: HttpRequest, principal: Principal, ref: str) -> HttpResponse:
    """Everything about one job: state, reason, story, attempts, four numbers, cost and log."""
    detail = job_detail(principal, ref)
    row = detail.row
    ended = row.state in TERMINAL
    may_save = _may_write(principal, row.project_id)
    may_write = not ended and may_save
    return render(
        request,
        "web/job.html",
        {
            "job": row,
            "detail": detail,
            "attempts": list(reversed(detail.attempts)),
            "newest": detail.attempts[-1] if detail.attempts else None,
            "command_line": shlex.join(detail.command),
            "ended": ended,
            "may_save": may_save,
            **_found_lines(request, principal, row.id),
            "may_cancel": may_write and row.wish != Wish.CANCEL,
            "may_hold": may_write and row.state == JobState.QUEUED and row.wish == Wish.RUN,
            "may_release": may_write and row.state == JobState.QUEUED and row.wish == Wish.HOLD,
        },
    )


def _found_lines(request: HttpRequest, principal: Principal, job_id: str) -> dict[str, Any]:
    wanted = request.GET.get("q", "")[:200]
    try:
        lines = search_log(agent_engine(), principal=principal, job_id=job_id, wanted=wanted)
    except PortalError as error:
        return {"wanted": wanted, "lines": [], "search_failed": error.detail}
    return {"wanted": wanted, "lines": lines, "search_failed": ""}


@require_POST
@page
def cancel(request: HttpRequest, principal: Principal, ref: str) -> HttpResponse:
    job_id = cancel_job(principal=principal, job_id=ref, now=utc_now())
    messages.success(request, gettext("The job is being cancelled."))
    return redirect("web:job", ref=job_id)


@require_POST
@page
def hold(request: HttpRequest, principal: Principal, ref: str) -> HttpResponse:
    job_id = hold_job(principal=principal, job_id=ref, now=utc_now())
    messages.success(request, "The job is held until somebody releases it.")
    return redirect("web:job", ref=job_id)


@require_POST
@page
def release(request: HttpRequest, principal: Principal, ref: str) -> HttpResponse:
    job_id = release_job(principal=principal, job_id=ref, now=utc_now())
    messages.success(request, "The job may start again.")
    return redirect("web:job", ref=job_id)


@require_POST
@page
def cancel_members(request: HttpRequest, principal: Principal, array_id: str) -> HttpResponse:
    cancel_array(principal=principal, array_id=array_id, now=utc_now())
    messages.success(request, gettext("The jobs of the array are being cancelled."))
    back = request.POST.get("back", "")
    safe = url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return redirect(back if safe else "web:jobs")


def _may_write(principal: Principal, project_id: str) -> bool:
    try:
        access_project(principal, project_id, need=Scope.JOBS_WRITE)
    except PortalError:
        return False
    return True
