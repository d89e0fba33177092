"""Nodes, for administrators of the platform: enrol, drain, resume, declare lost."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from jobs.services.nodes import declare_lost_by_name
from portal.accounts.access import Principal, access_platform
from portal.accounts.roles import Scope
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.fleet.enrolment import issue_code
from portal.fleet.selectors import fleet_view, node_view
from portal.fleet.services import set_drained
from portal.web.base import page, put_error
from portal.web.forms import DrainForm, EnrolForm, LostForm


@require_http_methods(["GET", "POST"])
@page
def nodes(request: HttpRequest, principal: Principal) -> HttpResponse:
    """List and enrol. The command with its one-time code is shown once."""
    access_platform(principal, need=Scope.FLEET_ADMIN)
    form = EnrolForm(request.POST if request.method == "POST" else None)
    command = None
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["node_name"]
        try:
            code = issue_code(actor=principal.actor, node_name=name, now=utc_now())
        except PortalError as error:
            put_error(form, error, {})
        else:
            command = {"code": code, "name": name}
            form = EnrolForm()
    response = render(
        request,
        "web/nodes.html",
        {
            "nodes": fleet_view(),
            "form": form,
            "command": command,
            "address": request.build_absolute_uri("/").rstrip("/"),
        },
        status=422 if form.errors else 200,
    )
    response["Cache-Control"] = "no-store"
    return response


@require_http_methods(["GET", "POST"])
@page
def drain(request: HttpRequest, principal: Principal, node_id: str) -> HttpResponse:
    """Say why, then drain: the jobs that run there are listed first."""
    access_platform(principal, need=Scope.FLEET_ADMIN)
    node = node_view(node_id)
    form = DrainForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        set_drained(
            actor=principal.actor,
            node_id=node_id,
            drained=True,
            note=form.cleaned_data["note"],
            now=utc_now(),
        )
        messages.success(
            request, _("Node %(name)s takes no new jobs; running ones go on.") % {"name": node.name}
        )
        return redirect("web:nodes")
    return render(
        request,
        "web/node_drain.html",
        {"node": node, "form": form, "leases": sum(len(gpu.leases) for gpu in node.gpus)},
    )


@require_POST
@page
def resume(request: HttpRequest, principal: Principal, node_id: str) -> HttpResponse:
    access_platform(principal, need=Scope.FLEET_ADMIN)
    node = node_view(node_id)
    set_drained(actor=principal.actor, node_id=node_id, drained=False, note="", now=utc_now())
    messages.success(request, _("Node %(name)s takes jobs again.") % {"name": node.name})
    return redirect("web:nodes")


@require_http_methods(["GET", "POST"])
@page
def lost(request: HttpRequest, principal: Principal, node_id: str) -> HttpResponse:
    """Destructive: it lists what ends and wants the node's name typed, and a reason."""
    access_platform(principal, need=Scope.FLEET_ADMIN)
    node = node_view(node_id)
    form = LostForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            ended = declare_lost_by_name(
                actor=principal.actor,
                node_id=node_id,
                name=form.cleaned_data["name"],
                reason=form.cleaned_data["reason"],
                now=utc_now(),
            )
        except PortalError as error:
            put_error(form, error, {})
        else:
            messages.success(
                request,
                _("Node %(name)s is declared lost; attempts ended: %(ended)s.")
                % {"name": node.name, "ended": ended},
            )
            return redirect("web:nodes")
    return render(
        request,
        "web/node_lost.html",
        {"node": node, "form": form, "leases": sum(len(gpu.leases) for gpu in node.gpus)},
        status=422 if form.errors else 200,
    )
