"""What would another policy have shown, and how often would it have hit?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._extras import need
from superarm._progress import Progress, ticked
from superarm.data.labels import Labels
from superarm.decisions.decision import Record
from superarm.errors import InvalidInput
from superarm.groups import MISSING, GroupCoverage, coverage_by, group_names
from superarm.learners import SetLogit
from superarm.learners.predictions import probabilities
from superarm.logs.batches import Batch, batches
from superarm.logs.calibration import Calibration
from superarm.logs.estimates import SURE, Estimate, Sums, Wanted, interval
from superarm.logs.policies import AtWork, Policy
from superarm.logs.reading import Log
from superarm.logs.survey import Survey, held_out, respelt
from superarm.logs.weights import Choice, Odds, linear_weights, logged_odds, set_weights

if TYPE_CHECKING:
    import polars

__all__ = ["Evaluation", "Tally", "Verdict", "evaluate"]

Array = np.ndarray[Any, Any]
ENOUGH = 100  # rows, to see whether labels were shown equally often


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """What a log says about one policy.

    Attributes:
        policy, set_size, gamma, rule: which one; ``rule`` is how it draws, in words.
        estimates: one for each of `ESTIMATORS`.
        wanted: what an answer would take, where there is none.
        mean_size: how many labels it would have shown, on average.
        coverage: what its sets promise, if they do; ``set_size`` is then the most, and ``best`` says what
            would have been covered.
        by_label: what would have been covered of each label, where every row that judged names its right one.
        by_group: the same of each value of the column ``group``, by the best estimate of its rows; nan where they
            cannot answer.
    """

    policy: str
    set_size: int
    gamma: float | None
    rule: str | None
    estimates: tuple[Estimate, ...]
    wanted: Wanted
    mean_size: float
    coverage: float | None = None
    by_label: tuple[GroupCoverage, ...] = ()
    by_group: tuple[GroupCoverage, ...] = ()

    @property
    def best(self) -> Estimate | None:
        """The sharpest estimate that nothing speaks against; ``None`` if the log cannot answer."""
        return best_of(self.estimates)

    @property
    def words(self) -> str:
        """Which policy, and how it draws."""
        return self.policy if self.rule is None else f"{self.policy}, {self.rule}"

    @property
    def sizes(self) -> str:
        """How many labels it shows, in words."""
        return f"m = {self.set_size}" if self.coverage is None else f"mean size {self.mean_size:.2f}"

    def plot(self) -> Any:
        """Every estimate with its interval, as an Altair chart."""
        from superarm.logs.figure import verdict_chart

        return verdict_chart(self)

    def __repr__(self) -> str:
        best = self.best
        told = "the log cannot answer"
        if best is not None:
            told = f"hit rate {best.rate:.4f}, 95 % from {best.low:.4f} to {best.high:.4f}, by {best.name}"
        return f"Verdict({self.words}, {self.sizes}: {told})"

    def _repr_html_(self) -> str:
        from superarm._html import verdict_html

        return verdict_html(self)


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The answer of a log.

    Attributes:
        rows: rows that judged; ``unanswered`` others of them could not, having no outcome.
        bad: rows of the whole log that cannot be read.
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

    def to_frame(self) -> polars.DataFrame:
        """A row for each estimate of each policy."""
        need("logs")
        import polars

        rows = [
            {"policy": one.words, "set_size": one.set_size, **asdict(estimate), "read": estimate is one.best}
            for one in self.verdicts
            for estimate in one.estimates
        ]
        return polars.DataFrame(rows, infer_schema_length=None)

    def plot(self) -> Any:
        """Hit rates of all policies with their intervals, as an Altair chart."""
        from superarm.logs.figure import chart

        return chart(self)

    def __repr__(self) -> str:
        shown = f"{self.rows:,} rows, hit rate of what was shown {self.hit_rate:.4f}"
        return "\n".join([f"Evaluation({shown})", *(f"  {one!r}" for one in self.verdicts)])

    def _repr_html_(self) -> str:
        from superarm._html import evaluation_html

        return evaluation_html(self)


def evaluate(
    log: Log,
    policies: Sequence[Policy],
    facts: Survey,
    *,
    holdout: float | None = 0.2,
    seed: int = 0,
    group: str | None = None,
    progress: Progress = None,
) -> Evaluation:
    """Judge policies by a log.

    Args:
        log: the log; it is read once.
        policies: they must have learnt from none of the rows that judge them.
        facts: what `survey` found in it.
        holdout: judge by this share of the rows, those that `train` keeps out with the same
            ``holdout`` and ``seed``; ``None`` judges by all of them.
        group: a column of the log; each verdict tells ``by_group`` what holds for its values.
        progress: True shows a bar; a function is called with the number of rows read since its last call.
    """
    labels = facts.known
    tallies = [(AtWork(policy, labels, facts.n_features), Tally()) for policy in policies]
    parts = [_Parts(labels, group, log.name) for _ in policies]
    read = [name for policy in policies for name in policy.columns] + ([] if group is None else [group])
    columns = tuple(dict.fromkeys(read))
    audit = _Audit()
    # what is expected of policies that have no probabilities: learnt from every row after it was judged
    model = None if all(policy.has_probabilities for policy, _ in tallies) else SetLogit(**facts.common)
    if model is not None:
        facts.ready(model)

    def judges(record: Record) -> bool:
        return holdout is None or held_out(record.number, holdout, seed)

    records = ticked(log.records(columns), progress, facts.rows, "rows")
    for batch in batches(_counted(records, audit, judges), labels):
        chosen = [i for i, record in enumerate(batch.records) if judges(record)]
        if chosen:
            part = batch.part(np.array(chosen))
            odds = logged_odds(part)
            audit.add(part, odds)
            scored: dict[Any, Any] = {}  # several policies may share a learner
            if model is not None:
                scored["reward"] = model.scores(part.matrix_for(model))
            for (policy, tally), apart in zip(tallies, parts, strict=True):
                by = id(policy.policy.learner or policy)
                if by not in scored:
                    scored[by] = policy.scores(part)
                s = scored[by] if policy.has_probabilities else scored["reward"]
                choice, p = policy.choose(part, scored[by]), probabilities(s)
                tally.add(part, odds, choice, p)
                apart.add(part, choice, p)
        if model is not None:
            names = model.known.all()
            for record in batch.records:
                model.update(respelt(record, labels, names), hit=record.hit)
    rate = audit.hits / audit.rows if audit.rows else 0.0
    verdicts = [
        replace(tally.verdict(at_work, rate), by_label=apart.by_label, by_group=apart.by_group)
        for (at_work, tally), apart in zip(tallies, parts, strict=True)
    ]
    return audit.report(log, nested(verdicts, policies))


class Tally:
    """What has been added up about one policy."""

    def __init__(self) -> None:
        self.by_set, self.by_label, self.calibration = Sums("set"), Sums("linear"), Calibration()
        self.rows, self.shown = 0, 0.0

    def add(self, batch: Batch, odds: Odds, choice: Choice, p: Array) -> None:
        """Rows, and the probabilities that the policy itself or a reward model gives their labels."""
        pi, known = choice.inclusion(batch.eligible), ~np.isnan(odds.propensity)
        self.rows, self.shown = self.rows + len(batch), self.shown + float(pi.sum())
        expected = (p * pi).sum(axis=1), (p * batch.shown).sum(axis=1)
        calibrated = self.calibration.calibrate(*expected, batch.hit)
        guess, whole = calibrated[0], np.ones(len(batch))
        # E[w q_S] = q_B: for one set by any q, for a draw or linear weights by a q that is a sum over labels
        q, q_logged = calibrated if choice.draws is None and choice.gamma is None else expected
        weights = set_weights(batch, odds, choice)
        self.by_set.add(weights, batch.hit, q, q_logged, guess, whole, known)
        control = odds.m / np.maximum(pi.sum(axis=1), 1e-300)
        weights = linear_weights(batch, odds, pi)
        self.by_label.add(weights, batch.hit, *expected, guess, control, known)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (*self.by_set.estimates(), *self.by_label.estimates())

    def verdict(self, at_work: AtWork, hit_rate: float) -> Verdict:
        policy = at_work.policy
        facts = (policy.name, at_work.size, policy.gamma, policy.chosen_by)
        mean_size = self.shown / self.rows if self.rows else nan
        promise = policy.promise
        return Verdict(*facts, self.estimates, self.by_label.wanted(hit_rate), mean_size, promise)


class _Parts:
    """What has been added up about one policy, label by label and group by group."""

    def __init__(self, labels: Labels, group: str | None, log: str) -> None:
        self.labels, self.group, self.log = labels, group, log
        self.sums, self.named = np.zeros((labels.count, 3)), True
        self.tallies: dict[str, Tally] = {}

    def add(self, batch: Batch, choice: Choice, p: Array) -> None:
        self.named = self.named and all(record.label is not None for record in batch.records)
        if self.named:
            right = [self.labels.by_text(record.label) for record in batch.records]
            pi = choice.inclusion(batch.eligible)
            for shown, label in zip(pi, right, strict=True):
                if label is not None:  # else no set could have it
                    self.sums[label] += 1.0, shown[label], shown.sum()
        if self.group is None:
            return
        groups = np.array(group_names(_value(record, self.group) for record in batch.records))
        for name in np.unique(groups).tolist():
            at = np.flatnonzero(groups == name)
            some = batch.part(at)
            self.tallies.setdefault(name, Tally()).add(some, logged_odds(some), choice.part(at), p[at])

    @property
    def by_label(self) -> tuple[GroupCoverage, ...]:
        return coverage_by(self.labels.all(), self.sums) if self.named else ()

    @property
    def by_group(self) -> tuple[GroupCoverage, ...]:
        if self.tallies and self.tallies.keys() <= {MISSING}:
            wanted = "a column of the log, or a name in its x or context"
            raise InvalidInput.must("group", self.log, wanted, self.group)
        found = []
        for name, tally in sorted(self.tallies.items()):
            best = best_of(tally.estimates)
            rate = (nan, nan, nan) if best is None else (best.rate, best.low, best.high)
            found.append(GroupCoverage(name, tally.rows, *rate, tally.shown / tally.rows))
        return tuple(found)


def _value(record: Record, name: str) -> Any:
    """A column of a row of a log: one of its own, or one of those that x or the context holds by name."""
    context: Any = record.context  # of a CSV, text
    if isinstance(context, str) and context.lstrip().startswith("{"):
        context = json.loads(context)
    for held in (record.also, record.decision.x, context):
        if isinstance(held, dict) and held.get(name) is not None:
            return held[name]
    return None


def nested(verdicts: list[Verdict], policies: Sequence[Policy]) -> list[Verdict]:
    """The verdicts, where the best labels of one and the same ranking never look worse for being more."""
    found = list(verdicts)
    rankings: dict[Any, list[int]] = {}
    for i, policy in enumerate(policies):
        one_set = policy.rule is None and policy.gamma is None and not policy.draws and policy.promise is None
        if one_set and found[i].best is not None:
            by = policy.learner or policy.scores or policy.probabilities
            rankings.setdefault(id(policy) if by is None else id(by), []).append(i)
    for at in rankings.values():
        at.sort(key=lambda i: found[i].set_size)
        best = [found[i].best for i in at]
        values = isotonic([e.rate for e in best if e], [e.width**-2 for e in best if e])
        low = np.maximum.accumulate([e.low for e in best if e])
        high = np.minimum.accumulate([e.high for e in best if e][::-1])[::-1]
        for i, old, *new in zip(at, best, values, low, high, strict=True):
            if old is not None and new[1] <= new[2]:
                one = replace(
                    old, value=float(np.clip(new[0], *new[1:])), low=float(new[1]), high=float(new[2])
                )
                others = tuple(one if e is old else e for e in found[i].estimates)
                found[i] = replace(found[i], estimates=others)
    return found


def isotonic(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The nearest numbers that never fall: neighbours that do are averaged (pool adjacent violators).

    >>> isotonic([0.9, 0.8, 0.95], [1.0, 3.0, 1.0])
    [0.825, 0.825, 0.95]
    """
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (b, wb, nb), (a, wa, na) = pools.pop(), pools.pop()
            pools.append(((wa * a + wb * b) / (wa + wb), wa + wb, na + nb))
    return [round(value, 12) for value, _, count in pools for _ in range(count)]


