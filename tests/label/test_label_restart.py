"""Whoever opens a journal again finds what there was: to the number, and to the question."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import superarm as sa
from superarm.label.planner import MIN_ROUND
from superarm.label.rows_to_label import RowsToLabel
from superarm.label.simulated_labeller import simulated_answer

LABELS = ["ads", "billing", "login", "parcel"]


def made_up(n: int) -> RowsToLabel:
    """Rows whose place decides the label, nearly always."""
    random = np.random.default_rng(0)
    truth = random.integers(0, len(LABELS), n)
    place = np.eye(len(LABELS))[truth] + 0.4 * random.normal(size=(n, len(LABELS)))
    cells = [{"id": i, "label": LABELS[truth[i]], **{f"x{j}": v for j, v in enumerate(row)}}
             for i, row in enumerate(place.tolist())]  # fmt: skip
    return RowsToLabel.read(cells, answers="label", kinds={"id": "left out"})


def what_is_told(job: sa.Labelling, *people: str) -> Any:
    """All that people are told; and asked, those that are named."""
    questions = []
    for by in people:
        question = job.ask(by)
        questions.append(question and (question.row, question.labels, question.beliefs, question.audit))
    return job.progress(), job.results(), job.people(), job.disagreements(), job.label_names, questions


def act(job: sa.Labelling, truth: list[str | None], random: np.random.Generator) -> None:
    """What somebody might do, mostly clicks."""
    by, chance = str(random.choice(["ann", "bob"])), random.random()
    if chance < 0.04:
        job.undo(by)
    elif chance < 0.06:
        job.set_final_label(
            number := int(random.integers(len(truth))), str(truth[number]) if number % 4 else None, by
        )
    elif chance < 0.07:
        job.add_label(f"label {job.journal.seq}", by)
    elif chance < 0.08 and len(job.label_names) > len(LABELS):
        job.disable_label(job.label_names[-1], by)
    elif (question := job.ask(by)) is not None:
        if chance < 0.15:
            job.skip(question, by)
        else:
            job.answer(question, by=by, **simulated_answer(question, truth[question.row], 0.1, random))


@pytest.mark.parametrize(
    "options",
    [
        {"target": 0.9, "second_opinion_share": 0.2},
        pytest.param({"target": 0.95}, marks=pytest.mark.slow),
        pytest.param({"target": 0.95, "yes_no": True}, marks=pytest.mark.slow),
        pytest.param({"target": 1.0}, marks=pytest.mark.slow),
    ],
)
def test_numbers_and_questions_do_not_depend_on_stopping(options: dict[str, Any], tmp_path: Path) -> None:
    rows, journal, random = made_up(200), tmp_path / "rows.labels.db", np.random.default_rng(1)
    for begun in range(8):
        with sa.Labelling(rows, labels=LABELS, journal=journal, **options) as job:
            for _ in range(int(random.integers(1, 5 * MIN_ROUND))):
                act(job, rows.truth, random)
            before = what_is_told(job)
            job._open_questions.clear()  # what is open is not in the journal, and not shown after it
            questions = what_is_told(job, "ann", "bob")[-1]
        with sa.Labelling(rows, journal=journal, read_only=True, **options) as job:
            assert what_is_told(job) == before, begun
            assert what_is_told(job, "ann", "bob")[-1] == questions, begun
    assert before[0].clicks > 100


KILLED = """
import json, sys
import superarm as sa
from superarm.label.rows_to_label import RowsToLabel
rows = RowsToLabel.read("digits")
job = sa.Labelling(rows, labels=[str(d) for d in range(10)], journal=sys.argv[1], target=0.95)
while (question := job.ask()) is not None:
    progress = job.progress()
    print(json.dumps([progress.clicks, str(progress), question.row, question.labels]), flush=True)
    truth = rows.truth[question.row]
    job.answer(question, **({"label": truth} if truth in question.labels else {"none": True}))
"""


def test_after_a_kill_all_is_as_it_was(tmp_path: Path) -> None:
    journal, before = tmp_path / "digits.labels.db", 0
    for stop in (7, 40, 90):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(journal)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if lines[-1][0] >= before + stop:
                break
        os.kill(process.pid, signal.SIGKILL)
        lines += [json.loads(line) for line in process.stdout if line.endswith("\n")]
        process.wait()
        process.stdout.close()
        with sa.Labelling("digits", journal=journal, target=0.95) as job:
            progress, question = job.progress(), job.ask()
            before, last = progress.clicks, lines[-1]
            if before == last[0]:
                assert [str(progress), question.row, question.labels] == last[1:]


@pytest.mark.parametrize("number", [10**18 + 7, 1e20, -3e38])
def test_huge_numbers_do_not_lock_a_journal(tmp_path: Path, number: float) -> None:
    """Identifiers of 19 digits in every row, or one wrong cell: no update may be refused after its click was kept."""
    rows = [{"id": number if i < 20 else 3.0, "x": float(i % 2)} for i in range(40)]
    path = tmp_path / "clicks.db"
    with sa.Labelling(rows, labels=LABELS[:2], journal=path) as job:
        for _ in range(30):
            if (question := job.ask()) is not None:
                job.answer(question, label=question.labels[0])
        before = what_is_told(job)
    with sa.Labelling(rows, labels=LABELS[:2], journal=path) as job:
        assert what_is_told(job) == before
