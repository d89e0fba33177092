"""The secret of a link that was opened: the browser keeps it, no address and no database."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

_LONGEST_SECRET = 100
_KEPT_S = 3600


def keep_and_go(request: HttpRequest, name: str, then: str) -> HttpResponse:
    """Take ``key`` from the address into a cookie and go on to a page without it."""
    response = redirect(then)
    response.set_cookie(
        name,
        request.GET.get("key", "")[:_LONGEST_SECRET].encode("ascii", "ignore").decode(),
        max_age=_KEPT_S,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    response["Cache-Control"] = "no-store"
    return response


def kept(request: HttpRequest, name: str) -> str:
    return request.COOKIES.get(name, "")[:_LONGEST_SECRET]


def forget(response: HttpResponse, name: str) -> HttpResponse:
    response.delete_cookie(name, samesite="Lax")
    return response
