"""LabellingState: what the events of a journal come to. A pure function of them, in their order.

For every item: its answers, the beliefs that follow, the most probable label, and the doubt in it, 1 - belief.
The prior of the beliefs is what a model said that had not learnt from the item (model_trials.py).
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from superarm._types import Array, JsonObject
from superarm.journal.events import ANSWER, CHANGE, CORRECTION, Event
from superarm.label.answers import NO_LABEL, Answer, AnswerTable, prior_of_hypotheses
from superarm.label.cross_fitted_model import CrossFittedModel
from superarm.label.error_rates import PersonErrorRates
from superarm.label.label_set import LabelSet
from superarm.label.labelling_journal import LabellingSettings
from superarm.label.model_trials import ModelTrials
from superarm.label.names import TABLE_AS_PERSON
from superarm.label.rows_to_label import RowsToLabel

HIGH_ERROR_RATE = 0.05  # of everybody, in `LabellingState.doubt_at_high_rate`
MIN_DOUBT_FOR_PRIOR = 0.005  # a prior is kept while the doubt at the high error rate is above this
# all is refitted after a quarter more answers, within these limits
MIN_UNTIL_REFIT, MAX_UNTIL_REFIT = 25, 250
MIN_SLIP_PROBABILITY = 0.1  # that a denial was wrong, for the label to be shown again
MIN_DOUBT = 0.01  # a doubt below it is no reason to ask a second time
PRIOR_NONE_FITS, PRIOR_ROWS = 0.1, 100.0  # rows that no label fits, of so many, before there are any answers
CONTESTED_NONE_SHARE = 0.5  # of rows that no label fits, where one person says so, and another not
NOBODY = None  # in `LabellingState.sole_person`


class LabellingState:
    """Labels, doubts and the model, after some events.

    Args:
        rows: what is labelled.
        settings: of the labelling.

    Attributes:
        label_set: which labels there are.
        label: of each item, its index; NO_LABEL if nobody was asked, or no label fits.
        doubt: of each item that was asked about, the probability that its label is wrong.
        doubt_at_high_rate: what the doubt would be if all answers came from people with a high error rate.
        done: whether the item needs no further question: its label was named, all others and that none fits were
            excluded, it is sure enough for the target and not the last one left, or none fits: all labels were denied,
            which is credible, or some of them twice; or that is contested.
        clicks: how many answers to questions there are about each item; those that were taken back do not count.
        skips: how often each item was skipped.
        sole_person: of each item, who gave the only answer to a question that counts; NOBODY if it is not one.
        answers: about each item.
        clicks_by: how many answers to questions each person has given.
        excluded_people: whose answers do not count.
        trials: of the model.
        audited: whether an audit of the item has an answer that counts.
    """

    def __init__(self, rows: RowsToLabel, settings: LabellingSettings) -> None:
        n = len(rows.keys)
        self.rows, self.settings = rows, settings
        self.label_set = LabelSet(settings.labels)
        self.label = np.full(n, NO_LABEL, np.int32)
        features = rows.encode_items(len(settings.labels))
        self.model = CrossFittedModel(features, len(settings.labels), settings.seed)
        self.error_rates = PersonErrorRates(n)
        self.doubt = np.ones(n)
        self.doubt_at_high_rate = np.zeros(n)
        self.done = np.zeros(n, bool)
        self.clicks = np.zeros(n, np.int32)
        self.skips = np.zeros(n, np.int32)
        self.sole_person = np.full(n, NOBODY, object)
        self.answers: dict[int, list[Answer]] = {}
        self.clicks_by: Counter[str] = Counter()
        self.excluded_people: set[str] = set()
        self.trials = ModelTrials(self.model, self.label_set, n)
        self.audited = np.zeros(n, bool)
        # of each person, the item of their last answer or undo, and whether it was an undo
        self._last_item: dict[str, tuple[int, bool]] = {}
        self._done_order: dict[int, None] = {}  # a set that keeps its order
        self._none_fits = np.zeros(n)  # the probability of each item that no label fits
        self._n_none_fits = 0.0  # their sum
        self._answers_until_refit = MIN_UNTIL_REFIT

    # ------------------------------------------------------------ what is known

    @property
    def n_audits(self) -> int:
        """How many items were audited."""
        return int(np.count_nonzero(self.audited))

    @property
    def n_ever_done(self) -> int:
        """How many items have been done at any time."""
        return len(self._done_order)

    @property
    def none_fits_share(self) -> float:
        """The estimated share of rows that no label fits."""
        return (PRIOR_NONE_FITS + self._n_none_fits) / (PRIOR_ROWS + len(self.answers))

    def items_ever_done(self) -> Array:
        """Return the items that have been done at any time, in the order of that."""
        return np.fromiter(self._done_order, np.intp, len(self._done_order))

    def probabilities(self, items: Array) -> Array:
        """Return the model's probability of each label, for some items; 0 for labels that are not live."""
        return self.label_set.current_probabilities(self.model.probabilities(items))

    def belief(self, item: int) -> Array:
        """Return the belief in each label of an item; what is missing to 1 is that none fits."""
        table = self.answer_table(item)
        prior = self._prior_of_hypotheses(table, self.trials.prior(item))
        return table.posterior(prior, self.error_rates.rates(table))[:-1]

    def _prior_of_hypotheses(self, table: AnswerTable, prior: Array) -> Array:
        """Return the prior of each label, and of none; ``prior``: what the model says."""
        share = self.none_fits_share
        if table.is_none_contested:
            share = max(share, CONTESTED_NONE_SHARE)
        return prior_of_hypotheses(self.trials.tempered(prior), share)

    def showable(self, item: int, belief: Array) -> Array:
        """Return for each label whether it may be shown: it was not denied, or that may be a slip, or all were."""
        possible = self.answer_table(item).possible
        if self.done[item] or not possible.any() or belief[~possible].sum() > MIN_SLIP_PROBABILITY:
            return self.label_set.live
        return possible

    def unfinished_item(self, by: str) -> int | None:
        """Return the item that a person is asked about again, after an answer that left it open or was taken back."""
        item, was_undo = self._last_item.get(by, (None, False))
        if item is None or was_undo:
            return item
        answers = self.answers[item]
        return item if answers and answers[-1].hit is not None and not self.done[item] else None

    def people(self) -> set[str]:
        """Return the names of all who have answered under one."""
        return {answer.by for answers in self.answers.values() for answer in answers} - {TABLE_AS_PERSON, ""}

    def active_people(self) -> set[str]:
        """Return the people whose answers to questions count."""
        return {person for person, n_clicks in self.clicks_by.items() if n_clicks} - self.excluded_people

    def valid_answers(self, item: int) -> list[Answer]:
        """Return the answers about an item that count, in the labels of now."""
        counting = (
            self.label_set.current_answer(answer)
            for answer in self.answers.get(item, ())
            if answer.hit is not None and answer.by not in self.excluded_people
        )
        return [answer for answer in counting if answer is not None]

    def answer_table(self, item: int) -> AnswerTable:
        """Return the answers about an item that count, against every label."""
        return AnswerTable(self.valid_answers(item), self.label_set.live, self.settings.yes_no)

    # ------------------------------------------------------------ events

    def apply(self, event: Event) -> None:
        """Apply the next event of the journal."""
        item = self.rows.item_of_key.get(event.id)
        if event.kind == CHANGE:
            self._apply_change(event.body)
        elif item is None:
            return  # the table does not have it any more
        elif event.kind == CORRECTION:
            self._take_back(item, event.body.target_seq)
            self._last_item[event.body.by] = item, True
        elif event.kind == ANSWER:
            answer = Answer.from_body(event.body, self.label_set.index_of, event.seq)
            self._add_answer(item, answer)
            if not answer.final:
                self._last_item[answer.by] = item, False

    def _apply_change(self, change: JsonObject) -> None:
        """Apply a change of labels or people; changes of rows and settings change nothing here."""
        labels = self.label_set
        items = list(self.answers)
        match change:
            case {"what": "add label", "label": name}:
                items = self._add_label(name)
            case {"what": "rename label", "label": old, "to": new}:
                labels.rename(old, new)
                items = []
            case {"what": "merge label", "label": name, "to": into}:
                labels.merge(name, into)
            case {"what": "disable label", "label": name}:
                labels.disable(name)
            case {"what": "exclude person", "person": person}:
                self.excluded_people.add(person)
            case {"what": "include person", "person": person}:
                self.excluded_people.discard(person)
            case _:
                items = []
        for item in items:
            self._update_item(item)

    def _add_answer(self, item: int, answer: Answer) -> None:
        """Add an answer about an item, or that it was skipped."""
        self.answers.setdefault(item, []).append(answer)
        if answer.is_click:
            self.clicks_by[answer.by] += 1
            self.trials.begin(item, is_audit=answer.is_audit)
        self._update_item(item)
        if answer.hit is None:
            return
        self._answers_until_refit -= 1
        if self._answers_until_refit <= 0:
            self._refit()
            quarter = self.clicks.sum() // 4
            self._answers_until_refit = int(np.clip(quarter, MIN_UNTIL_REFIT, MAX_UNTIL_REFIT))

    def _take_back(self, item: int, seq: int) -> None:
        """Take back the answer about an item whose event has a number."""
        for answer in self.answers[item]:
            if answer.seq == seq and answer.is_click:
                self.clicks_by[answer.by] -= 1
        self.answers[item] = [answer for answer in self.answers[item] if answer.seq != seq]
        self._update_item(item)

    def _add_label(self, name: str) -> list[int]:
        """Add a new label, or one that was disabled, and return the items whose label may be another now."""
        n_before = len(self.label_set.names)
        index = self.label_set.add(name)
        if index < n_before:
            self.trials.enable_label(index)
            return list(self.answers)
        self.model.add_label()
        return [item for item in self.answers if self.label[item] == NO_LABEL]

    # ------------------------------------------------------------ what follows from them

    def _refit(self) -> None:
        """Estimate how sure the model may be and how often people are wrong, and update the doubtful items."""
        doubtful = self.trials.refit(self.done)
        self.error_rates.fit()
        for item in doubtful:
            self._update_item(item)

    def _update_item(self, item: int) -> None:
        """Find the label of an item, the doubt in it, and whether it is done; let the model learn it."""
        table = self.answer_table(item)
        self._count_answers(item, table)
        self._set_none_fits(item, 0.0)
        if not table.answers:
            self.label[item], self.doubt[item], self.done[item] = NO_LABEL, 1.0, False
            self.error_rates.remove_answers(item)
            return
        prior = self.trials.prior(item)
        self._find_label(item, table, self._prior_of_hypotheses(table, prior))
        self.done[item] = self._is_done(item, table)
        if not self.done[item]:
            return
        self._done_order.setdefault(item)
        if self.label[item] == NO_LABEL:
            return
        if self.doubt[item] < 0.5:
            self.model.learn(item, self.label)
        is_doubtful = self.doubt_at_high_rate[item] > MIN_DOUBT_FOR_PRIOR
        self.trials.keep_prior(item, prior if is_doubtful else None)

    def _count_answers(self, item: int, table: AnswerTable) -> None:
        """Count the answers about an item, of which those in the table count for its label."""
        answers = self.answers[item]
        people = [answer.by for answer in table.answers if not answer.final]
        self.clicks[item] = sum(answer.is_click for answer in answers)
        self.skips[item] = sum(answer.hit is None for answer in answers)
        self.sole_person[item] = people[0] if len(people) == 1 else NOBODY
        self.audited[item] = self.trials.is_audit(item) and bool(people)

    def _find_label(self, item: int, table: AnswerTable, prior: Array) -> None:
        """Find the label that is believed in most, or that none fits, and the doubts in it and in the model."""
        belief = table.posterior(prior, self.error_rates.rates(table))
        none = len(belief) - 1
        best = none if table.all_denied else int(belief.argmax())
        self.label[item], self.doubt[item] = NO_LABEL if best == none else best, 1.0 - belief[best]
        self.doubt_at_high_rate[item] = 1.0 - table.posterior(prior, HIGH_ERROR_RATE)[best]
        self._set_none_fits(item, float(belief[none]))
        self.error_rates.set_answers(item, prior, table)
        self.trials.set_error(item, belief)

    def _set_none_fits(self, item: int, probability: float) -> None:
        self._n_none_fits += probability - self._none_fits[item]
        self._none_fits[item] = probability

    def _is_done(self, item: int, table: AnswerTable) -> bool:
        """Return whether no further question is needed: it was named, all others are excluded, or it is sure enough."""
        doubt = float(self.doubt[item])
        if table.is_named or table.is_none_contested:
            return True
        if table.all_denied:
            denied_twice = np.count_nonzero(~table.is_true[:, :-1], axis=0)[self.label_set.live] > 1
            return bool(doubt < MIN_DOUBT or denied_twice.all() or (doubt < 0.5 and denied_twice.any()))
        label = int(self.label[item])
        if label == NO_LABEL:
            return False
        if table.possible.sum() == 1 and table.possible[label]:
            # the last one is asked about, unless somebody has said that a label fits
            return not table.none_possible
        return doubt <= (1.0 - self.settings.target) / 2.0
