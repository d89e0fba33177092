"""Users, for the administrators of the platform."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.accounts import users as accounts
from portal.accounts.access import Principal, access_whole_platform
from portal.accounts.second_factor import has_second_factor
from portal.accounts.users import NewLink
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.web.base import page, put_error
from portal.web.people_forms import UserForm


@require_GET
@page
def users(request: HttpRequest, principal: Principal) -> HttpResponse:
    search = request.GET.get("search", "")[:150]
    found = accounts.user_page(principal, search=search, after=request.GET.get("after", "")[:150])
    return render(request, "web/users.html", {"page": found, "search": search})


@require_http_methods(["GET", "POST"])
@page
def new_user(request: HttpRequest, principal: Principal) -> HttpResponse:
    access_whole_platform(principal)
    form = UserForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            made = accounts.make_user(principal, now=utc_now(), **form.cleaned_data)
        except PortalError as error:
            put_error(form, error, {})
        else:
            return _user_page(request, principal, made.user.id, link=made)
    return render(request, "web/user_new.html", {"form": form}, status=422 if form.errors else 200)


@require_GET
@page
def one_user(request: HttpRequest, principal: Principal, user_id: str) -> HttpResponse:
    return _user_page(request, principal, user_id)


@require_POST
@page
def deactivate(request: HttpRequest, principal: Principal, user_id: str) -> HttpResponse:
    found = accounts.deactivate_user(principal, user=user_id, now=utc_now())
    messages.success(
        request, _("%(name)s is deactivated; sessions and tokens ended.") % {"name": found.name}
    )
    return redirect("web:user", user_id)


@require_POST
@page
def reactivate(request: HttpRequest, principal: Principal, user_id: str) -> HttpResponse:
    found = accounts.reactivate_user(principal, user=user_id, now=utc_now())
    messages.success(request, _("%(name)s may sign in again.") % {"name": found.name})
    return redirect("web:user", user_id)


@require_POST
@page
def password_link(request: HttpRequest, principal: Principal, user_id: str) -> HttpResponse:
    """The link is shown on this answer and never again."""
    link = accounts.issue_password_link(principal, user=user_id, now=utc_now())
    return _user_page(request, principal, user_id, link=link)


def _user_page(
    request: HttpRequest, principal: Principal, user_id: str, *, link: NewLink | None = None
) -> HttpResponse:
    found = accounts.user_detail(principal, user_id)
    url = (
        request.build_absolute_uri(f"{reverse('web:password-link')}?key={link.secret}")
        if link
        else ""
    )
    response = render(
        request,
        "web/user.html",
        {
            "person": found,
            "roles": accounts.roles_of(principal, found.id),
            "is_self": found.id == principal.user_id,
            "has_second_factor": has_second_factor(found.id),
            "link": url,
            "link_expires_at": link and link.expires_at,
        },
    )
    response["Cache-Control"] = "no-store"
    return response
