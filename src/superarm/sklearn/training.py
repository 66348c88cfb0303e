"""What `fit` learns from, and what it finds out by rows held out: how many passes help, and what a coverage needs.

A learner that has been several times over its rows knows them by heart: there one label is enough for any coverage.
So the threshold of a promise is set on rows that have not been learnt: of five parts each in turn is held out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np

from superarm._types import Array
from superarm.data.rows import Rows
from superarm.decisions.decision import Decision
from superarm.explore.calibration import Calibration
from superarm.explore.cover import Cover
from superarm.losses import softmax
from superarm.sklearn.scorer import log_losses

if TYPE_CHECKING:
    from superarm.learners import Learner

PARTS, MAX_PART = 5, 10_000  # of the rows; rows in a part
MIN_ROWS = 10  # of which some can be held out
ENOUGH_HELD_OUT = 2_000  # rows that tell a threshold: then no further part is held out
TEMPERATURES = np.exp(np.linspace(-3.0, 3.0, 31))
SHARES_OF_EQUAL = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)


class TrainingRows(Protocol):
    """Rows with what is known of their labels."""

    def __len__(self) -> int: ...

    def take(self, numbers: Array) -> Self:
        """Return those of these numbers."""

    def learn(self, learner: Learner, orders: Iterable[Array]) -> None:
        """Teach a learner: one pass in each of these orders."""

    def scores(self, learner: Learner) -> Array:
        """Return the learner's scores of all labels for every row."""

    def losses(self, scores: Array) -> Array:
        """Return how bad the scores are for each row."""

    def beliefs(self, scores: Array, answer_noise: tuple[float, float]) -> Array:
        """Return how probable each label is the right one of each row, all that is known considered."""

    def further_samples(self) -> list[Array]:
        """Return the numbers of rows whose labels are better known than those of all."""


class _Rows:
    rows: Rows

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def scores(self, learner: Learner) -> Array:
        return learner.scores(self.rows)

    def further_samples(self) -> list[Array]:
        return []


class LabelledRows(_Rows):
    """Rows with the numbers of their labels, which answer whether they are in the sets that a learner shows."""

    def __init__(self, rows: Rows, codes: Array) -> None:
        super().__init__(rows)
        self.codes = codes

    def take(self, numbers: Array) -> LabelledRows:
        return LabelledRows(self.rows.take(numbers), self.codes[numbers])

    def learn(self, learner: Learner, orders: Iterable[Array]) -> None:
        for order in orders:
            learner.run(self.rows, self.codes, order)

    def losses(self, scores: Array) -> Array:
        """Return 1 where the best label is wrong: "was it this one?" """
        return np.asarray(scores.argmax(axis=1) != self.codes, np.float64)

    def beliefs(self, scores: Array, answer_noise: tuple[float, float]) -> Array:
        return np.asarray(self.codes[:, None] == np.arange(scores.shape[1]), np.float64)


