"""What `fit` learns from, and what it chooses on held-out rows: the number of passes, and the threshold of a coverage.

After several passes a learner has memorised its training rows: one label would be enough there for any coverage. So
the threshold is set by cross-validation in five parts.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING, Self

import numpy as np

from superarm._types import Array
from superarm.data.rows import Rows
from superarm.decisions.decision import Decision
from superarm.explore.cover import Cover
from superarm.losses import softmax
from superarm.sklearn.calibration import ThresholdCalibration
from superarm.sklearn.scorer import log_losses, shown_mask

if TYPE_CHECKING:
    from superarm.learners import Learner

PARTS, MAX_PART = 5, 10_000  # of the rows; rows in a part
MIN_ROWS = 10  # of which some can be held out
ENOUGH_HELD_OUT = 2_000  # rows, after which no further part is held out
TEMPERATURES = np.exp(np.linspace(-3.0, 3.0, 31))
UNIFORM_SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)


class TrainingRows(ABC):
    """Rows, and what is known about their labels."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @abstractmethod
    def take(self, indices: Array) -> Self:
        """Return the rows with these indices."""

    @abstractmethod
    def learn_pass(self, learner: Learner, order: Array) -> None:
        """Update a learner by every row, in this order."""

    def learn(self, learner: Learner, orders: Iterable[Array]) -> None:
        """Update a learner: one pass in each of these orders."""
        for order in orders:
            self.learn_pass(learner, order)

    @abstractmethod
    def losses(self, scores: Array) -> Array:
        """Return a loss of the scores for each row."""

    @abstractmethod
    def posterior(self, scores: Array, answer_noise: tuple[float, float]) -> Array:
        """Return the probability of each label for each row, given what is known about it."""

    def surer_rows(self) -> list[Array]:
        """Return the indices of rows whose labels are better known than those of the others, if there are such."""
        return []


class LabelledRows(TrainingRows):
    """Rows with their labels, as ``label_indices``: the answers to the sets that a learner shows follow from these."""

    def __init__(self, rows: Rows, label_indices: Array) -> None:
        super().__init__(rows)
        self.label_indices = label_indices

    def take(self, indices: Array) -> LabelledRows:
        return LabelledRows(self.rows.take(indices), self.label_indices[indices])

    def learn_pass(self, learner: Learner, order: Array) -> None:
        learner.run(self.rows, self.label_indices, order)

    def losses(self, scores: Array) -> Array:
        """Return 1 where the best label is wrong, else 0."""
        return np.asarray(scores.argmax(axis=1) != self.label_indices, np.float64)

    def posterior(self, scores: Array, answer_noise: tuple[float, float]) -> Array:
        return np.asarray(self.label_indices[:, None] == np.arange(scores.shape[1]), np.float64)


