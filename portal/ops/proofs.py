"""The counters that the database refuses by, proved against the sums they stand for."""

from __future__ import annotations

import structlog

from portal.core.locks import one_snapshot
from portal.fleet.selectors import proof_of_counters
from quotas.selectors import proof_of_holds

_log = structlog.get_logger(__name__)


def prove() -> list[str]:
    """A sentence for each violation, also written to the log as an error; empty when all holds."""
    with one_snapshot():
        wrong = [*proof_of_counters(), *proof_of_holds()]
    for sentence in wrong:
        _log.error("proof.violated", violation=sentence)
    return wrong
