"""How quantities look on pages: GiB and percent here, MiB and thousandths everywhere inside."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import template
from django.utils.translation import gettext_lazy

from jobs.domain.states import TERMINAL
from portal.core.clock import utc_now
from portal.core.money import Money

register = template.Library()
ABSENT = "–"
_MODES = {
    "whole": gettext_lazy("whole GPUs"),
    "share": gettext_lazy("shares"),
    "mig": gettext_lazy("MIG instances"),
}
_STATES = {
    "QUEUED": gettext_lazy("Queued"),
    "STARTING": gettext_lazy("Starting"),
    "RUNNING": gettext_lazy("Running"),
    "SUCCEEDED": gettext_lazy("Succeeded"),
    "FAILED": gettext_lazy("Failed"),
    "CANCELLED": gettext_lazy("Cancelled"),
    "TIMED_OUT": gettext_lazy("Timed out"),
}
_NODES = {
    "enrolled": gettext_lazy("enrolled"),
    "ready": gettext_lazy("ready"),
    "unreachable": gettext_lazy("unreachable"),
    "lost": gettext_lazy("lost"),
}


def _decimal(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


@register.filter
def gib(memory_mib: int | None) -> str:
    """MiB as ``8 GiB``; small sizes stay ``512 MiB``."""
    if memory_mib is None:
        return ABSENT
    return f"{memory_mib} MiB" if memory_mib < 1024 else f"{_decimal(memory_mib / 1024)} GiB"


@register.filter
def percent(milli: int | None) -> str:
    """Thousandths as ``25 %``."""
    return ABSENT if milli is None else f"{_decimal(milli / 10)} %"


@register.filter
def percentage(value: float | None) -> str:
    """A measured percentage as ``37.5 %``; absent stays absent, never 0."""
    return ABSENT if value is None else f"{value:.1f}".removesuffix(".0") + " %"


@register.filter
def gpus(milli: int | None) -> str:
    """Equivalents as GPUs: ``2.5``."""
    return ABSENT if milli is None else f"{milli / 1000:.3f}".rstrip("0").rstrip(".")


@register.filter
def money(value: Money | None) -> str:
    return ABSENT if value is None else value.display()


@register.filter
def period(seconds: float | None) -> str:
    """Seconds as the two largest units, ``2 h 5 min``; short ones finer, ``4.235 s``."""
    if seconds is None:
        return ABSENT
    if seconds < 60:
        digits = 3 if seconds < 10 else 1
        return f"{seconds:.{digits}f}".rstrip("0").rstrip(".") + " s"
    whole = int(seconds)
    sizes = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts: list[tuple[int, str]] = []
    for unit, size in sizes:
        count, whole = divmod(whole, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)


@register.filter
def lasted(started_at: datetime | None, ended_at: datetime | None) -> str:
    """The time between two moments."""
    if started_at is None or ended_at is None:
        return ABSENT
    return period((ended_at - started_at) / timedelta(seconds=1))


@register.filter
def utc(moment: datetime | None) -> str:
    return ABSENT if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")


@register.filter
def lasted_until(started_at: datetime | None, ended_at: datetime | None) -> str:
    """The time since the start; until now when it has not ended."""
    return lasted(started_at, ended_at or utc_now())


@register.filter
def micros(amount_micros: int, currency: str) -> str:
    return Money(amount_micros, currency).display()


@register.filter
def state_label(state: str) -> str:
    """``TIMED_OUT`` as ``Timed out``."""
    return str(_STATES.get(state) or state.replace("_", " ").capitalize())


@register.filter
def mode_label(mode: str) -> str:
    """How a GPU is given away, in words."""
    return str(_MODES.get(mode, mode))


@register.filter
def node_label(state: str) -> str:
    """The state of a node in words."""
    return str(_NODES.get(state, state))


@register.filter
def is_terminal(state: str) -> bool:
    return state in TERMINAL


@register.filter
def words(code: str) -> str:
    """``time_limit`` as ``time limit``."""
    return code.replace("_", " ")
