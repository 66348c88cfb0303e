"""What answers about one item say of its label.

    b_r  ∝  (1 - pi) p_r  Π_j L_j(r)      p by a model that has not learnt from the item, L_j of the j-th answer
    b_0  ∝  pi  Π_j L_j(0)                of 0, that no label fits; pi is the share of such rows

A person is wrong with probability e, and then gives each of the a other possible answers with the same probability:

    "it is c" (a = labels shown):    L(c) = 1 - e,   L(r) = e / a   for all others
    "none of S", "yes", "no":        L(r) = 1 - e    where that is true of r,   e / a   where not

Of 0 each "none of S" and each "no" is true. A label that was added later is not in S: rows of which all labels were
denied may have the new one, or none. Answers before a final one do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from superarm._types import Array, JsonObject

if TYPE_CHECKING:
    from superarm.journal.events import AnswerBody

NO_LABEL = -1
# the share of a model's probabilities that is spread over all labels: no label is impossible
PRIOR_FLOOR = 0.02


class Answer(NamedTuple):
    """What a person said about an item, labels by their indices.

    Attributes:
        seq: the number of its event.
        by: who said it.
        shown: the labels of the question.
        hit: whether the right label is among them; None if the question was skipped.
        label: the right label, where it was chosen; else NO_LABEL.
        is_audit: whether the item would have been accepted unasked.
        final: whether earlier answers do not count: a label of the table, or the end of a disagreement, which may be
            that none of the labels shown, all of that time, fits.
    """

    seq: int
    by: str
    shown: tuple[int, ...]
    hit: bool | None
    label: int = NO_LABEL
    is_audit: bool = False
    final: bool = False

    @property
    def is_click(self) -> bool:
        """Whether the answer is a click: to a question, not skipped, and not a final label."""
        return self.hit is not None and not self.final

    @property
    def named_label(self) -> int:
        """The label that the answer names: the one that was chosen, or the only one of a yes; else NO_LABEL."""
        if self.label == NO_LABEL and self.hit and len(self.shown) == 1:
            return self.shown[0]
        return self.label

    @classmethod
    def from_body(cls, body: AnswerBody, index_of: Mapping[str, int], seq: int = 0) -> Answer:
        """Return the answer of an event, with the indices of its labels."""
        shown = tuple(index_of[name] for name in body.labels or ())
        label = NO_LABEL if body.label is None else index_of[body.label]
        hit = label != NO_LABEL if body.final else body.hit
        return cls(seq, body.by, shown, hit, label, body.audit, body.final)

    def to_dict(self, names: Sequence[str]) -> JsonObject:
        """Return the answer with names of labels: who gave it, the labels shown, hit, the label, and if it is final."""
        return {
            "by": self.by,
            "labels": [names[label] for label in self.shown],
            "hit": self.hit,
            "label": None if self.label == NO_LABEL else names[self.label],
            "final": self.final,
        }


def mentioned_labels(body: AnswerBody) -> list[str]:
    """Return the labels that were shown, and the one that was named."""
    return [*(body.labels or ()), *(() if body.label is None else (body.label,))]


def is_hit(body: AnswerBody) -> bool:
    """Return whether the right label is among those shown; if an answer does not say so, by the label that it names."""
    if body.hit is not None:
        return body.hit
    return body.label is not None and (not body.labels or body.label in body.labels)


class AnswerTable:
    """All answers about one item that count, against every label, and, last, that none fits: the hypotheses.

    Error rates e are those of each answer, or of all. Where one person has denied every label and another has not, who
    repeats an answer is no further witness: it counts once.

    Args:
        answers: about the item, oldest first.
        live: whether each label may be given.
        yes_no: whether questions are answered with yes or no.

    Attributes:
        answers: as given, but for repeated ones that do not count.
        is_true: for each answer and each hypothesis, whether the answer is true under it.
        is_final: for each answer.
        n_others: a, for each answer.
        possible: for each label, whether it is live, and all answers since the last final one are true of it.
        none_possible: whether all answers since the last final one are true if no label fits.
        is_none_contested: whether one person has denied every label, another has not, and nobody had the last word.
    """

    def __init__(self, answers: Sequence[Answer], live: Array, yes_no: bool) -> None:
        is_true: Array = np.zeros((len(answers), len(live) + 1), bool)
        for row, answer in zip(is_true, answers, strict=True):
            if answer.label != NO_LABEL:
                row[answer.label] = True
            else:
                row[list(answer.shown)] = True
                row ^= not answer.hit
        self.is_none_contested = _is_none_contested(answers, live, is_true)
        if self.is_none_contested:
            last = {(answer.by, is_true[i].tobytes()): i for i, answer in enumerate(answers)}
            counting = sorted(last.values())
            answers, is_true = [answers[i] for i in counting], is_true[counting]
        self.answers, self.is_true = answers, is_true
        self.is_final = np.array([answer.final for answer in answers], bool)
        self.n_others = np.array([1 if yes_no else max(1, len(answer.shown)) for answer in answers], float)
        self._begin = int(np.flatnonzero(self.is_final)[-1]) if self.is_final.any() else 0
        is_possible = np.logical_and.reduce(is_true[self._begin :])
        self.possible: Array = live & is_possible[:-1]
        self.none_possible = bool(is_possible[-1])

    @property
    def all_denied(self) -> bool:
        """Whether people have denied every label."""
        return self.none_possible and not self.possible.any()

    @property
    def is_named(self) -> bool:
        """Whether a label was named, since the last final answer."""
        return any(answer.named_label != NO_LABEL for answer in self.answers[self._begin :])

    def likelihoods(self, e: Array | float) -> Array:
        """Return the probability of each answer under each hypothesis; final ones are right."""
        e = np.where(self.is_final, 0.0, e)
        return np.where(self.is_true, (1.0 - e)[:, None], (e / self.n_others)[:, None])

    def posterior(self, prior: Array, e: Array | float) -> Array:
        """Return the belief in each hypothesis, by their `prior_of_hypotheses`."""
        belief: Array = prior * self.likelihoods(e)[self._begin :].prod(axis=0)
        belief /= belief.sum()
        return belief


def _is_none_contested(answers: Sequence[Answer], live: Array, is_true: Array) -> bool:
    """Return whether one person has denied every label, another has not, and nobody had the last word."""
    if any(answer.final for answer in answers):
        return False
    affirming = {answer.by for answer in answers if answer.hit}
    denying = {answer.by for answer in answers} - affirming
    return bool(affirming) and any(
        not (live & is_true[[answer.by == by for answer in answers], :-1].all(axis=0)).any() for by in denying
    )


def prior_of_hypotheses(p: Array, none_share: float) -> Array:
    """Return the prior of each label, and of none; a share of a model's ``p`` goes to all labels not excluded."""
    spread = PRIOR_FLOOR * (p > 0.0) / max(1, int(np.count_nonzero(p)))
    return np.append((1.0 - none_share) * ((1.0 - PRIOR_FLOOR) * p + spread), none_share)
