"""The distribution over sets (the paper's eq. 5) and what one bit says about the label.

With the top set Y^ (the m best of n labels), P(r) = (1-gamma)/m 1[r in Y^] + gamma/n, and labels
are drawn one after another without replacement. Only two weights occur,

    a = (1-gamma)/m + gamma/n   inside Y^,        b = gamma/n   outside,

so a set's probability depends on j = |S n Y^| alone, and drawing costs O(m) whatever n is.
Everything that depends on (n, m, gamma) is computed once, in logarithms, and kept in a `Design`.

One bit f = 1[y in S] gives an estimate e^ of the indicator of y with E[e^] = e_y; it takes one
value on each of the four groups S n Y^, S - Y^, Y^ - S and the rest (`GROUPS` in this order):

    ordered            f 1[r in S] / (Z tau1) - tau2              Z: probability of the ordered draw
    set                f 1[r in S] / (Z_set(j) C(n-2, m-1)) - tau2
    minimum-variance   I^-1 1_S / sigma_j  if f = 1,  I^-1 1_{S^c} / (1 - sigma_j)  if f = 0
"""

from __future__ import annotations

from functools import lru_cache
from math import lgamma, log
from typing import Any, NamedTuple

import numpy as np

from superarm.numerics import kernel, uniform

__all__ = [
    "RHO_GRID",
    "Design",
    "design",
    "draw",
    "estimate_table",
    "inclusion",
    "log_comb",
    "log_ordered_probability",
    "log_tau1",
    "order_counts",
    "overlap_probabilities",
    "rho_index",
    "tau2",
]

# The values that rho, the belief P(y in Y^), can take in the minimum-variance estimate.
RHO_GRID = 1.0 / (1.0 + np.exp(-np.linspace(-3.0, 5.0, 33)))


class Design(NamedTuple):
    """All that a draw of m out of n labels needs, and the scratch space it uses."""

    n: int
    m: int
    a: float
    b: float
    log_set: np.ndarray[Any, Any]  # log Z_set(j), j = 0..m
    log_tau1: float
    estimates: np.ndarray[Any, Any]  # [rho, j, f, group]; for "ordered" without the 1/(Z tau1) part
    pool: np.ndarray[Any, Any]
    skip: np.ndarray[Any, Any]


def design(n: int, m: int, gamma: float, estimate: str = "ordered") -> Design:
    """The Design for sets of m out of n labels; with n <= m all n are shown."""
    m = min(n, m)
    a = (1.0 - gamma) / m + gamma / n
    b = gamma / n
    log_set = _log_set_table(n, m, a, b) if m < n else np.zeros(m + 1)
    if m < n and gamma > 0.0:
        estimates = estimate_table(n, m, gamma, estimate)
        tau = log_tau1(n, m)
    else:  # the bit says nothing that was not known before
        estimates, tau = np.zeros((1, m + 1, 2, 4)), 0.0
    scratch = np.zeros(m, np.int64), np.zeros(2 * m, np.int64)
    return Design(n, m, a, b, log_set, tau, estimates, *scratch)


# ---------------------------------------------------------------- drawing


@kernel
def draw(design: Design, top: Any, seed: int, round_: int, drawn: Any, odds: Any) -> None:
    """Draw a set of positions, given the positions of the top set.

    ``odds`` receives log Z (of the ordered draw) and log Z_set. One uniform per position chooses
    the group and the member in it; nothing scans the n labels.
    """
    n, m, a, b = design.n, design.m, design.a, design.b
    pool, skip = design.pool, design.skip
    for i in range(m):
        pool[i] = top[i]
    inside, outside = 0, 0
    log_z, product = 0.0, 1.0
    for i in range(m):
        weight_in = (m - inside) * a
        weight_out = (n - m - outside) * b
        rest = weight_in + weight_out
        point = uniform(seed, round_, i) * rest
        if point < weight_in or outside == n - m:
            at = min(int(point / a), m - inside - 1)
            drawn[i] = pool[at]
            inside += 1
            pool[at] = pool[m - inside]
            product *= a / rest
        else:
            if outside == 0:
                for l in range(m):
                    _insert_sorted(skip, l, top[l])
            at = min(int((point - weight_in) / b), n - m - outside - 1)
            for l in range(m + outside):  # the at-th position that is not in skip
                if skip[l] <= at:
                    at += 1
            _insert_sorted(skip, m + outside, at)
            drawn[i] = at
            outside += 1
            product *= b / rest
        if product < 1e-200:
            log_z += np.log(product)
            product = 1.0
    odds[0] = log_z + np.log(product)
    odds[1] = design.log_set[inside]


