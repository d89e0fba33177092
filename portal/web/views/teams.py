"""The tree of tenants and projects, and a page for each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.accounts import members, places
from portal.accounts.access import (
    Principal,
    ProjectRef,
    TenantRef,
    access_platform,
    access_project,
    access_tenant,
    tenant_ids_of_path,
)
from portal.accounts.members import PROJECT_ROLES, TENANT_ROLES
from portal.accounts.roles import Role, Scope
from portal.accounts.selectors import owner_names
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.web.base import page, put_error
from portal.web.team_forms import (
    NO_PARENT,
    SHORT_ROLE_LABELS,
    MemberForm,
    MoveForm,
    NameForm,
    PlaceForm,
)
from quotas.selectors import levels_of
from quotas.services.moves import move_tenant

DEEPEST_SHOWN = 6


@require_GET
@page
def tenants(request: HttpRequest, principal: Principal) -> HttpResponse:
    """The tree of what the caller may look into."""
    branches = [
        {
            "tenant": branch.tenant,
            "projects": branch.projects,
            "depth": min(branch.tenant.depth, DEEPEST_SHOWN),
            "inner": min(branch.tenant.depth + 1, DEEPEST_SHOWN),
        }
        for branch in places.tree_of(principal)
    ]
    return render(
        request,
        "web/tenants.html",
        {"branches": branches, "may_make_roots": principal.is_platform_admin},
    )


@require_http_methods(["GET", "POST"])
@page
def new_root(request: HttpRequest, principal: Principal) -> HttpResponse:
    access_platform(principal, need=Scope.TENANT_ADMIN)
    form = PlaceForm(request.POST if request.method == "POST" else None)

    def make() -> HttpResponse:
        made = places.make_tenant(principal, parent=None, now=utc_now(), **form.cleaned_data)
        messages.success(request, _("Tenant %(name)s is made.") % {"name": made.name})
        return redirect("web:tenant", made.slug)

    return _done(form, make) or render(
        request, "web/tenant_new.html", {"form": form}, status=_status(form)
    )


@require_GET
@page
def tenant(request: HttpRequest, principal: Principal, tenant: str) -> HttpResponse:
    return _tenant_page(request, principal, _tenant(principal, tenant))


@require_POST
@page
def tenant_name(request: HttpRequest, principal: Principal, tenant: str) -> HttpResponse:
    place = _tenant(principal, tenant)
    form = NameForm(request.POST, prefix="name")

    def rename() -> HttpResponse:
        places.name_tenant(principal, tenant=place.id, now=utc_now(), **form.cleaned_data)
        messages.success(request, _("The tenant is renamed."))
        return redirect("web:tenant", place.slug)

    return _done(form, rename) or _tenant_page(request, principal, place, name_form=form)


@require_POST
@page
def tenant_move(request: HttpRequest, principal: Principal, tenant: str) -> HttpResponse:
    place = _tenant(principal, tenant)
    form = _move_form(principal, place, request.POST)

    def move() -> HttpResponse:
        chosen = form.cleaned_data["parent"]
        parent = None if chosen == NO_PARENT else chosen
        move_tenant(principal, tenant=place.id, parent=parent, now=utc_now())
        messages.success(request, _("The tenant is moved."))
        return redirect("web:tenants")

    return _done(form, move) or _tenant_page(request, principal, place, move_form=form)


@require_POST
@page
def tenant_child(request: HttpRequest, principal: Principal, tenant: str) -> HttpResponse:
    place = _tenant(principal, tenant)
    form = PlaceForm(request.POST, prefix="child")

    def make() -> HttpResponse:
        made = places.make_tenant(principal, parent=place.id, now=utc_now(), **form.cleaned_data)
        messages.success(request, _("Tenant %(name)s is made.") % {"name": made.name})
        return redirect("web:tenant", made.slug)

    return _done(form, make) or _tenant_page(request, principal, place, child_form=form)


@require_POST
@page
def tenant_project(request: HttpRequest, principal: Principal, tenant: str) -> HttpResponse:
    place = _tenant(principal, tenant)
    form = PlaceForm(request.POST, prefix="project")

    def make() -> HttpResponse:
        made = places.make_project(principal, tenant=place.id, now=utc_now(), **form.cleaned_data)
        messages.success(request, _("Project %(name)s is made.") % {"name": made.name})
        return redirect("web:project", made.slug)

    return _done(form, make) or _tenant_page(request, principal, place, project_form=form)


@require_POST
@page
def tenant_member(request: HttpRequest, principal: Principal, tenant: str) -> HttpResponse:
    place = _tenant(principal, tenant)
    form = MemberForm(request.POST, roles=TENANT_ROLES, prefix="member")

    def put() -> HttpResponse:
        member = members.put_tenant_member(
            principal,
            tenant=place.id,
            user=form.cleaned_data["user"],
            role=Role(form.cleaned_data["role"]),
            now=utc_now(),
        )
        messages.success(request, _("%(name)s has the role now.") % {"name": member.name})
        return redirect("web:tenant", place.slug)

    return _done(form, put) or _tenant_page(request, principal, place, member_form=form)


@require_POST
@page
def tenant_member_remove(request: HttpRequest, principal: Principal, tenant: str) -> HttpResponse:
    place = _tenant(principal, tenant)
    members.remove_tenant_member(principal, tenant=place.id, user=_user_of(request), now=utc_now())
    messages.success(request, _("The role is taken away."))
    return redirect("web:tenant", place.slug)


@require_GET
@page
def project(request: HttpRequest, principal: Principal, project: str) -> HttpResponse:
    place = access_project(principal, project, need=Scope.JOBS_READ)
    return _project_page(request, principal, place)


@require_POST
@page
def project_name(request: HttpRequest, principal: Principal, project: str) -> HttpResponse:
    place = access_project(principal, project, need=Scope.PROJECT_ADMIN)
    form = NameForm(request.POST, prefix="name")

    def rename() -> HttpResponse:
        places.name_project(principal, project=place.id, now=utc_now(), **form.cleaned_data)
        messages.success(request, _("The project is renamed."))
        return redirect("web:project", place.slug)

    return _done(form, rename) or _project_page(request, principal, place, name_form=form)


@require_POST
@page
def project_member(request: HttpRequest, principal: Principal, project: str) -> HttpResponse:
    place = access_project(principal, project, need=Scope.PROJECT_ADMIN)
    form = MemberForm(request.POST, roles=PROJECT_ROLES, prefix="member")

    def put() -> HttpResponse:
        member = members.put_project_member(
            principal,
            project=place.id,
            user=form.cleaned_data["user"],
            role=Role(form.cleaned_data["role"]),
            now=utc_now(),
        )
        messages.success(request, _("%(name)s has the role now.") % {"name": member.name})
        return redirect("web:project", place.slug)

    return _done(form, put) or _project_page(request, principal, place, member_form=form)


@require_POST
@page
def project_member_remove(request: HttpRequest, principal: Principal, project: str) -> HttpResponse:
    place = access_project(principal, project, need=Scope.PROJECT_ADMIN)
    members.remove_project_member(
        principal, project=place.id, user=_user_of(request), now=utc_now()
    )
    messages.success(request, _("The role is taken away."))
    return redirect("web:project", place.slug)


def _tenant(principal: Principal, tenant: str) -> TenantRef:
    return access_tenant(principal, tenant, need=Scope.TENANT_ADMIN)


def _tenant_page(
    request: HttpRequest, principal: Principal, place: TenantRef, **filled: forms.Form
) -> HttpResponse:
    info = places.tenant_info(principal, place)
    context = {
        "tenant": info,
        "above": _names_above(place.path),
        "projects": places.projects_of_tenant(principal, place),
        "members": _labelled(members.members_of_tenant(place)),
        "level": levels_of([place.id])[place.id],
        "role_choices": [(role.value, SHORT_ROLE_LABELS[role]) for role in TENANT_ROLES],
        "name_form": NameForm(prefix="name", initial={"name": place.name}),
        "child_form": PlaceForm(prefix="child"),
        "project_form": PlaceForm(prefix="project"),
        "member_form": MemberForm(prefix="member", roles=TENANT_ROLES),
        "move_form": _move_form(principal, place, None),
        **filled,
    }
    return render(request, "web/tenant.html", context, status=422 if filled else 200)


def _project_page(
    request: HttpRequest, principal: Principal, place: ProjectRef, **filled: forms.Form
) -> HttpResponse:
    owner_ids = (*tenant_ids_of_path(place.tenant_path), place.id)
    names, levels = owner_names(owner_ids), levels_of(owner_ids)
    context = {
        "project": place,
        "may_administer": Scope.PROJECT_ADMIN in place.scopes,
        "may_set_limits": Scope.TENANT_ADMIN in place.scopes,
        "levels": [(names[owner_id], levels[owner_id]) for owner_id in owner_ids],
        "members": _labelled(members.members_of_project(place)),
        "role_choices": [(role.value, SHORT_ROLE_LABELS[role]) for role in PROJECT_ROLES],
        "name_form": NameForm(prefix="name", initial={"name": place.name}),
        "member_form": MemberForm(prefix="member", roles=PROJECT_ROLES),
        **filled,
    }
    return render(request, "web/project.html", context, status=422 if filled else 200)


def _move_form(principal: Principal, place: TenantRef, data: Any) -> MoveForm:
    """Offer the tenants that the caller administers outside of the subtree."""
    every = places.tenants_of(principal)
    here = next((one for one in every if one.id == place.id), None)
    return MoveForm(
        data,
        prefix="move",
        initial={"parent": (here and here.parent_id) or NO_PARENT},
        with_roots=principal.is_platform_admin,
        parents=[
            (one.id, f"{'— ' * one.depth}{one.name}")
            for one in every
            if one.may_administer and not one.path.startswith(place.path)
        ],
    )


def _names_above(path: str) -> list[str]:
    above = tenant_ids_of_path(path)[:-1]
    names = owner_names(above)
    return [names[one].partition(" ")[2] for one in above]


def _labelled(found: list[members.Member]) -> list[dict[str, Any]]:
    return [{"member": one, "label": SHORT_ROLE_LABELS[one.role]} for one in found]


def _user_of(request: HttpRequest) -> str:
    return request.POST.get("user", "")[:150].replace("\0", "")


def _done(form: forms.Form, act: Callable[[], HttpResponse]) -> HttpResponse | None:
    """Act on a form that is right; None when it must be shown again, with what is wrong."""
    if not form.is_bound or not form.is_valid():
        return None
    try:
        return act()
    except PortalError as error:
        put_error(form, error, {"tenant": "parent"})
        return None


def _status(form: forms.Form) -> int:
    return 422 if form.errors else 200
