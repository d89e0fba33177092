"""Prices and use as other rooms see them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

from django.db.models import BigIntegerField, F, Max, Q, QuerySet, Sum
from django.db.models.functions import Cast, TruncDate

from billing.domain.metering import LeaseUse, due_pieces
from billing.domain.pricing import ANY_MODEL, MILLISECOND, Price, cost_micros, price_at
from billing.models import PriceVersion, Rate, Segment
from portal.config import config
from portal.core.money import Money


class Group(StrEnum):
    PROJECT = "project"
    USER = "user"
    DAY = "day"
    JOB = "job"


_KEYS = {
    Group.PROJECT: ("project_id",),
    Group.USER: ("project_id", "user_id"),
    Group.DAY: ("day", "project_id"),
    Group.JOB: ("project_id", "user_id", "job_id"),
}


@dataclass(frozen=True)
class Use:
    """An amount of metered use. ``gpu_milli_ms``: thousandths of a GPU times milliseconds."""

    metered_ms: int
    gpu_milli_ms: int
    cost: Money

    @property
    def seconds(self) -> float:
        """How long slices of any size were used."""
        return self.metered_ms / 1000

    @property
    def gpu_seconds(self) -> float:
        """The same in seconds of a whole GPU."""
        return self.gpu_milli_ms / 1_000_000


@dataclass(frozen=True)
class UsageLine:
    """Use of one project, or of one user, job or UTC day in it; its cost is rounded once."""

    project_id: str
    user_id: str | None
    job_id: str | None
    day: date | None
    use: Use


@dataclass(frozen=True)
class PriceInfo:
    """One version of the price book; rates in micro-units for an hour of a whole GPU."""

    id: str
    effective_from: datetime
    currency: str
    created_at: datetime
    created_by: str
    rates: dict[str, int]


class _Sum:
    """Exact sums by rate, so that the price is rounded once at the end."""

    def __init__(self) -> None:
        self.metered_ms = 0
        self.milli_ms_by_rate: dict[int, int] = defaultdict(int)

    def add(self, *, rate: int, duration_ms: int, milli_ms: int) -> None:
        self.metered_ms += duration_ms
        self.milli_ms_by_rate[rate] += milli_ms

    def use(self) -> Use:
        micros = cost_micros(self.milli_ms_by_rate.items())
        return Use(
            self.metered_ms, sum(self.milli_ms_by_rate.values()), Money(micros, config.currency)
        )


def price_versions() -> list[PriceInfo]:
    """Give every version of the price book, oldest first."""
    rates: dict[str, dict[str, int]] = defaultdict(dict)
    for version_id, model, micros in Rate.objects.order_by("gpu_model").values_list(
        "version_id", "gpu_model", "micros_per_gpu_hour"
    ):
        rates[version_id][model] = micros
    return [
        PriceInfo(
            id=version.id,
            effective_from=version.effective_from,
            currency=version.currency,
            created_at=version.created_at,
            created_by=version.created_by,
            rates=rates[version.id],
        )
        for version in PriceVersion.objects.order_by("effective_from")
    ]


def price_book() -> list[Price]:
    """Give the price book as the pricing functions want it, oldest first."""
    return [Price(info.id, info.effective_from, info.rates) for info in price_versions()]


def prices_exist() -> bool:
    """Whether a price was ever published; every model has one from then on."""
    return PriceVersion.objects.exists()


def price_now(gpu_model: str, *, now: datetime) -> int | None:
    """Micro-units for an hour of a whole GPU of the model; None while there is no price at all."""
    prices = price_book()
    return price_at(prices, now).rate(gpu_model) if prices else None


def metered_until(lease_ids: Iterable[str]) -> dict[str, datetime]:
    """Give up to when each lease has been metered; leases without a segment are left out."""
    return dict(
        Segment.objects.filter(lease_id__in=set(lease_ids))
        .values_list("lease_id")
        .annotate(Max("ended_at"))
    )


def usage_of_projects(
    project_ids: Iterable[str] | None, *, since: datetime, until: datetime, group: Group
) -> list[UsageLine]:
    """Sum the metered use in ``[since, until)`` by project, user, day or job; None: every project.

    Segments that cross an edge count with the part that lies inside. Use of running jobs is in it
    up to the last full hour.
    """
    keys = _KEYS[group]
    segments = Segment.objects.filter(started_at__lt=until, ended_at__gt=since)
    if project_ids is not None:
        segments = segments.filter(project_id__in=set(project_ids))
    crossing = Q(started_at__lt=since) | Q(ended_at__gt=until)
    sums: dict[tuple[Any, ...], _Sum] = defaultdict(_Sum)
    if group is Group.DAY:
        segments = segments.annotate(day=TruncDate("started_at", tzinfo=UTC))
    _add_rows(sums, segments.exclude(crossing), keys)
    for segment in segments.filter(crossing):
        inside = (min(segment.ended_at, until) - max(segment.started_at, since)) // MILLISECOND
        sums[tuple(getattr(segment, key) for key in keys)].add(
            rate=segment.rate_micros_per_gpu_hour,
            duration_ms=inside,
            milli_ms=inside * segment.equivalent_milli,
        )
    return [_usage_line(dict(zip(keys, key, strict=True)), total) for key, total in _sorted(sums)]


def _sorted(sums: dict[tuple[Any, ...], _Sum]) -> list[tuple[tuple[Any, ...], _Sum]]:
    return sorted(sums.items(), key=lambda item: item[0])


def _usage_line(of: Mapping[str, Any], total: _Sum) -> UsageLine:
    return UsageLine(
        project_id=of["project_id"],
        user_id=of.get("user_id"),
        job_id=of.get("job_id"),
        day=of.get("day"),
        use=total.use(),
    )


def leased_by_day(*, since: datetime, until: datetime) -> dict[date, int]:
    """Give the compute that was metered on each UTC day, in thousandths of a GPU times ms."""
    rows = (
        Segment.objects.filter(started_at__gte=since, started_at__lt=until)
        .annotate(day=TruncDate("started_at", tzinfo=UTC))
        .values("day")
        .annotate(
            milli_ms=Sum(
                Cast("duration_ms", BigIntegerField()) * F("compute_milli"),
                output_field=BigIntegerField(),
            )
        )
        .order_by("day")
    )
    return {row["day"]: int(row["milli_ms"]) for row in rows}


@dataclass(frozen=True)
class Repriced:
    """What a project was charged, and what the same use would have cost."""

    project_id: str
    before: Money
    after: Money


def repriced(rates: Mapping[str, int], *, since: datetime, until: datetime) -> list[Repriced]:
    """Price the use of every project in ``[since, until)`` by other rates, ``*`` among them.

    Segments count when they begin in the period: none crosses a full hour.
    """
    rows = (
        Segment.objects.filter(started_at__gte=since, started_at__lt=until)
        .values("project_id", "gpu_model", "rate_micros_per_gpu_hour")
        .annotate(
            milli_ms=Sum(
                Cast("duration_ms", BigIntegerField()) * F("equivalent_milli"),
                output_field=BigIntegerField(),
            )
        )
        .order_by("project_id")
    )
    uses: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for row in rows:
        new_rate = rates.get(row["gpu_model"], rates[ANY_MODEL])
        uses[row["project_id"]].append(
            (row["rate_micros_per_gpu_hour"], new_rate, int(row["milli_ms"]))
        )
    return [
        Repriced(
            project_id,
            Money(cost_micros((old, used) for old, _, used in parts), config.currency),
            Money(cost_micros((new, used) for _, new, used in parts), config.currency),
        )
        for project_id, parts in uses.items()
    ]


def usage_of_jobs(job_ids: Iterable[str], *, running: Sequence[LeaseUse] = ()) -> dict[str, Use]:
    """Sum all use of each job: what is metered and, of the leases in ``running``, what is not yet.

    Jobs without any use are left out.
    """
    sums: dict[tuple[Any, ...], _Sum] = defaultdict(_Sum)
    _add_rows(sums, Segment.objects.filter(job_id__in=set(job_ids)), ("job_id",))
    if running:
        done = metered_until(use.lease_id for use in running)
        prices = price_book()
        for use in running:
            for piece in due_pieces(use, done.get(use.lease_id), prices):
                sums[(use.job_id,)].add(
                    rate=piece.rate,
                    duration_ms=piece.duration_ms,
                    milli_ms=piece.duration_ms * use.equivalent_milli,
                )
    return {key[0]: total.use() for key, total in sums.items()}


def usage_of_job(job_id: str) -> Use:
    """Sum the metered use of one job; nothing metered is 0 seconds and costs 0."""
    return usage_of_jobs([job_id]).get(job_id, _Sum().use())


def _add_rows(
    sums: dict[tuple[Any, ...], _Sum], segments: QuerySet[Segment], keys: tuple[str, ...]
) -> None:
    rows = segments.values(*keys, "rate_micros_per_gpu_hour").annotate(
        metered=Sum(Cast("duration_ms", BigIntegerField())),
        milli_ms=Sum(
            Cast("duration_ms", BigIntegerField()) * F("equivalent_milli"),
            output_field=BigIntegerField(),
        ),
    )
    for row in rows:
        sums[tuple(row[key] for key in keys)].add(
            rate=row["rate_micros_per_gpu_hour"],
            duration_ms=int(row["metered"]),
            milli_ms=int(row["milli_ms"]),
        )
