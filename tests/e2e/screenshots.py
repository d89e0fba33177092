"""Pictures of every page, for people who look: ``make screenshots`` writes var/screenshots."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.e2e.browser import Person, launched, sync_playwright
from tests.e2e.system import Makes, System
from tests.plugin import FOLDER

PAGES = {
    "home": "/",
    "jobs": "/jobs?state=all",
    "submit": "/submit",
    "gpus": "/gpus",
    "usage": "/usage?by=day",
    "quotas": "/quotas",
    "prices": "/prices",
    "tokens": "/tokens",
    "nodes": "/nodes",
}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
    "chinese": {"viewport": {"width": 1280, "height": 800}, "locale": "zh-CN"},
}
SLICES: dict[str, dict[str, Any]] = {
    "train-resnet": {"memory_mib": 49_152, "compute_milli": 400},
    "notebook": {"memory_mib": 24_576, "compute_milli": 200},
    "evaluate": {"form": "mig", "memory_mib": 16_384},
}
LOG = "for i in 1 2 3 4 5; do echo epoch $i of 5; done; sleep 600"


def jobs(system: System) -> str:
    """Some that run, some that wait and some that ended; one that runs."""
    rest = system.rest()
    running: list[str] = [
        rest.submit(["sh", "-c", LOG], name=name, **wanted)["id"] for name, wanted in SLICES.items()
    ]
    for one in running:
        rest.wait_state(one, "RUNNING")
    rest.wait_end(rest.submit(["true"], name="smoke-test", compute_milli=50)["id"])
    rest.wait_end(rest.submit(["false"], name="broken", compute_milli=50)["id"])
    rest.submit(["true"], name="needs-a-whole-gpu")
    return running[0]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with Makes() as makes, sync_playwright() as playwright:
        system = makes().start()
        pages = {**PAGES, "job": f"/jobs/{jobs(system)}"}
        admin = next(user for user in system.demo()["users"] if user["name"] == "admin")
        member = system.user()
        browser = launched(playwright)
        for look, wanted in LOOKS.items():
            with Person(browser, system, **wanted) as person:
                person.go("/sign-in")
                person.page.screenshot(path=folder / f"sign-in-{look}.png", full_page=True)
                person.sign_in(member)
                for name in ("home", "job"):
                    person.go(pages[name])
                    person.page.wait_for_load_state()
                    person.page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)
            with Person(browser, system, **wanted) as person:
                person.sign_in(admin)
                for name in pages.keys() - {"home", "job"}:
                    person.go(pages[name])
                    person.page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="gpuc-", dir="/tmp") as place:
        Path(place).chmod(0o711)
        os.environ[FOLDER] = place
        main(Path(sys.argv[1]))
