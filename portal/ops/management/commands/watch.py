"""``manage.py watch``: follow the nodes until SIGTERM."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

import portal.celery  # noqa: F401 - the outbox sends tasks by this application
from jobs.services.engine import agent_engine
from jobs.services.watch import watch_in_turn
from portal.ops.processes import Stop, add_arguments, owner


class Command(BaseCommand):
    help = "Follow the nodes until SIGTERM. Of several watchers one works, the rest stand by."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        watch_in_turn(agent_engine(), owner(), Stop(options["alive_file"]))
