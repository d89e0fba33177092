"""The one clock of the portal. Deciding code never calls it: it takes ``now``."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)
