"""Bounds, exact second moments, the best gamma (docs/errata.md).

Symbols: k labels, sets of m, exploration gamma, T rounds, D = 2 |W*|^2, R_T the cumulative loss of W*.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, lgamma, log, sqrt

import numpy as np

from superarm.errors import InvalidInput
from superarm.explore.dilute_probabilities import dilute_moments, log_comb, overlap_probabilities
from superarm.native.mcdbf import RHO_GRID
from superarm.parameters import check_int, check_number
from superarm.theory.label_estimates import ESTIMATE_NAMES, estimate_table, inverse_order_sums, log_tau1, tau2

SUMMARY_RHO = float(RHO_GRID[np.argmin(np.abs(RHO_GRID - 0.9))])  # of the minimum-variance estimate's moments


def _check(k: int, m: int, gamma: float) -> None:
    if not 1 <= m < k:
        raise InvalidInput.must("set_size", "theory", f"at least 1 and below labels = {k}", m)
    if not 0.0 < gamma <= 1.0:
        raise InvalidInput.must("gamma", "theory", "in (0, 1]", gamma)


def _exp(logarithm: float) -> float:
    return exp(logarithm) if logarithm < 709.0 else inf


def _log_permutations(k: int, m: int) -> float:
    return lgamma(k + 1) - lgamma(k - m + 1)


def _lambdas(k: int, m: int, gamma: float) -> tuple[float, float]:
    """Return lambda_1 and lambda_2 of Theorem 6."""
    _check(k, m, gamma)
    tau1 = _exp(log_tau1(k, m))
    t2 = tau2(k, m)
    first = log(m) + m * log(k / gamma) + _log_permutations(k, m) - 2.0 * log_tau1(k, m)
    rest = -2.0 * m * t2 / tau1 - 2.0 / tau1 + k * (t2 * t2 + 1.0 / (k * m) + 2.0 * t2 / k)
    return 2.0 / tau1, _exp(first) + rest


def lemma5_bound(k: int, m: int, gamma: float, *, in_top: bool) -> float:
    """Return the paper's bound on E|U~|^2 for |x| = 1: m of k labels, gamma; ``in_top``, if y is in the top set."""
    lambda1, lambda2 = _lambdas(k, m, gamma)
    return lambda2 + (0.0 if in_top else lambda1)


def second_moment(k: int, m: int, gamma: float, estimate: str = "ordered", *, in_top: bool) -> float:
    """Return E|U~|^2 itself, for |x| = 1: what Lemma 5 bounds; infinite where a float cannot hold it.

    ``estimate`` is MC-DBF's, by name; k, m, gamma and ``in_top`` are as in `lemma5_bound`. That of
    "minimum-variance" is for rho = 0.9047, the value nearest to 0.9 of those that the learner can have.

    >>> round(second_moment(10, 4, 0.1, in_top=True), 1), round(lemma5_bound(10, 4, 0.1, in_top=True))
    (3184.2, 1116075)
    >>> round(second_moment(10, 4, 0.1, "minimum-variance", in_top=True), 2)
    20.36
    """
    _check(k, m, gamma)
    p = overlap_probabilities(k, m, gamma)
    table = estimate_table(k, m, gamma, estimate).values
    values = table[np.argmin(np.abs(RHO_GRID - SUMMARY_RHO))] if len(table) > 1 else table[0]
    orders = inverse_order_sums(k, m, gamma) if estimate == "ordered" else None
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for j in range(max(0, 2 * m - k), m + 1):
            hit = j / m if in_top else (m - j) / (k - m)  # P(y in S | j)
            for f, probability in ((1, hit), (0, 1.0 - hit)):
                sizes = np.array([j, m - j, m - j, k - 2 * m + j])
                base = values[j, f] - np.array([1.0 / m, 0.0, 1.0 / m, 0.0])
                total += p[j] * probability * float(sizes @ base**2)
                if orders is not None and f:
                    # the part 1/(Z tau1) differs from order to order: sum over orders of Z w^2 and Z w
                    sets = np.exp(log_comb(m, j) + log_comb(k - m, m - j)) * probability
                    linear = j * base[0] + (m - j) * base[1]
                    total += sets * m * orders[j] * _exp(-2.0 * log_tau1(k, m))
                    total += sets * 2.0 * linear * exp(lgamma(m + 1) - log_tau1(k, m))
    return float(total) if np.isfinite(total) else inf


