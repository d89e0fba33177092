"""``manage.py declare_lost NODE --reason TEXT``: nothing runs there any more."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

import portal.celery  # noqa: F401 - the outbox sends tasks by this application
from jobs.services.reconcile import declare_node_lost
from portal.core.audit import Actor
from portal.core.clock import utc_now
from portal.fleet.selectors import fleet_view


class Command(BaseCommand):
    help = (
        "Declare that nothing runs on a node any more. Its jobs are queued again or end; if the "
        "node comes back, it is told to end them first. Make sure that the machine is off."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("node", help="name or id of the node")
        parser.add_argument("--reason", required=True, help="how you know; kept in the audit log")

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = options["node"]
        found = [node for node in fleet_view() if wanted in (node.name, node.id)]
        if not found:
            raise CommandError(f"There is no node {wanted}.")
        ended = declare_node_lost(
            actor=Actor("operator"),
            node_id=found[0].id,
            reason=options["reason"],
            now=utc_now(),
        )
        self.stdout.write(f"{found[0].name} is lost; {ended} attempts ended.")
