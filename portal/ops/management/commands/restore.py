"""``manage.py restore FILE``: put a backup back into a portal that stands still."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.core.clock import utc_now
from portal.ops.archive import BadArchive
from portal.ops.backup import Refused, restore
from portal.ops.database_copy import CopyFailed


class Command(BaseCommand):
    help = "Put a backup back. Stop every process of the portal first; agents and jobs may go on."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--yes", action="store_true", help="replace what this portal holds")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            manifest = restore(options["file"].resolve(), replace=options["yes"], now=utc_now())
        except (Refused, BadArchive, CopyFailed, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Restored the backup of {manifest.made_at}. Start the portal again.")
