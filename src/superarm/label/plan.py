"""Plan: which item is asked about next, how many labels are wrong, and when that is few enough.

**How wrong the model is.** Its doubt d = 1 - max p understates errors. So each first question checks it: with
e = 1 if its best label was wrong, logit Pr(e = 1) = a + b logit d (calibration.py). But most of those items were chosen
because they were doubtful. **Audits** were not: they are drawn at random from those that would be accepted unasked.
So they correct a and b, with those of all checks as prior; then

    wrong labels  W = sum of copies × Pr(e = 1) of items nobody was asked about + sum of copies × doubt of the others

with an interval of log W from the covariance of a and b, and the chance of each item.

**Which item.** The one most likely to be wrong, of a sample: its question takes the most error away, and teaches most.
A share AUDIT of the questions are audits. With a target of 1 each item is asked about, in random order, and after that
those whose answers are doubtful. Now and then the least credible answer is asked for again: without that, a person who
is often wrong and a model that is too sure of itself could not be told apart.

**Rounds.** In a round of clicks each item is scored once, some at each click, with the model of that time. At its end
the estimates are made anew. So they depend on the last two rounds only: opening a journal repeats these, no more.

**When to stop.** When W's upper bound at one-sided 80 % is at most 1 - target; with a target of 1, when all items were
asked about and the doubts add up to one in 1,000.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from superarm._types import Array
from superarm.label.calibration import chance, fit, logit
from superarm.label.state import State

AUDIT, AUDIT_LATER, MANY_AUDITS, FEW_AUDITS = 0.25, 0.1, 1_500, 100
EARLY_AUDITS = 0.15  # the share of audits that are asked while no item may be accepted yet
SAMPLE = 64  # items among which the next is chosen
FIRST = 50  # items drawn at random before anything is estimated
SHORTEST_ROUND, MOST_SCORED = 10, 200  # clicks; items that are scored again at each click, in longer rounds
AUDITS_DIFFER = 0.7, 0.25  # how far audits may tell another a and b than all checks: standard deviations
ONE_SIDED_80, TWO_SIDED_95 = 0.8416, 1.96
ALLOWED_AT_1 = 1 / 1_000
ASK_AGAIN = 0.01  # a doubt below it is no reason to ask a second time
RECENT_CHECKS = 200
SUSPECT, EVERY_SUSPECT, MOST_SUSPECTS = 0.2, 50, 40
LOOK_FOR_SUSPECTS = 10  # clicks from one time to the next
# for the interval: for each wrong answer that was noticed UNNOTICED more; half of that after FEW_ANSWERS
UNNOTICED, FEW_ANSWERS = 0.5, 1_000.0
UNCLEAR = 0.02, 0.98  # an audit that leaves such a chance that the model was wrong is asked again
MOST_ANSWERS = 5  # about one item, once its label was named


class TargetEstimate(NamedTuple):
    """How far it is to the target.

    Attributes:
        upper_80: with a chance of 80 %, no more rows of the table than this would have a wrong label.
        accept_below: items nobody was asked about could be accepted, and the target met, if their chance to be wrong is
            below this.
        items_left: how many must be asked about before the end, about; None if all of them will not do.
    """

    upper_80: float
    accept_below: float
    items_left: int | None


class Plan:
    """What to ask next.

    Args:
        state: what the answers say.
        copies: how many rows of the table each item stands for.
        target: the share of labels that shall be right.
        twice: the share of items that are asked about a second time.
        seed: for the order of items.

    Attributes:
        model_label: of each item nobody was asked about, the model's label, as of when it was scored.
        doubt: of each of them, the model's own doubt in it.
    """

    def __init__(self, state: State, copies: Array, *, target: float, twice: float, seed: int) -> None:
        self.state, self.copies, self.target, self.twice, self.seed = state, copies, target, twice, seed
        n = len(copies)
        self.order = np.random.default_rng((seed, 1)).permutation(n)
        self.rank = np.argsort(self.order)
        self.to_ask_twice = np.random.default_rng((seed, 2)).random(n) < twice
        self.doubt = np.ones(n)
        self.model_label = np.zeros(n, np.int32)
        self._fit, self._covariance = np.array([0.0, 1.0]), np.diag([1.0, 0.25])
        self.estimate = TargetEstimate(float(copies.sum()), 0.0, n)
        self._enough = False  # labels are right, by the last estimate
        self._finished: tuple[tuple[int, bool], bool] = (-1, False), False
        self._round = max(SHORTEST_ROUND, -(-n // MOST_SCORED))
        self._clicks, self._clicks_of_round = 0, 0
        # items, and how often they had been asked about when they were found
        self._suspects: dict[int, int] = {}

    @property
    def audit_share(self) -> float:
        """Of the questions that are asked now."""
        return AUDIT if self.state.n_audits < MANY_AUDITS else AUDIT_LATER

    # ------------------------------------------------------------ scores and estimates

    def on_click(self, n_ahead: int = 0) -> None:
        """A click has come: score some more items.

        Args:
            n_ahead: how many more have come already: what these will make good need not be done.
        """
        self._clicks += 1
        self._find_suspect()
        if self.target >= 1.0:  # every item is asked
            return
        n, done = len(self.copies), self._clicks_of_round
        self._clicks_of_round += 1
        if n_ahead <= 2 * self._round:
            self.score(self.order[done * n // self._round : (done + 1) * n // self._round])
        if self._clicks_of_round == self._round:
            self._clicks_of_round = 0
            if n_ahead <= self._round:
                self._estimate()

    def begin_round(self, n_ahead: int = 0) -> None:
        """Score all items, and make the estimates anew: much has changed at once."""
        self._clicks_of_round = 0
        if self.target < 1.0 and n_ahead <= self._round:
            self.score()
            self._estimate()

    def score(self, items: Array | None = None) -> None:
        """Score items again (all of them: left out); also those that were asked about, which may come open again."""
        items = self.order if items is None else items
        for start in range(0, len(items), 4096):
            batch = items[start : start + 4096]
            p = self.state.probabilities(batch)
            self.model_label[batch] = p.argmax(axis=1)
            self.doubt[batch] = 1.0 - p.max(axis=1)

    def n_audits_missing(self) -> float:
        """How many audits there must be still before any label is accepted unasked; none if 0 or less."""
        open_ = np.count_nonzero(~self.state.done)
        return float(min(FEW_AUDITS, open_ / 3) - self.state.n_audits)

    def _estimate(self) -> None:
        """How far it is to the target. Before it is called the end, all items are scored with the model of now."""
        self._enough = self._estimate_once() and self.n_audits_missing() <= 0
        if self._enough:
            self.score()
            self._enough = self._estimate_once()

    def _estimate_once(self) -> bool:
        self._calibrate()
        self.estimate = self._new_estimate()
        return self.estimate.upper_80 <= (1.0 - self.target) * float(self.copies.sum())

    def wrong_chances(self, items: Array) -> Array:
        """The chance that the model's label of each item is wrong."""
        return chance(self._fit, logit(self.doubt[items]))

    def _calibrate(self) -> None:
        state = self.state
        checks = state.recent_checks()
        if not checks:
            return
        items, z, audit = (np.array(column) for column in zip(*checks, strict=True))
        e = state.check_error[items]
        every, _ = fit(z, e)
        self._fit, self._covariance = fit(z[audit], e[audit], every, AUDITS_DIFFER)

    def _new_estimate(self) -> TargetEstimate:
        done = self.state.done
        open_ = np.flatnonzero(~done)
        e, w = self.wrong_chances(open_), self.copies[open_]
        by_size = np.argsort(e)
        labelled = self.copies[done].sum() + np.cumsum(w[by_size])
        fits = np.cumsum((e * w)[by_size]) + self._doubts() <= (1.0 - self.target) * labelled
        last = int(np.flatnonzero(fits)[-1]) + 1 if fits.any() else 0  # the most that can be accepted
        accept = float(e[by_size][last]) if last < len(e) else 1.0
        upper_80 = self.interval(open_, ONE_SIDED_80)[1]
        return TargetEstimate(upper_80, accept, self._items_left((e * w)[by_size], upper_80))

    def _items_left(self, wrong: Array, upper_80: float) -> int | None:
        """How many items must be asked about, the most wrong first, until enough labels are right.

        The model learns on the way: its errors fall about like 1 / items that it has learnt from.
        None if all of them will not do: what people said is too doubtful.

        Args:
            wrong: of each open item, how many labels are, about; the smallest first.
            upper_80: all of them, and doubts, at the upper bound.
        """
        learnt, asked = max(1, len(self.state.done_order)), np.arange(len(wrong) + 1)
        errors = np.concatenate([[0.0], np.cumsum(wrong)])[::-1] * learnt / (learnt + asked)
        allowed = (1.0 - self.target) * float(self.copies.sum())
        # the bound comes down with what it bounds
        enough = (errors + self._doubts()) * upper_80 <= allowed * (errors[0] + self._doubts())
        return int(np.flatnonzero(enough)[0]) if enough.any() else None

    def _doubts(self) -> float:
        """How many labels of items that were asked about are wrong, about."""
        return float((self.copies * self.state.doubt)[self.state.done].sum())

    def expected_wrong(self, accepted: Array) -> float:
        """How many labels are wrong, about, of items that were asked about, and of these, which were not."""
        return self._doubts() + float((self.wrong_chances(accepted) * self.copies[accepted]).sum())

    def interval(self, accepted: Array, z: float = TWO_SIDED_95) -> tuple[float, float]:
        """Around the wrong labels among items that were asked about, and these, which were not."""
        state, w, known = self.state, self.copies[accepted], self._doubts()
        # doubts stand on rates of wrong answers that are hardly known themselves: within a half of it, say
        spread = (known + (known / 2.0) ** 2) ** 0.5
        low, high = max(0.0, known - z * spread), known + z * spread
        if z == TWO_SIDED_95:
            few = FEW_ANSWERS / (FEW_ANSWERS + float(state.clicks.sum()))
            high += UNNOTICED * state.wrong_answers.n_wrong() * few
        if len(accepted):
            e, doubts = self.wrong_chances(accepted), logit(self.doubt[accepted])
            slope = np.array([(w * e * (1.0 - e)).sum(), (w * e * (1.0 - e) * doubts).sum()])
            unknown = max(1.0, float((w * e).sum()))
            variance = float(slope @ self._covariance @ slope + (w**2 * e * (1.0 - e)).sum())
            factor = float(np.exp(z * variance**0.5 / unknown))
            # below twice as wide: checks are of the model as it was, which has learnt since
            low, high = low + unknown / factor**2, high + unknown * factor
        return (low if low >= 1.0 else 0.0), high  # less than one label is none

    def is_finished(self) -> bool:
        """Whether enough labels are right."""
        now = self.state.version, self._enough
        if self._finished[0] != now:
            self._finished = now, self._is_finished()
        return self._finished[1]

    def _is_finished(self) -> bool:
        if self._ask_twice(set()) is not None:
            return False
        if not self.state.done.all():
            return self._enough
        items = float(self.copies.sum())
        allowed = (1.0 - self.target) * items if self.target < 1.0 else ALLOWED_AT_1 * items
        return self._doubts() <= allowed or self._doubtful(set()) is None

    # ------------------------------------------------------------ the next item

    def next_item(self, busy: set[int], by: str) -> tuple[int, bool] | None:
        """The item to ask somebody about, and whether it is an audit; None if there is none for them now.

        Args:
            busy: items that others are asked about.
            by: who is asked.
        """
        state = self.state
        random = np.random.default_rng((self.seed, 3, self._clicks, len(busy)))
        open_ = ~state.done
        if busy:
            open_[list(busy)] = False
        again = self._ask_twice(busy, by)
        if again is not None and random.random() < max(self.twice, 0.05):
            return again, False
        suspect = self._suspect(busy)
        if suspect is not None:
            return suspect, False
        unclear = self._unclear_audit(busy)
        if unclear is not None:
            return unclear, False
        items = np.flatnonzero(open_)
        if not len(items):
            worst = self._doubtful(busy)
            return (again, False) if again is not None else None if worst is None else (worst, False)
        fewest = state.skips[items].min()
        items = items[state.skips[items] == fewest]  # those that were skipped come last
        if self.target >= 1.0 or len(state.done_order) < min(FIRST, len(self.copies) / 4):
            return int(items[self.rank[items].argmin()]), False
        if random.random() < self.audit_share:
            chances = self.wrong_chances(items)
            accepted = items[chances < self.estimate.accept_below]
            # while the doubts in what people said are too many to accept any: a few of those that come first, later
            if not len(accepted) and random.random() < EARLY_AUDITS:
                accepted = items[chances <= np.median(chances)]
            if len(accepted):
                return int(random.choice(accepted)), True
        sample = random.choice(items, min(SAMPLE, len(items)), replace=False)
        chances = self.wrong_chances(sample) * self.copies[sample]
        best = int(chances.argmax())
        worst = self._doubtful(busy)
        if worst is not None and state.doubt[worst] * self.copies[worst] > chances[best]:
            return worst, False
        return int(sample[best]), False

    def _doubtful(self, busy: set[int]) -> int | None:
        """The item whose answers are the most doubtful."""
        state = self.state
        again = state.done & (state.clicks < MOST_ANSWERS) & (state.skips == 0) & (state.doubt >= ASK_AGAIN)
        doubts = np.where(again, state.doubt * self.copies, 0.0)
        if busy:
            doubts[list(busy)] = 0.0
        worst = int(doubts.argmax())
        return worst if doubts[worst] > 0.0 else None

    def _find_suspect(self) -> None:
        """Now and then the item whose answer is the least credible: so people who are often wrong are found out."""
        due = min(MOST_SUSPECTS, self._clicks // EVERY_SUSPECT) > len(self._suspects)
        if not due or self._clicks % LOOK_FOR_SUSPECTS:
            return
        state = self.state
        suspicion = np.where(state.done, state.suspicion, 0.0)
        suspicion[list(self._suspects)] = 0.0
        worst = int(suspicion.argmax())
        if suspicion[worst] >= SUSPECT:
            self._suspects[worst] = int(state.clicks[worst] + state.skips[worst])

    def _suspect(self, busy: set[int]) -> int | None:
        """An item that was found suspect, and not asked about since."""
        clicks, skips = self.state.clicks, self.state.skips
        for item, before in self._suspects.items():
            if item not in busy and clicks[item] + skips[item] <= before:
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

    def _ask_twice(self, busy: set[int], by: str | None = None) -> int | None:
        """An item that shall be asked about a second time, if possible of somebody else."""
        if not self.twice:
            return None
        state = self.state
        items = np.flatnonzero(self.to_ask_twice & state.done & (state.skips == 0))
        for item in items:
            people = [answer.by for answer in state.valid_answers(int(item)) if not answer.final]
            if (
                len(people) == 1
                and item not in busy
                and (by is None or people[0] != by or len(state.wrong_answers.answers) == 1)
            ):
                return int(item)
        return None
