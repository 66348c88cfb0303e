"""State: what all answers together say. A pure function of the events, in their order.

For every item: its answers, the beliefs that follow, the label that they speak for, and the doubt in it, 1 - belief.
The prior of the beliefs is what a model said that had not learnt from the item. When a half of the model that has not
learnt from it, but more from others, says something else later, that becomes the prior: so wrong clicks of the
beginning are found, without a question.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from superarm._types import Array
from superarm.data.rows import Rows
from superarm.label.belief import Answer, WrongAnswers, possible_labels, posterior
from superarm.label.calibration import fit, logit
from superarm.label.label_set import LabelSet
from superarm.label.model import NO_LABEL, LabelModel
from superarm.label.names import FILE

# a prior is not needed any more if there were no more doubt than this, had a careless person answered
KEEP_PRIOR, CARELESS = 0.005, 0.05
REFIT_AFTER = 25, 250  # after a quarter more answers, within these limits, doubtful items are looked at again
SLIP = 0.1  # a chance of a slip from which denied labels are shown again
MOST_CHECKS = 8_000


class Check(NamedTuple):
    """A first question about an item: it tells whether the model was right.

    Attributes:
        item: which one.
        logit_doubt: of the model, in its best label.
        audit: whether the item was drawn at random from those that would have been accepted unasked.
    """

    item: int
    logit_doubt: float
    audit: bool


class State:
    """Labels, doubts and the model, after some events.

    Args:
        features: of the items.
        labels: the names of the labels.
        target: the share of labels that shall be right: below 1 an item may be left before its label is certain.
        yes_no: whether answers are only yes or no.
        seed: for the model.

    Attributes:
        label_set: which labels there are.
        label: of each item, as a number; -1 if nobody was asked, or no label fits.
        doubt: of each item that was asked about, the chance that its label is wrong.
        suspicion: what the doubt would be, had a careless person answered.
        done: whether the item needs no further question: its label was named, all others were excluded, it is sure
            enough for the target, or none fits.
        clicks, skips: how often each item was answered, and skipped.
        done_order: the items in the order in which they were done first.
        answers: about each item.
        excluded_people: those whose answers do not count.
        n_audits: how many answers were audits.
        checks: of the model, in their order.
        check_error: of each item, the chance that the model's label was wrong when it was first asked about.
        version: a counter of changes: whoever caches what follows from the state compares it.
    """

    def __init__(self, features: Rows, labels: list[str], *, target: float, yes_no: bool, seed: int) -> None:
        n = len(features)
        self.target, self.yes_no = target, yes_no
        self.label_set = LabelSet(labels)
        self.label = np.full(n, NO_LABEL, np.int32)
        self.model = LabelModel(features, len(labels), self.label, seed)
        self.doubt = np.ones(n)
        self.suspicion = np.zeros(n)
        self.done = np.zeros(n, bool)
        self.clicks = np.zeros(n, np.int32)
        self.skips = np.zeros(n, np.int32)
        self.done_order: list[int] = []
        self.answers: dict[int, list[Answer]] = {}
        self.excluded_people: set[str] = set()
        self.wrong_answers = WrongAnswers(n, yes_no)
        self.n_audits = 0
        self.checks: list[Check] = []
        self.check_error = np.zeros(n)
        self.version = 0
        self._prior: dict[int, Array] = {}
        self._prior_lessons: dict[int, int] = {}  # how many the model had had that gave the prior
        self._model_label: dict[int, int] = {}  # when an item was first asked about
        self._was_done = np.zeros(n, bool)
        self._until_refit = REFIT_AFTER[0]
        self._inverse_temperature = 1.0  # the model's probabilities to this power are right

    # ------------------------------------------------------------ beliefs

    def probabilities(self, items: Array) -> Array:
        """The model's, for some items and every label that is live."""
        return self.label_set.current_probabilities(self.model.probabilities(items))

    def belief(self, item: int) -> Array:
        """In each label of an item: the model's probabilities, times what was answered."""
        answers = self.valid_answers(item)
        return self._posterior(self._tempered(self._prior_of(item)), answers)

    def showable(self, item: int, belief: Array) -> Array:
        """Of each label, whether it may be shown: none that was denied, unless all were, or that may be a slip."""
        possible = possible_labels(self.valid_answers(item), self.label_set.live)
        if self.done[item] or belief[possible].sum() < 1.0 - SLIP:
            return self.label_set.live
        return possible

    def _prior_of(self, item: int) -> Array:
        prior = self._prior.get(item)
        if prior is None:
            prior = self.label_set.current_probabilities(self.model.untaught_probabilities(item))[0]
        return prior

    def _tempered(self, prior: Array) -> Array:
        """A model's probabilities, as sure as they may be, for the labels of now."""
        p = self.label_set.current_probabilities(prior[None])[0] ** self._inverse_temperature
        tempered: Array = p / p.sum()
        return tempered

    def _posterior(self, prior: Array, answers: list[Answer]) -> Array:
        rates = {answer.by: self.wrong_answers.rate(answer.by) for answer in answers}
        return posterior(prior, answers, rates, self.yes_no)

    def people(self) -> set[str]:
        """Whoever has answered, with or without a name."""
        return {answer.by for answers in self.answers.values() for answer in answers} - {FILE}

    def valid_answers(self, item: int) -> list[Answer]:
        """The answers about an item that count, in the labels of now."""
        counting = (
            self.label_set.current_answer(answer)
            for answer in self.answers.get(item, ())
            if answer.hit is not None and answer.by not in self.excluded_people
        )
        return [answer for answer in counting if answer is not None]

    def recent_checks(self) -> list[Check]:
        """Those of items whose label was found."""
        return [check for check in self.checks if self.done[check.item]][-MOST_CHECKS:]

    # ------------------------------------------------------------ what happens

    def add_answer(self, item: int, answer: Answer) -> None:
        """Somebody has answered, or skipped the question."""
        if answer.hit is None:
            self.version += 1
            self.skips[item] += 1
            self.answers.setdefault(item, []).append(answer)
            return
        if not answer.final:
            self.clicks[item] += 1
            self.n_audits += answer.audit
            self.wrong_answers.count(answer.by, 1)
            if item not in self._model_label:
                p = self.probabilities(np.array([item]))[0]
                self._prior[item], self._model_label[item] = p, int(p.argmax())
                self._prior_lessons[item] = self.model.n_lessons
                self.checks.append(Check(item, float(logit(1.0 - p.max())), answer.audit))
        self.answers.setdefault(item, []).append(answer)
        self._conclude(item)
        self._until_refit -= 1
        if self._until_refit <= 0:
            self._refit()
            self._until_refit = int(np.clip(self.clicks.sum() // 4, *REFIT_AFTER))

    def take_back(self, item: int, seq: int) -> None:
        """An answer does not hold any more."""
        gone = [answer for answer in self.answers[item] if answer.seq == seq]
        self.answers[item] = [answer for answer in self.answers[item] if answer.seq != seq]
        for answer in gone:
            if answer.hit is None:
                self.skips[item] -= 1
            elif not answer.final:
                self.wrong_answers.count(answer.by, -1)
        self._conclude(item)

    def exclude(self, person: str) -> None:
        """Somebody's answers count no more."""
        self.excluded_people.add(person)
        self._conclude_all()

    def include(self, person: str) -> None:
        """Somebody's answers count again."""
        self.excluded_people.discard(person)
        self._conclude_all()

    def add_label(self, name: str) -> None:
        """A new label, or one that was retired."""
        labels = self.label_set
        retired = labels.retired_number(name)
        if retired is None:
            self.model.add_label()
            labels.add(name)
            without_label = [
                item for item in self.answers if self.done[item] and self.label[item] == NO_LABEL
            ]
            self._conclude_all(without_label)
            return
        labels.live[retired] = True
        for prior in self._prior.values():
            if retired < len(prior) and not prior[retired]:  # made meanwhile, without it
                prior[retired] = 1.0 / len(labels.names)
        self._conclude_all()

    def retire_label(self, name: str) -> None:
        """A label is gone."""
        self.label_set.retire(name)
        self._conclude_all()

    def merge_label(self, name: str, into: str) -> None:
        """A label has become another."""
        self.label_set.merge(name, into)
        self._conclude_all()

    # ------------------------------------------------------------ conclusions

    def _refit(self) -> None:
        """Look again at how sure the model may be, and with that and what is known of people now, at doubtful items."""
        checks = self.recent_checks()
        items, logits, _ = zip(*checks, strict=True) if checks else ((), (), ())
        slope = fit(np.array(logits), self.check_error[list(items)])[0][1]
        self._inverse_temperature = float(np.clip(slope, 0.3, 1.0))
        doubtful = np.array([item for item in self._prior if self.done[item]], np.intp)
        self._refresh_priors(doubtful)
        self.wrong_answers.fit()
        self._conclude_all(doubtful.tolist())

    def _refresh_priors(self, items: Array) -> None:
        """Take what the other half of the model says of items, where that has learnt more than what was asked."""
        model = self.model
        for half, lessons in enumerate(model.n_half_lessons):
            old = [self._prior_lessons.get(int(item), 0) < lessons for item in items]
            stale = items[(model.half_of[items] != half) & np.array(old, bool)]
            if len(stale):
                for item, p in zip(stale.tolist(), model.half_probabilities(half, stale), strict=True):
                    self._prior[item], self._prior_lessons[item] = p, lessons

    def _conclude_all(self, items: list[int] | None = None) -> None:
        """Conclude again about these items, or all that were asked about."""
        for item in list(self.answers) if items is None else items:
            self._conclude(item)

    def _conclude(self, item: int) -> None:
        """Find the label of an item, the doubt in it, and whether it is done; let it teach the model."""
        self.version += 1
        answers = self.valid_answers(item)
        if not answers:
            self.label[item], self.doubt[item], self.done[item] = NO_LABEL, 1.0, False
            self.wrong_answers.set_answers(item, np.ones(1), [])
            return
        prior = self._prior_of(item)
        tempered = self._tempered(prior)
        belief = self._posterior(tempered, answers)
        self.wrong_answers.set_answers(item, tempered, answers)
        label = int(belief.argmax())
        self.label[item], self.doubt[item] = label, 1.0 - belief[label]
        model_label = self._model_label.get(item)
        if model_label is not None:
            self.check_error[item] = 1.0 - belief[self.label_set.merged_into[model_label]]
        if self._none_fits(answers):
            label = self.label[item] = NO_LABEL
            self.doubt[item], self.check_error[item] = 0.0, model_label is not None
            self.wrong_answers.set_answers(item, tempered, [])  # nobody was wrong
        self.done[item] = self._is_done(label, answers, float(self.doubt[item]))
        if not self.done[item]:
            return
        if not self._was_done[item]:
            self._was_done[item] = True
            self.done_order.append(item)
        if label == NO_LABEL:
            return
        if self.doubt[item] < 0.5:
            self.model.teach(item, label)
        careless = posterior(tempered, answers, {a.by: CARELESS for a in answers}, self.yes_no)
        self.suspicion[item] = 1.0 - careless[label]
        if self.suspicion[item] > KEEP_PRIOR:
            self._prior[item] = prior
        else:
            self._prior.pop(item, None)

    def _none_fits(self, answers: list[Answer]) -> bool:
        """Whether people have denied every label."""
        affirmed = any(answer.hit or answer.label >= 0 for answer in answers)
        return not affirmed and not possible_labels(answers, self.label_set.live).any()

    def _is_done(self, label: int, answers: list[Answer], doubt: float) -> bool:
        """Whether no further question is needed: it was named, all others are excluded, or it is sure enough."""
        if label == NO_LABEL or any(a.label >= 0 or (a.hit and len(a.shown) == 1) for a in answers):
            return True
        possible = possible_labels(answers, self.label_set.live)
        return bool(possible.sum() == 1 and possible[label]) or doubt <= (1.0 - self.target) / 2.0