class AnsweredSets(_Rows):
    """Rows with sets that another system showed, and the answers.

    Attributes:
        sets: the numbers of the labels of each.
        hits: whether the right label was among them.
        propensities: the probability of the set, where it is known.
    """

    def __init__(
        self, rows: Rows, sets: list[Array], hits: list[bool], propensities: list[float | None]
    ) -> None:
        super().__init__(rows)
        self.sets, self.hits, self.propensities = sets, hits, propensities

    def take(self, numbers: Array) -> AnsweredSets:
        columns = ([column[i] for i in numbers] for column in (self.sets, self.hits, self.propensities))
        return AnsweredSets(self.rows.take(numbers), *columns)

    def learn_pass(self, learner: Learner, order: Iterable[int]) -> None:
        """Update a learner with every answer, in this order."""
        order = list(order)
        given = [
            Decision.given(self.rows.row(i), learner.vocabulary.decode(self.sets[i]), self.propensities[i])
            for i in order
        ]
        learner.update_many(given, [self.hits[i] for i in order])

    def learn(self, learner: Learner, orders: Iterable[Array]) -> None:
        """Teach a learner, with smaller and smaller steps."""
        orders = list(orders)
        for number, order in enumerate(orders):
            learner.anneal(1.0 - number / len(orders), len(orders))
            self.learn_pass(learner, order)
        learner.anneal(1.0, len(orders))

    def losses(self, scores: Array) -> Array:
        return log_losses(scores, self.sets, self.hits)

    def beliefs(self, scores: Array, answer_noise: tuple[float, float]) -> Array:
        """Return the probabilities of the labels given the answers.

        Those of the learner are too sure, or not sure enough: they are brought to the temperature, and mixed with
        the share of equal probabilities, that predict the answers best.
        """
        false_no, false_yes = answer_noise
        shown = np.zeros(scores.shape, bool)
        for row, labels in zip(shown, self.sets, strict=True):
            row[labels] = True
        yes = np.where(shown, 1.0 - false_no, false_yes)  # the probability of a yes, for each right label
        likelihood = np.where(np.array(self.hits, bool)[:, None], yes, 1.0 - yes)
        equal = likelihood.mean(axis=1)
        best_loss, joint = np.inf, likelihood / scores.shape[1]
        for temperature in TEMPERATURES:
            p = softmax(temperature * scores)
            answer = (p * likelihood).sum(axis=1)
            for share in SHARES_OF_EQUAL:
                loss = -np.log(np.maximum((1.0 - share) * answer + share * equal, 1e-12)).mean()
                if loss < best_loss:
                    best_loss, joint = loss, ((1.0 - share) * p + share / p.shape[1]) * likelihood
        return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300))

    def further_samples(self) -> list[Array]:
        """Return the rows with a yes: of sets drawn at random they are like all rows, of others the easy ones."""
        return [np.flatnonzero(self.hits)]


class HeldOut(NamedTuple):
    """What rows held out told: how many passes to make, and what a promised coverage needs, if there is one."""

    passes: int
    calibration: Calibration | None


def orders(n_rows: int, passes: int, random: np.random.RandomState, *, shuffle: bool) -> Iterable[Array]:
    """Yield the order of the rows in each pass."""
    for _ in range(passes):
        yield random.permutation(n_rows) if shuffle else np.arange(n_rows)


def try_on_held_out_rows(learner: Learner, data: TrainingRows, passes: int, *, shuffle: bool) -> HeldOut:
    """Find out what helps by copies of a new learner, that learn from a part of the rows and are judged by the others.

    One pass is chosen in place of ``passes`` if it loses less on rows held out, by more than chance would have it.
    """
    rule = learner.rule if isinstance(learner.rule, Cover) else None
    if len(data) < MIN_ROWS or (rule is None and passes == 1):
        return HeldOut(passes, None if rule is None else Calibration())
    random = np.random.RandomState(learner.seed % 2**32)
    parts = np.array_split(random.permutation(len(data)), max(PARTS, len(data) // MAX_PART))

    def held_out_scores(part: Array, count: int) -> Array:
        """Return the scores of a part after so many passes over the others."""
        rest, taught = data.take(np.delete(np.arange(len(data)), part)), copy.deepcopy(learner)
        rest.learn(taught, orders(len(rest), count, random, shuffle=shuffle))
        return data.take(part).scores(taught)

    scores = [held_out_scores(parts[0], passes)]
    if passes > 1:
        once, judging = held_out_scores(parts[0], 1), data.take(parts[0])
        gain = judging.losses(scores[0]) - judging.losses(once)
        if gain.sum() > np.sqrt((gain**2).sum()):
            passes, scores = 1, [once]
    if rule is None:
        return HeldOut(passes, None)
    while len(scores) < len(parts) and sum(map(len, scores)) < ENOUGH_HELD_OUT:
        scores.append(held_out_scores(parts[len(scores)], passes))
    held_out, all_scores = data.take(np.concatenate(parts[: len(scores)])), np.concatenate(scores)
    beliefs, showable = held_out.beliefs(all_scores, (rule.false_no, rule.false_yes)), learner.inputs.showable
    p = softmax(all_scores[:, showable])
    samples = [np.arange(len(held_out)), *held_out.further_samples()]
    calibrations = [
        Calibration.from_rows(p[rows], beliefs[rows][:, showable], rule.coverage, learner.set_size)
        for rows in samples
    ]
    return HeldOut(passes, max(calibrations, key=lambda one: (one.threshold < inf, one.threshold)))
