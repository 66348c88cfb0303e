"""What answers about one item say of its label.

    b_r  ∝  p_r  Π_j L_j(r)        p by a model that has not learnt from the item, L_j of the j-th answer

A person is wrong with probability e, and then gives each of the a other possible answers with the same probability:

    "it is c" (a = labels shown):    L(c) = 1 - e,   L(r) = e / a   for all others
    "none of S", "yes", "no":        L(r) = 1 - e    where that is true of r,   e / a   where not

Where every label was denied, either a share pi of rows, which no label fits, has one more, or a denial was wrong:

    Pr(none fits)  =  pi Π (1 - e_j)  /  (pi Π (1 - e_j) + (1 - pi) sum of p_r Π_j L_j(r))
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
        final: whether earlier answers do not count: a label of the table, or the end of a disagreement.
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
        return cls(seq, body.by, shown, body.final or body.hit, label, body.audit, body.final)

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
    """All answers about one item that count, against every label. Error rates e are those of each answer, or of all.

    Args:
        answers: about the item, oldest first.
        live: whether each label may be given.
        yes_no: whether questions are answered with yes or no.

    Attributes:
        is_true: for each answer and each label, whether the answer is true if that is the right label.
        is_final: for each answer.
        n_others: a, for each answer.
        possible: for each label, whether it is live, and all answers are true if it is the right one.
    """

    def __init__(self, answers: Sequence[Answer], live: Array, yes_no: bool) -> None:
        self.answers = answers
        self.is_true = np.zeros((len(answers), len(live)), bool)
        for row, answer in zip(self.is_true, answers, strict=True):
            if answer.label != NO_LABEL:
                row[answer.label] = True
            else:
                row[list(answer.shown)] = True
                row ^= not answer.hit
        self.is_final = np.array([answer.final for answer in answers], bool)
        self.n_others = np.array([1 if yes_no else max(1, len(answer.shown)) for answer in answers], float)
        self.possible: Array = live & self.is_true.all(axis=0)

    @property
    def all_denied(self) -> bool:
        """Whether people have denied every label."""
        affirmed = any(answer.hit or answer.label != NO_LABEL for answer in self.answers)
        return not affirmed and not self.possible.any()

    def likelihoods(self, e: Array | float) -> Array:
        """Return the probability of each answer under each label; final ones are right."""
        e = np.where(self.is_final, 0.0, e)
        return np.where(self.is_true, (1.0 - e)[:, None], (e / self.n_others)[:, None])

    def posterior(self, prior: Array, e: Array | float) -> Array:
        """Return the belief in each label."""
        likelihoods = self.likelihoods(e)
        if self.is_final.any():  # of two that contradict each other the later one counts
            likelihoods = likelihoods[self.is_final][-1:]
        belief: Array = floored(prior) * likelihoods.prod(axis=0)
        belief /= belief.sum()
        return belief

    def none_fits_probability(self, prior: Array, e: Array | float, share: float) -> float:
        """Return the probability that no label fits, after answers that deny every label; ``share``: of all rows."""
        none_fits = share * float(np.prod(1.0 - np.broadcast_to(e, len(self.answers))))
        a_slip = floored(prior) @ self.likelihoods(e).prod(axis=0)
        return none_fits / (none_fits + (1.0 - share) * float(a_slip))


def floored(prior: Array) -> Array:
    """Return a model's probabilities, some of which are spread over all labels that it has not excluded."""
    spread = PRIOR_FLOOR * (prior > 0.0) / max(1, int(np.count_nonzero(prior)))
    probabilities: Array = (1.0 - PRIOR_FLOOR) * prior + spread
    return probabilities
