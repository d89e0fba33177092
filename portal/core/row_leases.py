"""Row leases: of several processes that could run a loop, one does."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from portal.core.locks import guarded
from portal.core.models import RowLease


def hold(name: str, owner: str, *, now: datetime, ttl: timedelta) -> bool:
    """Take or extend the lease; false while another owner's has not expired."""
    with guarded():
        taken = RowLease.objects.filter(
            Q(name=name), Q(owner=owner) | Q(expires_at__lte=now)
        ).update(owner=owner, expires_at=now + ttl)
        if taken:
            return True
        _, created = RowLease.objects.get_or_create(
            name=name, defaults={"owner": owner, "expires_at": now + ttl}
        )
        return created


def give_back(name: str, owner: str) -> None:
    with guarded():
        RowLease.objects.filter(name=name, owner=owner).delete()
