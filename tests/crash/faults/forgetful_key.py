"""The answer to a key is kept in another transaction than the effect."""

from typing import Any

from tests.crash.faults import run_with

POINT = "fault.forgot"


def plant() -> None:
    from portal.api import base
    from portal.core import crash, idempotency
    from portal.core.models import IdempotencyRecord

    whole = idempotency.once

    def once(**request: Any) -> idempotency.Answer:
        owner = {"principal_id": request["principal_id"], "key": request["key"]}
        if request["key"] is None or IdempotencyRecord.objects.filter(**owner).exists():
            return whole(**request)
        answer = whole(**{**request, "key": None})
        crash.point(POINT)
        IdempotencyRecord.objects.create(
            **owner,
            fingerprint=request["request_fingerprint"],
            status=answer.status,
            body=answer.body,
            created_at=request["now"],
        )
        return answer

    base.once = once  # type: ignore[attr-defined]


if __name__ == "__main__":
    run_with(plant)