def theorem6_bound(
    k: int, m: int, gamma: float, rounds: int, *, complexity: float = 2.0, loss: float = 0.0
) -> float:
    """Return the paper's bound on the expected number of misses of the top set, for m of k labels and gamma.

    Args:
        rounds: T.
        complexity: D = 2 |W*|^2 of the comparison W*.
        loss: R_T, the cumulative loss of W*.
    """
    check_number("complexity", "theory", complexity, 0.0)
    lambda1, lambda2 = _lambdas(k, m, gamma)
    half = lambda1 * complexity / 2.0
    spread = sqrt((lambda2 + 1.0) * complexity * rounds / 2.0)
    return loss + sqrt(half * loss) + 3.0 * max(half, spread) + gamma * rounds


def least_complexity(k: int, m: int) -> float:
    """Return the least D = 2 |W*|^2 with which any row can be without loss (R_T = 0); infinite for m = 1.

    L_avg = 0 means that y is in the top set of W*, with s_y >= 1 + (s_y + the other m - 1 scores there) / m. The
    shortest scores with that have all others equal, and s_y above them by m / (m-1):
    |W*|^2 >= |s|^2 >= (m / (m-1))^2 (k-1) / k.
    """
    return 2.0 * (m / (m - 1.0)) ** 2 * (k - 1.0) / k if m > 1 else inf


def best_gamma(k: int, m: int, rounds: int, *, complexity: float = 2.0) -> float:
    """Return the gamma that makes Theorem 6's bound least (Corollary 8, with tau1 squared), at most 1.

    k, m, ``rounds`` and ``complexity`` are as in `theorem6_bound`.
    """
    _check(k, m, 1.0)
    check_int("rounds", "theory", rounds, 1)
    check_number("complexity", "theory", complexity, 0.0)
    logarithm = (
        log(9.0 / 8.0)
        + 3.0 * log(m)
        + m * log(k)
        + _log_permutations(k, m)
        + log(complexity)
        - 2.0 * log_tau1(k, m)
        - log(rounds)
    )
    return min(1.0, exp(logarithm / (m + 2)))


@dataclass(frozen=True, slots=True)
class TheorySummary:
    """What the command ``superarm theory`` shows.

    Attributes:
        labels, set_size, gamma, rounds, complexity: the problem.
        shown_inside, shown_outside: how probable it is that a label of the top set is shown, and another.
        other_set: how probable it is that another set than the top set is shown.
        mean_outside: how many labels of the shown set are not of the top set.
        second_moments: E|U~|^2 of each estimate, with the right label inside and outside of the top set.
        lemma5: the paper's bounds on them.
        bound: Theorem 6's, on the mistakes; it takes R_T = 0, which no W* has with m = 1 (docs/errata.md 7).
        best_gamma: the gamma that makes it least.
    """

    labels: int
    set_size: int
    gamma: float
    rounds: int
    complexity: float
    shown_inside: float
    shown_outside: float
    other_set: float
    mean_outside: float
    second_moments: dict[str, tuple[float, float]]
    lemma5: tuple[float, float]
    bound: float
    best_gamma: float


def summary(k: int, m: int, gamma: float, rounds: int, *, complexity: float | None = None) -> TheorySummary:
    """Return the summary of one problem.

    k, m, gamma, ``rounds`` and ``complexity`` are as in `theorem6_bound`; without a complexity it is the least with
    which R_T can be 0, and 2 for m = 1, where it never is.
    """
    _check(k, m, gamma)
    if complexity is None:
        complexity = least_complexity(k, m) if m > 1 else 2.0
    p = overlap_probabilities(k, m, gamma)
    inside, outside = dilute_moments(k, m, gamma).inclusion.tolist()
    return TheorySummary(
        labels=k,
        set_size=m,
        gamma=gamma,
        rounds=rounds,
        complexity=complexity,
        shown_inside=inside,
        shown_outside=outside,
        other_set=1.0 - float(p[m]),
        mean_outside=m - float(p @ np.arange(m + 1)),
        second_moments={
            name: (
                second_moment(k, m, gamma, name, in_top=True),
                second_moment(k, m, gamma, name, in_top=False),
            )
            for name in ESTIMATE_NAMES
        },
        lemma5=(lemma5_bound(k, m, gamma, in_top=True), lemma5_bound(k, m, gamma, in_top=False)),
        bound=theorem6_bound(k, m, gamma, rounds, complexity=complexity),
        best_gamma=best_gamma(k, m, rounds, complexity=complexity),
    )
