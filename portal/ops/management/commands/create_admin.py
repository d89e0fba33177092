"""``manage.py create_admin NAME``: the first person of a new portal."""

from __future__ import annotations

import secrets
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.accounts.services import create_user
from portal.core.audit import Actor
from portal.core.clock import utc_now
from portal.core.errors import PortalError


class Command(BaseCommand):
    help = "Make a platform administrator. Without a file the password is made up and shown once."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--email", default="")
        parser.add_argument("--password-file", type=Path, help="its first line is the password")

    def handle(self, *args: Any, **options: Any) -> None:
        given: Path | None = options["password_file"]
        try:
            password = given.read_text().partition("\n")[0] if given else secrets.token_urlsafe(18)
            create_user(
                actor=Actor("operator"),
                name=options["name"],
                email=options["email"],
                password=password,
                is_platform_admin=True,
                now=utc_now(),
            )
        except OSError as error:
            raise CommandError(str(error)) from error
        except PortalError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(
            f"{options['name']} is a platform administrator."
            + ("" if given else f" Password: {password}")
        )
