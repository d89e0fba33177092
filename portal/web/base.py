"""What every page stands on: a signed-in caller, and refusals shown as pages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse

from portal.accounts.access import Principal, principal_of_user
from portal.accounts.models import User
from portal.core.errors import PortalError, Rejected
from portal.web.failures import failure_page

P = ParamSpec("P")


def page(
    view: Callable[Concatenate[HttpRequest, Principal, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """A view for signed-in people; it is given who they are."""

    @functools.wraps(view)
    def shown(request: HttpRequest, /, *args: P.args, **options: P.kwargs) -> HttpResponse:
        if not isinstance(request.user, User):
            raise TypeError("login_required lets nobody else through")
        try:
            _refuse_nul(request)
            return view(request, principal_of_user(request.user), *args, **options)
        except PortalError as error:
            return failure_page(request, error)

    return login_required(shown)


def _refuse_nul(request: HttpRequest) -> None:
    """Forms refuse it themselves; no database takes it in a filter."""
    if any("\0" in value for value in request.GET.values()):
        raise Rejected("web.nul_in_address", "The address holds a NUL character.")


def put_error(form: forms.Form, error: PortalError, fields: dict[str, str]) -> None:
    """Show a refusal at the field that it names; ``fields`` maps the service's names to ours."""
    name = fields.get(error.field or "", error.field or "")
    text = f"{error.detail} {error.hint}" if error.hint else error.detail
    form.add_error(name if name in form.fields else None, text)


def choices(values: Iterable[Any], *, empty: str | None = None) -> list[tuple[str, str]]:
    """Choices of a select field from texts that need no other label."""
    listed = [(str(value), str(value)) for value in values]
    return listed if empty is None else [("", empty), *listed]
