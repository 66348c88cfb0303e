"""A page in headless Chromium: its DOM after scripts have run, what it wrote to the console, a screenshot."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROBE = """<script>
(async () => {{
  for (let i = 0; i < 600 && !({ready}); i++) await new Promise(r => setTimeout(r, 50));
  const found = await (async () => {{ {script} }})();
  const place = document.createElement("script");
  place.type = "application/json";
  place.id = "found-by-the-test";
  place.textContent = JSON.stringify(found);
  document.body.append(place);
  if (parent !== window) parent.postMessage(place.textContent, "*");
}})();
</script>"""

# Chromium's windows are at least 500 pixels wide: narrower pages are looked at in a frame
LEAST = 500
FRAME = """<!doctype html><body style="margin:0">
<iframe style="width:{width}px;height:{height}px;border:0" src="{page}"></iframe>
<script>addEventListener("message", event => {{
  const place = document.createElement("script");
  place.type = "application/json";
  place.id = "found-by-the-test";
  place.textContent = event.data;
  document.body.append(place);
}});</script></body>"""


@dataclass(frozen=True, slots=True)
class Visit:
    """What came of a visit."""

    dom: str
    console: list[str]
    found: Any


def browser() -> str:
    """Chromium; the test is skipped where it is missing."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    return path


def visit(
    page: Path,
    folder: Path,
    *,
    script: str = "return null;",
    ready: str = "true",
    width: int = 1280,
    height: int = 1600,
    dark: bool = False,
    screenshot: Path | None = None,
) -> Visit:
    """Open a file. ``script`` runs in the page once ``ready`` holds; what it returns is ``found``."""
    text = page.read_text(encoding="utf-8")
    copy = folder / f"visited-{width}-{'dark' if dark else 'light'}.html"
    head, tail = text.rsplit("</body>", 1)
    copy.write_text(head + PROBE.format(ready=ready, script=script) + "</body>" + tail, encoding="utf-8")
    if width < LEAST:
        frame = folder / f"frame-{copy.name}"
        frame.write_text(FRAME.format(width=width, height=height, page=copy.name), encoding="utf-8")
        copy = frame
    command = [
        browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},{height}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--enable-logging=stderr",
        "--virtual-time-budget=60000",
        "--dump-dom",
    ]
    if screenshot is not None:
        command.append(f"--screenshot={screenshot}")
    done = subprocess.run([*command, copy.as_uri()], capture_output=True, text=True, timeout=300, check=True)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    match = re.search(r'id="found-by-the-test">(.*?)</script>', done.stdout, re.S)
    return Visit(done.stdout, console, json.loads(match.group(1)) if match else None)
