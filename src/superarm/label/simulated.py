"""A labeller that knows the truth: how many clicks would it take?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from superarm.label.job import Labelling
from superarm.label.question import Question


def play(
    job: Labelling,
    truth: list[str | None],
    *,
    wrong: float = 0.0,
    progress: Callable[[int], object] | None = None,
) -> dict[str, Any]:
    """Answer every question out of ``truth``, the label of each row of the table; what came of it.

    Args:
        job: a new labelling.
        truth: of each row.
        wrong: the share of clicks that fall beside: any other of the things that could be said, alike.
        progress: hears how many rows were labelled.
    """
    random = np.random.default_rng((job.seed, 5))
    done = 0
    while (question := job.ask()) is not None:
        job.answer(question, **_answer(question, truth[question.number], wrong, random))
        if progress is not None and len(job.state.done_order) > done:
            progress(len(job.state.done_order) - done)
            done = len(job.state.done_order)
    results, outcome = job.results(), job.progress()
    labelled = [
        (result["label"], label) for result, label in zip(results, truth, strict=True) if result["label"]
    ]
    missed = sum(label != right for label, right in labelled)
    return {
        "rows": outcome.rows,
        "n_labels": len(job.label_names),
        "target": job.target,
        "clicks": outcome.clicks,
        "audits": outcome.audits,
        "clicks_per_row": round(outcome.clicks / outcome.rows, 4),
        "labelled": len(labelled),
        "wrong": missed,
        "wrong_rate": round(missed / max(1, len(labelled)), 5),
        "estimated_wrong_rate": None if outcome.wrong is None else round(outcome.wrong, 5),
        "interval": None if outcome.interval is None else [round(end, 5) for end in outcome.interval],
        "by_tenth": [rate for _, rate in job.curve(10)],
    }


def _answer(
    question: Question, truth: str | None, wrong: float, random: np.random.Generator
) -> dict[str, Any]:
    """What a person who knows the truth clicks, or beside it."""
    shown = question.labels
    if question.yes_no:
        yes = truth in shown
        return {"yes": yes != (random.random() < wrong)}
    could: list[str | None] = [*shown, None]
    answer = truth if truth in shown else None
    if wrong and random.random() < wrong:
        answer = [other for other in could if other != answer][int(random.integers(len(could) - 1))]
    return {"none": True} if answer is None else {"label": answer}
