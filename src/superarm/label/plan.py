"""Plan: which item is asked about next, and when to stop.

**Which item.** The one most likely to be wrong, of a sample: its question takes the most error away, and teaches most.
A share of the questions are audits. With a target of 1 each item is asked about, in random order, and after that those
whose answers are doubtful. Now and then the least credible answer is asked for again: without that, a person who is
often wrong and a model that is too sure of itself could not be told apart.

**Rounds.** In a round of clicks each item is scored once, some at each click, with the model of that time. At its end
the estimates are made anew. So they depend on the last two rounds only: opening a journal repeats these, no more.

**When to stop.** When the upper bound of wrong labels (wrong_labels.py) at one-sided 80 % is at most 1 - target; with a
target of 1, when all items were asked about and the doubts add up to one in 1,000.
"""

from __future__ import annotations

import numpy as np

from superarm._types import Array
from superarm.label.state import State
from superarm.label.wrong_labels import WrongLabels

AUDIT_SHARE, LATER_AUDIT_SHARE, MANY_AUDITS = 0.25, 0.1, 1_500
EARLY_AUDITS = 0.15  # the share of audits that are asked while no item may be accepted yet
SAMPLE = 64  # items among which the next is chosen
FIRST_ITEMS = 50  # that are drawn at random before anything is estimated
SHORTEST_ROUND, MOST_SCORED = 10, 200  # clicks; items that are scored again at each click, in longer rounds
ALLOWED_AT_1 = 1 / 1_000  # the share of wrong labels with a target of 1
ASK_AGAIN = 0.01  # a doubt below it is no reason to ask a second time
RECENT_CHECKS = 200
SUSPICION, CLICKS_PER_SUSPECT, MOST_SUSPECTS = 0.2, 50, 40
LOOK_FOR_SUSPECTS = 10  # clicks from one time to the next
UNCLEAR = 0.02, 0.98  # an audit that leaves such a chance that the model was wrong is asked again
MOST_ANSWERS = 5  # about one item, once its label was named