class AnsweredSets(TrainingRows):
    """Rows with sets (indices of labels) that another system showed, whether each hit, and its propensity if known."""

    def __init__(
        self, rows: Rows, sets: list[Array], hits: list[bool], propensities: list[float | None]
    ) -> None:
        super().__init__(rows)
        self.sets, self.hits, self.propensities = sets, hits, propensities

    def take(self, indices: Array) -> AnsweredSets:
        columns = ([column[i] for i in indices] for column in (self.sets, self.hits, self.propensities))
        return AnsweredSets(self.rows.take(indices), *columns)

    def learn_pass(self, learner: Learner, order: Array) -> None:
        given = [
            Decision.given(self.rows.row(i), learner.vocabulary.decode(self.sets[i]), self.propensities[i])
            for i in order
        ]
        learner.update_many(given, [self.hits[i] for i in order])

    def learn(self, learner: Learner, orders: Iterable[Array]) -> None:
        """Update a learner, with smaller steps in each pass."""
        orders = list(orders)
        learner.prepare_passes(len(orders))
        for number, order in enumerate(orders):
            learner.anneal(1.0 - number / len(orders))
            self.learn_pass(learner, order)
        learner.anneal(1.0)

    def losses(self, scores: Array) -> Array:
        return log_losses(scores, self.sets, self.hits)

    def posterior(self, scores: Array, answer_noise: tuple[float, float]) -> Array:
        """Return the probabilities of the labels given the answers.

        The learner's own probabilities are calibrated first: by the temperature and the share of a uniform
        distribution that minimise the log loss of the answers.
        """
        false_no, false_yes = answer_noise
        shown = shown_mask(self.sets, scores.shape[1])
        yes = np.where(shown, 1.0 - false_no, false_yes)  # the probability of a yes, for each right label
        likelihood = np.where(np.array(self.hits, bool)[:, None], yes, 1.0 - yes)
        uniform_answer = likelihood.mean(axis=1)
        best_loss = np.inf
        joint = likelihood / scores.shape[1]
        for temperature in TEMPERATURES:
            p = softmax(temperature * scores)
            answer = (p * likelihood).sum(axis=1)
            for share in UNIFORM_SHARES:
                loss = -np.log(np.maximum((1.0 - share) * answer + share * uniform_answer, 1e-12)).mean()
                if loss < best_loss:
                    best_loss, joint = loss, ((1.0 - share) * p + share / p.shape[1]) * likelihood
        return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300))

    def surer_rows(self) -> list[Array]:
        """Return the rows with a yes: typical rows if sets were drawn at random, else the easy ones."""
        return [np.flatnonzero(self.hits)]


def orders(n_rows: int, passes: int, random: np.random.RandomState, *, shuffle: bool) -> Iterable[Array]:
    """Yield the order of the rows in each pass."""
    for _ in range(passes):
        yield random.permutation(n_rows) if shuffle else np.arange(n_rows)


def try_on_held_out_rows(
    learner: Learner, data: TrainingRows, passes: int, *, shuffle: bool
) -> tuple[int, ThresholdCalibration | None]:
    """Choose the number of passes, and the threshold of a target coverage, on held-out rows.

    Copies of the new learner learn from the other rows. One pass replaces ``passes`` if its loss on held-out rows is
    significantly lower.

    Returns:
        The number of passes; and the calibration, if the learner's rule has a target coverage.
    """
    rule = learner.rule if isinstance(learner.rule, Cover) else None
    if len(data) < MIN_ROWS or (rule is None and passes == 1):
        return passes, None if rule is None else ThresholdCalibration()
    random = np.random.RandomState(learner.seed % 2**32)
    parts = np.array_split(random.permutation(len(data)), max(PARTS, len(data) // MAX_PART))

    def held_out_scores(part: Array, count: int) -> Array:
        """Return the scores of a part after ``count`` passes over the other parts."""
        rest = data.take(np.delete(np.arange(len(data)), part))
        trained = copy.deepcopy(learner)
        rest.learn(trained, orders(len(rest), count, random, shuffle=shuffle))
        return trained.scores(data.take(part).rows)

    scores = [held_out_scores(parts[0], passes)]
    if passes > 1:
        once = held_out_scores(parts[0], 1)
        judging = data.take(parts[0])
        gain = judging.losses(scores[0]) - judging.losses(once)
        if gain.sum() > np.sqrt((gain**2).sum()):
            passes, scores = 1, [once]
    if rule is None:
        return passes, None
    while len(scores) < len(parts) and sum(map(len, scores)) < ENOUGH_HELD_OUT:
        scores.append(held_out_scores(parts[len(scores)], passes))
    held_out = data.take(np.concatenate(parts[: len(scores)]))
    all_scores = np.concatenate(scores)
    posterior = held_out.posterior(all_scores, (rule.false_no, rule.false_yes))
    showable = learner.inputs.showable
    p = softmax(all_scores[:, showable])
    samples = [np.arange(len(held_out)), *held_out.surer_rows()]
    calibrations = [
        ThresholdCalibration.from_rows(p[rows], posterior[rows][:, showable], rule.coverage, learner.set_size)
        for rows in samples
    ]
    return passes, max(calibrations, key=lambda one: (one.threshold < inf, one.threshold))
