"""Turn observed lease time into segments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from billing.domain.metering import LeaseUse, due_pieces
from billing.domain.pricing import Piece
from billing.models import Segment
from billing.selectors import metered_until, price_book
from portal.core.errors import Conflict
from portal.core.locks import guarded

__all__ = ["LeaseUse", "meter"]


def meter(uses: Sequence[LeaseUse], *, now: datetime) -> int:
    """Write the segments that are missing up to each use's ``until``; how many.

    While a use is not final only its full hours are written. Writing again changes nothing.
    ``until`` must be observed, not hoped for: segments are never taken back. Raises
    ``billing.no_price`` while no price was ever published.
    """
    if not uses:
        return 0
    with guarded():
        prices = price_book()
        if not prices:
            raise Conflict(
                "billing.no_price",
                "No price was ever published, so use cannot be metered.",
                hint="Publish a price version.",
            )
        done = metered_until(use.lease_id for use in uses)
        written = Segment.objects.bulk_create(
            (
                _segment(use, piece, now)
                for use in uses
                for piece in due_pieces(use, done.get(use.lease_id), prices)
            ),
            ignore_conflicts=True,
        )
        return len(written)


def _segment(use: LeaseUse, piece: Piece, now: datetime) -> Segment:
    return Segment(
        lease_id=use.lease_id,
        job_id=use.job_id,
        project_id=use.project_id,
        tenant_id=use.tenant_id,
        user_id=use.user_id,
        gpu_model=use.gpu_model,
        equivalent_milli=use.equivalent_milli,
        compute_milli=use.compute_milli,
        memory_mib=use.memory_mib,
        started_at=piece.started_at,
        ended_at=piece.ended_at,
        duration_ms=piece.duration_ms,
        price_version_id=piece.version_id,
        rate_micros_per_gpu_hour=piece.rate,
        created_at=now,
    )
