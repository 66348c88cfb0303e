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

from page_kit import Person, serve_game  # noqa: E402

from superarm.play.app import GameHandler  # noqa: E402

ANSWERS = 12  # as a person would
WIDTH, SCALE = 1160, 1.4


def main() -> None:
    handler = GameHandler()
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_game(handler) as server,
        Person(Path(folder)) as person,
    ):
        person.look(width=WIDTH, dark=False, scale=SCALE)
        person.begin(server.address)
        for _ in range(ANSWERS):
            person.press("#yes" if handler.game.label in handler.game.shown else "#no")
        person.press("#computer")
        time.sleep(0.5)  # the bars move
        target = ROOT / "docs" / "img" / "play.png"
        below = person.eval("document.querySelector('footer').getBoundingClientRect().top")
        person.screenshot(target, {"x": 0, "y": 0, "width": WIDTH, "height": below + 8})
        print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
