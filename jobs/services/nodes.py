"""What operators decide about nodes and the jobs on them."""

from __future__ import annotations

from datetime import datetime

from jobs.services.reconcile import declare_node_lost
from portal.core.audit import Actor
from portal.core.errors import Rejected
from portal.fleet.selectors import node_target


def declare_lost_by_name(
    *, actor: Actor, node_id: str, name: str, reason: str, now: datetime
) -> int:
    """Declare a node lost; whoever does types its name and says why. How many attempts ended.

    Raises ``fleet.node_not_found``, ``jobs.node_name_differs`` or ``jobs.reason_missing``.
    """
    node = node_target(node_id)
    if name != node.name:
        raise Rejected(
            "jobs.node_name_differs",
            f"The node is called {node.name!r}, not {name[:100]!r}.",
            hint="Type the name of the node to confirm.",
            field="name",
        )
    if not reason.strip():
        raise Rejected(
            "jobs.reason_missing",
            "There is no reason given.",
            hint="Say how you know that nothing runs on the node any more.",
            field="reason",
        )
    return declare_node_lost(actor=actor, node_id=node_id, now=now, reason=reason.strip()[:500])
