"""Which pieces of a lease's use are due to be written. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from billing.domain.pricing import Piece, Price, hour_of, segments_of


@dataclass(frozen=True)
class LeaseUse:
    """Use of one lease as its node observed it, up to ``until``.

    ``equivalent_milli`` is what is priced; ``final`` says that the use ended at ``until``.
    """

    lease_id: str
    job_id: str
    project_id: str
    tenant_id: str
    user_id: str
    gpu_model: str
    equivalent_milli: int
    compute_milli: int
    memory_mib: int
    started_at: datetime
    until: datetime
    final: bool


def due_pieces(
    use: LeaseUse, metered_until: datetime | None, prices: Sequence[Price]
) -> list[Piece]:
    """Give the pieces since ``metered_until``; while the use goes on, up to the last full hour."""
    start = metered_until or use.started_at
    end = use.until if use.final else hour_of(use.until)
    return segments_of(start, end, prices, use.gpu_model)
