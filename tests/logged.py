"""Logs for tests; simulated ones of contexts with given label probabilities, sets drawn as in eq. 5."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from superarm.explore import Mixture
from superarm.logs.batches import LogBatch
from superarm.logs.weights import inclusion_of_all

Array = np.ndarray[Any, Any]


def write_log(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def mask(sets: Array, k: int) -> Array:
    out = np.zeros((len(sets), k), bool)
    np.put_along_axis(out, sets, True, axis=1)
    return out


def draws_of(top: Array, gamma: float | None = None, eligible: Array | None = None) -> list[Mixture]:
    """The draws of a policy that shows these top sets, or draws around them as in eq. 5."""
    among = np.arange(top.shape[1]) if eligible is None else eligible
    sets = [np.flatnonzero(row).tolist() for row in top]
    if gamma is None:
        return [Mixture.certain(among, labels) for labels in sets]
    return [Mixture.dilute(among, labels, gamma) for labels in sets]


@dataclass(frozen=True)
class World:
    """Four contexts; in each, label r is right with probability p[context, r], and none with the rest."""

    k: int
    m: int
    gamma: float
    p: Array
    top: Array  # the logging policy's top set in each context
    order: Array  # how another policy ranks the labels
    guess: Array  # a reward model's probabilities

    @classmethod
    def make(cls, k: int, m: int, gamma: float, nothing: float, seed: int) -> World:
        random = np.random.default_rng(seed)
        p = random.dirichlet(np.full(k, 0.5), 4) * (1 - nothing)
        top = np.argsort(-random.normal(size=(4, k)), axis=1)[:, :m]
        order = np.argsort(-(p + 0.2 * (1 - nothing) * random.random(p.shape)), axis=1)
        return cls(k, m, gamma, p, top, order, np.clip(p + 0.1 * random.random(p.shape), 0, 1))

    def log(self, n: int, random: np.random.Generator) -> tuple[LogBatch, Array]:
        """n rows (as arrays; no features) and their contexts."""
        context = random.integers(4, size=n)
        top = mask(self.top[context], self.k)
        weight = self.gamma / self.k + (1 - self.gamma) / self.m * top
        # the m first arrivals of Poisson processes: a draw without replacement
        first = np.argsort(random.exponential(size=weight.shape) / weight, axis=1)[:, : self.m]
        shown = mask(first, self.k)
        label = (random.random(n)[:, None] > self.p[context].cumsum(axis=1)).sum(axis=1)
        hit = (label < self.k) & shown[np.arange(n), np.minimum(label, self.k - 1)]
        every = np.ones_like(shown)
        unknown = np.full(n, np.nan)
        draws = self.draws(self.top, self.gamma)
        nothing: Any = [None] * n
        batch = LogBatch(nothing, hit * 1.0, shown, top, every, unknown, [draws[c] for c in context])
        return batch, context

    def every_set(self) -> tuple[LogBatch, Array]:
        """Each set that can be logged, once in each context; and the contexts."""
        sets = np.array(list(combinations(range(self.k), self.m)))
        context = np.repeat(np.arange(4), len(sets))
        shown = mask(np.tile(sets, (4, 1)), self.k)
        n, nothing = len(shown), np.zeros(len(shown))
        draws = self.draws(self.top, self.gamma)
        top, rows = mask(self.top[context], self.k), [draws[c] for c in context]
        return LogBatch(
            [None] * n, nothing, shown, top, np.ones_like(shown), np.full(n, np.nan), rows
        ), context

    def draws(self, sets: Array, gamma: float | None) -> list[Mixture]:
        """In each context, the draw of a policy that shows sets[context], or draws around them."""
        return draws_of(mask(sets, self.k), gamma)

    def truth(self, sets: Array, gamma: float | None) -> float:
        """The hit rate of a policy that shows sets[context], or draws around them."""
        pi = inclusion_of_all(self.draws(sets, gamma), self.k)
        return float((pi * self.p).sum(axis=1).mean())
