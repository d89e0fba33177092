"""Quantities as people write and read them: GiB, percent, hours."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from portal.cli.failures import Exit, Failure

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(GiB|G|MiB|M|TiB|T)?", re.IGNORECASE)
_MIB = {"": 1, "m": 1, "g": 1024, "t": 1024 * 1024}
_PERIOD = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?", re.IGNORECASE)
_ABSENT = "-"


def memory_mib(text: str) -> int:
    """Read ``8GiB``, ``8192MiB`` or ``8192`` (MiB)."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise _misread(
            "cli.memory_invalid", f"--memory {text!r} is no size.", "Write 8GiB, 8192MiB or 8192."
        )
    unit = (found[2] or "").lower().removesuffix("ib")
    size = Decimal(found[1]) * _MIB[unit]
    if size != int(size):
        raise _misread(
            "cli.memory_invalid",
            f"--memory {text!r} is no whole number of MiB.",
            "Write it in MiB.",
        )
    return int(size)


def compute_milli(text: str) -> int:
    """Read percent of a GPU's compute, ``25``, ``25%`` or ``12.5``, as thousandths."""
    found = re.fullmatch(r"(\d+(?:\.\d)?)\s*%?", text.strip())
    if found is None:
        raise _misread(
            "cli.compute_invalid",
            f"--compute {text!r} is no percentage.",
            "Write percent of one GPU with at most one decimal: 25 or 12.5.",
        )
    return int(Decimal(found[1]) * 10)


def seconds(text: str, option: str) -> int:
    """Read ``2h``, ``1h30m``, ``90s`` or ``90`` (seconds)."""
    found = _PERIOD.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        raise _misread(
            "cli.period_invalid",
            f"{option} {text!r} is no period.",
            "Write 90s, 30m, 2h, 1h30m, 2d or seconds.",
        )
    sizes = (86_400, 3_600, 60, 1)
    return sum(int(part or 0) * size for part, size in zip(found.groups(), sizes, strict=True))


def variable(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise _misread("cli.env_invalid", f"--env {text!r} is not NAME=VALUE.", "Write NAME=VALUE.")
    return name, value


def script_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise _misread(
            "cli.script_unreadable", f"--script {path} is no readable text.", "Name a UTF-8 file."
        ) from None


def moment(text: str, option: str) -> str:
    """Read a day or a time (UTC unless it says otherwise) as RFC 3339."""
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise _misread(
            "cli.moment_invalid",
            f"{option} {text!r} is no time.",
            "Write 2026-03-31 or 2026-03-31T14:00:00Z.",
        ) from None
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()


def show_memory(mib: int | None) -> str:
    if mib is None:
        return _ABSENT
    return f"{mib / 1024:.4g} GiB" if mib >= 1024 else f"{mib} MiB"


def show_compute(milli: int | None) -> str:
    return _ABSENT if milli is None else f"{milli / 10:g} %"


def show_seconds(value: float | None) -> str:
    if value is None:
        return _ABSENT
    if value < 60:
        return f"{value:.3f}".rstrip("0").rstrip(".") + " s"
    minutes, rest = divmod(int(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _misread(code: str, message: str, hint: str) -> Failure:
    return Failure(Exit.USAGE, code, message, hint=hint)
