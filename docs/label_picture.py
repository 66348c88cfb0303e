"""docs/img/label.png: the page of `superarm label` on made-up tickets, after 190 answers.

    python docs/label_picture.py

Chromium opens the real page of a real labelling, as tests/label does.
"""

from __future__ import annotations

import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "service")]

from page_kit import Person, serve_labelling  # noqa: E402

from superarm.label import Labelling  # noqa: E402

ROWS, ANSWERS, WIDTH, SCALE = 5_000, 190, 1160, 1.4

# what people write to each team: a problem, with a thing
TICKETS = {
    "access": (
        "I cannot log in to|my password was refused by|I am locked out of",
        "my account|the portal|the badge reader",
    ),
    "backup": (
        "please restore|I have deleted|I need an older version of",
        "the folder of last week|a shared file|yesterday's backup",
    ),
    "billing": (
        "I was charged twice for|please correct|I want a refund of",
        "the March invoice|my last payment|the annual fee",
    ),
    "email": (
        "Outlook does not show|spam keeps landing in|I cannot send",
        "my mailbox|the team calendar|an attachment",
    ),
    "hardware": (
        "the battery drains fast in|the fan is loud in|I need a cable for",
        "my laptop|the docking station|the new monitor",
    ),
    "hr": (
        "how do I request|there is a mistake in|who approves",
        "parental leave|my payslip|the holiday balance",
    ),
    "legal": (
        "please review|who signs|is there a template for",
        "a supplier contract|a privacy clause|the licence terms",
    ),
    "mobile": (
        "roaming does not work on|I need a new SIM for|the app crashes on",
        "my phone|the tablet|the travel handset",
    ),
    "network": (
        "the VPN drops in|the Wi-Fi is slow in|there is no connection in",
        "the second floor|meeting room 4|my home office",
    ),
    "printing": (
        "paper is stuck in|the toner is empty in|I cannot scan with",
        "the printer|the copier next door|the label printer",
    ),
    "security": (
        "I clicked a link in|the virus scanner complains about|who can check",
        "a phishing mail|a certificate|a USB stick",
    ),
    "web": (
        "the form fails on|a page is missing from|the login button is broken on",
        "our website|the web shop|the careers page",
    ),
}
BEFORE = ["", "Hello, ", "Since this morning ", "Again: ", "After the update ", "Urgent, "]
AFTER = [".", ", thanks.", "; colleagues have the same problem.", ". Could somebody look at it today?", "."]
SITES = ["Rome", "Oslo", "New York", "Lima", "Pune"]


def tickets(n: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Return rows of a ticket queue, and the team of each."""
    random, rows, teams = np.random.default_rng(0), [], list(TICKETS)
    truth = [teams[i] for i in random.integers(len(teams), size=n)]
    for team in truth:
        problem, thing = (random.choice(part.split("|")) for part in TICKETS[team])
        text = f"{random.choice(BEFORE)}{problem} {thing}{random.choice(AFTER)}"
        opened = date(2026, 1, 1) + timedelta(days=int(random.integers(300)))
        rows.append(
            {"text": text[0].upper() + text[1:], "site": str(random.choice(SITES)), "opened": str(opened)}
        )
    return rows, truth


def main() -> None:
    rows, truth = tickets(ROWS)
    job = Labelling(rows, labels=list(TICKETS), show=["text", "site", "opened"])
    for _ in range(ANSWERS):
        question = job.ask()
        assert question is not None
        label = truth[question.row]
        job.answer(
            question, label=label if label in question.labels else None, none=label not in question.labels
        )
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_labelling(job) as server,
        Person(Path(folder)) as person,
    ):
        person.look(width=WIDTH, dark=False, scale=SCALE)
        person.begin(server.address)
        time.sleep(0.5)  # the bar moves
        target = ROOT / "docs" / "img" / "label.png"
        below = person.eval("document.documentElement.scrollHeight")
        person.screenshot(target, {"x": 0, "y": 0, "width": WIDTH, "height": below})
        print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
