"""Coverage: what a rule has promised, and what was kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage that was promised, and what was kept of it.

    Attributes:
        promised: how often the right label is to be shown, at least.
        kept: how often it was, among answers that count; nan before the first.
        mean_size: how many labels those sets had; nan before the first.
        answers: how many answers count. (Where some labels cannot be shown, a no counts by
            the belief that the truth is one that can.)
        warm_up: the rounds before the promise counts.
        threshold: q, which the answers move.
        edge: the least probability that is shown, exp(-q); 0 where q is so large that everything is.
        capped_misses: misses among sets that set_size made smaller than the promise asks for.
        noes_to_all: noes to sets of all labels beyond what false_no explains: the answers are wrong, or the truth
            is none of the labels. (Without false_no they do not count.)
        trouble: why the promise cannot be kept, and what that costs; ``None`` while it can.
    """

    promised: float
    kept: float
    mean_size: float
    answers: float
    warm_up: int
    threshold: float
    edge: float
    capped_misses: float
    noes_to_all: float
    trouble: str | None = None
