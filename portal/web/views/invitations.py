"""Invite by a link, and join by one."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.accounts import invitations
from portal.accounts.access import (
    Principal,
    access_project,
    access_tenant,
    principal_of_user,
)
from portal.accounts.invitations import InvitationInfo, NewInvitation
from portal.accounts.members import PROJECT_ROLES, TENANT_ROLES
from portal.accounts.models import User
from portal.accounts.roles import Role, Scope
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.web.base import page, put_error
from portal.web.failures import failure_page
from portal.web.link_cookies import forget, keep_and_go, kept
from portal.web.people_forms import JoinForm
from portal.web.team_forms import SHORT_ROLE_LABELS, InviteForm

_LINK = "invitation_link"


@require_http_methods(["GET", "POST"])
@page
def of_project(request: HttpRequest, principal: Principal, project: str) -> HttpResponse:
    place = access_project(principal, project, need=Scope.PROJECT_ADMIN)
    return _invitations(request, principal, name=place.name, project=place.slug)


@require_http_methods(["GET", "POST"])
@page
def of_tenant(request: HttpRequest, principal: Principal, tenant: str) -> HttpResponse:
    place = access_tenant(principal, tenant, need=Scope.TENANT_ADMIN)
    return _invitations(request, principal, name=place.name, tenant=place.slug)


@require_POST
@page
def revoke(request: HttpRequest, principal: Principal, invitation_id: str) -> HttpResponse:
    gone = invitations.revoke_invitation(principal, invitation_id=invitation_id, now=utc_now())
    messages.success(request, _("The invitation is revoked."))
    return redirect(f"web:{gone.kind}-invitations", gone.place)


@require_GET
def follow(request: HttpRequest) -> HttpResponse:
    return keep_and_go(request, _LINK, "web:join")


@require_http_methods(["GET", "POST"])
def join(request: HttpRequest) -> HttpResponse:
    """The role for whoever is signed in; a new user for whoever is not."""
    secret, now = kept(request, _LINK), utc_now()
    user = request.user if isinstance(request.user, User) else None
    form = JoinForm(request.POST if request.method == "POST" and user is None else None)
    try:
        offer = invitations.read_invitation(secret, now)
        if request.method == "POST" and user is not None:
            invitations.accept_invitation(principal_of_user(user), secret=secret, now=now)
            return _joined(request, offer, "web:tenants")
        if form.is_valid():
            invitations.accept_as_new_user(
                secret=secret,
                name=form.cleaned_data["name"],
                password=form.cleaned_data["password"],
                now=now,
            )
            return _joined(request, offer, "web:sign-in")
    except PortalError as error:
        if error.field not in form.fields:
            return failure_page(request, error)
        put_error(form, error, {})
    response = render(
        request,
        "web/join.html",
        {"form": form, "offer": offer, "role": SHORT_ROLE_LABELS[offer.role]},
        status=422 if form.errors else 200,
    )
    response["Cache-Control"] = "no-store"
    return response


def _joined(request: HttpRequest, offer: InvitationInfo, then: str) -> HttpResponse:
    text = (
        _("You have joined %(place)s.")
        if then == "web:tenants"
        else _("Your account is made and has joined %(place)s. Sign in with it.")
    )
    messages.success(request, text % {"place": offer.place})
    return forget(redirect(then), _LINK)


def _invitations(
    request: HttpRequest,
    principal: Principal,
    *,
    name: str,
    project: str | None = None,
    tenant: str | None = None,
) -> HttpResponse:
    """List and invite. The link is shown on the answer to the form and never again."""
    roles = PROJECT_ROLES if project else TENANT_ROLES
    form = InviteForm(request.POST if request.method == "POST" else None, roles=roles)
    made: NewInvitation | None = None
    if form.is_valid():
        try:
            made = invitations.invite(
                principal,
                project=project,
                tenant=tenant,
                role=Role(form.cleaned_data["role"]),
                life=timedelta(days=form.cleaned_data["days"]),
                email=form.cleaned_data["email"],
                now=utc_now(),
            )
            form = InviteForm(roles=roles)
        except PortalError as error:
            put_error(form, error, {})
    found = invitations.open_invitations(principal, project=project, tenant=tenant, now=utc_now())
    link = f"{reverse('web:invitation')}?key={made.secret}" if made else ""
    response = render(
        request,
        "web/invitations.html",
        {
            "form": form,
            "name": name,
            "back": reverse("web:project", args=[project])
            if project
            else reverse("web:tenant", args=[tenant]),
            "items": [{"one": one, "label": SHORT_ROLE_LABELS[one.role]} for one in found],
            "link": request.build_absolute_uri(link) if link else "",
            "link_expires_at": made and made.invitation.expires_at,
        },
        status=422 if form.errors else 200,
    )
    response["Cache-Control"] = "no-store"
    return response
