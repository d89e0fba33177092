"""Races: real threads that pass one barrier before they act."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connection

from portal.core.errors import PortalError


def race(*acts: Callable[[], Any]) -> list[Any]:
    """Run the acts at once, each with a connection of its own; what each gave or refused with."""
    barrier = Barrier(len(acts))

    def run(act: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            barrier.wait(timeout=30)
            return act()
        except PortalError as refusal:
            return refusal
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(run, acts))


def codes(outcomes: Iterable[Any]) -> list[str]:
    """The codes of the refusals among the outcomes of a race."""
    return [outcome.code for outcome in outcomes if isinstance(outcome, PortalError)]
