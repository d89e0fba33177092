#!/usr/bin/env python3
"""The operator's command: `manage.py up` runs everything, `manage.py help` lists the rest."""

import os
import sys
from pathlib import Path


def _data_folder(arguments: list[str]) -> str | None:
    """The folder that ``--data`` names: it must be known before the settings are read."""
    for position, word in enumerate(arguments):
        if word.startswith("--data="):
            return word.partition("=")[2]
        if word == "--data" and position + 1 < len(arguments):
            return arguments[position + 1]
    return None


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    data = _data_folder(sys.argv[2:])
    if data:
        os.environ["GPUCOMMONS_DATA"] = str(Path(data).resolve())
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
