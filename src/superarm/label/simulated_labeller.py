"""A labeller that knows the truth: how many clicks would it take?"""

from __future__ import annotations

import numpy as np

from superarm._progress import Progress, progress_bar
from superarm._types import JsonObject
from superarm.label.labelling import Labelling
from superarm.label.question import Question

CLICKS = 5  # the stream of random numbers, beside the seed


def simulate_labeller(
    job: Labelling,
    truth: list[str | None],
    *,
    wrong: float = 0.0,
    progress: Progress = None,
) -> JsonObject:
    """Answer every question out of ``truth``, the label of each row of the table, and return what came of it.

    Args:
        job: a new labelling.
        truth: of each row.
        wrong: the share of wrong clicks: each other possible answer with the same probability.
        progress: True shows a bar; a function is called with the number of items labelled since its last call.
    """
    random = np.random.default_rng((job.settings.seed, CLICKS))
    with progress_bar(len(job.rows.keys), "rows", progress=progress) as tick:
        while (question := job.ask()) is not None:
            n_before = job.state.n_ever_done
            job.answer(question, **simulated_answer(question, truth[question.row], wrong, random))
            tick(job.state.n_ever_done - n_before)
    state = job.progress()
    results = job.results()
    settled = [
        (result["label"], right) for result, right in zip(results, truth, strict=True) if result["how"]
    ]
    n_wrong = sum(label != right for label, right in settled)  # that none fits may be wrong, too
    return {
        "rows": state.rows,
        "n_labels": len(job.label_names),
        "target": job.settings.target,
        "clicks": state.clicks,
        "audits": state.audits,
        "clicks_per_row": round(state.clicks / state.rows, 4),
        "labelled": state.labelled,
        "none_fits": state.none_fits,
        "wrong": n_wrong,
        "wrong_rate": round(n_wrong / max(1, len(settled)), 5),
        "estimated_wrong_rate": None if state.wrong is None else round(state.wrong, 5),
        "target_met": state.target_met,
        "interval": None if state.interval is None else [round(end, 5) for end in state.interval],
        "by_tenth": [rate for _, rate in job.curve(10)],
    }


def simulated_answer(
    question: Question, truth: str | None, wrong: float, random: np.random.Generator
) -> JsonObject:
    """Return what a person who knows the truth answers, or a wrong answer, as arguments of `Labelling.answer`."""
    if question.yes_no:
        return {"yes": (truth in question.labels) != (random.random() < wrong)}
    label = truth if truth in question.labels else None
    if wrong and random.random() < wrong:
        others = [other for other in (*question.labels, None) if other != label]
        label = others[int(random.integers(len(others)))]
    return {"none": True} if label is None else {"label": label}