def best_of(estimates: Sequence[Estimate]) -> Estimate | None:
    """The sharpest estimate that nothing speaks against."""
    sound = [estimate for estimate in estimates if not estimate.problem]
    return min(sound, key=lambda estimate: estimate.width, default=None)


def _counted(records: Iterator[Record], audit: _Audit, judges: Callable[[Record], bool]) -> Iterator[Record]:
    for record in records:
        audit.unanswered += record.hit is None and judges(record)
        yield record


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
    shown: Any = 0  # how often each label was shown,
    even: Any = 0  # how often it would have been by uniform sets, and the variance of that
    spread: Any = 0

    def add(self, batch: Batch, odds: Odds) -> None:
        chance = np.where(batch.eligible, (odds.m / odds.n)[:, None], 0.0)
        self.shown = self.shown + batch.shown.sum(axis=0)
        self.even, self.spread = (
            self.even + chance.sum(axis=0),
            self.spread + (chance * (1 - chance)).sum(axis=0),
        )
        self.rows += len(batch)
        self.hits += float(batch.hit.sum())
        vary = np.array([design is not None and design.sizes_vary for design in batch.designs])
        p, free = odds.propensity, vary | (odds.m < odds.n)
        self.known += int((~np.isnan(p)).sum())
        self.certain += int((free & (p > 1.0 - 1e-9)).sum())
        drawn = ~np.isnan(odds.by_design) & free
        self.surprise += float(odds.surprise[drawn].sum())
        self.variance += float(odds.variance[drawn].sum())
        both = drawn & ~np.isnan(batch.propensity)
        with np.errstate(divide="ignore"):  # a set that the rule could not have shown
            wrong = both & (np.abs(np.log(batch.propensity / odds.by_design)) > 0.01)
        self.differ += int(wrong.sum())
        for i in np.flatnonzero(wrong):
            ordered = batch.records[i].decision.ordered_propensity
            self.as_ordered += ordered is not None and abs(ordered / batch.propensity[i] - 1.0) < 0.01
        counted = ~np.isnan(p) & free & ~vary
        ratio = np.exp(-np.log(p[counted]) - odds.log_sets[counted])
        self.inverse += [len(ratio), ratio.sum(), (ratio**2).sum()]

    def warnings(self) -> Iterator[str]:
        if not self.known:
            yield (
                "The log does not say how probable its sets were, so nothing can be said about other "
                "policies. Log a propensity (or the rule) with every decision from now on."
                f"{self._uniform_hint()}"
            )
        elif self.certain > 0.5 * self.rows:
            yield (
                f"{self.certain:,} of {self.rows:,} rows showed their set with certainty: a log without "
                "exploration can judge only policies that show the same sets."
            )
        if self.differ:
            hint = " They are probabilities of the ordered draw." if self.as_ordered else ""
            yield (
                f"{self.differ:,} rows have a propensity that does not follow from their rule."
                f"{hint} One of the two is wrong."
            )
        if self.variance > 0 and abs(self.surprise) > SURE * sqrt(self.variance):
            yield (
                f"The sets do not look drawn as the log says: labels of the top set were shown "
                f"{abs(self.surprise) / self.rows:.3f} {'more' if self.surprise > 0 else 'less'} often a row "
                f"than the rule implies ({self.surprise / sqrt(self.variance):+.1f} standard errors)."
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

    def _uniform_hint(self) -> str:
        """Whether every label was shown as often as by uniform sets; then they may have been."""
        varies = self.spread > 0
        if self.rows < ENOUGH or not varies.any():
            return ""
        far = (self.shown - self.even)[varies] / np.sqrt(self.spread[varies])
        if np.abs(far).max() > SURE:
            return ""
        return (
            " Its labels were shown equally often, though: if the sets were drawn uniformly at random, "
            "say so (--uniform, or Log(..., uniform=True))."
        )

    def report(self, log: Log, verdicts: list[Verdict]) -> Evaluation:
        if not self.rows:
            raise InvalidInput.must("log", log.name, "with rows to judge by that have an outcome", "none")
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
