"""The states of a job and of what is wished for it."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    QUEUED = "QUEUED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"


TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT})
ACTIVE = frozenset({JobState.STARTING, JobState.RUNNING})


class Wish(StrEnum):
    """What the user wants; it becomes true when it is observed."""

    RUN = "run"
    CANCEL = "cancel"
    HOLD = "hold"


class PriorityClass(StrEnum):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


PRIORITY_OF = {PriorityClass.LOW: -10, PriorityClass.NORMAL: 0, PriorityClass.HIGH: 10}
CLASS_OF = {number: name for name, number in PRIORITY_OF.items()}


class Form(StrEnum):
    """Which kind of slice a job accepts."""

    ANY = "any"
    WHOLE = "whole"
    SHARE = "share"
    MIG = "mig"
