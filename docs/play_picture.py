"""docs/img/play.png: the page of `superarm play` after a few answers and a thousand of the computer's.

    python docs/play_picture.py

Chromium opens the real page of a real game and presses its buttons, as tests/play does.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "service")]

from play_kit import Table  # noqa: E402

ANSWERS = 12  # as a person would
WIDTH, SCALE = 1160, 1.4


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Table(Path(folder)) as table:
        table.browser.look(width=WIDTH, dark=False, scale=SCALE)
        table.open()
        for _ in range(ANSWERS):
            table.press("yes" if table.game.label in table.game.shown else "no")
        table.press("computer")
        time.sleep(0.5)  # the bars move
        target = ROOT / "docs" / "img" / "play.png"
        below = table.browser.eval("document.querySelector('footer').getBoundingClientRect().top")
        table.browser.screenshot(target, {"x": 0, "y": 0, "width": WIDTH, "height": below + 8})
        print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
