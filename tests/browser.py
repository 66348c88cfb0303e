"""A file in headless Chromium: what a script finds in it, and what it wrote to the console."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from service_browser import CHROMIUM, Browser


@dataclass(frozen=True, slots=True)
class Visit:
    """What came of a visit."""

    found: Any
    console: list[str]


def visit(
    page: Path,
    folder: Path,
    *,
    script: str = "return null;",
    ready: str = "true",
    width: int = 1280,
    dark: bool = False,
) -> Visit:
    """Open a file. ``script`` runs in the page once ``ready`` holds; what it returns is ``found``."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with closing(Browser(folder / "profile")) as browser:
        browser.look(width=width, dark=dark, height=1600)
        browser.open(page.as_uri())
        browser.wait(ready, seconds=30)
        found = browser.eval(f"(async () => {{ {script} }})()")
        return Visit(found, browser.complaints())
