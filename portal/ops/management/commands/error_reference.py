"""``manage.py error_reference``: write docs/reference/errors.md from the source."""

from __future__ import annotations

import ast
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from portal.config import ROOT

PACKAGES = ("portal", "quotas", "billing", "jobs")
_BASES = {
    "PortalError": 500,
    "Rejected": 422,
    "Unauthenticated": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "Conflict": 409,
    "TooMany": 429,
    "Unavailable": 503,
}
_HEAD = """# Errors

Every refusal is an RFC 9457 problem: `type`, `title`, `status`, `code`, `detail`, and `field` and
`hint` where they help. Programs go by `code`, which is stable; `detail` is for people.
Written by `make openapi` from the source.

| code | status | what it says |
| --- | --- | --- |
"""


@dataclass(frozen=True, order=True)
class Refusal:
    code: str
    status: int
    text: str


class Command(BaseCommand):
    help = "Write the reference of error codes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--file", type=Path, default=ROOT / "docs/reference/errors.md")

    def handle(self, *args: Any, **options: Any) -> None:
        options["file"].write_text(reference())


def reference() -> str:
    """The document: one row for each code, with what the source says where it is raised."""
    trees = [
        ast.parse(file.read_text())
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        if "cli" not in file.parts
    ]
    statuses = dict(_BASES)
    for tree in trees:
        statuses.update(_own_classes(tree))
    found: dict[str, Refusal] = {}
    for refusal in sorted(one for tree in trees for one in _refusals(tree, statuses)):
        found.setdefault(refusal.code, refusal)
    rows = (f"| `{one.code}` | {one.status} | {one.text} |\n" for one in found.values())
    return _HEAD + "".join(rows)


def _own_classes(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Subclasses that a module makes of an error to change its status."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                match line:
                    case ast.Assign(
                        targets=[ast.Name(id="status")], value=ast.Constant(value=int(status))
                    ):
                        yield node.name, status


def _refusals(tree: ast.Module, statuses: dict[str, int]) -> Iterator[Refusal]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name(id=name), args=[ast.Constant(value=str(code)), detail, *_]
            ) if name in statuses and "." in code:
                text = _words(detail)
                yield Refusal(code, statuses[name], "says what is wrong" if text == "…" else text)


def _words(node: ast.expr) -> str:
    """The text of a literal; what is filled in stands as an ellipsis."""
    match node:
        case ast.Constant(value=str(text)):
            return text.replace("|", "\\|")
        case ast.JoinedStr(values=values):
            return "".join(_words(value) for value in values)
        case _:
            return "…"
