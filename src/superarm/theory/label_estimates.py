"""Estimates of the label from one bit, when the set was drawn as in the paper (explore/dilute.py).

One bit f = 1[y in S] gives an estimate e^ of the indicator of y with E[e^] = e_y; it takes one value on
each of the four groups S n Y^, S - Y^, Y^ - S and the rest, in this order:

    ordered            f 1[r in S] / (Z tau1) - tau2              Z: probability of the ordered draw
    set                f 1[r in S] / (Z_set(j) C(n-2, m-1)) - tau2
    minimum-variance   I^-1 1_S / sigma_j  if f = 1,  I^-1 1_{S^c} / (1 - sigma_j)  if f = 0
"""

from __future__ import annotations

from functools import lru_cache
from math import lgamma, log
from typing import NamedTuple

import numpy as np

from superarm._types import Array
from superarm.explore.dilute_probabilities import (
    label_weights,
    log_comb,
    log_set_probabilities,
    overlap_probabilities,
)
from superarm.native.mcdbf import RHO_GRID
from superarm.parameters import check_choice

ESTIMATE_NAMES = ("ordered", "set", "minimum-variance")


class EstimateTable(NamedTuple):
    """The values that the estimate e^ takes, for sets of m out of n labels."""

    log_tau1: float
    values: Array  # [rho, j, f, group]; for "ordered" without the 1/(Z tau1) part


def log_tau1(n: int, m: int) -> float:
    """Return the logarithm of tau1 = m (n-2)! / (n-m-1)!."""
    return log(m) + lgamma(n - 1) - lgamma(n - m)


def tau2(n: int, m: int) -> float:
    return (m - 1) / (n - m)


@lru_cache(maxsize=256)
def estimate_table(n: int, m: int, gamma: float, estimate: str) -> EstimateTable:
    """Return the table of an estimate, by its name, from a bit about m of n labels; all 0 if every label is shown."""
    check_choice("estimate", "theory", estimate, ESTIMATE_NAMES)
    if m >= n or gamma <= 0.0:
        return EstimateTable(0.0, np.zeros((1, m + 1, 2, 4)))
    return EstimateTable(log_tau1(n, m), _values(n, m, gamma, estimate))


def _values(n: int, m: int, gamma: float, estimate: str) -> Array:
    """Return e^ for each (rho, j, f, group); only "minimum-variance" depends on rho."""
    if estimate == "minimum-variance":
        return np.stack([minimum_variance(n, m, gamma, rho) for rho in RHO_GRID])
    values = np.full((1, m + 1, 2, 4), -tau2(n, m))
    if estimate == "set":
        log_set = log_set_probabilities(n, m, gamma)
        for j in range(max(0, 2 * m - n), m + 1):
            values[0, j, 1, :2] += np.exp(-log_set[j] - log_comb(n - 2, m - 1))
    return values


def minimum_variance(n: int, m: int, gamma: float, rho: float) -> Array:
    """Return the unbiased estimate of least variance under P(y in Y^) = rho: values [j, f, group]."""
    p = overlap_probabilities(n, m, gamma)
    rest = n - m
    values = np.zeros((m + 1, 2, 4))
    js = np.arange(max(0, 2 * m - n), m + 1)
    sigma = js * rho / m + (m - js) * (1.0 - rho) / rest
    # (inside, outside) sizes of S and of its complement, and the weight of each such outcome
    parts = [(js, m - js, p[js] / sigma), (m - js, rest - m + js, p[js] / (1.0 - sigma))]

    def moment(power_in: int, power_out: int) -> float:
        """Return an entry of I: the probability that labels are together in S (or its complement), weighted."""
        total = 0.0
        for size_in, size_out, weight in parts:
            count = _falling(size_in, power_in) * _falling(size_out, power_out)
            total += float(weight @ count)
        pairs = float(_falling(np.array(m), power_in) * _falling(np.array(rest), power_out))
        return total / pairs if pairs else 0.0

    pair_in, pair_out, cross = moment(2, 0), moment(0, 2), moment(1, 1)
    excess_in, excess_out = moment(1, 0) - pair_in, moment(0, 1) - pair_out
    # summing the equations of each block leaves two unknowns: the sums over Y^ and its complement
    block = np.array([[excess_in + m * pair_in, m * cross], [rest * cross, excess_out + rest * pair_out]])
    for j, s in zip(js, sigma, strict=True):
        for f, value in ((1, 1.0 / s), (0, 1.0 / (1.0 - s))):
            in_s, out_s = (value, 0.0) if f else (0.0, value)
            sums = np.linalg.solve(
                block,
                [j * in_s + (m - j) * out_s, (m - j) * in_s + (rest - m + j) * out_s],
            )
            base_in = pair_in * sums[0] + cross * sums[1]
            base_out = pair_out * sums[1] + cross * sums[0]
            values[j, f] = [
                (in_s - base_in) / excess_in,
                (in_s - base_out) / excess_out,
                (out_s - base_in) / excess_in,
                (out_s - base_out) / excess_out,
            ]
    return values


def _falling(count: Array, power: int) -> Array:
    return (count * 1.0, count * (count - 1.0))[power - 1] if power else np.ones_like(count * 1.0)


def inverse_order_sums(n: int, m: int, gamma: float) -> Array:
    """Return G(j), the sum of 1/Z over all orders of a set with |S n Y^| = j (docs/errata.md 5).

    G(u,v) = u G(u-1,v) rem(u-1,v) / a + v G(u,v-1) rem(u,v-1) / b; infinite where it overflows.
    """
    a, b = label_weights(n, m, gamma)

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
