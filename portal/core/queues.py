"""The queues of the workers."""

from __future__ import annotations

from enum import StrEnum


class Queue(StrEnum):
    OUTBOX = "outbox"
    RECONCILE = "reconcile"
    BILLING = "billing"
    DEFAULT = "default"
