"""The messages of this room: a lease whose desired state its node has to be told."""

from __future__ import annotations

from portal.core import outbox
from portal.core.queues import Queue

LEASE = outbox.register(outbox.Topic("lease", "jobs.tasks.tell_leases", Queue.OUTBOX))