class Plan:
    """What to ask next.

    Args:
        state: what the answers say.
        wrong_labels: how many labels are wrong.
        target: the share of labels that shall be right.
        twice: the share of items that are asked about a second time.
        seed: for the order of items.

    Attributes:
        order: the items in random order.
    """

    def __init__(
        self, state: State, wrong_labels: WrongLabels, *, target: float, twice: float, seed: int
    ) -> None:
        self.state, self.wrong_labels, self.target = state, wrong_labels, target
        self._copies, self._twice, self._seed = wrong_labels.copies, twice, seed
        n = len(self._copies)
        self.order = np.random.default_rng((seed, 1)).permutation(n)
        self._rank = np.argsort(self.order)
        self._ask_twice = np.random.default_rng((seed, 2)).random(n) < twice
        self._is_enough = False  # labels are right, by the last estimate
        self._finished: tuple[tuple[int, bool], bool] = (-1, False), False  # as of which version
        self._round = max(SHORTEST_ROUND, -(-n // MOST_SCORED))  # clicks
        self._n_clicks, self._n_clicks_of_round = 0, 0
        # items, and how often they had been asked about when they were found
        self._suspects: dict[int, int] = {}

    @property
    def audit_share(self) -> float:
        """Of the questions that are asked now."""
        return AUDIT_SHARE if self.state.n_audits < MANY_AUDITS else LATER_AUDIT_SHARE

    # ------------------------------------------------------------ rounds, and the end

    def on_click(self, n_ahead: int) -> None:
        """A click has come: score some more items.

        Args:
            n_ahead: how many more have come already: what these will make good need not be done.
        """
        self._n_clicks += 1
        self._find_suspect()
        if self.target >= 1.0:  # every item is asked about
            return
        n, done = len(self.order), self._n_clicks_of_round
        self._n_clicks_of_round += 1
        if n_ahead <= 2 * self._round:
            self.wrong_labels.score(self.order[done * n // self._round : (done + 1) * n // self._round])
        if self._n_clicks_of_round == self._round:
            self._n_clicks_of_round = 0
            if n_ahead <= self._round:
                self._estimate()

    def begin_round(self, n_ahead: int) -> None:
        """Score all items, and make the estimates anew: much has changed at once."""
        self._n_clicks_of_round = 0
        if self.target < 1.0 and n_ahead <= self._round:
            self.wrong_labels.score(self.order)
            self._estimate()

    def _estimate(self) -> None:
        """Make the estimates anew. Before it is called the end, all items are scored with the model of now."""
        wrong_labels = self.wrong_labels
        self._is_enough = wrong_labels.estimate_anew().is_reached and wrong_labels.n_audits_missing() <= 0
        if self._is_enough:
            wrong_labels.score(self.order)
            self._is_enough = wrong_labels.estimate_anew().is_reached

    def is_finished(self) -> bool:
        """Whether enough labels are right."""
        version = self.state.version, self._is_enough
        if self._finished[0] != version:
            self._finished = version, self._find_finished()
        return self._finished[1]

    def _find_finished(self) -> bool:
        if self._second_opinion(set()) is not None:
            return False
        if not self.state.done.all():
            return self._is_enough
        rows = float(self._copies.sum())
        allowed = (1.0 - self.target) * rows if self.target < 1.0 else ALLOWED_AT_1 * rows
        return self.wrong_labels.n_doubted() <= allowed or self._most_doubtful(set()) is None

    def accepted_items(self) -> Array:
        """Items nobody was asked about whose labels are accepted: none before there were enough audits."""
        items = np.flatnonzero(~self.state.done)
        if self.target >= 1.0 or self.wrong_labels.n_audits_missing() > 0:
            return items[:0]
        if self.is_finished():
            return items
        return items[self.wrong_labels.chances(items) < self.wrong_labels.estimate.accept_below]

    # ------------------------------------------------------------ the next item

    def next_item(self, busy: set[int], by: str) -> tuple[int, bool] | None:
        """The item to ask somebody about, and whether it is an audit; None if there is none for them now.

        Args:
            busy: items that others are asked about.
            by: who is asked.
        """
        state = self.state
        random = np.random.default_rng((self._seed, 3, self._n_clicks, len(busy)))
        is_open = ~state.done
        is_open[list(busy)] = False
        second = self._second_opinion(busy, by)
        if second is not None and random.random() < max(self._twice, 0.05):
            return second, False
        for item in (self._suspect(busy), self._unclear_audit(busy)):
            if item is not None:
                return item, False
        doubtful = self._most_doubtful(busy)
        items = np.flatnonzero(is_open)
        if not len(items):
            item = doubtful if second is None else second
            return None if item is None else (item, False)
        items = items[state.skips[items] == state.skips[items].min()]  # those that were skipped come last
        if self.target >= 1.0 or len(state.done_order) < min(FIRST_ITEMS, len(self.order) / 4):
            return int(items[self._rank[items].argmin()]), False
        if random.random() < self.audit_share:
            item = self._audit(items, random)
            if item is not None:
                return item, True
        sample = random.choice(items, min(SAMPLE, len(items)), replace=False)
        wrong = self.wrong_labels.chances(sample) * self._copies[sample]
        best = int(wrong.argmax())
        if doubtful is not None and state.doubt[doubtful] * self._copies[doubtful] > wrong[best]:
            return doubtful, False
        return int(sample[best]), False

    def _audit(self, items: Array, random: np.random.Generator) -> int | None:
        """One of the open items that would be accepted, at random."""
        chances = self.wrong_labels.chances(items)
        accepted = items[chances < self.wrong_labels.estimate.accept_below]
        # while the doubts in what people said are too many to accept any: a few of those that come first, later
        if not len(accepted) and random.random() < EARLY_AUDITS:
            accepted = items[chances <= np.median(chances)]
        return int(random.choice(accepted)) if len(accepted) else None

    def _most_doubtful(self, busy: set[int]) -> int | None:
        """The item whose answers are the most doubtful, and worth another question."""
        state = self.state
        again = state.done & (state.clicks < MOST_ANSWERS) & (state.skips == 0) & (state.doubt >= ASK_AGAIN)
        again[list(busy)] = False
        doubts = np.where(again, state.doubt * self._copies, 0.0)
        worst = int(doubts.argmax())
        return worst if doubts[worst] > 0.0 else None

    def _find_suspect(self) -> None:
        """Now and then the item whose answer is the least credible: so people who are often wrong are found out."""
        state, due = self.state, min(MOST_SUSPECTS, self._n_clicks // CLICKS_PER_SUSPECT)
        if due <= len(self._suspects) or self._n_clicks % LOOK_FOR_SUSPECTS:
            return
        suspicion = np.where(state.done, state.suspicion, 0.0)
        suspicion[list(self._suspects)] = 0.0
        worst = int(suspicion.argmax())
        if suspicion[worst] >= SUSPICION:
            self._suspects[worst] = int(state.clicks[worst] + state.skips[worst])

    def _suspect(self, busy: set[int]) -> int | None:
        """An item that was found suspect, and not asked about since."""
        clicks, skips = self.state.clicks, self.state.skips
        for item, n_before in self._suspects.items():
            if item not in busy and clicks[item] + skips[item] <= n_before:
                return item
        return None

    def _unclear_audit(self, busy: set[int]) -> int | None:
        """An item whose audit contradicts the model, and may have been a slip: all estimates stand on audits."""
        state, (low, high) = self.state, UNCLEAR
        for item, _, audit in reversed(state.checks[-RECENT_CHECKS:]):
            unclear = audit and low < state.check_error[item] < high and not state.skips[item]
            if unclear and state.done[item] and state.clicks[item] < MOST_ANSWERS and item not in busy:
                return item
        return None

    def _second_opinion(self, busy: set[int], by: str | None = None) -> int | None:
        """An item that shall be asked about a second time, if possible of somebody else."""
        if not self._twice:
            return None
        state = self.state
        is_alone = len(state.wrong_answers.answers) == 1
        for item in np.flatnonzero(self._ask_twice & state.done & (state.skips == 0)).tolist():
            people = [answer.by for answer in state.valid_answers(item) if not answer.final]
            if len(people) == 1 and item not in busy and (by is None or people[0] != by or is_alone):
                return item
        return None
