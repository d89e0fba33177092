"""After a restore the portal knows less than its nodes: it asks before it acts."""

from __future__ import annotations

from datetime import datetime

from jobs.services.outbox import LEASE
from portal.core import outbox
from portal.core.locks import guarded
from portal.fleet import services as fleet


def doubt_everything(*, now: datetime) -> None:
    """Send no order that was written before the backup, and trust no node's old record.

    The first reconciliation of each node then takes in how its leases ended, tells absent what the
    backup does not know, and ends what the node does not know: no lease starts a second time.
    """
    with guarded():
        outbox.forget(LEASE)
        fleet.doubt_nodes(now=now)
