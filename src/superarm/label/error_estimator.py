"""How many labels are wrong.

The model's doubt in its best label understates errors. So each first question about an item is a trial of the model:
was its best label wrong? But most of those items were chosen because they were doubtful. **Audits** were not: they are
drawn at random from those that would be accepted unasked. From both follows the probability that a label is wrong,
given the model's doubt in it, with a floor that no certainty of the model goes below (error_curve.py); all other trials
together count as much as a quarter of the audits, within limits. Then

    wrong labels  W = sum of rows × Pr(wrong) of items nobody was asked about + sum of rows × doubt of the others

with an interval from the posterior of that curve, and the error probability of each item. Its upper end takes people to
be wrong as often as their answers allow: at first, when a model knows too little to contradict them, that is often.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from superarm._types import Array
from superarm.label.error_curve import ErrorCurve, recency_weights
from superarm.label.state import HIGH_ERROR_RATE, LabellingState
from superarm.theory.platt import logit

# what all trials that are no audits count as, together: so many times the audits, within limits
OTHERS_PER_AUDIT, MIN_OTHERS, MAX_OTHERS = 0.25, 20.0, 100.0
MIN_AUDITS = 100  # before any label is accepted
Z_OF_SHARE = {0.8: 0.8416, 0.975: 1.96}  # quantiles of the normal distribution
BATCH_SIZE = 4096  # items that are scored at once


class TargetEstimate(NamedTuple):
    """How far it is to the target.

    Attributes:
        is_reached: with a probability of 80 %, enough labels are right, and there were enough audits.
        accept_below: items nobody was asked about could be accepted, and the target met, if their error probability
            is below this.
        items_left: how many must be asked about before the end, about; None if all of them will not do.
    """

    is_reached: bool
    accept_below: float
    items_left: int | None


class ErrorEstimator:
    """Estimates, from scores of items, how many labels are wrong and how far the target is.

    Args:
        state: what the answers say.

    Attributes:
        model_label: of each item, the model's label, as of when it was scored.
        estimate: the last one.
    """

    def __init__(self, state: LabellingState) -> None:
        self._state = state
        self._rows_per_item = rows_per_item = state.rows.rows_per_item
        self._max_wrong_share = 1.0 - state.settings.target
        self._max_wrong = self._max_wrong_share * float(rows_per_item.sum())
        self.model_label = np.zeros(len(rows_per_item), np.int32)
        self._logit_doubt = np.full(len(rows_per_item), logit(1.0))  # the model's own doubt in that label
        self._curve = ErrorCurve(*np.zeros((3, 0)))
        self._lasting_error = 0.0  # the part of the floor that audits have found: learning will not lower it
        self.estimate = TargetEstimate(False, 0.0, len(rows_per_item))

    # ------------------------------------------------------------ scores

    def score(self, items: Array) -> None:
        """Predict the labels of items, also of those that people were asked about, which may come open again."""
        for start in range(0, len(items), BATCH_SIZE):
            batch = items[start : start + BATCH_SIZE]
            p = self._state.probabilities(batch)
            self.model_label[batch] = p.argmax(axis=1)
            self._logit_doubt[batch] = logit(1.0 - p.max(axis=1))

    def error_probabilities(self, items: Array) -> Array:
        """Return the probability that the model's label of each item is wrong."""
        return self._curve.error_probabilities(self._logit_doubt[items])

    def n_audits_needed(self) -> float:
        """Return how many more audits there must be before any label is accepted unasked."""
        n_open = np.count_nonzero(~self._state.done)
        return max(0.0, float(min(MIN_AUDITS, n_open / 3) - self._state.n_audits))

    # ------------------------------------------------------------ estimates

    def expected_wrong_asked(self) -> float:
        """Return how many labels of items that were asked about are expected to be wrong."""
        return float((self._rows_per_item * self._state.doubt)[self._state.done].sum())

    def upper_wrong_asked(self) -> float:
        """Return the bound that wrong labels of items that were asked about are below, with a chance of 80 %."""
        asked = self.expected_wrong_asked()
        return asked + _spread(asked, asked, Z_OF_SHARE[0.8])

    def _expected_wrong_at_upper_rates(self) -> float:
        """Return how many labels of items that were asked about are expected to be wrong, at upper error rates.

        After one answer, doubt / (1 - doubt) is a multiple of rate / (1 - rate); after several it rises faster, but is
        small.
        """
        state = self._state
        rate = self._state.error_rates.upper_rates()
        high = HIGH_ERROR_RATE
        ratio = state.doubt_at_high_rate / np.maximum(1e-12, 1.0 - state.doubt_at_high_rate)
        ratio *= rate / (1.0 - rate) * (1.0 - high) / high
        doubt = np.maximum(state.doubt, ratio / (1.0 + ratio))
        return float((self._rows_per_item * doubt)[state.done].sum())

    def expected_wrong_labels(self, accepted: Array) -> float:
        """Return how many labels are expected to be wrong, of items that were asked about and of accepted ones."""
        errors = self.error_probabilities(accepted) * self._rows_per_item[accepted]
        return self.expected_wrong_asked() + float(errors.sum())

    def interval(self, accepted: Array) -> tuple[float, float]:
        """Return the 95 % interval of wrong labels, of items that were asked about and of accepted ones."""
        low, high = self._bounds(accepted, 0.975)
        z, asked = Z_OF_SHARE[0.975], self.expected_wrong_asked()
        at_upper_rates = self._expected_wrong_at_upper_rates()
        high += at_upper_rates - asked + _spread(at_upper_rates, asked, z) - _spread(asked, asked, z)
        return (low if low >= 1.0 else 0.0), high  # less than one label is none

    def _bounds(self, accepted: Array, share: float) -> tuple[float, float]:
        """Return the bounds of wrong labels: they are above the first, and below the second, with this probability."""
        z, asked = Z_OF_SHARE[share], self.expected_wrong_asked()
        spread = _spread(asked, asked, z)
        logits, n_rows = self._logit_doubt[accepted], self._rows_per_item[accepted]
        error = self.error_probabilities(accepted)
        n_wrong = float((n_rows * error).sum())
        noise = z**2 * float((n_rows**2 * error * (1.0 - error)).sum())
        below = n_wrong - self._curve.quantile(logits, n_rows, 1.0 - share)
        above = self._curve.quantile(logits, n_rows, share) - n_wrong
        # below twice as wide: trials are of the model as it was, which has learnt since
        low = max(0.0, asked - spread) + max(0.0, n_wrong - 2.0 * (below**2 + noise) ** 0.5)
        return low, asked + spread + n_wrong + (max(0.0, above) ** 2 + noise) ** 0.5

    def refresh_estimate(self) -> TargetEstimate:
        """Estimate how far it is to the target, by what is known now."""
        self._calibrate()
        open_items = np.flatnonzero(~self._state.done)
        error = self.error_probabilities(open_items)
        order = np.argsort(error)
        error, n_rows = error[order], self._rows_per_item[open_items[order]]
        n_labelled = self._rows_per_item[self._state.done].sum() + np.cumsum(n_rows)
        expected_wrong = np.cumsum(error * n_rows) + self.expected_wrong_asked()
        is_allowed = expected_wrong <= self._max_wrong_share * n_labelled
        n_accepted = int(np.flatnonzero(is_allowed)[-1]) + 1 if is_allowed.any() else 0
        accept_below = float(error[n_accepted]) if n_accepted < len(error) else 1.0
        _, upper_80 = self._bounds(open_items, 0.8)
        is_reached = upper_80 <= self._max_wrong and not self.n_audits_needed()
        items_left = self._items_left(error, n_rows, upper_80)
        self.estimate = TargetEstimate(is_reached, accept_below, items_left)
        return self.estimate

    def _calibrate(self) -> None:
        """Fit the curve of errors to the trials that there are."""
        items, logits = self._state.trials.recent(self._state.done)
        if len(items):
            is_audit = self._state.audited[items]
            error = self._state.trials.error[items]
            weight = np.where(is_audit, 0.0, recency_weights(len(items)))
            n_others = float(np.clip(OTHERS_PER_AUDIT * np.count_nonzero(is_audit), MIN_OTHERS, MAX_OTHERS))
            weight *= min(1.0, n_others / max(1.0, weight.sum()))
            self._curve = ErrorCurve(logits, error, np.where(is_audit, 1.0, weight))
            n_found = float(error[is_audit].sum())
            self._lasting_error = self._curve.floor * n_found / (n_found + 1.0)

    def _items_left(self, error: Array, n_rows: Array, upper_80: float) -> int | None:
        """Return how many items must be asked about, the most wrong first, until enough labels are right.

        The model learns on the way: its errors fall about like 1 / items that it has learnt from, down to the floor.
        None if all of them will not do: what people said is too doubtful.

        Args:
            error: of each open item, the probability that its label is wrong; the smallest first.
            n_rows: how many rows each stands for.
            upper_80: all wrong labels, and doubts, at the upper bound.
        """
        learnt = max(1, self._state.n_ever_done)
        asked = np.arange(len(error) + 1)
        falling, lasting = (
            np.concatenate([[0.0], np.cumsum(part * n_rows)])[::-1]
            for part in (error - self._lasting_error, self._lasting_error)
        )
        errors = lasting + falling * learnt / (learnt + asked)
        wrong_asked = self.expected_wrong_asked()
        # taking it that the upper bound falls in proportion to what it bounds
        is_enough = (errors + wrong_asked) * upper_80 <= self._max_wrong * (errors[0] + wrong_asked)
        return int(np.flatnonzero(is_enough)[0]) if is_enough.any() else None


def _spread(n_wrong: float, asked: float, z: float) -> float:
    """Return z standard deviations of a number of wrong labels; ``asked``: what is expected at the estimated rates."""
    # the error rates behind doubts are uncertain: their standard deviation is taken to be a half of them
    return z * float(np.sqrt(n_wrong + (asked / 2.0) ** 2))
