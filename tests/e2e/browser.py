"""A headless browser as a person uses it; it counts clicks and notes complaints of the console."""

from __future__ import annotations

import shutil
from importlib.resources import files
from types import TracebackType
from typing import Any, Self

from playwright.sync_api import Browser, BrowserContext, Locator, Page, Playwright, sync_playwright

from tests.e2e.system import System

PATIENCE_MS = 60_000
GRAVE = ("serious", "critical")
_AXE = (files("axe_playwright_python") / "axe.min.js").read_text()


class Person:
    """Someone in front of a browser window of their own."""

    def __init__(self, browser: Browser, system: System, **look: Any) -> None:
        self.address = f"http://127.0.0.1:{system.port}"
        # axe is added to the page as a script of its own, which the pages' policy rightly forbids.
        self.context: BrowserContext = browser.new_context(
            base_url=self.address, bypass_csp=True, **look
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.set_default_navigation_timeout(PATIENCE_MS)
        self.clicks = 0
        self.complaints: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.context.close()

    def _hear(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(f"{self.page.url}: {message.text}")

    def go(self, path: str) -> None:
        self.page.goto(path)

    def sees(self, text: str) -> Locator:
        """Wait until the text is on the page."""
        found = self.page.get_by_text(text).locator("visible=true").first
        found.wait_for()
        return found

    def click(self, what: Locator) -> None:
        self.clicks += 1
        what.click()

    def press(self, name: str) -> None:
        self.click(self.page.get_by_role("button", name=name).first)

    def follow(self, name: str) -> None:
        self.click(self.page.get_by_role("link", name=name).first)

    def sign_in(self, user: Any) -> None:
        self.go("/sign-in")
        self.page.fill("input[name=username]", user["name"])
        self.page.fill("input[name=password]", user["password"])
        self.click(self.page.locator("main form button").first)
        self.page.wait_for_url(lambda url: "/sign-in" not in url)

    def wait_state(self, state: str) -> None:
        self.page.locator(f"#job-head .state-{state}").wait_for()

    def faults(self) -> list[str]:
        """What axe finds grave on the page that is shown."""
        self.page.evaluate(_AXE)
        result = self.page.evaluate(
            "axe.run({resultTypes: ['violations'],"
            " runOnly: ['wcag2a', 'wcag2aa', 'best-practice']})"
        )
        return [
            f"{violation['id']} ({violation['impact']}) at {node['target']}: "
            f"{node.get('failureSummary', '')[:200]}"
            for violation in result["violations"]
            if violation["impact"] in GRAVE
            for node in violation["nodes"][:3]
        ]


def launched(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(
        executable_path=shutil.which("chromium"),
        args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    )


__all__ = ["Person", "launched", "sync_playwright"]
