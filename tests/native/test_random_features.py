"""The random features: projections, their statistics, and the relevance of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native_hooks import (
    projected_back,
    random_features,
    raw_features,
    transform_and_learn,
    transform_and_update,
)
from scipy import stats

from superarm.native.random_features import RandomFeatures

N_GRADIENTS, NEXT_RELEVANCE = 5, 6  # places in `counters`


def matrix(d: int, n_frequencies: int = 1024, seed: int = 0) -> Any:
    """With 1024 frequencies: groups of 256, of z and of a z by turns, where a is 1 at first."""
    features = RandomFeatures(d, n_frequencies, seed)
    return np.stack([features.projections(row) for row in np.eye(d)], axis=1)


# ------------------------------------------------------------ projections


@pytest.mark.parametrize("d", [1, 3, 16, 40, 64, 512, 784])
def test_projections_of_a_row_are_as_good_as_normal(d: int) -> None:
    """512 projections of a row over |z| against N(0, 1), for 40 seeds."""
    random = np.random.default_rng(d)
    samples = []
    for seed in range(40):
        z = random.normal(size=d)
        samples.append(RandomFeatures(d, 512, seed).projections(z) / np.linalg.norm(z))
    u = np.concatenate(samples)
    assert abs(u.mean()) < 4 / np.sqrt(len(u))
    assert abs(u.var() - 1) < 0.03
    assert abs(stats.kurtosis(u)) < 0.2
    assert stats.kstest(u, "norm").statistic < (0.06 if d == 1 else 0.03 if d == 3 else 0.02)


def test_up_to_256_columns_stay_orthogonal() -> None:
    Q = matrix(256)
    for group in np.split(Q, 4):
        np.testing.assert_allclose(group.T @ group, 256 * np.eye(256), atol=0.01)


def test_blocks_of_a_long_row_are_nearly_orthogonal() -> None:
    """Also of columns whose places in their blocks are the same."""
    Q = matrix(1100)[:512] / np.sqrt(512)
    off = Q.T @ Q - np.eye(1100)
    assert np.abs(np.diag(off)).max() < 1e-5
    assert off.std() < 1.2 / np.sqrt(512)
    assert np.abs(off).max() < 6 / np.sqrt(512)
    same_place = np.concatenate([np.diag(off, 256 * apart) for apart in (1, 2, 3, 4)])
    assert same_place.std() < 1.2 / np.sqrt(512)


def test_groups_and_seeds_have_signs_of_their_own() -> None:
    Q = matrix(20, n_frequencies=1300)  # six groups of 217
    assert Q.shape == (1300, 20)
    for other in (Q[217:434], Q[434:651], matrix(20, seed=1)[:217]):
        assert abs(np.corrcoef(Q[:217].ravel(), other.ravel())[0, 1]) < 0.05
    np.testing.assert_array_equal(Q[:217], matrix(20)[:217])


@pytest.mark.parametrize("n_frequencies", [1, 2, 7, 512, 1030])
def test_half_of_the_projections_weight_columns_by_their_relevance(n_frequencies: int) -> None:
    """Even groups are of z, odd ones of a z; an odd number of frequencies gives one more to z."""
    d, random = 6, np.random.default_rng(0)
    features, z, a = RandomFeatures(d, n_frequencies, 0), random.normal(size=6), random.uniform(0, 2, 6)
    plain, of_az = features.projections(z), features.projections(a * z)
    features.state()["relevance"][:] = a
    got, size = features.projections(z), features.group_size
    assert len(got) == n_frequencies
    for group, start in enumerate(range(0, n_frequencies, size)):
        wanted = of_az if group % 2 else plain
        np.testing.assert_allclose(got[start : start + size], wanted[start : start + size], atol=1e-4)


@pytest.mark.parametrize(("d", "n_frequencies"), [(7, 512), (600, 512), (600, 1300), (9, 7)])
def test_back_is_the_transpose(d: int, n_frequencies: int) -> None:
    random = np.random.default_rng(0)
    features = RandomFeatures(d, n_frequencies, 0)
    features.state()["relevance"][:] = random.uniform(0, 2, d)
    z = random.normal(size=d)
    u = features.projections(z)
    v = random.normal(size=len(u))
    assert u @ v == pytest.approx(z @ projected_back(features, v), rel=1e-4)


# ------------------------------------------------------------ cosines and sines


def inverse_dimension(features: RandomFeatures) -> float:
    """The estimate of q."""
    return float(features.state()["counters"][4])


def rows_of(n: int, d: int) -> Any:
    return np.random.default_rng(1).normal(size=(n, d)).astype(np.float32) / np.float32(np.sqrt(d))


def test_waves_are_cosine_and_sine() -> None:
    """For angles far out, too: rows may be long."""
    d, n_frequencies = 9, 512
    features = RandomFeatures(d, n_frequencies, 0)
    for x in rows_of(20, d) * np.float32(20.0):
        u = features.projections(x)[:n_frequencies] * features.bandwidth
        np.testing.assert_allclose(
            raw_features(features, x), np.concatenate([np.cos(u), np.sin(u)]), atol=1.3e-3
        )


def test_random_features_are_standardised() -> None:
    d, n_frequencies, bias = 9, 40, 0.3
    features = RandomFeatures(d, n_frequencies, 0, bias)
    state, seen = features.state(), []
    for x in rows_of(200, d) * np.float32(np.sqrt(1 - bias**2)):
        u = (
            features.projections(x)[:n_frequencies]
            / np.sqrt(1 - bias**2)
            * np.clip(5.5 * np.sqrt(inverse_dimension(features)), 1, 4)
        )
        raw = raw_features(features, x)
        np.testing.assert_allclose(raw, np.concatenate([np.cos(u), np.sin(u)]), atol=2e-3)
        z = np.clip((raw - state["mean"]) * state["inverse"], -5, 5)
        factor = ((z @ z) * (features.mean_squared_norm or z @ z)) ** -0.25 if z.any() else 1.0
        np.testing.assert_allclose(random_features(features, x), factor * z, rtol=1e-3, atol=1e-4)
        seen.append(raw)
        transform_and_update(features, x)
    np.testing.assert_allclose(state["mean"], np.mean(seen, axis=0), atol=1e-4)
    np.testing.assert_allclose(state["var"], np.var(seen, axis=0), atol=1e-4)


def test_q_is_one_over_the_effective_dimension() -> None:
    for d in (4, 25):
        features = RandomFeatures(d, 16, 0)
        for x in rows_of(4000, d):
            transform_and_update(features, x)
        assert inverse_dimension(features) == pytest.approx(1 / d, rel=0.15)
        assert features.bandwidth == pytest.approx(np.clip(5.5 * np.sqrt(inverse_dimension(features)), 1, 4))


def test_forgetting_follows_what_changes() -> None:
    features = RandomFeatures(4, 16, 0, forget=0.01)
    X = rows_of(3000, 4)
    X[1500:, 1:] = 0.0
    X[1500:, 0] = 1.0  # from now on all rows are alike
    for x in X:
        transform_and_update(features, x)
    assert inverse_dimension(features) > 0.9
    np.testing.assert_allclose(features.state()["mean"], raw_features(features, X[-1]), atol=1e-3)


# ------------------------------------------------------------ relevance


def test_slopes_are_those_of_the_score() -> None:
    """Against finite differences of v . phi + w . x~, the length and the statistics of phi held still."""
    d, n_frequencies, bias = 6, 512, 0.3
    features = RandomFeatures(d, n_frequencies, 0, bias)
    state, share, random = features.state(), np.sqrt(1 - bias**2), np.random.default_rng(0)
    X = rows_of(100, d) * np.float32(share)
    for x in X:
        transform_and_update(features, x)
    state["relevance"][:] = random.uniform(0.5, 1.5, d)
    v, w = random.normal(size=2 * n_frequencies), random.normal(size=d)
    standard = np.clip((raw_features(features, X[0]) - state["mean"]) * state["inverse"], -5, 5)
    factor = ((standard @ standard) * features.mean_squared_norm) ** -0.25

    def score(z: Any) -> float:
        u = features.projections(z) * features.bandwidth
        raw = np.concatenate([np.cos(u), np.sin(u)])
        return float(factor * v @ ((raw - state["mean"]) * state["inverse"]) + share * w @ z)

    z, step = X[0].astype(float) / share, 1e-3
    slopes = [(score(z + step * e) - score(z - step * e)) / (2 * step) for e in np.eye(d)]
    state["counters"][[N_GRADIENTS, NEXT_RELEVANCE]] = 0.0, 1e9
    transform_and_learn(features, X[0], v, w)
    got = np.sqrt(state["slope"] / 0.75)  # the first slope counts 3 / 4
    np.testing.assert_allclose(got, np.abs(slopes), rtol=0.05, atol=0.05 * np.abs(slopes).max())


def test_relevance_is_the_root_mean_square_slope() -> None:
    d = 5
    features = RandomFeatures(d, 16, 0)
    for _ in range(50):
        transform_and_learn(features, rows_of(1, d)[0], np.zeros(32), [3, -1, 0, 0, 0])
    np.testing.assert_allclose(
        features.state()["relevance"], np.sqrt([4.5, 0.5, 0, 0, 0]), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("n_frequencies", [7, 512, 1030])
def test_the_bank_whose_features_matter_is_louder(n_frequencies: int) -> None:
    """Three times the squared slope: three times the squared scale, whatever it was before."""
    d, x = 5, rows_of(1, 5)[0]
    features = RandomFeatures(d, n_frequencies, 0)
    state, of_az = features.state(), np.tile(np.arange(n_frequencies) // features.group_size % 2, 2)
    size = np.sqrt([3, 1] / np.bincount(of_az))
    for _ in range(200):
        transform_and_learn(features, x, (size * state["bank_scale"])[of_az], [3, -1, 0, 0, 0])
    np.testing.assert_allclose(state["bank_scale"] ** 2, [1.5, 0.5], rtol=1e-3)
    for row in rows_of(300, d):
        transform_and_update(features, row)
    moves = state["var"] > 1e-6  # a projection may be of no column that matters
    got = (state["inverse"] * np.sqrt(state["var"]))[moves]
    np.testing.assert_allclose(got, state["bank_scale"][of_az[moves]], rtol=0.05)
