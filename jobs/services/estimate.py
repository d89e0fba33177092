"""What a request would take and cost before it is submitted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from billing.domain.pricing import HOUR_MS, cost_micros
from billing.selectors import price_now
from jobs.scheduling.schedule import smallest_equivalent
from jobs.scheduling.slices import offers
from jobs.scheduling.view import GpuState, QueuedJob, Request
from jobs.selectors import gpu_states
from portal.config import config
from portal.core.money import Money

_HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Estimate:
    """For one model of GPU: the least that the request takes there, and its price."""

    gpu_model: str
    gpu_memory_mib: int
    equivalent_milli: int
    per_hour: Money | None
    free_now: bool


def estimates(request: Request, *, now: datetime) -> list[Estimate]:
    """One for each model that could ever serve the request, the smallest part first."""
    by_model: dict[str, list[GpuState]] = {}
    for gpu in gpu_states():
        by_model.setdefault(gpu.model, []).append(gpu)
    job = QueuedJob("", "", (), 0, now, request)
    found = []
    for model, gpus in by_model.items():
        milli = smallest_equivalent(job, tuple(gpus))
        if milli is None:
            continue
        rate = price_now(model, now=now)
        found.append(
            Estimate(
                gpu_model=model,
                gpu_memory_mib=gpus[0].memory_mib,
                equivalent_milli=milli,
                per_hour=None
                if rate is None
                else Money(cost_micros([(rate, milli * HOUR_MS)]), config.currency),
                free_now=any(gpu.usable and any(offers(request, gpu)) for gpu in gpus),
            )
        )
    return sorted(found, key=lambda one: (one.equivalent_milli, one.gpu_model))
