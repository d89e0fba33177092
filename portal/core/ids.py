"""Ids: UUIDv7 as text (RFC 9562, section 5.7), so that they sort by the time they were made."""

from __future__ import annotations

import secrets
import time
import uuid


def uuid7(unix_ms: int, random_bits: int) -> str:
    """Build a UUIDv7 from milliseconds since 1970 and 74 random bits."""
    value = (unix_ms & (1 << 48) - 1) << 80
    value |= 0x7 << 76
    value |= (random_bits >> 62 & 0xFFF) << 64
    value |= 0b10 << 62
    value |= random_bits & (1 << 62) - 1
    return str(uuid.UUID(int=value))


def new_id() -> str:
    return uuid7(time.time_ns() // 1_000_000, secrets.randbits(74))
