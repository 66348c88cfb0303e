"""How logged sets were drawn, as the weights ask: how probable was a set, and G = E[1_S 1_S'].

Every rule is either the paper's draw, whose G has two blocks and a closed inverse (`Blocks`, for all rows
with the same n, m and gamma at once), or a `SetDistribution` of its own (`Design`, row by row). A draw of a few sets
S_i with chances d_i, and a share u of uniform sets, needs only how the sets overlap: with M the matrix
of columns sqrt(d_i) 1_{S_i},

    u = 0    w(S_i) = v_i / sqrt(d_i),  v = M^+ pi;     E[w^2] = |v|^2,  if pi is in the range of M
    u > 0    G = c I + [M, e][M, e]',   e = sqrt(u b) 1,  c = u (a - b)  (Woodbury)

a and b being the uniform draw's probabilities of a label and of a pair. Where pi is outside of the range,
labels are asked for that could not be shown, and no weight is right: NaN.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from superarm._types import Array
from superarm.explore import FewSets, SetDistribution
from superarm.explore.dilute import inclusion, log_set_probabilities, overlap_probabilities
from superarm.explore.distributions import uniform_pair

NEGLIGIBLE = 1e-12  # chances below this are no chances
OUTSIDE = 1e-6  # how far from the range of M rounding may lead


class Blocks(NamedTuple):
    """How sets of m out of n are drawn with gamma: tables by j = |S n T|."""

    m: int
    rest: int
    log_set: Array  # log probability of a set
    mean_j: float
    var_j: float
    inside: float  # inclusion probabilities
    outside: float
    gap_in: float  # G: the diagonal of each block is ``gap`` above its other entries,
    gap_out: float  # ``pair``; between the blocks all entries are ``cross``
    pair_in: float
    pair_out: float
    cross: float

    def sums(self, inside: Array, outside: Array) -> tuple[Array, Array]:
        """The sums of z = G^-1 b over each block, from those of b."""
        a, b = self.gap_in + self.m * self.pair_in, self.m * self.cross
        c, d = self.rest * self.cross, self.gap_out + self.rest * self.pair_out
        det = a * d - b * c
        return (d * inside - b * outside) / det, (a * outside - c * inside) / det

    def product(self, a: tuple[Array, Array], b: tuple[Array, Array], both: tuple[Array, Array]) -> Array:
        """a' G^-1 b from the sums over each block (inside, outside) of a, of b, and of a times b."""
        z_in, z_out = self.sums(*b)
        value = (both[0] - a[0] * (self.pair_in * z_in + self.cross * z_out)) / self.gap_in
        value = value + (both[1] - a[1] * (self.pair_out * z_out + self.cross * z_in)) / self.gap_out
        return np.asarray(value)


@lru_cache(maxsize=4096)
def blocks(n: int, m: int, gamma: float) -> Blocks:
    """The tables for one draw; 1 <= m < n."""
    pi, j = inclusion(n, m, gamma), np.arange(m + 1)
    probabilities = overlap_probabilities(n, m, gamma)
    mean = float(probabilities @ j)
    return Blocks(
        m=m,
        rest=n - m,
        log_set=log_set_probabilities(n, m, gamma),
        mean_j=mean,
        var_j=float(probabilities @ (j - mean) ** 2),
        inside=pi.inside,
        outside=pi.outside,
        gap_in=pi.inside - pi.both_inside,
        gap_out=pi.outside - pi.both_outside,
        pair_in=pi.both_inside,
        pair_out=pi.both_outside,
        cross=pi.one_each,
    )


