"""The curved features: projections, waves, their statistics, and the relevance of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from superarm.kernels import lift as stage
from superarm.kernels.compiling import kernel


def made(d: int, waves: int = 512, seed: int = 0, **settings: Any) -> tuple[stage.Lift, stage.LiftScratch]:
    settings = {"bias": 0.0, "forget": 0.0} | settings
    return stage.Lift.start(d, waves, seed=seed, **settings), stage.LiftScratch.of(d, waves)


@kernel
def project(lift: Any, scratch: Any, z: Any) -> None:
    stage._project(lift, scratch, z)


@kernel
def project_back(lift: Any, scratch: Any) -> None:
    stage._project_back(lift, scratch)


def projections(lift: stage.Lift, scratch: stage.LiftScratch, z: Any) -> Any:
    """What u is before its bandwidth."""
    project(lift, scratch, np.asarray(z, np.float32))
    return scratch.angle.astype(float) * lift.stretch


def matrix(d: int, waves: int = 512, seed: int = 0) -> Any:
    lift, scratch = made(d, waves, seed)
    return np.stack([projections(lift, scratch, row) for row in np.eye(d)], axis=1)


# ------------------------------------------------------------ projections


@pytest.mark.parametrize("d", [1, 3, 16, 40, 64, 512, 784])
def test_projections_of_a_row_are_as_good_as_normal(d: int) -> None:
    """512 projections of a row over |z| against N(0, 1), for 40 seeds."""
    random = np.random.default_rng(d)
    samples = []
    for seed in range(40):
        z = random.normal(size=d)
        lift, scratch = made(d, seed=seed)
        samples.append(projections(lift, scratch, z) / np.linalg.norm(z))
    u = np.concatenate(samples)
    assert abs(u.mean()) < 4 / np.sqrt(len(u))
    assert abs(u.var() - 1) < 0.03
    assert abs(stats.kurtosis(u)) < 0.2
    assert stats.kstest(u, "norm").statistic < (0.06 if d == 1 else 0.03 if d == 3 else 0.02)


def test_up_to_512_columns_stay_orthogonal() -> None:
    Q = matrix(512)
    np.testing.assert_allclose(Q.T @ Q, 512 * np.eye(512), atol=0.01)


def test_blocks_of_a_long_row_are_nearly_orthogonal() -> None:
    Q = matrix(1100) / np.sqrt(512)
    off = Q.T @ Q - np.eye(1100)
    assert np.abs(np.diag(off)).max() < 1e-5
    assert off.std() < 1.2 / np.sqrt(512)
    assert np.abs(off).max() < 6 / np.sqrt(512)


def test_groups_and_seeds_have_signs_of_their_own() -> None:
    Q = matrix(20, waves=1300)
    assert Q.shape == (1536, 20)
    assert abs(np.corrcoef(Q[:512].ravel(), Q[512:1024].ravel())[0, 1]) < 0.05
    assert abs(np.corrcoef(Q[:512].ravel(), matrix(20, seed=1).ravel())[0, 1]) < 0.05
    np.testing.assert_array_equal(Q[:512], matrix(20))


@pytest.mark.parametrize(("d", "waves"), [(7, 512), (600, 512), (600, 700)])
def test_back_is_the_transpose(d: int, waves: int) -> None:
    random = np.random.default_rng(0)
    lift, scratch = made(d, waves)
    z, v = random.normal(size=d), random.normal(size=len(scratch.angle))
    forth = projections(lift, scratch, z) @ v
    scratch.angle[:] = v
    project_back(lift, scratch)
    assert forth == pytest.approx(z @ scratch.columns * lift.stretch, rel=1e-4)


# ------------------------------------------------------------ waves


def test_waves_are_cosine_and_sine() -> None:
    turns = np.linspace(-40, 40, 10_001, dtype=np.float32)
    cosine, sine = np.empty_like(turns), np.empty_like(turns)
    stage._waves(turns, np.float32(0.37), cosine, sine)
    angle = 2 * np.pi * (turns * np.float32(0.37)).astype(float)
    np.testing.assert_allclose(cosine, np.cos(angle), atol=1.2e-3)
    np.testing.assert_allclose(sine, np.sin(angle), atol=1.2e-3)


def rows_of(n: int, d: int) -> Any:
    return np.random.default_rng(1).normal(size=(n, d)).astype(np.float32) / np.float32(np.sqrt(d))


def test_phi_is_the_standardised_waves() -> None:
    d, waves, bias = 9, 40, 0.3
    lift, scratch = made(d, waves, bias=bias)
    X = rows_of(200, d) * np.float32(np.sqrt(1 - bias**2))
    seen = []
    for x in X:
        features = stage.lift(lift, scratch, x)
        u = projections(lift, scratch, x)[:waves] / np.sqrt(1 - bias**2)
        u = u * np.clip(5.5 * np.sqrt(lift.seen[stage.ALIKE]), 1, 4)
        raw = np.concatenate([np.cos(u), np.sin(u)])
        np.testing.assert_allclose(scratch.raw, raw, atol=2e-3)
        z = np.clip((scratch.raw - lift.mean) * lift.inverse, -5, 5)
        np.testing.assert_allclose(features.x, z, rtol=1e-4, atol=1e-5)
        if lift.seen[stage.LENGTH]:
            assert features.factor == pytest.approx(((z @ z) * lift.seen[stage.LENGTH]) ** -0.25, rel=1e-4)
        seen.append(scratch.raw.copy())
        stage.absorb_waves(lift, scratch, x)
    np.testing.assert_allclose(lift.mean, np.mean(seen, axis=0), atol=1e-4)
    np.testing.assert_allclose(lift.var, np.var(seen, axis=0), atol=1e-4)


def test_q_is_one_over_the_effective_dimension() -> None:
    for d in (4, 25):
        lift, scratch = made(d, 16)
        for x in rows_of(4000, d):
            stage.lift(lift, scratch, x)
            stage.absorb_waves(lift, scratch, x)
        assert lift.seen[stage.ALIKE] == pytest.approx(1 / d, rel=0.15)


def test_forgetting_follows_what_changes() -> None:
    lift, scratch = made(4, 16, forget=0.01)
    X = rows_of(3000, 4)
    X[1500:, 1:] = 0.0
    X[1500:, 0] = 1.0  # from now on all rows are alike
    for x in X:
        stage.lift(lift, scratch, x)
        stage.absorb_waves(lift, scratch, x)
    assert lift.seen[stage.ALIKE] > 0.9
    np.testing.assert_allclose(lift.mean, scratch.raw, atol=1e-3)


# ------------------------------------------------------------ relevance


def test_slopes_are_those_of_the_curved_score() -> None:
    """Against finite differences of v . phi + w . x~, the length and the statistics of phi held still."""
    d, waves, bias = 6, 512, 0.3
    lift, scratch = made(d, waves, bias=bias)
    share, random = np.sqrt(1 - bias**2), np.random.default_rng(0)
    X = rows_of(100, d) * np.float32(share)
    for x in X:
        stage.lift(lift, scratch, x)
        stage.absorb_waves(lift, scratch, x)
    lift.relevance[:] = random.uniform(0.5, 1.5, d)
    v, w = random.normal(size=2 * waves), random.normal(size=d)
    factor = float(stage.lift(lift, scratch, X[0]).factor)

    def score(z: Any) -> float:
        u = projections(lift, scratch, z) * np.clip(5.5 * np.sqrt(lift.seen[stage.ALIKE]), 1, 4)
        raw = np.concatenate([np.cos(u), np.sin(u)])
        return float(factor * v @ ((raw - lift.mean) * lift.inverse) + share * w @ z)

    z, step = X[0].astype(float) / share, 1e-3
    slopes = [(score(z + step * e) - score(z - step * e)) / (2 * step) for e in np.eye(d)]
    stage.lift(lift, scratch, X[0])
    lift.seen[[stage.SLOPES, stage.RENEW]] = 0.0, 1e9
    stage.learn_relevance(lift, scratch, v.astype(np.float32), w.astype(np.float32))
    got = np.sqrt(lift.slope / 0.75)  # the first slope counts 3 / 4
    np.testing.assert_allclose(got, np.abs(slopes), rtol=0.05, atol=0.05 * np.abs(slopes).max())


def test_relevance_is_the_root_mean_square_slope() -> None:
    d = 5
    lift, scratch = made(d, 16)
    nothing = np.zeros(32, np.float32)
    stage.lift(lift, scratch, rows_of(1, d)[0])
    for _ in range(50):
        stage.learn_relevance(lift, scratch, nothing, np.array([3, -1, 0, 0, 0], np.float32))
    np.testing.assert_allclose(lift.relevance, np.sqrt([4.5, 0.5, 0, 0, 0]), rtol=1e-4, atol=1e-6)
