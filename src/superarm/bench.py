"""This machine's speed, next to plain NumPy and SciPy, in one run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import perm
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm._extras import require_extra
from superarm._types import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from superarm.learners import Learner

K = 10
M = 3
GAMMA = 0.1


class Measurement(NamedTuple):
    """Time per round, and how many times faster than the naive loop of the same work."""

    what: str
    microseconds: float
    ratio: float


def _naive_round(scores: Array, y: int, random: np.random.Generator) -> Array:
    """Return the coefficient of x for each label's weights: MC-DBF (ordered) as the paper writes it."""
    k = len(scores)
    top = np.argsort(-scores)[:M]
    P = np.full(k, GAMMA / k)
    P[top] += (1.0 - GAMMA) / M
    drawn = random.choice(k, M, replace=False, p=P)
    Z, left = 1.0, 1.0
    for label in drawn:
        Z *= P[label] / left
        left -= P[label]
    c = np.full(k, -(M - 1) / (k - M))
    if y in drawn:
        c[drawn] += 1.0 / (Z * M * perm(k - 2, M - 1))
    c[top] -= 1.0 / M
    return c


def naive_dense(X: Array, y: Array) -> None:
    """A plain NumPy loop."""
    random = np.random.default_rng(0)
    W = np.zeros((K, X.shape[1]))
    for x, label in zip(X, y, strict=True):
        W += np.outer(_naive_round(W @ x, label, random), x)


def naive_sparse(X: csr_matrix, y: Array) -> None:
    """A plain loop over the rows of a SciPy matrix."""
    random = np.random.default_rng(0)
    W = np.zeros((X.shape[1], K))
    for i, label in enumerate(y):
        x = X[i]
        W[x.indices] += np.outer(x.data, _naive_round((x @ W).ravel(), label, random))


def reference_rows(n: int, d: int = 512) -> tuple[Array, Array]:
    """Return the reference work: random rows of length 1 and the labels of a random linear rule."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X @ random.standard_normal((d, K), dtype=np.float32)).argmax(axis=1)


def sparse_rows(n: int, d: int = 2**18, nonzeros: int = 30, k: int = K) -> tuple[csr_matrix, Array]:
    """Return random sparse rows with random labels."""
    require_extra("logs")
    from scipy.sparse import csr_matrix

    random = np.random.default_rng(0)
    indices = np.sort(random.integers(0, d, (n, nonzeros)), axis=1)
    values = random.standard_normal(n * nonzeros).astype(np.float32)
    X = csr_matrix((values, indices.ravel(), np.arange(n + 1) * nonzeros), shape=(n, d))
    X.sum_duplicates()
    return X, random.integers(0, k, n)


def microseconds_per_round(work: Callable[[], object], rounds: int, repeats: int = 5) -> float:
    """Return microseconds a round, the best of some repeats."""
    times = []
    for _ in range(repeats):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return min(times) / rounds * 1e6


def measure() -> list[Measurement]:
    """Time the reference work: k = 10, d = 512, m = 3, MC-DBF (ordered), one thread; and its sparse twin."""
    from superarm import MCDBF, SetLogit
    from superarm.data.rows import as_rows

    n = 20_000
    few = 1_000
    X, y = reference_rows(n)
    common: dict[str, Any] = {"n_labels": K, "set_size": M}

    def fused(cls: Callable[..., Learner], rows: Array, labels: Array, d: int) -> Callable[[], object]:
        cls(n_features=d, **common).run(rows, labels, np.arange(1))
        return lambda: cls(n_features=d, **common).run(rows, labels)

    def single() -> None:
        learner = MCDBF(n_features=512, **common)
        for i in range(few):
            decision = learner.decide(X[i])
            learner.update(decision, hit=hits[i])

    hits = [bool(value) for value in np.arange(few) % 2]
    single()
    naive = microseconds_per_round(lambda: naive_dense(X[:few], y[:few]), few, 3)
    loop = microseconds_per_round(fused(MCDBF, X, y, 512), n)
    calls = microseconds_per_round(single, few)
    set_logit = microseconds_per_round(fused(SetLogit, X, y, 512), n)
    linear = microseconds_per_round(fused(partial(SetLogit, curves=0), X, y, 512), n)

    S, z = sparse_rows(n)
    rows = as_rows(S, None, "bench")
    naive_rows = microseconds_per_round(lambda: naive_sparse(S[:few], z[:few]), few, 3)
    learner = MCDBF(n_features=2**18, **common)  # made once: its weights take longer than the rounds
    learner.run(rows, z)
    sparse = microseconds_per_round(lambda: learner.run(rows, z), n)
    return [
        Measurement("dense, k=10, d=512: naive NumPy loop", naive, 1.0),
        Measurement("dense: decide + update from Python", calls, naive / calls),
        Measurement("dense: fused loop, MC-DBF", loop, naive / loop),
        Measurement("dense: fused loop, SetLogit without curves", linear, naive / linear),
        Measurement("dense: fused loop, SetLogit", set_logit, naive / set_logit),
        Measurement("sparse, k=10, d=2^18, 30 non-zeros: SciPy row loop", naive_rows, 1.0),
        Measurement("sparse: fused loop, MC-DBF", sparse, naive_rows / sparse),
    ]
