"""Publish versions of the price book."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from billing.domain.pricing import ANY_MODEL, whole_ms
from billing.models import PriceVersion, Rate
from portal.config import config
from portal.core import audit
from portal.core.audit import Actor
from portal.core.errors import Conflict, Rejected
from portal.core.locks import guarded

NOTICE = timedelta(minutes=1)
HIGHEST_RATE = 10**12


def publish_price(
    *,
    actor: Actor,
    effective_from: datetime | None,
    currency: str,
    rates: Mapping[str, int],
    now: datetime,
) -> str:
    """Publish prices from a moment on, None for as soon as possible; give the version's id.

    ``rates`` are micro-units for one hour of a whole GPU, by model, with ``*`` for all others. The
    first version may begin at any time; a later one needs a minute's notice, so that no use that
    is being metered changes its price. Raises ``billing.price_too_soon``, ``billing.price_taken``,
    ``billing.rate_missing``, ``billing.rate_invalid`` or ``billing.currency``.
    """
    _check(currency, rates)
    earliest = whole_ms(now + NOTICE)
    with guarded():
        first = not PriceVersion.objects.exists()
        begins = whole_ms(effective_from) if effective_from else now if first else earliest
        if begins < earliest and not first:
            raise Rejected(
                "billing.price_too_soon",
                f"A price begins at least {NOTICE.seconds} s from now; asked for: "
                f"{begins.isoformat()}.",
                hint=f"Choose {earliest.isoformat()} or later, or leave the time out.",
                field="effective_from",
            )
        try:
            with transaction.atomic():
                version = PriceVersion.objects.create(
                    effective_from=begins, currency=currency, created_at=now, created_by=actor.name
                )
        except IntegrityError as error:
            raise Conflict(
                "billing.price_taken",
                f"Another version begins at {begins.isoformat()}.",
                hint="Choose another moment.",
                field="effective_from",
            ) from error
        Rate.objects.bulk_create(
            Rate(version=version, gpu_model=model, micros_per_gpu_hour=micros)
            for model, micros in sorted(rates.items())
        )
        audit.record(
            actor=actor,
            verb="price.published",
            object_type="price",
            object_id=version.id,
            now=now,
            detail={"effective_from": begins.isoformat(), "rates": dict(rates)},
        )
    return version.id


def _check(currency: str, rates: Mapping[str, int]) -> None:
    if currency != config.currency:
        raise Rejected(
            "billing.currency",
            f"Prices are in {config.currency}, the one currency of this portal.",
            field="currency",
        )
    if ANY_MODEL not in rates:
        raise Rejected(
            "billing.rate_missing",
            f"The rate {ANY_MODEL!r}, for models without their own, is missing.",
            hint=f"Add a rate for {ANY_MODEL!r}.",
            field="rates",
        )
    for model, micros in rates.items():
        if not 0 <= micros <= HIGHEST_RATE:
            raise Rejected(
                "billing.rate_invalid",
                f"The rate of {model!r} is {micros}; it is between 0 and {HIGHEST_RATE} "
                "micro-units for an hour.",
                field="rates",
            )
