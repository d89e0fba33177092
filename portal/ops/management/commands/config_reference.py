"""``manage.py config_reference``: write docs/operations/configuration.md from `portal.config`."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from pydantic.fields import FieldInfo

from portal.config import ROOT, Config

_HEAD = """# Configuration

Every value is an environment variable; what is not set keeps its default. Written by `make openapi`
from `portal/config.py`, the only module that reads the environment.

| variable | default | what it is |
| --- | --- | --- |
"""


class Command(BaseCommand):
    help = "Write the reference of the configuration."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--file", type=Path, default=ROOT / "docs/operations/configuration.md")

    def handle(self, *args: Any, **options: Any) -> None:
        options["file"].write_text(reference())


def reference() -> str:
    rows = (
        f"| `GPUCOMMONS_{name.upper()}` | {_default(field)} | {field.description or ''} |\n"
        for name, field in Config.model_fields.items()
    )
    return _HEAD + "".join(rows)


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Path):
        return f"`{value.relative_to(ROOT)}` in the checkout"
    if value is None or value == "":
        return "empty"
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"
