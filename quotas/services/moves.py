"""Move tenants in the tree without losing count of what they hold."""

from __future__ import annotations

from datetime import datetime

from portal.accounts import services as accounts
from portal.accounts.access import (
    Principal,
    TenantRef,
    access_platform,
    access_tenant,
    access_tenant_from_above,
)
from portal.accounts.roles import Scope
from portal.core.errors import Conflict
from portal.core.hints import Hint, give_on_commit
from portal.core.locks import guarded, lock_rows
from quotas.models import QuotaAccount
from quotas.services.limits import ensure_account


def move_tenant(
    principal: Principal, *, tenant: str, parent: str | None, now: datetime
) -> TenantRef:
    """Put a tenant below another one, or among the roots, with all that is below it.

    The caller administers the place that it leaves and the one where it goes. Holds count at every
    level above them, so a tenant moves only while nothing in it holds quota. Raises
    ``accounts.tenant_in_use``, ``accounts.tenant_in_circle`` or ``accounts.tenant_too_deep``.
    """
    place = access_tenant_from_above(principal, tenant, need=Scope.TENANT_ADMIN)
    parent_id = None
    if parent is None:
        access_platform(principal, need=Scope.TENANT_ADMIN)
    else:
        parent_id = access_tenant(principal, parent, need=Scope.TENANT_ADMIN).id
    with guarded():
        moved = accounts.move_tenant(
            actor=principal.actor, tenant_id=place.id, parent_id=parent_id, now=now
        )
        if moved:
            _refuse_holds(place)
            give_on_commit(Hint.SCHEDULE)
    return access_tenant(principal, place.id, need=Scope.TENANT_ADMIN)


def _refuse_holds(place: TenantRef) -> None:
    """With the account locked: an admitter either holds before us or sees the new tree."""
    ensure_account(place.id)
    account = lock_rows(QuotaAccount.objects.filter(pk=place.id))[0]
    if account.held_milli:
        raise Conflict(
            "accounts.tenant_in_use",
            f"Jobs in tenant {place.slug} hold {account.held_milli / 1000:g} GPUs; "
            "a tenant moves only while it holds none.",
            hint="Wait until its jobs have ended, or cancel them.",
            field="tenant",
        )
