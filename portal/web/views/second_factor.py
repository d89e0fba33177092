"""Turn the second factor on and off, and ask for it after the password."""

from __future__ import annotations

from typing import Any

import segno
from django import forms
from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.crypto import constant_time_compare
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import second_factor as accounts
from portal.accounts.access import Principal
from portal.accounts.models import User
from portal.accounts.users import active_user
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.web.base import page, put_error
from portal.web.failures import failure_page
from portal.web.limits import Guesses
from portal.web.people_forms import CodeForm, PasswordForm
from portal.web.views.account import too_many_guesses

HALF_SIGNED_IN = "half_signed_in"
_LONGEST_BETWEEN_S = 600


def begin_sign_in(request: HttpRequest, user: User, *, then: str) -> HttpResponse:
    """After the right password of a user with a second factor: nobody is signed in yet."""
    request.session.cycle_key()
    request.session[HALF_SIGNED_IN] = {
        "user_id": user.id,
        "proof": user.get_session_auth_hash(),
        "at": int(utc_now().timestamp()),
        "then": then,
        "backend": getattr(user, "backend", ""),
    }
    return redirect("web:sign-in-code")


@require_http_methods(["GET", "POST"])
def sign_in_code(request: HttpRequest) -> HttpResponse:
    """Ask for the code; the password of minutes ago is no password any more."""
    half: dict[str, Any] = request.session.get(HALF_SIGNED_IN, {})
    user = _half_signed_in(half)
    if user is None:
        request.session.pop(HALF_SIGNED_IN, None)
        return redirect("web:sign-in")
    form = CodeForm(request.POST if request.method == "POST" else None)
    guesses = Guesses("code", user.id)
    if guesses.spent:
        return failure_page(request, too_many_guesses())
    if form.is_valid():
        code = form.cleaned_data["code"]
        if accounts.verify_second_factor(user_id=user.id, code=code, now=utc_now()):
            guesses.right()
            del request.session[HALF_SIGNED_IN]
            login(request, user, backend=half["backend"])
            return redirect(half["then"])
        guesses.wrong()
        form.add_error("code", _("This code is wrong, too old or was used."))
    response = render(
        request, "web/sign_in_code.html", {"form": form}, status=422 if form.errors else 200
    )
    response["Cache-Control"] = "no-store"
    return response


@require_http_methods(["GET", "POST"])
@page
def second_factor(request: HttpRequest, principal: Principal) -> HttpResponse:
    """GET shows where it stands; POST begins, with the password."""
    form = PasswordForm(request.POST if request.method == "POST" else None)

    def begin() -> HttpResponse:
        accounts.begin_second_factor(principal, password=form.cleaned_data["old"], now=utc_now())
        return redirect("web:second-factor")

    return _guessed(form, "password", principal, begin) or _factor_page(
        request, principal, password_form=form
    )


@require_POST
@page
def confirm(request: HttpRequest, principal: Principal) -> HttpResponse:
    """The recovery codes are shown on this answer and never again."""
    form = CodeForm(request.POST)

    def turn_on() -> HttpResponse:
        codes = accounts.confirm_second_factor(
            principal, code=form.cleaned_data["code"], now=utc_now()
        )
        if isinstance(request.user, User):
            request.user.refresh_from_db()
            update_session_auth_hash(request, request.user)
        return _factor_page(request, principal, codes=codes)

    return _guessed(form, "code", principal, turn_on) or _factor_page(
        request, principal, code_form=form
    )


@require_POST
@page
def disable(request: HttpRequest, principal: Principal) -> HttpResponse:
    form = CodeForm(request.POST)

    def turn_off() -> HttpResponse:
        accounts.disable_second_factor(principal, code=form.cleaned_data["code"], now=utc_now())
        messages.success(request, _("The second factor is off."))
        return redirect("web:account")

    return _guessed(form, "code", principal, turn_off) or _factor_page(
        request, principal, code_form=form
    )


@require_POST
@page
def reset(request: HttpRequest, principal: Principal, user_id: str) -> HttpResponse:
    accounts.reset_second_factor(principal, user=user_id, now=utc_now())
    messages.success(request, _("The second factor is removed."))
    return redirect("web:user", user_id)


def _half_signed_in(half: dict[str, Any]) -> User | None:
    if not half or utc_now().timestamp() - half["at"] > _LONGEST_BETWEEN_S:
        return None
    user = active_user(half["user_id"])
    if user is None or not constant_time_compare(half["proof"], user.get_session_auth_hash()):
        return None
    return user


def _guessed(form: forms.Form, kind: str, principal: Principal, act: Any) -> HttpResponse | None:
    """Act with what was typed unless it was guessed too often; None shows the form again."""
    if not form.is_bound:
        return None
    guesses = Guesses(kind, principal.user_id)
    if guesses.spent:
        raise too_many_guesses()
    if not form.is_valid():
        return None
    try:
        answer: HttpResponse = act()
    except PortalError as error:
        if error.field not in form.fields:
            raise
        guesses.wrong()
        put_error(form, error, {})
        return None
    guesses.right()
    return answer


def _factor_page(
    request: HttpRequest,
    principal: Principal,
    *,
    password_form: PasswordForm | None = None,
    code_form: CodeForm | None = None,
    codes: list[str] | None = None,
) -> HttpResponse:
    setup = accounts.setup_of(principal)
    shown = [form for form in (password_form, code_form) if form is not None]
    response = render(
        request,
        "web/second_factor.html",
        {
            "is_on": accounts.has_second_factor(principal.user_id),
            "codes_left": accounts.recovery_codes_left(principal.user_id),
            "setup": setup,
            "qr": _qr(setup.uri) if setup else "",
            "codes": codes or [],
            "password_form": password_form or PasswordForm(),
            "code_form": code_form or CodeForm(),
        },
        status=422 if any(form.errors for form in shown) else 200,
    )
    response["Cache-Control"] = "no-store"
    return response


def _qr(uri: str) -> SafeString:
    """Drawn by the library from black and white squares: nothing that was typed is in it."""
    return mark_safe(segno.make(uri, error="m").svg_inline(scale=5, dark="#000", light="#fff"))  # noqa: S308
