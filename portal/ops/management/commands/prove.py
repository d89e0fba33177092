"""``manage.py prove``: do the counters equal what they count?"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.ops.proofs import prove


class Command(BaseCommand):
    help = "Prove the counters of GPUs and quotas against the sums of leases and holds."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = prove()
        if wrong:
            raise CommandError("\n".join(wrong))
        self.stdout.write("Every counter equals what it counts.")
