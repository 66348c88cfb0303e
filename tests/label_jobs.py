"""Rows and labellings for tests of `superarm label`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import superarm as sa
from superarm.data.rows import Rows
from superarm.journal.events import AnswerBody
from superarm.label.rows_to_label import RowsToLabel

SMALL_ROWS = [{"n": float(i % 7), "note": f"row {i}"} for i in range(40)]
DIGITS = [str(digit) for digit in range(10)]
WORDS = {"login": "password account sign", "billing": "invoice card charge", "ads": "campaign click banner"}


def tickets(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows whose text decides the team."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        team = str(random.choice(list(WORDS)))
        words = [
            str(random.choice(WORDS[team].split())),
            *(str(random.choice(["please", "help", "now", "my"])) for _ in range(3)),
        ]
        rows.append(
            {
                "number": number,
                "text": " ".join(words),
                "site": str(random.choice(["Rome", "Oslo"])),
                "team": team,
            }
        )
    return rows


def write_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def digit_rows(n: int) -> RowsToLabel:
    """The first n of the embedded digits."""
    rows = RowsToLabel.read("digits")
    pixels = [picture.ravel() for picture in rows.pictures[:n]]
    return RowsToLabel(
        "digits", [{"number": i} for i in range(n)], Rows(np.array(pixels)), truth=rows.truth[:n]
    )


def noisy_rows(n: int, noise: float, seed: int, k: int = 6) -> RowsToLabel:
    """Rows of k labels that can be told apart, of which a share has the label of others that look alike."""
    random = np.random.default_rng((seed, n))
    centres, looks = random.normal(0.0, 1.5, (k, 16)), random.integers(0, k, n)
    features = (centres[looks] + random.normal(size=(n, 16))).astype(np.float32)
    labels = np.where(random.random(n) < noise, (looks + random.integers(1, k, n)) % k, looks)
    numbers = [{"number": i} for i in range(n)]
    return RowsToLabel("noisy", numbers, Rows(features), truth=[str(label) for label in labels])


def small_job(**options: Any) -> sa.Labelling:
    return sa.Labelling(SMALL_ROWS, labels=["a", "b", "c"], target=1.0, **options)


def answer_some(job: sa.Labelling, truth: list[str | None], count: int) -> None:
    """Answer some questions as a person who knows the truth."""
    for _ in range(count):
        question = job.ask()
        label = truth[question.row]
        job.answer(question, **({"label": label} if label in question.labels else {"none": True}))


def add_answers(job: sa.Labelling, answers: list[dict[str, Any]]) -> int:
    """Add answers, each with its row and fields of an `AnswerBody`."""
    bodies = [{"by": ""} | answer for answer in answers]
    return job.add_answers((body.pop("row"), AnswerBody(**body)) for body in bodies)
