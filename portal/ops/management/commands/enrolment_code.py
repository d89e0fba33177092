"""``manage.py enrolment_code NAME``: let one node join."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.core.audit import Actor
from portal.core.clock import utc_now
from portal.core.errors import PortalError
from portal.fleet.enrolment import issue_code


class Command(BaseCommand):
    help = "Print a code with which the node of this name may enrol once within an hour."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the node's name, unique in this portal")
        parser.add_argument(
            "--file", type=Path, help="write the code there (mode 0600) instead of printing it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            code = issue_code(actor=Actor("operator"), node_name=options["name"], now=utc_now())
        except PortalError as error:
            raise CommandError(error.detail) from error
        if options["file"] is None:
            self.stdout.write(code)
            return
        with open(
            os.open(options["file"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w"
        ) as to:
            to.write(code + "\n")
