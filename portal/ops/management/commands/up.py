"""``manage.py up``: the whole platform on this machine, in one process and one agent."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal import embedded
from portal.config import config
from portal.ops.demo import Demo


class Command(BaseCommand):
    help = "Serve portal, worker, scheduler and one node agent until Ctrl-C."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--data", help="folder of everything that must last (default: var)")

    def handle(self, *args: Any, **options: Any) -> None:
        address = embedded.Address(options["host"], options["port"])
        try:
            embedded.up(address, announce=self._announce)
        except embedded.AlreadyRunning as error:
            raise CommandError(
                f"Another portal uses the data folder {error}. Stop it, or name another with DATA=."
            ) from error
        except embedded.PortTaken as error:
            raise CommandError(
                f"Cannot listen at {error}. Choose another port with PORT=."
            ) from error

    def _announce(self, shown: Demo) -> None:
        lines = ["", f"GPU Commons is ready at {shown.url}", ""]
        lines += [f"  {user.name:<8} {user.password:<18} {user.role}" for user in shown.users]
        lines += [
            "",
            f"Logins and API tokens: {config.data / 'demo.json'}",
            *shown.notes,
            "Ctrl-C stops everything.",
            "",
        ]
        self.stdout.write("\n".join(lines))
        self.stdout.flush()
