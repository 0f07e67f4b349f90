"""A headless Chromium that opens pages of this machine, and says what it was asked for and what went wrong."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

__all__ = ["WITHOUT", "Opened", "chromium", "opened"]

WITHOUT = "there is no Chromium here: `apt-get install chromium` brings it"
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")


@dataclass
class Opened:
    """A page that is open.

    Attributes:
        page: Playwright's.
        errors: What the console and scripts complained about.
        requests: What was loaded, but for what lies within the page.
    """

    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def in_sight(self, selector: str) -> bool:
        """Whether the first of such elements is seen whole without scrolling."""
        box = self.page.locator(selector).first.bounding_box()
        return bool(box) and box["y"] >= 0 and box["y"] + box["height"] <= self.page.viewport_size["height"]

    def violations(self) -> list[str]:
        """What axe-core finds that keeps people from using the page."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [f"{item['id']}: {node['html'][:200]}" for item in found for node in item["nodes"]]


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """The browser; tests are skipped where there's none."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip(WITHOUT)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def opened(
    browser: Any, path: Path, *, scheme: Literal["light", "dark"] = "light", size: tuple[int, int] = (1280, 800)
) -> Iterator[Opened]:
    """A page in a window of its own."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page = context.new_page()
    seen = Opened(page)
    page.on("console", lambda item: seen.errors.append(item.text) if item.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("request", lambda asked: seen.requests.append(asked.url))
    try:
        page.goto(path.as_uri())
        yield seen
    finally:
        context.close()
