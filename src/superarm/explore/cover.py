"""Cover: as few labels as a promised coverage needs. ("The right label is shown 95 % of the time.")

A promise is kept by a threshold q that the answers move (Gibbs & Candès 2021). p is the softmax of the
scores over the eligible labels, alpha = 1 - coverage the misses that are allowed:

    T = { r : p_r >= exp(-q) },  at least the best one, at most set_size
    q += eta (missed - alpha),   at least 0; from log(k / 1e-4) on everything is shown; q_1 = log(k / sqrt(alpha))

Then misses <= alpha T + (log(k / 1e-4) + eta - q_1) / eta after T answers, whatever the rows, the labels and
the scores are. Two things teach, as sets that hold everything do not:

- **Warm-up.** In the first rounds the promise does not count, and the best labels are shown whose p sum up
  nearest to one half: the answer is then as good as a coin, and says most.
- **Leaving out.** Afterwards runners-up in T are left out now and then, paid from a share of alpha:

    pi_r = q_b b_r,   b_r = min(1, 2 p_r / (1 - p_1)),   q_b = min(1, beta alpha t / M)
    beta = min(0.95, 3 (C / t)^1.5 / (1 + t / 500 k)) clip(2 - recent / alpha, 0, 1)

  by one uniform u, as RunnerUp does; nothing fills up, and the top label stays. M sums what leaving out at
  q_b = 1 would have cost, sum_r b_r p_r, over the t decisions that count; C sums how certain they were,
  sum_r p_r^2. Where belief stays spread, misses spent on learning buy little and cost many labels: there T
  must cover what leaving out misses. So that share falls with doubt, and with time; and while more is missed than
  is allowed (recent: misses, a running mean over 500 answers), as a young model underrates what leaving out costs.
  M, t and C are those of decisions at the rule's own coverage. At another one each decision pays for itself:
  q_b = min(1, beta alpha / sum_r b_r p_r), with its own sum_r p_r^2 in place of C / t, and t of all.

A learner that is told every label learns from any set: it has no warm-up, and nothing is left out.

Labels that are tied at the edge of T take their places at random. P(S) is exact in all cases.
docs/coverage.md says what late, missing and wrong answers mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan, sqrt
from typing import Any, Unpack

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label, Labels
from superarm.errors import InvalidInput
from superarm.explore.distributions import FewSets, SetDistribution, TiedSets
from superarm.explore.rule import Rule, RuleParams
from superarm.explore.runner_up import left_out
from superarm.native.cover import CoverRule
from superarm.parameters import check_int, check_number, check_share

LEVELS = 16  # this and the next two as in native/cover.pyx
ENOUGH = 1000  # answers from which a broken promise is told
# of the draw log: what moves the rule
HEAD = ("coverage", "counts", "cost", "size", "limit", "if_no", "if_yes", "certainty")


def checked_coverage(coverage: Any, owner: str) -> float:
    """A share of answers that are to be yes."""
    real = isinstance(coverage, int | float | np.number) and not isinstance(coverage, bool)
    if not real or not 0.0 < coverage < 1.0:
        raise InvalidInput.must("coverage", owner, "between 0 and 1", coverage)
    return float(coverage)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was promised, and what was kept.

    Attributes:
        promised: how often the right label is to be shown, at least.
        kept: how often it was, among answers that count; nan before the first.
        mean_size: how many labels those sets had; nan before the first.
        answers: how many answers count. (With none_label, a no counts as much as it may be about a label.)
        warm_up: the rounds before the promise counts.
        threshold: q, which the answers move.
        edge: the least probability that is shown, exp(-q); 0 where q is so large that everything is.
        capped_misses: misses among sets that set_size made smaller than the promise asks for.
        noes_to_all: noes to sets of all labels beyond what false_no explains: the answers are wrong, or the truth
            is none of the labels. (Without false_no they do not count.)
        trouble: why the promise cannot be kept, and what that costs; ``None`` while it can.
    """

    promised: float
    kept: float
    mean_size: float
    answers: float
    warm_up: int
    threshold: float
    edge: float
    capped_misses: float
    noes_to_all: float
    trouble: str | None = None


