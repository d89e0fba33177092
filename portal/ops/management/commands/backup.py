"""``manage.py backup FILE``: everything that a portal must not lose, while it runs."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.core.clock import utc_now
from portal.ops.backup import backup
from portal.ops.database_copy import CopyFailed


class Command(BaseCommand):
    help = "Write a backup of database and data folder into one file (mode 0600: it holds keys)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        file = options["file"].resolve()
        try:
            manifest = backup(file, now=utc_now())
        except (CopyFailed, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{file}: {len(manifest.sha256)} members, {file.stat().st_size} bytes")
