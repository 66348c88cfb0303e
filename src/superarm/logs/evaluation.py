"""What would another policy have shown, and how often would it have hit?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from superarm.decision import Label
from superarm.errors import InvalidInput
from superarm.learners import Learner, SetLogit
from superarm.logs.batches import Batch, batches, probabilities
from superarm.logs.entry import Entry
from superarm.logs.estimates import SURE, Estimate, Sums, interval
from superarm.logs.reading import Log
from superarm.logs.survey import Survey, Vocabulary, held_out
from superarm.logs.weights import Choice, Odds, linear_weights, logged_odds, set_weights

__all__ = ["Evaluation", "Policy", "Verdict", "evaluate"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to choose sets. Give a learner, or a fixed list of labels.

    Attributes:
        name: how tables call it.
        learner: it shows the ``set_size`` labels that this learner ranks best.
        fixed: or always these labels, as far as they are eligible.
        set_size: how many; the learner's own by default.
        gamma: it explores: it draws around that set as in the paper's eq. 5.
        draws: it shows what the learner's own `decide` gives.
    """

    name: str
    learner: Learner | None = None
    fixed: Sequence[Label] | None = None
    set_size: int | None = None
    gamma: float | None = None
    draws: bool = False

    def __post_init__(self) -> None:
        if (self.learner is None) == (self.fixed is None):
            raise InvalidInput.must("policy", self.name, "a learner or a fixed list", "both or neither")
        if self.gamma is not None and not 0.0 < self.gamma <= 1.0:
            raise InvalidInput.must("gamma", self.name, "in (0, 1]", self.gamma)
        if self.draws and (self.fixed is not None or self.gamma is not None):
            raise InvalidInput.must("draws", self.name, "for a learner without gamma=", self.draws)

    @property
    def size(self) -> int:
        if self.set_size is not None:
            return self.set_size
        return len(self.fixed) if self.fixed is not None else self.learner.set_size  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a log says about one policy."""

    policy: str
    set_size: int
    gamma: float | None
    estimates: tuple[Estimate, ...]

    @property
    def best(self) -> Estimate | None:
        """The sharpest estimate that nothing speaks against; ``None`` if the log cannot answer."""
        sound = [estimate for estimate in self.estimates if not estimate.problem]
        return min(sound, key=lambda estimate: estimate.width, default=None)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The answer of a log.

    Attributes:
        rows: rows that were judged; ``unanswered`` and ``bad`` ones were not.
        hit_rate, low, high: of what was shown.
        warnings: what is wrong with the log itself.
        verdicts: one for each policy.
    """

    rows: int
    unanswered: int
    bad: int
    hit_rate: float
    low: float
    high: float
    warnings: tuple[str, ...]
    verdicts: tuple[Verdict, ...]


