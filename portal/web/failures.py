"""What is shown when there is no page: as a page, or as a problem below ``/api/``."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.api.problems import problem_response
from portal.core.errors import Forbidden, NotFound, PortalError, Rejected


class ServerError(PortalError):
    status = 500


class BadRequest(Rejected):
    status = 400


def failure(request: HttpRequest, error: PortalError) -> HttpResponse:
    if request.path.startswith("/api/"):
        return problem_response(error)
    return render(request, "web/failure.html", {"error": error}, status=error.status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return failure(request, BadRequest("web.bad_request", "The browser sent a bad request."))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return failure(request, Forbidden("web.forbidden", "This page is not open to you."))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return failure(request, NotFound("web.not_found", "There is no such page."))


def server_error(request: HttpRequest) -> HttpResponse:
    return failure(
        request,
        ServerError(
            "portal.bug",
            "Something went wrong on our side; it has been logged.",
            hint="Try again; if it stays, tell your administrator the time.",
        ),
    )
