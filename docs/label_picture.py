"""docs/img/label.png: the page of `superarm label` on made-up tickets, after some hundred answers.

    python docs/label_picture.py

Chromium opens the real page of a real labelling, as tests/label does.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "service"), str(ROOT / "benchmarks")]

from label_kit import Labeller, Server  # noqa: E402
from tickets import TEAMS, tickets  # noqa: E402

from superarm.label import Labelling  # noqa: E402

ROWS, ANSWERS, WIDTH, SCALE = 5_000, 600, 1160, 1.4


def main() -> None:
    rows = tickets(ROWS, 0)
    truth = [row.pop("team") for row in rows]
    job = Labelling(rows, labels=TEAMS, show=["text", "site", "opened"])
    for _ in range(ANSWERS):
        question = job.ask()
        assert question is not None
        label = truth[question.row]
        job.answer(
            question, label=label if label in question.labels else None, none=label not in question.labels
        )
    with tempfile.TemporaryDirectory() as folder, Server(job) as server, Labeller(Path(folder)) as labeller:
        labeller.browser.look(width=WIDTH, dark=False, scale=SCALE)
        labeller.open(server.address)
        time.sleep(0.5)  # the bar moves
        target = ROOT / "docs" / "img" / "label.png"
        below = labeller.browser.eval("document.documentElement.scrollHeight")
        labeller.browser.screenshot(target, {"x": 0, "y": 0, "width": WIDTH, "height": below})
        print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
