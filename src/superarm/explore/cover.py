"""Cover: as few labels as a promised coverage needs. ("The right label is shown 95 % of the time.")

A promise is kept by a threshold q that the answers move (Gibbs & Candès 2021). p is the softmax of the
scores over the eligible labels, alpha = 1 - coverage the misses that are allowed:

    T = { r : p_r >= exp(-q) },  at least the best one, at most set_size
    q += eta (missed - alpha),   at least 0; from log(k / 1e-4) on everything is shown; q_1 = log(k / sqrt(alpha))

Then misses <= alpha T + (log(k / 1e-4) + eta - q_1) / eta after T answers, whatever the rows, the labels and
the scores are. Labels that cannot be shown (not eligible, or none_label) may be the truth, too. Misses are to be
counted among rows whose truth can be shown: an answer counts by the belief, given it, that the truth is eligible,
which is 1 where all labels are. T and the misses are then sums of these weights, and so are the steps of q.

Two things teach, as sets that hold everything do not:

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
  M, t and C count decisions at the rule's own coverage. At another one each decision pays for itself:
  q_b = min(1, beta alpha / sum_r b_r p_r), with its own sum_r p_r^2 in place of C / t, and t of all.

A learner that is told every label learns from any set: it has no warm-up, and nothing is left out.

Labels that are tied at the edge of T take their places at random. P(S) is exact in all cases.
docs/coverage.md: the effect of late, missing and wrong answers.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Any, Unpack

import numpy as np

from superarm._types import Array
from superarm.data.labels import Label, LabelVocabulary
from superarm.errors import InvalidInput
from superarm.explore.coverage import Coverage
from superarm.explore.distributions import SetDistribution
from superarm.explore.leave_out import LABEL_KEYS, leave_out_distribution, leave_out_record
from superarm.explore.rule import Rule, RuleParams
from superarm.native.cover import LOG_KEYS, MAX_TARGETS, WRONG_ANSWERS, CoverKernel
from superarm.parameters import check_int, check_number, check_share, is_number


def check_coverage(coverage: Any, owner: str) -> float:
    """Return ``coverage``, if it can be the share of answers that are to be yes."""
    if not is_number(coverage) or not 0.0 < coverage < 1.0:
        raise InvalidInput.must("coverage", owner, "above 0 and below 1", coverage)
    return float(coverage)


class Cover(Rule):
    """As few labels as a promised coverage needs.

    Args:
        coverage: how often the right label is to be shown, at least, in the long run.
        warm_up: rounds that do not count for the promise, in which sets are chosen to learn; ``None`` is 400
            for each label, at most 10,000, and none for a learner that is told every label.
        eta: the step of the threshold. A larger one follows a change sooner, and strays more.
        uniform: the share of sets drawn uniformly, below 1 - coverage: their misses count.
        false_no: the probability of a "no" although the right label was shown.
        false_yes: the probability of a "yes" although it was not.
        set_size: the most labels to show; ``None`` for all. Too few of them break the promise.

    >>> rule = Cover(coverage=0.9, warm_up=0, labels=["ant", "bee", "cat", "dog"])
    >>> decision = rule.decide(probabilities=[0.94, 0.03, 0.02, 0.01])
    >>> decision.labels
    ['ant']
    >>> rule.update(decision, hit=True)
    >>> rule.observed_coverage().answers
    1.0
    """

    name = "cover"
    label_keys = LABEL_KEYS
    promises_coverage = True
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
        self.coverage = check_coverage(coverage, self.owner)
        self.warm_up = None if warm_up is None else check_int("warm_up", self.owner, warm_up, 0)
        self.eta = check_number("eta", self.owner, eta, 0.0, 10.0)
        self.uniform = check_share("uniform", self.owner, uniform)
        if self.uniform and self.uniform + self.coverage >= 1.0 - 1e-9:
            wanted = f"below 1 - coverage = {1.0 - self.coverage:.4g}, as most uniform sets miss"
            raise self.invalid("uniform", wanted, uniform)
        self.false_no = check_share("false_no", self.owner, false_no, 0.99)
        self.false_yes = check_share("false_yes", self.owner, false_yes, 0.99)
        if self.false_no + self.false_yes >= 1.0:
            raise self.invalid("false_no", "below 1 - false_yes: else a yes means no", false_no)

    def make_kernel(
        self, k: int, seed: int, *, full_information: bool = False, none_label: int | None = None
    ) -> CoverKernel:
        """Return a new kernel for k labels and draws by ``seed``.

        Args:
            k: the number of labels.
            seed: the seed of every draw.
            full_information: whether its learner is told every label.
            none_label: the index of a label that is never shown and may be the truth; ``None`` without one.
        """
        default_warm_up = 0 if full_information else min(10_000, 400 * k)
        return CoverKernel(
            k,
            seed,
            coverage=self.coverage,
            warm_up=default_warm_up if self.warm_up is None else self.warm_up,
            eta=self.eta,
            uniform=self.uniform,
            false_no=self.false_no,
            false_yes=self.false_yes,
            full_information=full_information,
            none_label=-1 if none_label is None else none_label,
        )

    # ------------------------------------------------------------ records

    def record(self, draw_log: Array, labels: LabelVocabulary) -> dict[str, Any]:
        *head, threshold = draw_log[: len(LOG_KEYS) + 1].tolist()
        record: dict[str, Any] = {"name": self.name, **dict(zip(LOG_KEYS, head, strict=True))}
        record |= {
            "counts": bool(record["counts"]),
            "size": int(record["size"]),
            "cut_by": int(record["cut_by"]),
        }
        written = leave_out_record(draw_log[len(LOG_KEYS) + 1 :].tolist(), labels)
        return record | {"threshold": threshold, "uniform": self.uniform} | written

    def draw_log_from(self, record: dict[str, Any]) -> Array:
        return np.array([record[name] for name in LOG_KEYS], np.float64)

    def without_promise(self, draw_log: Array) -> Array:
        log = draw_log.copy()
        log[LOG_KEYS.index("counts") : LOG_KEYS.index("counts") + 1] = 0.0  # an empty log stays empty
        return log

    def count_answer(self, kernel: CoverKernel, draw_log: Array, hit: bool, label: int) -> None:
        if len(draw_log):  # else another rule made the decision
            kernel.count_answer(draw_log, hit, label)

    @classmethod
    def distribution_from(
        cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int
    ) -> SetDistribution:
        return leave_out_distribution(record, top, eligible)

    # ------------------------------------------------------------ the promise

    def checked_target(self, kernel: CoverKernel, coverage: Any, owner: str) -> float:
        """Return ``coverage``, or the rule's own for ``None``, if ``kernel`` has a threshold for it or room for one.

        ``owner`` is whose rule it is, for messages.
        """
        if coverage is None:
            return self.coverage
        target = check_coverage(coverage, owner)
        if not kernel.has_room(target):
            wanted = f"one of the {MAX_TARGETS} targets in use: no further one can be added"
            raise InvalidInput.must("coverage", owner, wanted, coverage)
        return target

    def coverage_at(self, kernel: CoverKernel, coverage: float | None, owner: str) -> Coverage:
        target = self.checked_target(kernel, coverage, owner)
        tally = kernel.tally_at(target)
        answers, noes = tally["answers"], tally["noes_to_all"]
        observed = Coverage(
            promised=target,
            kept=1.0 - tally["misses"] / answers if answers else nan,
            mean_size=tally["shown"] / answers if answers else nan,
            answers=answers,
            warm_up=int(kernel.state()["warm_up"][0]),
            threshold=kernel.threshold(target),
            edge=kernel.edge(target),
            capped_misses=tally["capped_misses"],
            noes_to_all=max(0.0, noes),
        )
        asked = answers if self.false_no else answers + noes  # with false_no they are among the answers
        reason = kernel.broken_promise(target)
        return replace(observed, trouble=_trouble(observed, asked, reason)) if reason else observed

    def warn_of_promise(self, kernel: CoverKernel) -> None:
        if kernel.has_broken_promise and not kernel.warned:
            kernel.warned = True
            targets = [target for target in kernel.state()["targets"].tolist() if target]
            for trouble in filter(
                None, (self.coverage_at(kernel, target, self.owner).trouble for target in targets)
            ):
                warnings.warn(trouble, stacklevel=3)

    def observed_coverage(self, coverage: float | None = None) -> Coverage:
        """Return the coverage promised and kept where the rule is used alone; ``coverage`` names another target."""
        if self._core is None and self.labels is None:
            raise self.invalid(
                "labels", "known (given, or by a first decision): the warm-up depends on them", None
            )
        kernel: Any = (self._core or self._core_for(len(self.labels or ()))).kernel
        return self.coverage_at(kernel, coverage, self.owner)


def _trouble(coverage: Coverage, asked: float, reason: int) -> str:
    """Return a sentence about a broken promise, by the reason that `CoverKernel.broken_promise` gave."""
    if reason == WRONG_ANSWERS:
        return (
            f"a coverage of {coverage.promised:g} has no meaning here: {coverage.noes_to_all:,.0f} of {asked:,.0f} "
            "answers were no although all labels were shown (false_no allows for wrong answers, none_label "
            "for rows without a right one)"
        )
    return (
        f"set_size is too small for a coverage of {coverage.promised:g}: {coverage.kept:.3f} of "
        f"{coverage.answers:,.0f} answers were yes, and {coverage.capped_misses:,.0f} of the misses were sets "
        "that it cut short"
    )
