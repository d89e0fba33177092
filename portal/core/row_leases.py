"""Row leases: of several processes that could run a loop, one does."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from django.db import DatabaseError
from django.db.models import Q

from portal.core.errors import PortalError
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


class SoleRight:
    """A row lease that is extended in time, without a write for every turn of a quick loop."""

    def __init__(self, name: str, owner: str, ttl: timedelta) -> None:
        self._name, self._owner, self._ttl = name, owner, ttl
        self._extend_at: datetime | None = None

    def held(self, now: datetime) -> bool:
        if self._extend_at is not None and now < self._extend_at:
            return True
        if hold(self._name, self._owner, now=now, ttl=self._ttl):
            self._extend_at = now + self._ttl / 3
            return True
        self._extend_at = None
        return False

    def give_back(self) -> None:
        """Let another process begin at once; when the database is lost, the lease expires."""
        with suppress(PortalError, DatabaseError):
            give_back(self._name, self._owner)
        self._extend_at = None
