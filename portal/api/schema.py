"""Pieces of the OpenAPI description that several endpoints share."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from portal.api.serializers.fields import ProblemOut

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="1 to 200 printable ASCII characters. The same key with the same request gives the "
    "same answer and no second effect, for two days.",
)
JOB_REF = OpenApiParameter(
    "ref",
    OpenApiTypes.STR,
    OpenApiParameter.PATH,
    description="id of the job, or its short name `project/number` (`/jobs/vision/12`)",
)


def problems(*statuses: int) -> dict[tuple[int, str], OpenApiResponse]:
    """Refusals that an endpoint may give."""
    return {
        (status, "application/problem+json"): OpenApiResponse(
            ProblemOut, description=HTTPStatus(status).phrase
        )
        for status in statuses
    }


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "portal.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "gpc_..."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "portal.api.authentication.BrowserSessionAuthentication"
    name = "browser"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}