def evaluate(
    log: Log,
    policies: Sequence[Policy],
    facts: Survey,
    *,
    holdout: float | None = 0.2,
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> Evaluation:
    """Judge policies by a log.

    Args:
        log: the log; it is read once.
        policies: they must have learnt from none of the rows that judge them.
        facts: what `survey` found in it.
        holdout: judge by this share of the rows, those that `train` keeps out with the same
            ``holdout`` and ``seed``; ``None`` judges by all of them.
        progress: called with the number of rows read since the last call.
    """
    words = Vocabulary(facts.labels, facts.n_labels)
    tallies = [(_Policy(policy, words), Sums("set"), Sums("linear")) for policy in policies]
    audit = _Audit()
    # the reward model learns every row only after it has been judged: no row is judged by itself
    model = SetLogit(**facts.common)
    for batch in batches(_counted(log, audit, progress), words):
        chosen = [
            i for i, e in enumerate(batch.entries) if holdout is None or held_out(e.place, holdout, seed)
        ]
        if chosen:
            part = _rows(batch, np.array(chosen))
            odds = logged_odds(part)
            audit.add(part, odds)
            p = probabilities(model, part.matrix(model))
            q_logged = (p * part.shown).sum(axis=1)
            ranked: dict[int, Array] = {}
            for policy, by_set, by_label in tallies:
                choice = policy.choose(part, ranked)
                q = choice.expected(p, part.eligible)
                size = choice.top.sum(axis=1)
                by_set.add(set_weights(part, odds, choice), part.hit, q, q_logged, np.ones(len(q)))
                by_label.add(
                    linear_weights(part, odds, choice), part.hit, q, q_logged, odds.m / np.maximum(size, 1)
                )
        for entry in batch.entries:
            model.update(words.decision(entry), hit=entry.hit)
    return audit.report(
        log,
        [
            Verdict(p.policy.name, p.policy.size, p.policy.gamma, (*a.estimates(), *b.estimates()))
            for p, a, b in tallies
        ],
    )


def _counted(log: Log, audit: _Audit, progress: Callable[[int], object] | None) -> Iterator[Entry]:
    for entry in log:
        audit.unanswered += entry.hit is None
        if progress is not None:
            progress(1)
        yield entry


def _rows(batch: Batch, i: Array) -> Batch:
    arrays = (batch.hit, batch.shown, batch.top, batch.eligible, batch.propensity, batch.gamma)
    return Batch([batch.entries[at] for at in i], *(array[i] for array in arrays))


class _Policy:
    """A policy at work on batches."""

    def __init__(self, policy: Policy, words: Vocabulary) -> None:
        self.policy = policy
        learner = policy.learner
        if learner is not None:
            theirs = Vocabulary(learner.labels, learner.n_labels)
            if [str(label) for label in theirs.labels] != [str(label) for label in words.labels]:
                raise InvalidInput.must(
                    "labels", policy.name, f"those of the log, {words.labels}", theirs.labels
                )
        self.fixed = None if policy.fixed is None else words.codes(policy.fixed, "fixed list", 0)
        if not 1 <= policy.size <= words.n_labels:
            raise InvalidInput.must("set_size", policy.name, f"in 1..{words.n_labels}", policy.size)

    def choose(self, batch: Batch, ranked: dict[int, Array]) -> Choice:
        """Its sets; ``ranked`` keeps the ranks of learners that several policies share."""
        top = np.zeros(batch.shown.shape, bool)
        if self.fixed is not None:
            top[:, self.fixed[: self.policy.size]] = True
            return Choice(top & batch.eligible, self.policy.gamma)
        learner = self.policy.learner
        assert learner is not None  # Policy has one or the other
        if self.policy.draws:
            for i, entry in enumerate(batch.entries):
                among = None if batch.eligible[i].all() else np.flatnonzero(batch.eligible[i])
                names = (
                    None if among is None else [(learner.labels or range(learner.n_labels))[r] for r in among]
                )
                decision = learner.decide(entry.x, eligible=names, set_size=self.policy.size)
                top[i, learner.known.numbers(decision.labels, "labels", learner.of)] = True
            return Choice(top)
        if id(learner) not in ranked:
            s = np.where(batch.eligible, learner.scores(batch.matrix(learner)), -np.inf)
            ranked[id(learner)] = np.argsort(-s, axis=1, kind="stable")
        np.put_along_axis(top, ranked[id(learner)][:, : self.policy.size], True, axis=1)
        return Choice(top & batch.eligible, self.policy.gamma)


@dataclass(slots=True)
class _Audit:
    """Whether the log is what it says."""

    rows: int = 0
    unanswered: int = 0
    hits: float = 0.0
    known: int = 0
    certain: int = 0  # rows whose set had probability 1 though others were possible
    surprise: float = 0.0
    variance: float = 0.0
    differ: int = 0
    as_ordered: int = 0
    inverse: Array = field(default_factory=lambda: np.zeros(3))  # 1/(p C(n, m)): count, sum, squares

    def add(self, batch: Batch, odds: Odds) -> None:
        self.rows += len(batch)
        self.hits += float(batch.hit.sum())
        p, free = odds.propensity, odds.m < odds.n
        self.known += int((~np.isnan(p)).sum())
        self.certain += int((free & (p > 1.0 - 1e-9)).sum())
        drawn = ~np.isnan(odds.by_design) & free
        self.surprise += float(odds.surprise[drawn].sum())
        self.variance += float(odds.variance[drawn].sum())
        both = drawn & ~np.isnan(batch.propensity)
        wrong = both & (np.abs(np.log(batch.propensity / odds.by_design)) > 0.01)
        self.differ += int(wrong.sum())
        for i in np.flatnonzero(wrong):
            ordered = batch.entries[i].ordered_propensity
            self.as_ordered += ordered is not None and abs(ordered / batch.propensity[i] - 1.0) < 0.01
        ratio = np.exp(-np.log(p[~np.isnan(p) & free]) - odds.log_sets[~np.isnan(p) & free])
        self.inverse += [len(ratio), ratio.sum(), (ratio**2).sum()]

    def warnings(self) -> Iterator[str]:
        if not self.known:
            yield (
                "The log does not say how probable its sets were, so nothing can be said about other "
                "policies. Log a propensity (or top and gamma) with every decision from now on."
            )
        elif self.certain > 0.5 * self.rows:
            yield (
                f"{self.certain:,} of {self.rows:,} rows showed their set with certainty: a log without "
                "exploration can judge only policies that show the same sets."
            )
        if self.differ:
            hint = " They are probabilities of the ordered draw." if self.as_ordered else ""
            yield (
                f"{self.differ:,} rows have a propensity that does not follow from their top set and "
                f"gamma.{hint} One of the two is wrong."
            )
        if self.variance > 0 and abs(self.surprise) > SURE * sqrt(self.variance):
            yield (
                f"The sets do not look drawn as the log says: labels of the top set were shown "
                f"{abs(self.surprise) / self.rows:.3f} {'more' if self.surprise > 0 else 'less'} often a row "
                f"than gamma implies ({self.surprise / sqrt(self.variance):+.1f} standard errors)."
            )
        n, total, squares = self.inverse
        if n > 1:
            mean = total / n
            error = sqrt(max(squares / n - mean**2, 0.0) / (n - 1))
            if mean > 1.0 + SURE * error + 1e-6:
                yield (
                    f"The propensities are too small: they add up to {mean:.3g} times as many sets as there "
                    "are. (Of a set drawn label by label, log the probability of the set, not of the order.)"
                )

    def report(self, log: Log, verdicts: list[Verdict]) -> Evaluation:
        if not self.rows:
            raise InvalidInput.must(
                "log", str(log.path), "with rows to judge by that have an outcome", "none"
            )
        rate = self.hits / self.rows
        low, high = interval(rate, sqrt(rate * (1 - rate) / self.rows), self.rows - 1)
        return Evaluation(
            rows=self.rows,
            unanswered=self.unanswered,
            bad=log.bad,
            hit_rate=rate,
            low=low,
            high=high,
            warnings=tuple(self.warnings()),
            verdicts=tuple(verdicts),
        )
