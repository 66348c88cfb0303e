"""QuestionPlanner: which item is asked about next, and when to stop. Like the state, a function of the events alone.

**Which item.** The one most likely to be wrong, of a sample: its question takes the most error away, and teaches most.
A share of the questions are audits. With a target of 1 each item is asked about, in random order, and after that those
whose answers are doubtful. Now and then the least credible answer is asked for again: without that, a person who is
often wrong and a model that is too sure of itself could not be told apart.

**Rounds.** In a round of clicks each item is scored once, some at each click, with the model of that time. At its end
the estimates are made anew. So they depend on the last two rounds only: opening a journal repeats these, no more.

**When to stop.** When the upper bound of wrong labels (error_estimator.py) at one-sided 80 % is at most 1 - target;
with a target of 1, when all items were asked about and the doubts add up to one in 1,000. While it is not although all
items were asked about, lesser doubts are asked about, too. If nothing is left to ask then, the target is missed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from superarm._types import Array
from superarm.journal.events import ANSWER, CHANGE, Event
from superarm.label.error_estimator import ErrorEstimator
from superarm.label.names import TABLE_AS_PERSON
from superarm.label.state import MIN_DOUBT, NOBODY, LabellingState

# streams of random numbers, beside the seed (FOLDS of the model is 4, CLICKS of a simulated labeller 5)
ORDER, SECOND_OPINIONS, NEXT_ITEM = 1, 2, 3
AUDIT_SHARE = 0.25  # of the questions
MANY_AUDITS, LATER_AUDIT_SHARE = 1_500, 0.1  # after so many, their share of the questions
EARLY_AUDITS = 0.15  # the share of audits that are asked while no item may be accepted yet
SAMPLE_SIZE = 64  # items among which the next is chosen
FIRST_ITEMS = 50  # that are drawn at random before anything is estimated
MIN_ROUND = 10  # clicks
MAX_SCORED = 200  # items that are scored again at each click, in longer rounds
MAX_WRONG_AT_1 = 1 / 1_000  # the share of wrong labels with a target of 1
CLICKS_PER_RECHECK, MAX_RECHECKS = 50, 40
CLICKS_BETWEEN_SEARCHES = 10  # for an answer to recheck
MIN_DOUBT_TO_RECHECK = 0.2  # at a high error rate
CLEARLY_RIGHT, CLEARLY_WRONG = 0.02, 0.98  # an audit between them (was the model wrong?) is asked again
MAX_ANSWERS = 5  # about one item, once its label was named
MIN_SECOND_OPINIONS = 0.05  # the share of questions that are second opinions while there are some to ask for


class NextItem(NamedTuple):
    """The item to ask about, and whether it would be accepted unasked."""

    item: int
    is_audit: bool


class QuestionPlanner:
    """Decides which item to ask about next.

    Args:
        state: what the answers say.
        estimator: how many labels are wrong.

    Attributes:
        order: the items in random order.
    """

    def __init__(self, state: LabellingState, estimator: ErrorEstimator) -> None:
        self.state, self.estimator, self._settings = state, estimator, state.settings
        self._rows_per_item = state.rows.rows_per_item
        seed = state.settings.seed
        n = len(self._rows_per_item)
        self.order = np.random.default_rng((seed, ORDER)).permutation(n)
        self._rank = np.argsort(self.order)
        draws = np.random.default_rng((seed, SECOND_OPINIONS)).random(n)
        self._wants_second_opinion = draws < self._settings.second_opinion_share
        self._scores_are_stale = True
        self._round_length = max(MIN_ROUND, -(-n // MAX_SCORED))  # clicks
        self._n_clicks, self._n_clicks_in_round = 0, 0
        self._scheduled_rechecks: dict[int, int] = {}  # items, and how many clicks they had then

    @property
    def audit_share(self) -> float:
        """The share of audits among the questions that are asked now."""
        return AUDIT_SHARE if self.state.n_audits < MANY_AUDITS else LATER_AUDIT_SHARE

    # ------------------------------------------------------------ rounds, and the end

    def apply(self, events: list[Event]) -> None:
        """Apply new events of the journal to the state, and score items after each click."""
        clicks_to_come = sum(self._is_click(event) for event in events)
        for event in events:
            is_change = _changes_all_scores(event)
            if self._scores_are_stale and not is_change:  # of several changes, after the last one
                self.begin_round(clicks_to_come)
            self.state.apply(event)
            if is_change:
                self._scores_are_stale = True
            elif self._is_click(event):
                clicks_to_come -= 1
                self._on_click(clicks_to_come)
        if self._scores_are_stale:
            self.begin_round()

    def _is_click(self, event: Event) -> bool:
        if event.kind != ANSWER or event.id not in self.state.rows.item_of_key:
            return False
        return event.body.hit is not None and not event.body.final

    def _on_click(self, clicks_to_come: int) -> None:
        """Score the next items of the round; at its end, make the estimates anew.

        Args:
            clicks_to_come: how many more clicks are in the journal already; scores that these replace are left out.
        """
        self._n_clicks += 1
        self._schedule_recheck()
        if self._settings.target >= 1.0:  # every item is asked about
            return
        n = len(self.order)
        length = self._round_length
        click = self._n_clicks_in_round
        if clicks_to_come <= 2 * length:
            self.estimator.score(self.order[click * n // length : (click + 1) * n // length])
        self._n_clicks_in_round = (click + 1) % length
        if self._n_clicks_in_round == 0 and clicks_to_come <= length:
            self._estimate()

    def begin_round(self, clicks_to_come: int = 0) -> None:
        """Score all items, and make the estimates anew: much has changed at once."""
        self._scores_are_stale, self._n_clicks_in_round = False, 0
        if self._settings.target < 1.0 and clicks_to_come <= self._round_length:
            self.estimator.score(self.order)
            self._estimate()

    def _estimate(self) -> None:
        """Make the estimates anew; where the target seems to be reached, with new scores of all items."""
        if self.estimator.refresh_estimate().is_reached:
            self.estimator.score(self.order)
            self.estimator.refresh_estimate()

    def is_finished(self) -> bool:
        """Return whether enough labels are right."""
        if self.n_second_opinions():
            return False
        return self.is_target_met() or (bool(self.state.done.all()) and not self._recheck_priorities().any())

    def is_target_met(self) -> bool:
        """Return whether enough labels are right, whether or not there is more to ask."""
        if not self.state.done.all():
            return self.estimator.estimate.is_reached
        n_rows = float(self._rows_per_item.sum())
        target = self._settings.target
        if target >= 1.0:
            return self.estimator.expected_wrong_asked() <= MAX_WRONG_AT_1 * n_rows
        return self.estimator.upper_wrong_asked() <= (1.0 - target) * n_rows

    def accepted_items(self) -> Array:
        """Return the items nobody was asked about whose labels are accepted: none before there were enough audits."""
        items = np.flatnonzero(~self.state.done)
        if self._settings.target >= 1.0 or self.estimator.n_audits_needed():
            return items[:0]
        if self.is_finished():
            return items
        return items[self.estimator.error_probabilities(items) < self.estimator.estimate.accept_below]

    # ------------------------------------------------------------ the next item

    def next_item(self, busy: set[int], by: str) -> NextItem | None:
        """Return the item to ask a person about; None if there is none for them now.

        Args:
            busy: items that others are asked about.
            by: who is asked.
        """
        state = self.state
        random = np.random.default_rng((self._settings.seed, NEXT_ITEM, self._n_clicks, len(busy)))
        is_free = np.ones(len(self.order), bool)
        is_free[list(busy)] = False
        open_items = np.flatnonzero(~state.done & is_free)
        priorities = np.where(is_free, self._recheck_priorities(), 0.0)
        is_reached = self.estimator.estimate.is_reached
        wants_opinion = self._second_opinions(by) & is_free
        share = max(self._settings.second_opinion_share, MIN_SECOND_OPINIONS)
        if is_reached and not wants_opinion.any() and not state.done.all():
            return None  # only second opinions are missing, of others
        if wants_opinion.any() and (is_reached or random.random() < share or not len(open_items)):
            priorities[wants_opinion] = np.inf
        recheck = int(priorities.argmax())
        priority = float(priorities[recheck])
        if priority == np.inf or not len(open_items):
            return NextItem(recheck, False) if priority > 0.0 else None
        return self._next_open_item(open_items, priority, random) or NextItem(recheck, False)

    def _next_open_item(self, items: Array, min_wrong: float, random: np.random.Generator) -> NextItem | None:
        """Return which of the open items to ask about.

        None if none of a sample is expected to have so many wrong rows; the first items and audits need not.
        """
        state = self.state
        items = items[state.skips[items] == state.skips[items].min()]  # those that were skipped come last
        if self._settings.target >= 1.0 or state.n_ever_done < min(FIRST_ITEMS, len(self.order) / 4):
            return NextItem(int(items[self._rank[items].argmin()]), False)
        if random.random() < self.audit_share:
            item = self._audit(items, random)
            if item is not None:
                return NextItem(item, True)
        sample = random.choice(items, min(SAMPLE_SIZE, len(items)), replace=False)
        expected_wrong = self.estimator.error_probabilities(sample) * self._rows_per_item[sample]
        best = int(expected_wrong.argmax())
        return None if min_wrong > expected_wrong[best] else NextItem(int(sample[best]), False)

    def _audit(self, items: Array, random: np.random.Generator) -> int | None:
        """Return one of the open items that would be accepted, at random."""
        errors = self.estimator.error_probabilities(items)
        accepted = items[errors < self.estimator.estimate.accept_below]
        # while the doubts in what people said are too many to accept any: a few of those that come first, later
        if not len(accepted) and random.random() < EARLY_AUDITS:
            accepted = items[errors <= np.median(errors)]
        return int(random.choice(accepted)) if len(accepted) else None

    # ------------------------------------------------------------ questions about items that are done

    def _recheck_priorities(self) -> Array:
        """Return for each item how many rows another question may put right; 0 if there is no reason to ask it.

        Infinite are rechecks that are scheduled, and audits that contradict the model, and may have been a slip: all
        estimates stand on audits.
        """
        state, target = self.state, self._settings.target
        min_doubt, max_answers = MIN_DOUBT, MAX_ANSWERS
        if target < 1.0 and state.done.all() and not self.is_target_met():
            # lesser doubts do not keep the target from being met; and an item may have taken many clicks to be named
            min_doubt = min(MIN_DOUBT, (1.0 - target) / 4.0)
            max_answers += len(state.label_set.names) // self._settings.max_labels
        may_recheck = state.done & (state.clicks < max_answers) & (state.skips == 0)
        is_doubtful = may_recheck & (state.doubt >= min_doubt)
        priorities = np.where(is_doubtful, state.doubt * self._rows_per_item, 0.0)
        model_error = state.trials.error
        is_unclear = (model_error > CLEARLY_RIGHT) & (model_error < CLEARLY_WRONG)
        priorities[may_recheck & state.audited & is_unclear] = np.inf
        due = [
            item
            for item, n_clicks in self._scheduled_rechecks.items()
            if state.clicks[item] <= n_clicks and may_recheck[item]
        ]
        priorities[due] = np.inf
        return priorities

    def _schedule_recheck(self) -> None:
        """Schedule a recheck of the least credible answer now and then: it tells people who are often wrong."""
        state, scheduled = self.state, self._scheduled_rechecks
        n_due = min(MAX_RECHECKS, self._n_clicks // CLICKS_PER_RECHECK)
        if n_due <= len(scheduled) or self._n_clicks % CLICKS_BETWEEN_SEARCHES:
            return
        doubts = np.where(state.done, state.doubt_at_high_rate, 0.0)
        doubts[list(scheduled)] = 0.0
        item = int(doubts.argmax())
        if doubts[item] >= MIN_DOUBT_TO_RECHECK:
            scheduled[item] = int(state.clicks[item])

    def n_second_opinions(self) -> int:
        """Return how many second opinions about items that are done are wanted."""
        return int(np.count_nonzero(self._second_opinions()))

    def _second_opinions(self, by: str | None = None) -> Array:
        """Return for each item whether a second opinion is wanted; of ``by``, who must not have given the first.

        Where only one person answers, it is the same.
        """
        state = self.state
        wanted: Array = self._wants_second_opinion & state.done & (state.skips == 0)
        wanted &= state.sole_person != NOBODY
        if len(state.active_people()) > 1:
            wanted &= state.sole_person != by
        return wanted


def _changes_all_scores(event: Event) -> bool:
    """Return whether an event may change the scores of all items: changes of labels and people, labels of the table."""
    return event.kind == CHANGE or (event.kind == ANSWER and event.body.by == TABLE_AS_PERSON)
