"""``manage.py schedule``: place waiting jobs until SIGTERM."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

import portal.celery  # noqa: F401 - the outbox sends tasks by this application
from jobs.services.loops import run_scheduler
from portal.ops.processes import Stop, add_arguments, owner


class Command(BaseCommand):
    help = "Place waiting jobs until SIGTERM. Of several schedulers one works, the rest stand by."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        run_scheduler(owner(), Stop(options["alive_file"]))
