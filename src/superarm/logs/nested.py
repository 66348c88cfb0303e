"""More of the best labels of one ranking never hit less often than fewer: what this says about their estimates.

A set that holds another hits whenever that one does. So where the log cannot answer for a set, the lower end of
a smaller one's interval holds for it, too, and the value is what is expected of it, at least that of the smaller.
Not so where the weights of one of these sets do not average 1: the propensities may be wrong for all of them.

The values are made to increase (isotonic regression). An interval is also cut by those of the other sets of its
ranking, but by wider ones, of a level at which all of these together miss with a probability of at most
`NESTED_MISS`, independent of each other or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from superarm._extras import require_extra
from superarm.logs.hit_rates import MAX_UNSUPPORTED
from superarm.logs.policies import Policy
from superarm.logs.results import Estimate, PolicyResult

NESTED_MISS = 0.01  # the probability that one of the sets that an interval is cut by misses the truth


def tighten_nested(
    results: Sequence[PolicyResult],
    policies: Sequence[Policy],
    estimators: Sequence[Callable[[float], Sequence[Estimate]]],
) -> list[PolicyResult]:
    """Return the results, where the best estimates of nested sets increase, and cut each other's intervals.

    Args:
        results: one for each policy, with intervals of 95 %.
        policies: the policies.
        estimators: for each policy, its estimates by the level of their intervals.
    """
    tightened = list(results)
    for members in _same_ranking(policies):
        members.sort(key=lambda i: results[i].set_size)
        level = 1.0 - 2.0 * NESTED_MISS / max(len(members) - 1, 1)  # of each only one end can cut
        doubtful = any(results[i].required.propensities in ("doubtful", "wrong") for i in members)
        best: dict[int, Estimate] = {}
        wider: dict[int, tuple[float, float]] = {}  # intervals that cut those of other sets
        smaller: Estimate | None = None
        for i in members:
            own = results[i].best
            if own is not None:
                wide = next(e for e in estimators[i](level) if e.name == own.name)
                wider[i] = wide.low, wide.high
            elif smaller is not None and smaller.value >= 1.0 - MAX_UNSUPPORTED and not doubtful:
                value = max(results[i].expected, smaller.value)
                own = replace(smaller, name="nested", value=value, high=1.0)
                wider[i] = (0.0, 1.0)
            if own is not None:
                best[i] = smaller = own
        for i, estimate in zip(best, _increasing(best.values(), wider.values()), strict=True):
            estimates = [estimate if e is best[i] else e for e in results[i].estimates]
            if results[i].best is None:
                estimates.append(estimate)
            tightened[i] = replace(results[i], estimates=tuple(estimates))
    return tightened


def _same_ranking(policies: Sequence[Policy]) -> list[list[int]]:
    """Return the indices of the policies that show the best labels of one ranking, for each ranking."""
    rankings: dict[object, list[int]] = {}
    for i, policy in enumerate(policies):
        if policy.rule is None and policy.promised_coverage is None:
            # columns by their names: each policy may have a list of its own
            kind = "scores" if policy.scores is not None else "probabilities"
            by_columns = (kind, policy.columns) if policy.columns else None
            ranking = by_columns or id(policy.learner or policy.scores or policy.probabilities or policy)
            rankings.setdefault(ranking, []).append(i)
    return list(rankings.values())


def _increasing(best: Iterable[Estimate], wider: Iterable[tuple[float, float]]) -> list[Estimate]:
    """Return estimates of larger and larger sets with increasing values, cut by the wider intervals of the others."""
    require_extra("logs")
    from scipy.optimize import isotonic_regression

    estimates = list(best)
    ends = np.array(list(wider)).reshape(-1, 2)
    if not estimates:
        return []
    values = isotonic_regression([e.value for e in estimates], weights=[e.width**-2 for e in estimates]).x
    least = np.maximum.accumulate([0.0, *ends[:-1, 0]])  # by the smaller sets
    most = np.minimum.accumulate([1.0, *ends[:0:-1, 1]])[::-1]  # by the larger ones
    increasing = []
    for old, value, at_least, at_most in zip(estimates, values.tolist(), least, most, strict=True):
        low, high = max(old.low, float(at_least)), min(old.high, float(at_most))
        if low > high:  # they contradict each other
            low, high = old.low, old.high
        increasing.append(replace(old, value=value, low=min(low, value), high=max(high, value)))
    return increasing
