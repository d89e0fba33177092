"""Errors of the life cycle. They are bugs or races, so they know no door."""

from __future__ import annotations


class InvalidTransition(Exception):
    """The table has no entry for this state and event; the message carries the job's story."""
