"""What people see and change of themselves, and the link that sets a password."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from portal.accounts import users as accounts
from portal.accounts.access import Principal
from portal.accounts.models import User
from portal.accounts.second_factor import has_second_factor
from portal.accounts.selectors import tokens_of
from portal.core.clock import utc_now
from portal.core.errors import PortalError, TooMany
from portal.web.base import page, put_error
from portal.web.failures import failure_page
from portal.web.limits import WITHIN_S, Guesses
from portal.web.link_cookies import forget, keep_and_go, kept
from portal.web.people_forms import ChangePasswordForm, NewPasswordForm

_LINK = "password_link"


@require_GET
@page
def account(request: HttpRequest, principal: Principal) -> HttpResponse:
    return account_page(request, principal)


@require_http_methods(["GET", "POST"])
@page
def change_password(request: HttpRequest, principal: Principal) -> HttpResponse:
    if request.method == "GET":
        return redirect("web:account")
    form = ChangePasswordForm(request.POST)
    guesses = Guesses("password", principal.user_id)
    if guesses.spent:
        raise too_many_guesses()
    if form.is_valid():
        try:
            accounts.change_password(
                principal,
                old=form.cleaned_data["old"],
                new=form.cleaned_data["password"],
                now=utc_now(),
            )
        except PortalError as error:
            if error.field == "old":
                guesses.wrong()
            put_error(form, error, {})
        else:
            guesses.right()
            if isinstance(request.user, User):
                request.user.refresh_from_db()
                update_session_auth_hash(request, request.user)
            messages.success(request, _("Your password is changed; other sessions ended."))
            return redirect("web:account")
    return account_page(request, principal, password_form=form)


@require_GET
def password_link(request: HttpRequest) -> HttpResponse:
    return keep_and_go(request, _LINK, "web:password-new")


@require_http_methods(["GET", "POST"])
def new_password(request: HttpRequest) -> HttpResponse:
    secret, now = kept(request, _LINK), utc_now()
    form = NewPasswordForm(request.POST if request.method == "POST" else None)
    try:
        name = accounts.owner_of_password_link(secret, now)
        if form.is_valid():
            accounts.set_password_by_link(
                secret=secret, password=form.cleaned_data["password"], now=now
            )
            messages.success(request, _("Your password is set. Sign in with it."))
            return forget(redirect("web:sign-in"), _LINK)
    except PortalError as error:
        if error.field != "password":
            return failure_page(request, error)
        put_error(form, error, {})
        name = accounts.owner_of_password_link(secret, now)
    response = render(
        request,
        "web/password_new.html",
        {"form": form, "name": name},
        status=422 if form.errors else 200,
    )
    response["Cache-Control"] = "no-store"
    return response


def account_page(
    request: HttpRequest, principal: Principal, *, password_form: ChangePasswordForm | None = None
) -> HttpResponse:
    return render(
        request,
        "web/account.html",
        {
            "roles": accounts.roles_of(principal, principal.user_id),
            "has_second_factor": has_second_factor(principal.user_id),
            "tokens": len(tokens_of(principal.user_id)),
            "password_form": password_form or ChangePasswordForm(),
        },
        status=422 if password_form else 200,
    )


def too_many_guesses() -> TooMany:
    return TooMany(
        "web.too_many_guesses",
        f"Too many wrong tries. Wait {WITHIN_S // 60} minutes.",
        hint="Then try again.",
    )