@kernel
def _insert_sorted(values: Any, n: int, value: int) -> None:
    i = n
    while i > 0 and values[i - 1] > value:
        values[i] = values[i - 1]
        i -= 1
    values[i] = value


def log_ordered_probability(n: int, m: int, gamma: float, in_top: list[bool]) -> float:
    """log Z of an ordered draw, given for each drawn label whether it is in the top set."""
    a, b = (1.0 - gamma) / m + gamma / n, gamma / n
    inside = outside = 0
    total = 0.0
    for flag in in_top:
        total += log(a if flag else b) - log((m - inside) * a + (n - m - outside) * b)
        inside, outside = inside + flag, outside + (not flag)
    return total


# ---------------------------------------------------------------- probabilities


@kernel
def _log_set_table(n: int, m: int, a: float, b: float) -> Any:
    """log Z_set(j) by F(u,v) = u F(u-1,v) a / rem(u-1,v) + v F(u,v-1) b / rem(u,v-1)."""
    log_a, log_b = np.log(a), np.log(b) if b > 0.0 else -np.inf
    F = np.full((m + 1, m + 1), -np.inf)
    F[0, 0] = 0.0
    for u in range(m + 1):
        for v in range(min(m - u, n - m) + 1):
            if u + v == 0:
                continue
            x, y = -np.inf, -np.inf
            if u > 0:
                rem = (m - u + 1) * a + (n - m - v) * b
                x = np.log(u) + F[u - 1, v] + log_a - np.log(rem)
            if v > 0 and b > 0.0:
                rem = (m - u) * a + (n - m - v + 1) * b
                y = np.log(v) + F[u, v - 1] + log_b - np.log(rem)
            high = max(x, y)
            F[u, v] = high if high == -np.inf else high + np.log(np.exp(x - high) + np.exp(y - high))
    return np.array([F[j, m - j] for j in range(m + 1)])


def overlap_probabilities(n: int, m: int, gamma: float) -> np.ndarray[Any, Any]:
    """P(|S n Y^| = j) for j = 0..m."""
    table = _log_set_table(n, m, (1.0 - gamma) / m + gamma / n, gamma / n)
    logs = [
        log_comb(m, j) + log_comb(n - m, m - j) + table[j] if m - j <= n - m else -np.inf
        for j in range(m + 1)
    ]
    return np.asarray(np.exp(np.array(logs)))


class Inclusion(NamedTuple):
    """Probabilities that a label (or both of two labels) of Y^ / outside Y^ is shown."""

    inside: float
    outside: float
    both_inside: float
    both_outside: float
    one_each: float


def inclusion(n: int, m: int, gamma: float) -> Inclusion:
    """Inclusion probabilities of single labels and pairs (0 where no such pair exists)."""
    p, j = overlap_probabilities(n, m, gamma), np.arange(m + 1)
    out, rest = m - j, n - m

    def mean(count: np.ndarray[Any, Any], places: int) -> float:
        return float(p @ count) / places if places else 0.0

    return Inclusion(
        mean(j, m),
        mean(out, rest),
        mean(j * (j - 1), m * (m - 1)),
        mean(out * (out - 1), rest * (rest - 1)),
        mean(j * out, m * rest),
    )


def order_counts(n: int, m: int, gamma: float) -> np.ndarray[Any, Any]:
    """G(j) = the sum of 1/Z over all orders of a set with |S n Y^| = j (MATH: erratum 5).

    G(u,v) = u G(u-1,v) rem(u-1,v) / a + v G(u,v-1) rem(u,v-1) / b; infinite where it overflows.
    """
    a, b = (1.0 - gamma) / m + gamma / n, gamma / n

    def rem(u: int, v: int) -> float:
        return (m - u) * a + (n - m - v) * b

    G = np.zeros((m + 1, m + 1))
    G[0, 0] = 1.0
    with np.errstate(over="ignore"):
        for u, v in ((u, s - u) for s in range(1, m + 1) for u in range(s + 1)):
            if v <= n - m:
                from_inside = u * G[u - 1, v] * rem(u - 1, v) / a if u else 0.0
                from_outside = v * G[u, v - 1] * rem(u, v - 1) / b if v else 0.0
                G[u, v] = from_inside + from_outside
    return np.array([G[j, m - j] for j in range(m + 1)])


