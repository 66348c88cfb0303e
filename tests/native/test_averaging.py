"""Weights that keep moving, and their running average, against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native_hooks import averaged_scores, averaged_step, sparse_step

from superarm.native.averaging import AveragedWeights
from superarm.native.sparse_steps import SparseStepSizes

K, D, WIDTH = 4, 7, 12


def steps(n: int) -> Any:
    random = np.random.default_rng(0)
    for _ in range(n):
        indices = np.flatnonzero(random.random(WIDTH) < 0.3)
        yield random.normal(size=K), random.normal(size=D), indices, random.normal(size=len(indices))


@pytest.mark.parametrize("forget", [0.0, 0.01])
def test_the_dense_average_is_the_average_of_every_8th(forget: float) -> None:
    weights = AveragedWeights(K, D, 0, forget)
    W, A, left = np.zeros((K, D + 1)), np.zeros((K, D + 1)), 1.0
    for t, (c, x, _, _) in enumerate(steps(300), 1):
        averaged_step(weights, c, x, bias=0.3)
        W += np.outer(c, np.append(x, 0.3))
        left *= 1 - max(3 / (t + 3), forget)
        if t < 64 or t % 8 == 0:
            A, left = A + (1 - left) * (W - A), 1.0
    np.testing.assert_allclose(weights.state()["W"][:, : D + 1], W, atol=1e-4)
    np.testing.assert_allclose(weights.average()[0], A, atol=1e-4)
    average, last = averaged_scores(weights, x, bias=0.3)
    np.testing.assert_allclose(average, A @ np.append(x, 0.3), atol=1e-3)
    np.testing.assert_allclose(last, W @ np.append(x, 0.3), atol=1e-3)


def test_small_steps_are_left_out_but_for_the_constant() -> None:
    weights = AveragedWeights(K, D, 0)
    for _ in range(64):
        averaged_step(weights, np.zeros(K), np.zeros(D))
    averaged_step(weights, [1e-4, 1e-3, -1e-4, -1e-3], np.ones(D), bias=1.0)
    W = weights.state()["W"]
    np.testing.assert_allclose(W[:, 0], [0.0, 1e-3, 0.0, -1e-3])
    np.testing.assert_allclose(W[:, D], [1e-4, 1e-3, -1e-4, -1e-3])
    assert not W[:, D + 1 :].any()


@pytest.mark.parametrize("forget", [0.0, 0.01, 0.4])
def test_the_sparse_average_is_the_average(forget: float) -> None:
    """W - omega A against an average computed in full after every update; at 0.4, omega starts anew."""
    weights, pace = AveragedWeights(K, 0, WIDTH, forget), SparseStepSizes(K, WIDTH, 1.0)
    average = np.zeros((WIDTH + 1, K))
    for t, (c, _, indices, values) in enumerate(steps(300)):
        sparse_step(pace, weights, c, indices, values, rate=0.1, sparse_bias=0.2)
        averaged_step(weights, np.zeros(K))
        average += max(20 / (t + 21), forget) * (weights.state()["sparse"][:, 0] - average)
    np.testing.assert_allclose(weights.average()[1], average, atol=2e-4)
    scores, last = averaged_scores(weights, None, indices, values, sparse_bias=0.2)
    x = np.append(np.zeros(WIDTH), 0.2)
    x[indices] = values
    np.testing.assert_allclose(scores, x @ average, atol=1e-3)
    np.testing.assert_allclose(last, x @ weights.state()["sparse"][:, 0], atol=1e-3)


def test_parts_of_a_mixed_row_are_those_of_its_parts() -> None:
    dense, sparse, both = (AveragedWeights(K, *sizes) for sizes in ((D, 0), (0, WIDTH), (D, WIDTH)))
    paces = SparseStepSizes(K, WIDTH, 1.0), SparseStepSizes(K, WIDTH, 1.0)
    for c, x, indices, values in steps(100):
        averaged_step(dense, c, x, bias=0.3)
        sparse_step(paces[0], sparse, c, indices, values, rate=0.1, sparse_bias=0.2)
        averaged_step(sparse, c)
        sparse_step(paces[1], both, c, indices, values, rate=0.1, sparse_bias=0.2)
        averaged_step(both, c, x, bias=0.3)
    state = both.state()
    np.testing.assert_array_equal(state["W"], dense.state()["W"])
    np.testing.assert_array_equal(state["A"], dense.state()["A"])
    np.testing.assert_array_equal(state["sparse"], sparse.state()["sparse"])
    parts = zip(
        averaged_scores(dense, x, bias=0.3),
        averaged_scores(sparse, None, indices, values, sparse_bias=0.2),
        strict=True,
    )
    got = averaged_scores(both, x, indices, values, bias=0.3, sparse_bias=0.2)
    for (one, two), sums in zip(parts, got, strict=True):
        np.testing.assert_allclose(sums, one + two, rtol=1e-6)
