"""How a command fails: one sentence with a hint, and an exit code that scripts can rely on."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeVar

import typer

R = TypeVar("R")


class Exit(IntEnum):
    """Exit codes of every command; ``docs/guide/command-line.md`` tells them to people."""

    SUCCEEDED = 0
    FAILED = 1
    USAGE = 2
    CANCELLED = 3
    TIMED_OUT = 4
    STILL_WAITING = 5
    UNREACHABLE = 6
    REFUSED = 7
    NOT_SIGNED_IN = 8


_CATEGORIES = {
    Exit.USAGE: "usage",
    Exit.STILL_WAITING: "waiting",
    Exit.UNREACHABLE: "unreachable",
    Exit.REFUSED: "refused",
    Exit.NOT_SIGNED_IN: "not_signed_in",
}


class Failure(Exception):
    def __init__(
        self,
        exit_code: Exit,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.code = code
        self.message = message
        self.hint = hint
        self.field = field

    def report(self, *, as_json: bool) -> None:
        if as_json:
            error = {
                "category": _CATEGORIES[self.exit_code],
                "code": self.code,
                "message": self.message,
                "hint": self.hint,
                "field": self.field,
            }
            typer.echo(json.dumps({"error": error}), err=True)
            return
        text = f"gpucommons: {self.message}"
        typer.echo(f"{text} {self.hint}" if self.hint else text, err=True)


def reporting(command: Callable[..., R]) -> Callable[..., R]:
    """Turn a failure of a command into its message and exit code."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> R:
        try:
            return command(*args, **options)
        except Failure as failure:
            failure.report(as_json=bool(options.get("as_json")))
            raise typer.Exit(failure.exit_code) from None

    return run
