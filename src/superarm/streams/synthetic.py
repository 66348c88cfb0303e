"""SYNSEP and SYNNONSEP (Kakade, Shalev-Shwartz & Tewari 2008).

k = 9 classes, d = 400 features of 0 and 1. Each class owns a random 20 to 40 of the first 120
coordinates. An example: a uniform class, its coordinates on, 5 of them off at random, 20 of the
other 280 on at random. SYNNONSEP replaces 5 % of the labels at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from superarm.kernels.compiling import entry
from superarm.kernels.randomness import uniform
from superarm.labels import Label
from superarm.rows import Dense
from superarm.streams.base import Chunk

__all__ = ["Synthetic", "synnonsep", "synsep"]

K, D, OWN, DRAWN_OFF, DRAWN_ON, BLOCK = 9, 400, 120, 5, 20, 4096


@entry
def _fill(seed: int, first: int, owned: Any, sizes: Any, noise: float, unit: bool, X: Any, y: Any) -> None:
    pool = np.empty(D, np.int64)
    for i in range(X.shape[0]):
        t = first + i
        label = int(uniform(seed, t, 0) * K)
        size = sizes[label]
        X[i] = 0.0
        on = np.float32(1.0 / np.sqrt(size - DRAWN_OFF + DRAWN_ON) if unit else 1.0)
        for j in range(size):
            pool[j] = owned[label, j]
        for j in range(DRAWN_OFF):  # the first of the pool are those that go off
            at = j + int(uniform(seed, t, 1 + j) * (size - j))
            pool[j], pool[at] = pool[at], pool[j]
        for j in range(DRAWN_OFF, size):
            X[i, pool[j]] = on
        for j in range(D - OWN):
            pool[j] = OWN + j
        for j in range(DRAWN_ON):
            at = j + int(uniform(seed, t, 10 + j) * (D - OWN - j))
            pool[j], pool[at] = pool[at], pool[j]
            X[i, pool[j]] = on
        if uniform(seed, t, 40) < noise:
            label = int(uniform(seed, t, 41) * K)
        y[i] = label


class Synthetic:
    """The synthetic stream.

    Args:
        noise: the share of labels replaced at random.
        scale: ``"none"``, rows as they are; ``"unit"``, each of length 1.
    """

    n_features, n_labels = D, K
    labels: tuple[Label, ...] | None = None

    def __init__(self, *, noise: float = 0.0, scale: str = "none") -> None:
        self.noise, self.scale = noise, scale
        self.name = "synnonsep" if noise else "synsep"
        random = np.random.default_rng(2008)  # one data set: the classes are the same for every seed
        self._sizes = random.integers(20, 41, K)
        self._owned = np.stack([random.permutation(OWN) for _ in range(K)])

    def chunks(self, seed: int) -> Iterator[Chunk]:
        """New rows without end, which ``seed`` decides."""
        visit = np.arange(BLOCK)
        first = 0
        while True:
            X, y = np.empty((BLOCK, D), np.float32), np.empty(BLOCK, np.int64)
            # another seed than the learner's, whose draws would be the same numbers
            _fill(seed + 2**40, first, self._owned, self._sizes, self.noise, self.scale == "unit", X, y)
            yield Chunk(Dense(X), y, visit)
            first += BLOCK


def synsep(scale: str = "none") -> Synthetic:
    """SYNSEP: linearly separable; ``scale`` as in `Synthetic`."""
    return Synthetic(scale=scale)


def synnonsep(scale: str = "none") -> Synthetic:
    """SYNNONSEP: 5 % of the labels are noise; ``scale`` as in `Synthetic`."""
    return Synthetic(noise=0.05, scale=scale)