# ---------------------------------------------------------------- estimates


def log_comb(n: int, r: int) -> float:
    return lgamma(n + 1) - lgamma(r + 1) - lgamma(n - r + 1)


def log_tau1(n: int, m: int) -> float:
    """log of tau1 = m (n-2)! / (n-m-1)!."""
    return log(m) + lgamma(n - 1) - lgamma(n - m)


def tau2(n: int, m: int) -> float:
    return (m - 1) / (n - m)


@lru_cache(maxsize=256)
def estimate_table(n: int, m: int, gamma: float, estimate: str) -> np.ndarray[Any, Any]:
    """e^ for each (rho, j, f, group); only "minimum-variance" depends on rho."""
    if estimate == "minimum-variance":
        return np.stack([minimum_variance(n, m, gamma, rho) for rho in RHO_GRID])
    table = np.full((1, m + 1, 2, 4), -tau2(n, m))
    if estimate == "set":
        log_set = _log_set_table(n, m, (1.0 - gamma) / m + gamma / n, gamma / n)
        for j in range(max(0, 2 * m - n), m + 1):
            table[0, j, 1, :2] += np.exp(-log_set[j] - log_comb(n - 2, m - 1))
    return table


def minimum_variance(n: int, m: int, gamma: float, rho: float) -> np.ndarray[Any, Any]:
    """The unbiased estimate of least variance under P(y in Y^) = rho: values [j, f, group]."""
    p = overlap_probabilities(n, m, gamma)
    rest = n - m
    table = np.zeros((m + 1, 2, 4))
    js = np.arange(max(0, 2 * m - n), m + 1)
    sigma = js * rho / m + (m - js) * (1.0 - rho) / rest
    # (inside, outside) sizes of S and of its complement, and the weight of each such outcome
    parts = [(js, m - js, p[js] / sigma), (m - js, rest - m + js, p[js] / (1.0 - sigma))]

    def moment(power_in: int, power_out: int) -> float:
        """An entry of I: the chance that labels are together in S (or its complement), weighted."""
        total = 0.0
        for size_in, size_out, weight in parts:
            count = _falling(size_in, power_in) * _falling(size_out, power_out)
            total += float(weight @ count)
        places = float(_falling(np.array(m), power_in) * _falling(np.array(rest), power_out))
        return total / places if places else 0.0

    pair_in, pair_out, cross = moment(2, 0), moment(0, 2), moment(1, 1)
    gap_in, gap_out = moment(1, 0) - pair_in, moment(0, 1) - pair_out
    # summing the equations of each block leaves two unknowns: the sums over Y^ and its complement
    block = np.array([[gap_in + m * pair_in, m * cross], [rest * cross, gap_out + rest * pair_out]])
    for j, s in zip(js, sigma, strict=True):
        for f, value in ((1, 1.0 / s), (0, 1.0 / (1.0 - s))):
            in_s, out_s = (value, 0.0) if f else (0.0, value)
            sums = np.linalg.solve(
                block,
                [j * in_s + (m - j) * out_s, (m - j) * in_s + (rest - m + j) * out_s],
            )
            base_in = pair_in * sums[0] + cross * sums[1]
            base_out = pair_out * sums[1] + cross * sums[0]
            table[j, f] = [
                (in_s - base_in) / gap_in,
                (in_s - base_out) / gap_out,
                (out_s - base_in) / gap_in,
                (out_s - base_out) / gap_out,
            ]
    return table


def _falling(count: np.ndarray[Any, Any], power: int) -> np.ndarray[Any, Any]:
    return (count * 1.0, count * (count - 1.0))[power - 1] if power else np.ones_like(count * 1.0)


@kernel
def rho_index(rho: float) -> int:
    """The place of ``rho`` on `RHO_GRID` (evenly spaced in logits), the nearest one."""
    rho = min(max(rho, 1e-9), 1.0 - 1e-9)
    logit = np.log(rho / (1.0 - rho))
    return int(min(max(np.round((logit + 3.0) * 4.0), 0.0), 32.0))
