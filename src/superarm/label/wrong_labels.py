"""How many labels are wrong.

The model's doubt in its best label, d = 1 - max p, understates errors. So each first question about an item checks the
model: with e = 1 if its best label was wrong, logit Pr(e = 1) = a + b logit d (calibration.py). But most of those items
were chosen because they were doubtful. **Audits** were not: they are drawn at random from those that would be accepted
unasked. So they correct a and b, with those of all checks as prior; then

    wrong labels  W = sum of copies × Pr(e = 1) of items nobody was asked about + sum of copies × doubt of the others

with an interval of log W from the covariance of a and b, and the chance of each item.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from superarm._types import Array
from superarm.label.calibration import chance, fit, logit
from superarm.label.state import State

AUDITS_DIFFER = 0.7, 0.25  # how far audits may tell another a and b than all checks: standard deviations
FEWEST_AUDITS = 100  # before any label is accepted
ONE_SIDED_80, TWO_SIDED_95 = 0.8416, 1.96
# for the interval: for each wrong answer that was noticed UNNOTICED more; half of that after FEW_ANSWERS
UNNOTICED, FEW_ANSWERS = 0.5, 1_000.0
BATCH = 4096  # items that are scored at once


class TargetEstimate(NamedTuple):
    """How far it is to the target.

    Attributes:
        is_reached: with a chance of 80 %, enough labels are right.
        accept_below: items nobody was asked about could be accepted, and the target met, if their chance to be wrong is
            below this.
        items_left: how many must be asked about before the end, about; None if all of them will not do.
    """

    is_reached: bool
    accept_below: float
    items_left: int | None


class WrongLabels:
    """Scores of items, and what follows from them.

    Args:
        state: what the answers say.
        copies: how many rows of the table each item stands for.
        target: the share of labels that shall be right.

    Attributes:
        model_label: of each item, the model's label, as of when it was scored.
        model_doubt: of each item, the model's own doubt in it.
        estimate: the last one.
    """

    def __init__(self, state: State, copies: Array, target: float) -> None:
        self._state, self.copies = state, copies
        self._n_allowed = (1.0 - target) * float(copies.sum())
        self._target = target
        self.model_label = np.zeros(len(copies), np.int32)
        self.model_doubt = np.ones(len(copies))
        self._fit, self._covariance = np.array([0.0, 1.0]), np.diag([1.0, 0.25])
        self.estimate = TargetEstimate(False, 0.0, len(copies))

    # ------------------------------------------------------------ scores

    def score(self, items: Array) -> None:
        """Ask the model about items; also about those that people were asked about, which may come open again."""
        for start in range(0, len(items), BATCH):
            batch = items[start : start + BATCH]
            p = self._state.probabilities(batch)
            self.model_label[batch] = p.argmax(axis=1)
            self.model_doubt[batch] = 1.0 - p.max(axis=1)

    def chances(self, items: Array) -> Array:
        """The chance that the model's label of each item is wrong."""
        return chance(self._fit, logit(self.model_doubt[items]))

    def n_audits_missing(self) -> float:
        """How many audits there must be still before any label is accepted unasked; none if 0 or less."""
        n_open = np.count_nonzero(~self._state.done)
        return float(min(FEWEST_AUDITS, n_open / 3) - self._state.n_audits)

    # ------------------------------------------------------------ estimates

    def n_doubted(self) -> float:
        """How many labels of items that were asked about are wrong, about."""
        return float((self.copies * self._state.doubt)[self._state.done].sum())

    def n_wrong(self, accepted: Array) -> float:
        """How many labels are wrong, about, of items that were asked about, and of these, which were not."""
        return self.n_doubted() + float((self.chances(accepted) * self.copies[accepted]).sum())

    def interval(self, accepted: Array, z: float = TWO_SIDED_95) -> tuple[float, float]:
        """Around the wrong labels among items that were asked about, and these, which were not."""
        state, w, doubted = self._state, self.copies[accepted], self.n_doubted()
        # doubts stand on rates of wrong answers that are hardly known themselves: within a half of it, say
        spread = (doubted + (doubted / 2.0) ** 2) ** 0.5
        low, high = max(0.0, doubted - z * spread), doubted + z * spread
        if z == TWO_SIDED_95:
            few = FEW_ANSWERS / (FEW_ANSWERS + float(state.clicks.sum()))
            high += UNNOTICED * state.wrong_answers.n_wrong() * few
        if len(accepted):
            e, logits = self.chances(accepted), logit(self.model_doubt[accepted])
            slope = np.array([(w * e * (1.0 - e)).sum(), (w * e * (1.0 - e) * logits).sum()])
            n_wrong = max(1.0, float((w * e).sum()))
            variance = float(slope @ self._covariance @ slope + (w**2 * e * (1.0 - e)).sum())
            factor = float(np.exp(z * variance**0.5 / n_wrong))
            # below twice as wide: checks are of the model as it was, which has learnt since
            low, high = low + n_wrong / factor**2, high + n_wrong * factor
        return (low if low >= 1.0 else 0.0), high  # less than one label is none

    def estimate_anew(self) -> TargetEstimate:
        """How far it is to the target, by what is known now."""
        self._calibrate()
        open_items = np.flatnonzero(~self._state.done)
        e, w = self.chances(open_items), self.copies[open_items]
        order = np.argsort(e)
        n_labelled = self.copies[self._state.done].sum() + np.cumsum(w[order])
        fits = np.cumsum((e * w)[order]) + self.n_doubted() <= (1.0 - self._target) * n_labelled
        n_accepted = int(np.flatnonzero(fits)[-1]) + 1 if fits.any() else 0
        accept_below = float(e[order][n_accepted]) if n_accepted < len(e) else 1.0
        upper_80 = self.interval(open_items, ONE_SIDED_80)[1]
        items_left = self._items_left((e * w)[order], upper_80)
        self.estimate = TargetEstimate(upper_80 <= self._n_allowed, accept_below, items_left)
        return self.estimate

    def _calibrate(self) -> None:
        checks = self._state.recent_checks()
        if checks:
            items, z, audit = (np.array(column) for column in zip(*checks, strict=True))
            e = self._state.check_error[items]
            prior, _ = fit(z, e)
            self._fit, self._covariance = fit(z[audit], e[audit], prior, AUDITS_DIFFER)

    def _items_left(self, wrong: Array, upper_80: float) -> int | None:
        """How many items must be asked about, the most wrong first, until enough labels are right.

        The model learns on the way: its errors fall about like 1 / items that it has learnt from.
        None if all of them will not do: what people said is too doubtful.

        Args:
            wrong: of each open item, how many labels are, about; the smallest first.
            upper_80: all of them, and doubts, at the upper bound.
        """
        learnt, asked = max(1, len(self._state.done_order)), np.arange(len(wrong) + 1)
        errors = np.concatenate([[0.0], np.cumsum(wrong)])[::-1] * learnt / (learnt + asked)
        doubted = self.n_doubted()
        # the bound comes down with what it bounds
        enough = (errors + doubted) * upper_80 <= self._n_allowed * (errors[0] + doubted)
        return int(np.flatnonzero(enough)[0]) if enough.any() else None
