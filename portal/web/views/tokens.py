"""The caller's API tokens."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts.access import Principal, every_scope_of
from portal.accounts.roles import Scope
from portal.accounts.selectors import tokens_of
from portal.accounts.tokens import issue_token, revoke_token
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.web.base import page, put_error
from portal.web.forms import TokenForm


@require_http_methods(["GET", "POST"])
@page
def tokens(request: HttpRequest, principal: Principal) -> HttpResponse:
    """List and issue. The secret is shown on the answer to the form and never again."""
    scopes = sorted(every_scope_of(principal))
    secret = None
    if request.method == "POST":
        form = TokenForm(request.POST, scopes=scopes)
        if form.is_valid():
            try:
                secret = _issued(principal, form)
                form = TokenForm(scopes=scopes)
            except PortalError as error:
                put_error(form, error, {"expires_at": "days"})
    else:
        form = TokenForm(
            scopes=scopes, initial={"scopes": ["jobs:read", "jobs:write", "usage:read"]}
        )
    response = render(
        request,
        "web/tokens.html",
        {
            "form": form,
            "tokens": tokens_of(principal.user_id),
            "secret": secret,
            "address": request.build_absolute_uri("/").rstrip("/"),
            "now": utc_now(),
        },
        status=422 if form.errors else 200,
    )
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@page
def revoke(request: HttpRequest, principal: Principal, token_id: str) -> HttpResponse:
    revoke_token(actor=principal.actor, user_id=principal.user_id, token_id=token_id, now=utc_now())
    messages.success(request, gettext("The token is revoked."))
    return redirect("web:tokens")


def _issued(principal: Principal, form: TokenForm) -> str:
    now = utc_now()
    _, secret = issue_token(
        actor=principal.actor,
        user_id=principal.user_id,
        name=form.cleaned_data["name"],
        scopes=[Scope(scope) for scope in form.cleaned_data["scopes"]],
        expires_at=now + timedelta(days=form.cleaned_data["days"]),
        now=now,
        within=principal.token_scopes,
    )
    return secret