class Cover(Rule):
    """As few labels as a promised coverage needs.

    Args:
        coverage: how often the right label is to be shown, at least, in the long run.
        warm_up: rounds that do not count for the promise, in which sets are chosen to learn; ``None`` is 400
            for each label, at most 10,000, and none for a learner that is told every label.
        eta: the step of the threshold. A larger one follows a change sooner, and strays more.
        uniform: the share of sets drawn uniformly, below 1 - coverage: their misses count.
        false_no: the chance of a "no" although the right label was shown.
        false_yes: the chance of a "yes" although it was not.
        set_size: the most labels to show; ``None`` for all. Too few of them break the promise.

    >>> rule = Cover(coverage=0.9, warm_up=0, labels=["ant", "bee", "cat", "dog"])
    >>> decision = rule.decide(probabilities=[0.94, 0.03, 0.02, 0.01])
    >>> decision.labels
    ['ant']
    >>> rule.update(decision, hit=True)
    >>> rule.kept().answers
    1.0
    """

    name = "cover"
    names_labels = ("tied", "untied")
    sizes_vary = True

    def __init__(
        self,
        *,
        coverage: float = 0.95,
        warm_up: int | None = None,
        eta: float = 0.1,
        uniform: float = 0.0,
        false_no: float = 0.0,
        false_yes: float = 0.0,
        **common: Unpack[RuleParams],
    ) -> None:
        super().__init__(**common)
        owner = type(self).__name__
        self.coverage = checked_coverage(coverage, owner)
        self.warm_up = None if warm_up is None else check_int("warm_up", owner, warm_up, 0)
        self.eta = check_number("eta", owner, eta, 0.0, 10.0)
        self.uniform = check_share("uniform", owner, uniform)
        if self.uniform and self.uniform + self.coverage >= 1.0 - 1e-9:
            wanted = f"below 1 - coverage = {1.0 - self.coverage:.4g}, as most uniform sets miss"
            raise InvalidInput.must("uniform", owner, wanted, uniform)
        self.false_no = check_share("false_no", owner, false_no, 0.99)
        self.false_yes = check_share("false_yes", owner, false_yes, 0.99)
        if self.false_no + self.false_yes >= 1.0:
            raise InvalidInput.must("false_no", owner, "below 1 - false_yes: else a yes means no", false_no)
        self._warned = False

    def make_native(self, k: int, seed: int, *, full_information: bool = False) -> CoverRule:
        """The compiled twin for ``k`` labels and a ``seed``; ``full_information``: its learner is told every label."""
        usual = 0 if full_information else min(10_000, 400 * k)
        warm_up = usual if self.warm_up is None else self.warm_up
        noise = self.false_no, self.false_yes
        native = CoverRule(k, seed, self.coverage, warm_up, self.eta, self.uniform, *noise)
        native.full_information = full_information
        return native

    # ------------------------------------------------------------ records

    def record(self, draw_log: Array, labels: Labels) -> dict[str, Any]:
        head: dict[str, Any] = dict(zip(HEAD, draw_log.tolist(), strict=False))
        q, count, *written = draw_log[len(HEAD) :].tolist()
        head |= {"counts": bool(head["counts"]), "size": int(head["size"]), "limit": int(head["limit"])}
        record = {"name": self.name, **head, "threshold": q, "uniform": self.uniform}
        sums, (held, *tied) = written[: int(count)], written[int(count) :]
        if sums:
            record["sums"] = sums
        if held:
            which = "tied" if tied[0] > 0.0 else "untied"
            record |= {"held": int(held), which: labels.decode([int(label) for label in tied[1:]])}
        return record

    def draw_log_from(self, record: dict[str, Any]) -> Array:
        return np.array([record[name] for name in HEAD], np.float64)

    @classmethod
    def distribution_from(
        cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int
    ) -> SetDistribution:
        ways = [
            ([label for i, label in enumerate(top) if i - 1 not in gone], chance)
            for gone, chance in left_out(record.get("sums", ()), 2)
        ]
        if "held" not in record:
            return FewSets(eligible, len(top), ways, record["uniform"])
        behind = record.get("tied")
        if behind is None:
            others = {*top, *record["untied"]}
            behind = [label for label in eligible if label not in others]
        group = [*top[len(top) - record["held"] :], *behind]
        return TiedSets(eligible, len(top), ways, [group], record["uniform"])

    # ------------------------------------------------------------ the promise

    def level(self, native: CoverRule, coverage: Any, owner: str) -> float:
        """The ``coverage`` that ``owner`` is asked for, checked: ``native`` has room for a few thresholds."""
        if coverage is None:
            return self.coverage
        level = checked_coverage(coverage, owner)
        if not native.has_room(level):
            wanted = f"one of the {LEVELS} that have been asked for: a threshold is kept for each"
            raise InvalidInput.must("coverage", owner, wanted, coverage)
        return level

    def use_coverage(self, native: CoverRule, coverage: float | None, owner: str) -> None:
        """Promise ``coverage``, or its own again, with the next decisions of ``native``; ``owner`` is for messages."""
        native.level = self.level(native, coverage, owner)

    def coverage_at_level(self, native: CoverRule, level: float) -> Coverage:
        """The coverage promised and kept at one ``level``, by the counts of ``native``, the compiled rule."""
        state = native.state()
        at = np.flatnonzero(state["levels"] == level)
        answers, misses, shown, capped, noes = state["tally"][at[0]].tolist() if len(at) else (0.0,) * 5
        coverage = Coverage(
            promised=level,
            kept=1.0 - misses / answers if answers else nan,
            mean_size=shown / answers if answers else nan,
            answers=answers,
            warm_up=int(state["warm_up"][0]),
            threshold=native.threshold(level),
            edge=native.edge(level),
            capped_misses=capped,
            noes_to_all=max(0.0, noes),
        )
        asked = answers if self.false_no else answers + noes  # with false_no they are among the answers
        return replace(coverage, trouble=_trouble(coverage, asked))

    def warn_if_broken(self, native: CoverRule) -> None:
        """Say it once if a promise cannot be kept, by what ``native`` has counted."""
        if native.short and not self._warned:
            self._warned = True
            levels = [level for level in native.state()["levels"].tolist() if level]
            for trouble in filter(None, (self.coverage_at_level(native, level).trouble for level in levels)):
                warnings.warn(trouble, stacklevel=3)

    def kept(self, coverage: float | None = None) -> Coverage:
        """The coverage promised and kept, where the rule is used alone; at another level, if ``coverage`` names one."""
        if self._core is None:
            native = self.make_native(2 if self.labels is None else len(self.labels), self.seed)
            if self._state is not None:
                native.restore(self._state)
        else:
            native = self._core.rule
        return self.coverage_at_level(native, self.coverage if coverage is None else coverage)


def _trouble(coverage: Coverage, asked: float) -> str | None:
    """Why a promise cannot be kept, as far as a thousand answers tell."""
    allowed = 1.0 - coverage.promised
    if asked < ENOUGH:
        return None
    if coverage.noes_to_all > allowed * asked:
        return (
            f"a coverage of {coverage.promised:g} has no meaning here: {coverage.noes_to_all:,.0f} of {asked:,.0f} "
            "answers were no although all labels were shown (false_no allows for wrong answers, none_label "
            "for rows without a right one)"
        )
    excess = (coverage.promised - coverage.kept) * coverage.answers
    if excess > 3.0 * sqrt(coverage.answers * allowed) and excess <= coverage.capped_misses:
        return (
            f"set_size is too small for a coverage of {coverage.promised:g}: {coverage.kept:.3f} of "
            f"{coverage.answers:,.0f} answers were yes, and {coverage.capped_misses:,.0f} of the misses were sets "
            "that it cut short"
        )
    return None
