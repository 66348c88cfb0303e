"""The quadratic programs of PA and EPABF, solved by SciPy; nothing of ours in here.

Both look for coefficients delta (W' = W + delta x) with X = |x|^2:

    min 1/2 X |delta|^2 + price of the slacks   s.t.   X G delta + slacks >= losses
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear, minimize


def least_distance(G, h):
    """The shortest z with G z >= h, by non-negative least squares (Lawson & Hanson, problem LDP)."""
    E = np.vstack([G.T, h])
    f = np.zeros(len(E))
    f[-1] = 1.0
    # SciPy's own nnls goes astray where a constraint holds with equality from the start
    u = lsq_linear(E, f, bounds=(0, np.inf), method="bvls", tol=1e-14, max_iter=1000).x
    residual = E @ u - f
    return -residual[:-1] / residual[-1]


def pa(s, y, X, C, variant):
    """The coefficients of an update of PA, PA-I or PA-II for scores s and the right label y."""
    k = len(s)
    others = [r for r in range(k) if r != y]
    G = np.array([np.eye(k)[y] - np.eye(k)[r] for r in others]) * np.sqrt(X)
    losses = np.array([1 - s[y] + s[r] for r in others])
    if variant == "PA":
        return least_distance(G, losses) / np.sqrt(X)
    if variant == "PA-II":  # one slack for all constraints
        slack = np.full((len(others), 1), 1 / np.sqrt(2 * C))
        return least_distance(np.hstack([G, slack]), losses)[:k] / np.sqrt(X)
    Q = G @ G.T  # PA-I by its dual: lambda >= 0, sum lambda <= C
    scale = max(np.abs(losses).max(), 1e-9)

    def cost(v):
        return (0.5 * v @ Q @ v - losses @ v) / scale

    # SLSQP may stay where it starts: the best of several starts
    starts = [np.full(len(others), 0.5 * C / len(others)), *C * np.eye(len(others))]
    solutions = [
        minimize(
            cost,
            start,
            jac=lambda v: (Q @ v - losses) / scale,
            bounds=[(0, C)] * len(others),
            constraints={"type": "ineq", "fun": lambda v: C - v.sum(), "jac": lambda v: -np.ones(len(v))},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        ).x
        for start in starts
    ]
    return G.T @ min(solutions, key=cost) / np.sqrt(X)


def epabf(s, shown, a, X, C, variant):
    """The coefficients of an update of EPABF, -I or -II; a = 1[hit] / P(shown)."""
    k = len(s)
    G = np.array([a * np.eye(k)[shown] - np.eye(k)[r] for r in range(k)]) * np.sqrt(X)
    losses = np.array([1 - a * s[shown] + s[r] for r in range(k)])
    if variant == "EPABF":
        return least_distance(G, losses) / np.sqrt(X)
    if variant == "EPABF-II":  # a slack for each constraint
        slacks = np.eye(k) / np.sqrt(2 * C)
        return least_distance(np.hstack([G, slacks]), losses)[:k] / np.sqrt(X)
    # -I by its dual, 1/2 |G' v|^2 - losses.v with 0 <= v <= C: bounded least squares
    start = np.linalg.solve(G, losses)
    solution = lsq_linear(G.T, start, bounds=(0, C), method="bvls", tol=1e-14, max_iter=1000)
    assert solution.status > 0
    return G.T @ solution.x / np.sqrt(X)
