"""Every address of the portal: pages, REST and what operators ask."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from portal.api.problems import problem_response
from portal.core.errors import PortalError, Rejected
from portal.web.failures import failure_page

urlpatterns = [
    path("", include("portal.ops.urls")),
    path("api/v1/", include("portal.api.urls")),
    path("api/", include("portal.api.unknown_urls")),
    path("", include("portal.web.urls")),
]

handler400 = "portal.urls.bad_request"
handler403 = "portal.web.failures.forbidden"
handler404 = "portal.web.failures.not_found"
handler500 = "portal.urls.server_error"


class BadRequest(Rejected):
    status = 400


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(
        request, BadRequest("portal.bad_request", "The portal cannot make sense of this request.")
    )


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(
        request,
        PortalError(
            "portal.bug",
            "Something went wrong on our side; it has been logged.",
            hint="Try again; if it stays, tell your administrator the time.",
        ),
    )


def _answer(request: HttpRequest, error: PortalError) -> HttpResponse:
    if request.path.startswith("/api/"):
        return problem_response(error)
    return failure_page(request, error)
