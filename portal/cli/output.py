"""What commands print: one JSON object, or plain tables that fit a terminal and a pipe."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import typer


def show_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))


def show_table(heads: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Print rows below heads; ``empty`` is said instead when there are none."""
    cells = [[_printable(str(cell)) for cell in row] for row in rows]
    if not cells:
        typer.echo(empty, err=True)
        return
    widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    for line in (list(heads), *cells):
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        typer.echo("  ".join(padded).rstrip())


def show_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    known = [(name, _printable(str(value))) for name, value in pairs if value not in (None, "")]
    width = max(len(name) for name, _ in known)
    for name, value in known:
        typer.echo(f"{name.ljust(width)}  {value}")


def _printable(text: str) -> str:
    """Names that users choose must not steer the terminal of others."""
    return "".join(sign if sign.isprintable() else "�" for sign in text)
