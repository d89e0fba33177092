"""Portals with a planted fault, which the laws must find.

Each module runs as `python -m tests.crash.faults.NAME up ...`, in place of `manage.py`. A fault has
a crash point of its own where it is at its worst.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import django
from django.core.management import execute_from_command_line


def run_with(plant: Callable[[], None]) -> None:
    """Run the operator's command after the fault was planted."""
    os.environ["GPUCOMMONS_DATA"] = sys.argv[sys.argv.index("--data") + 1]
    django.setup()
    plant()
    execute_from_command_line(["manage.py", *sys.argv[1:]])
