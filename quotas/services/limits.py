"""Set what tenants and projects may hold."""

from __future__ import annotations

from datetime import datetime

from portal.accounts.selectors import place_of_owner
from portal.core import audit
from portal.core.audit import Actor
from portal.core.errors import Rejected
from portal.core.hints import Hint, give_on_commit
from portal.core.locks import guarded, lock_rows
from quotas.models import QuotaAccount

LARGEST = 2_000_000_000


def ensure_account(owner_id: str) -> None:
    """Make the account of a tenant or project, without limits, if there is none."""
    with guarded():
        QuotaAccount.objects.bulk_create([QuotaAccount(owner_id=owner_id)], ignore_conflicts=True)


def set_limit(
    *,
    actor: Actor,
    owner_id: str,
    limit_milli: int | None,
    queued_limit: int | None,
    now: datetime,
) -> None:
    """Set the limits of a tenant or project; None is unlimited.

    ``limit_milli`` is in thousandths of a GPU held at once; ``queued_limit`` caps the waiting jobs
    of a project. A limit below what is held ends nothing. Raises ``quotas.limit_invalid``.
    """
    for field, value in (("limit_milli", limit_milli), ("queued_limit", queued_limit)):
        if value is not None and not 0 <= value <= LARGEST:
            raise Rejected(
                "quotas.limit_invalid",
                f"{field} is {value}; a limit is between 0 and {LARGEST}.",
                hint="Leave the limit out for unlimited.",
                field=field,
            )
    with guarded():
        ensure_account(owner_id)
        account = lock_rows(QuotaAccount.objects.filter(pk=owner_id))[0]
        before = {"limit_milli": account.limit_milli, "queued_limit": account.queued_limit}
        after = {"limit_milli": limit_milli, "queued_limit": queued_limit}
        QuotaAccount.objects.filter(pk=owner_id).update(**after)
        tenant_id, project_id = place_of_owner(owner_id)
        audit.record(
            actor=actor,
            verb="quota.set",
            object_type="quota",
            object_id=owner_id,
            tenant_id=tenant_id,
            project_id=project_id,
            now=now,
            detail={"before": before, "after": after},
        )
        give_on_commit(Hint.SCHEDULE)
