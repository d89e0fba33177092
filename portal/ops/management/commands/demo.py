"""``manage.py demo``: the people, projects, quotas and prices that `manage.py up` shows."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from portal.config import config
from portal.core.clock import utc_now
from portal.ops.demo import ensure_demo, publish


class Command(BaseCommand):
    help = "Make the demonstration's people and projects; their logins go to demo.json in the data."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--url", default=config.public_url)

    def handle(self, *args: Any, **options: Any) -> None:
        publish(ensure_demo(url=options["url"], now=utc_now()))
        self.stdout.write(str(config.data / "demo.json"))
