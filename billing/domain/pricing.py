"""Cut use into pieces of one price and price it. Pure; integers only.

Use is counted in thousandths of a GPU times milliseconds (``milli_ms``); a rate is in micro-units
for one hour of a whole GPU.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

ANY_MODEL = "*"
MILLISECOND = timedelta(milliseconds=1)
_HOUR = timedelta(hours=1)
HOUR_MS = 3_600_000
_MILLI_MS_PER_GPU_HOUR = 1000 * HOUR_MS


@dataclass(frozen=True)
class Price:
    """The price book from ``effective_from`` on; ``rates`` by GPU model, ``*`` for the others."""

    version_id: str
    effective_from: datetime
    rates: Mapping[str, int]

    def rate(self, gpu_model: str) -> int:
        """Micro-units for an hour of a whole GPU of the model."""
        return self.rates.get(gpu_model, self.rates[ANY_MODEL])


@dataclass(frozen=True)
class Piece:
    """Use within one UTC hour and one price: half-open, whole milliseconds."""

    started_at: datetime
    ended_at: datetime
    version_id: str
    rate: int

    @property
    def duration_ms(self) -> int:
        return (self.ended_at - self.started_at) // MILLISECOND


def whole_ms(moment: datetime) -> datetime:
    """Cut a moment down to a whole millisecond."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def hour_of(moment: datetime) -> datetime:
    """Give the UTC hour that has begun at or before a moment."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def price_at(prices: Sequence[Price], moment: datetime) -> Price:
    """Give the price in force, of prices sorted by time; the first also covers what lies before."""
    place = bisect_right([price.effective_from for price in prices], moment)
    return prices[max(place - 1, 0)]


def segments_of(
    started_at: datetime, ended_at: datetime, prices: Sequence[Price], gpu_model: str
) -> list[Piece]:
    """Cut ``[started_at, ended_at)`` at UTC hours and price changes; nothing is lost or doubled.

    ``prices`` is not empty and sorted by time.
    """
    start, end = whole_ms(started_at), whole_ms(ended_at)
    changes = [whole_ms(price.effective_from) for price in prices]
    pieces = []
    while start < end:
        later = [change for change in changes if change > start]
        stop = min(end, hour_of(start) + _HOUR, *later)
        price = price_at(prices, start)
        pieces.append(Piece(start, stop, price.version_id, price.rate(gpu_model)))
        start = stop
    return pieces


def half_up(numerator: int, denominator: int) -> int:
    """Divide and round to the nearest integer, halves away from zero."""
    magnitude = (2 * abs(numerator) + denominator) // (2 * denominator)
    return magnitude if numerator >= 0 else -magnitude


def cost_micros(use: Iterable[tuple[int, int]]) -> int:
    """Price ``(rate_micros, milli_ms)`` pairs exactly and round the sum once, half up."""
    return half_up(sum(rate * milli_ms for rate, milli_ms in use), _MILLI_MS_PER_GPU_HOUR)
