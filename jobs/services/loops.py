"""The loop that schedules: at once when hinted, and at an interval in any case."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import structlog
from django.db import close_old_connections

from jobs.services.cycle import QUEUE_READ, run_cycle
from portal.core import hints
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.core.row_leases import SoleRight

_log = structlog.get_logger(__name__)
LEASE_NAME = "scheduler"
LEASE_TTL = timedelta(seconds=10)
SLOW_S = 1.0
LONGEST_REST_S = 0.25


def run_scheduler(owner: str, stop: threading.Event) -> None:
    """Run cycles until ``stop`` is set; of several schedulers the one with the row lease does."""
    right = SoleRight(LEASE_NAME, owner, LEASE_TTL)
    while not stop.is_set():
        began = time.monotonic()
        try:
            if right.held(utc_now()) and run_cycle(utc_now(), clock=utc_now) >= QUEUE_READ:
                continue
        except PortalError as error:
            _log.info("scheduler.retry", code=error.code)
        except Exception:  # noqa: BLE001 - a bug in one cycle may not end the loop
            _log.exception("scheduler.failed")
            stop.wait(SLOW_S)
        finally:
            close_old_connections()
        # At least half of the time belongs to others: under load a cycle serves many hints.
        stop.wait(min(time.monotonic() - began, LONGEST_REST_S))
        hints.wait(hints.Hint.SCHEDULE, timeout_s=SLOW_S)
    right.give_back()
