"""What is shown when there is no page to show."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.core.errors import Forbidden, NotFound, PortalError


def failure_page(request: HttpRequest, error: PortalError) -> HttpResponse:
    response = render(request, "web/failure.html", {"error": error}, status=error.status)
    if error.retry_after_s is not None:
        response["Retry-After"] = str(error.retry_after_s)
    return response


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return failure_page(request, Forbidden("web.forbidden", "This page is not open to you."))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return failure_page(
        request,
        NotFound("web.not_found", "There is no such page.", hint="Start from the list of jobs."),
    )
