"""A labeller that knows the truth: how many clicks would it take?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from superarm._types import JsonObject
from superarm.label.labelling import Labelling
from superarm.label.question import Question


def simulate_labeller(
    job: Labelling,
    truth: list[str | None],
    *,
    wrong: float = 0.0,
    progress: Callable[[int], object] = lambda items: None,
) -> JsonObject:
    """Answer every question out of ``truth``, the label of each row of the table; what came of it.

    Args:
        job: a new labelling.
        truth: of each row.
        wrong: the share of clicks that fall beside: any other of the things that could be said, alike.
        progress: is told how many more rows were labelled.
    """
    random = np.random.default_rng((job.seed, 5))
    while (question := job.ask()) is not None:
        n_done = len(job.state.done_order)
        job.answer(question, **simulated_answer(question, truth[question.row], wrong, random))
        progress(len(job.state.done_order) - n_done)
    outcome = job.progress()
    labels = [result["label"] for result in job.results()]
    n_labelled = len(labels) - labels.count(None)
    n_wrong = sum(label not in (None, right) for label, right in zip(labels, truth, strict=True))
    return {
        "rows": outcome.rows,
        "n_labels": len(job.label_names),
        "target": job.target,
        "clicks": outcome.clicks,
        "audits": outcome.audits,
        "clicks_per_row": round(outcome.clicks / outcome.rows, 4),
        "labelled": n_labelled,
        "wrong": n_wrong,
        "wrong_rate": round(n_wrong / max(1, n_labelled), 5),
        "estimated_wrong_rate": None if outcome.wrong is None else round(outcome.wrong, 5),
        "interval": None if outcome.interval is None else [round(end, 5) for end in outcome.interval],
        "by_tenth": [rate for _, rate in job.curve(10)],
    }


def simulated_answer(
    question: Question, truth: str | None, wrong: float, random: np.random.Generator
) -> JsonObject:
    """What a person who knows the truth clicks, or beside it, as arguments of `Labelling.answer`."""
    if question.yes_no:
        return {"yes": (truth in question.labels) != (random.random() < wrong)}
    label = truth if truth in question.labels else None
    if wrong and random.random() < wrong:
        others = [other for other in (*question.labels, None) if other != label]
        label = others[int(random.integers(len(others)))]
    return {"none": True} if label is None else {"label": label}
