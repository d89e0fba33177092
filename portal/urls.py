"""Every address of the portal: pages, REST and what operators ask."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("", include("portal.ops.urls")),
    path("api/v1/", include("portal.api.urls")),
    path("api/", include("portal.api.unknown_urls")),
    path("", include("portal.web.urls")),
]

handler400 = "portal.web.failures.bad_request"
handler403 = "portal.web.failures.forbidden"
handler404 = "portal.web.failures.not_found"
handler500 = "portal.web.failures.server_error"
