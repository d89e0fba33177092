"""What every endpoint stands on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from portal.accounts.access import Principal
from portal.api.serializers.fields import Input
from portal.core.clock import utc_now
from portal.core.errors import Rejected
from portal.core.idempotency import Answer, fingerprint, once

_LONGEST_KEY = 200


class View(APIView):
    """An endpoint of ``/api/v1``."""

    @property
    def principal(self) -> Principal:
        principal = self.request.user
        if not isinstance(principal, Principal):
            raise TypeError("only a signed-in caller has a principal")
        return principal

    def body(self, kind: type[Input]) -> dict[str, Any]:
        return _checked(kind(data=self.request.data))

    def query(self, kind: type[Input]) -> dict[str, Any]:
        return _checked(kind(data=self.request.query_params.dict()))


def _checked(serializer: BaseSerializer[Any]) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    data: dict[str, Any] = serializer.validated_data
    return data


def answer_once(request: Request, principal: Principal, effect: Callable[[], Answer]) -> Response:
    """Run ``effect`` once for the ``Idempotency-Key`` of this caller, if one was sent."""
    answer = once(
        principal_id=principal.user_id,
        key=_key_of(request),
        request_fingerprint=fingerprint(request.method or "", request.path, request.data),
        now=utc_now(),
        effect=effect,
    )
    response = Response(answer.body, status=answer.status)
    if answer.replayed:
        response["Idempotency-Replayed"] = "true"
    return response


def _key_of(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not (0 < len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable()):
        raise Rejected(
            "api.idempotency_key_invalid",
            f"An Idempotency-Key has 1 to {_LONGEST_KEY} printable ASCII characters.",
            hint="Send a UUID.",
            field="Idempotency-Key",
        )
    return key
