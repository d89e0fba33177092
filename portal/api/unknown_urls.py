"""Whatever is not an address of the API still answers as the API does."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import re_path
from django.views.decorators.csrf import csrf_exempt

from portal.api.problems import problem_response
from portal.core.errors import NotFound


@csrf_exempt
def unknown_address(request: HttpRequest) -> HttpResponse:
    return problem_response(
        NotFound(
            "api.no_such_address",
            "There is no such address in the API.",
            hint="GET /api/v1/schema lists every address.",
        )
    )


urlpatterns = [re_path(r"^", unknown_address)]
