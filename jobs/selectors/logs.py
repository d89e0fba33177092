"""Which logs are still to be copied from their nodes."""

from __future__ import annotations

from jobs.models import Attempt


def logs_to_keep(limit: int) -> list[Attempt]:
    """Ended attempts whose log is not kept yet, the oldest end first."""
    rows = Attempt.objects.filter(log_kept=False, ended_at__isnull=False, started_at__isnull=False)
    return list(rows.order_by("ended_at")[:limit])
