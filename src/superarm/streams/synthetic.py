"""SYNSEP and SYNNONSEP (Kakade, Shalev-Shwartz & Tewari 2008).

k = 9 classes, d = 400 features of 0 and 1. Each class owns a random 20 to 40 of the first 120
coordinates. An example: a uniform class, its coordinates on, 5 of them off at random, 20 of the
other 280 on at random. SYNNONSEP replaces 5 % of the labels at random.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from superarm.data.labels import Label
from superarm.data.rows import Rows
from superarm.native.synthetic import N_FEATURES, N_LABELS, N_OWNED, fill
from superarm.streams.stream import Chunk

BLOCK = 4096  # rows of a chunk


class Synthetic:
    """The synthetic stream.

    Args:
        noise: the share of labels replaced at random.
    """

    n_features: int | tuple[int, int] = N_FEATURES
    n_labels = N_LABELS
    labels: tuple[Label, ...] | None = None

    def __init__(self, *, noise: float = 0.0) -> None:
        self.noise = noise
        self.name = "synnonsep" if noise else "synsep"
        random = np.random.default_rng(2008)  # one data set: the classes are the same for every seed
        self._sizes = random.integers(20, 41, N_LABELS)
        self._owned = np.stack([random.permutation(N_OWNED) for _ in range(N_LABELS)])

    def __repr__(self) -> str:
        return f"Synthetic({self.name}: new rows of {N_FEATURES} features, {N_LABELS} labels, noise {self.noise:g})"

    def chunks(self, seed: int) -> Iterator[Chunk]:
        """Yield new rows without end, which ``seed`` decides."""
        order = np.arange(BLOCK)
        first = 0
        while True:
            X, y = np.empty((BLOCK, N_FEATURES), np.float32), np.empty(BLOCK, np.int64)
            # another seed than the learner's, whose draws would be the same numbers
            fill(seed + 2**40, first, self._owned, self._sizes, self.noise, X, y)
            yield Chunk(Rows(X), y, order)
            first += BLOCK


def synsep() -> Synthetic:
    """Return SYNSEP, which is linearly separable."""
    return Synthetic()


def synnonsep() -> Synthetic:
    """Return SYNNONSEP, where 5 % of the labels are noise."""
    return Synthetic(noise=0.05)