class Design:
    """The draw of one row, over label numbers: what each weight costs is prepared once for all policies."""

    def __init__(self, distribution: SetDistribution) -> None:
        self.distribution = distribution
        self.n, self.m = len(distribution.eligible), distribution.m
        few = distribution if isinstance(distribution, FewSets) else None
        self.sizes_vary = few is not None and any(len(s) != self.m for s in few.chances)
        self._prepared: Any = None

    def spread(self, top: Any) -> tuple[float, float]:
        """Mean and variance of |S n top|. Of tied labels, ``top`` holds those that came first in this row."""
        draw, best = self.distribution, frozenset(top)
        if isinstance(draw, FewSets):  # its sets are those around this top set
            j = np.array([len(s & best) for s in draw.chances])
            p = (1.0 - draw.uniform) * np.array(list(draw.chances.values()))
            t, u = len(best), draw.uniform
            mean = float(p @ j) + u * t * self.m / self.n
            square = float(p @ j**2) + u * t * (self.m / self.n + (t - 1) * uniform_pair(self.n, self.m))
        else:
            at = [draw.position[label] for label in top]
            pairs = draw.pairs()[np.ix_(at, at)]
            mean, square = float(np.trace(pairs)), float(pairs.sum())
        return mean, max(square - mean**2, 0.0)

    def linear(self, pi: Array, shown: Array) -> tuple[float, float]:
        """pi' G^+ 1_S and its mean square, for a policy's inclusion probabilities of all labels."""
        if self.m == 1 and not self.sizes_vary:  # G is diagonal
            return self._single(pi, int(np.flatnonzero(shown)[0]))
        if type(self.distribution) is FewSets and not (self.distribution.uniform and self.m == self.n):
            few = self._few(self.distribution)
            return few.mixed(pi, shown) if few.uniform else few.alone(pi, shown)
        return self._pairs(pi, shown)

    def _single(self, pi: Array, label: int) -> tuple[float, float]:
        if self._prepared is None:
            self._prepared = np.zeros(len(pi))
            self._prepared[list(self.distribution.eligible)] = self.distribution.inclusion()
        p, asked = self._prepared, pi > NEGLIGIBLE
        if (p[asked] <= NEGLIGIBLE).any():
            return np.nan, np.nan
        return float(pi[label] / p[label]), float((pi[asked] ** 2 / p[asked]).sum())

    def _few(self, draw: FewSets) -> _FewSetsDesign:
        if self._prepared is None:
            self._prepared = _FewSetsDesign(draw, self.n)
        return self._prepared  # type: ignore[no-any-return]

    def _pairs(self, pi: Array, shown: Array) -> tuple[float, float]:
        """For any other draw (ties, slots, somebody's own): G as it is, over the eligible labels."""
        if self._prepared is None:
            G = self.distribution.pairs()
            self._prepared = G, np.linalg.pinv(G, rcond=1e-9, hermitian=True)
        G, inverse = self._prepared
        among = list(self.distribution.eligible)
        z = inverse @ pi[among]
        if np.abs(G @ z - pi[among]).max() > OUTSIDE:
            return np.nan, np.nan
        return float(z @ shown[among]), float(z @ pi[among])


class _FewSetsDesign:
    """G of a few sets, and a share of uniform ones."""

    def __init__(self, draw: FewSets, n: int) -> None:
        self.uniform, self.m, self.n = draw.uniform, draw.m, n
        likely = {s: (1.0 - draw.uniform) * p for s, p in draw.chances.items()}
        self.sets = [s for s, p in likely.items() if p > NEGLIGIBLE]
        self.root = np.sqrt([likely[s] for s in self.sets])
        self.labels = np.array(sorted(set().union(*self.sets)), np.int64)
        self.member = np.array([[r in s for r in self.labels] for s in self.sets], np.float64)
        if not self.sets:
            self.member = np.zeros((0, 0))
        if not self.uniform:
            self.M = (self.member * self.root[:, None]).T
            self.inverse = np.linalg.pinv(self.M, rcond=1e-6)
            return
        both = uniform_pair(n, self.m)
        self.c = self.uniform * (self.m / n - both)
        self.e = np.sqrt(self.uniform * both)
        k = len(self.sets)
        K = np.empty((k + 1, k + 1))
        K[:k, :k] = self.root[:, None] * (self.member @ self.member.T) * self.root
        K[:k, k] = K[k, :k] = self.root * self.member.sum(axis=1) * self.e
        K[k, k] = self.e**2 * n
        self.inverse = np.linalg.inv(K + self.c * np.eye(k + 1))

    def alone(self, pi: Array, shown: Array) -> tuple[float, float]:
        here = pi[self.labels]
        v = self.inverse @ here
        if pi.sum() - here.sum() > OUTSIDE or np.abs(self.M @ v - here).max() > OUTSIDE:
            return np.nan, np.nan
        at = (self.member == shown[self.labels]).all(axis=1)
        # what was shown had no chance to be: the rule is not the one that drew
        if at.sum() != 1 or shown.sum() != self.member[at].sum():
            return np.nan, np.nan
        return float(v[at][0] / self.root[at][0]), float(v @ v)

    def mixed(self, pi: Array, shown: Array) -> tuple[float, float]:
        def seen(vector: Array) -> Array:
            return np.append(self.root * (self.member @ vector[self.labels]), self.e * vector.sum())

        asked = seen(pi)
        solved = self.inverse @ asked
        w = (float(pi[shown].sum()) - float(solved @ seen(shown.astype(np.float64)))) / self.c
        return w, (float(pi @ pi) - float(solved @ asked)) / self.c
