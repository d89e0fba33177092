"""Every refusal of the REST API as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

from portal.core.errors import (
    Forbidden,
    NotFound,
    PortalError,
    Rejected,
    TooMany,
    Unauthenticated,
)

_JSON_HINT = "Send one JSON object with Content-Type: application/json."

CONTENT_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:gpucommons:error:"


def problem(
    status: int, code: str, detail: str, *, hint: str | None = None, field: str | None = None
) -> dict[str, Any]:
    """Build problem details; ``field`` and ``hint`` are absent when there is none."""
    body: dict[str, Any] = {
        "type": TYPE_PREFIX + code,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
    }
    if field:
        body["field"] = field
    if hint:
        body["hint"] = hint
    return body


def problem_response(error: PortalError) -> JsonResponse:
    """For places outside of REST framework."""
    response = JsonResponse(
        problem(error.status, error.code, error.detail, hint=error.hint, field=error.field),
        status=error.status,
        content_type=CONTENT_TYPE,
    )
    if error.retry_after_s is not None:
        response["Retry-After"] = str(error.retry_after_s)
    return response


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Answer a refusal; anything unknown is a bug and goes on to Django's ``handler500``."""
    known = error if isinstance(error, PortalError) else _as_portal_error(error)
    if known is None:
        return None
    response = Response(
        problem(known.status, known.code, known.detail, hint=known.hint, field=known.field),
        status=known.status,
        content_type=CONTENT_TYPE,
    )
    if known.retry_after_s is not None:
        response["Retry-After"] = str(known.retry_after_s)
    if known.status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"
    return response


class MalformedBody(Rejected):
    status = 400


class MethodNotAllowed(Rejected):
    status = 405


class NotAcceptable(Rejected):
    status = 406


class TooLarge(Rejected):
    status = 413


class UnsupportedMediaType(Rejected):
    status = 415


def _as_portal_error(error: Exception) -> PortalError | None:
    """Translate what Django and REST framework raise."""
    match error:
        case exceptions.ValidationError():
            return invalid(error.detail)
        case exceptions.ParseError():
            return MalformedBody("api.malformed_body", str(error.detail), hint=_JSON_HINT)
        case exceptions.NotAuthenticated():
            return Unauthenticated(
                "api.not_signed_in",
                "This address needs a signed-in user.",
                hint="Send 'Authorization: Bearer <token>'; tokens are made on the page Tokens.",
            )
        case exceptions.PermissionDenied():
            return Forbidden("api.forbidden", str(error.detail))
        case exceptions.NotFound() | Http404():
            return NotFound("api.not_found", "There is nothing at this address.")
        case exceptions.MethodNotAllowed():
            return MethodNotAllowed("api.method_not_allowed", str(error.detail))
        case exceptions.NotAcceptable():
            return NotAcceptable(
                "api.not_acceptable", str(error.detail), hint="Accept application/json."
            )
        case exceptions.UnsupportedMediaType():
            return UnsupportedMediaType(
                "api.unsupported_media_type", str(error.detail), hint=_JSON_HINT
            )
        case exceptions.Throttled():
            return TooMany("api.too_many_requests", str(error.detail))
        case RequestDataTooBig():
            return too_large()
        case _:
            return None


def too_large() -> TooLarge:
    return TooLarge(
        "api.body_too_large", "The body is larger than 4 MiB.", hint="Send less in one request."
    )


def invalid(detail: Any) -> Rejected:
    """The first complaint of a serializer, with the path of its field."""
    field, message, code = _first(detail, "")
    if code == "unknown_field":
        return Rejected(
            "api.unknown_field",
            message,
            hint="Leave it out, or correct its spelling.",
            field=field,
        )
    if code == "required":
        return Rejected("api.field_missing", f"{field}: {message}", field=field)
    return Rejected("api.field_invalid", f"{field}: {message}" if field else message, field=field)


def _first(detail: Any, path: str) -> tuple[str, str, str]:
    if isinstance(detail, Mapping):
        key = next(iter(detail))
        inner = path if key == "non_field_errors" else f"{path}.{key}" if path else str(key)
        return _first(detail[key], inner)
    if isinstance(detail, list):
        return _first(detail[0], path)
    return path, str(detail), str(getattr(detail, "code", "invalid"))
