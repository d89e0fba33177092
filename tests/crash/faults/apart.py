"""Makes a step of an end run in a transaction of its own, after the one that ends the job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from jobs.services import ingest, reconcile, tell, watch
from portal.core import crash
from portal.core.locks import guarded

POINT = "fault.apart"


def split_off(owner: Any, name: str) -> None:
    """Let `owner.name`, which `ingest` calls inside its transaction, be called after it."""
    step: Callable[..., Any] = getattr(owner, name)
    together = ingest.ingest
    # Of each thread its own: another one may not do what the killed one put off.
    put_off_by = threading.local()

    def put_off(*args: Any, **kwargs: Any) -> None:
        if args[0]:
            put_off_by.steps = [*getattr(put_off_by, "steps", []), partial(step, *args, **kwargs)]

    def apart(*args: Any, **kwargs: Any) -> None:
        together(*args, **kwargs)
        steps = getattr(put_off_by, "steps", [])
        put_off_by.steps = []
        for late in steps:
            crash.point(POINT)
            with guarded():
                late()

    setattr(owner, name, put_off)
    for module in (ingest, reconcile, tell, watch):
        module.ingest = apart  # type: ignore[attr-defined]
