"""Rows with both parts: SetLogit's gates, against plain NumPy, and where a part is noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from naive import softmax
from native_hooks import averaged_scores, random_feature_scores, scaled
from scipy.sparse import csr_matrix

import superarm as sa

K, D, WIDTH = 5, 4, 12
GATES = [0, 2]  # places of u and v in `part_gates.gates`


def rows(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Half of the label is in the dense part, half in the sparse one."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, D)).astype(np.float32)
    S = (random.random((n, WIDTH)) < 0.3).astype(np.float32)
    y = (X @ random.normal(size=(D, K)) + S @ random.normal(size=(WIDTH, K))).argmax(axis=1)
    return X, csr_matrix(S), y


def made(**parameters: Any) -> sa.SetLogit:
    return sa.SetLogit(n_labels=K, n_features=(D, WIDTH), set_size=2, **parameters)


@pytest.mark.parametrize("curves", [0, 64])
def test_a_label_is_a_step_of_both_parts(curves: int) -> None:
    """Each away from the softmax that has its own part in full, the other through its gate."""
    X, S, y = rows(300)
    learner = made(curves=curves)
    learner.run((X, S), y)
    core, state = learner.core, learner.core.state()
    state["part_gates.gates"][:] = 0.6, 1e12, 0.3, 1e12  # and there they stay
    state["curves.gate"][:] = 0.5, 1e12
    x, bias, values, sparse_bias = scaled(core.scaling, X[0], S[0].indices, S[0].data)
    z = np.append(x.astype(float), bias)
    z2 = np.zeros(WIDTH + 1)
    z2[S[0].indices], z2[WIDTH] = values, sparse_bias
    A, A2 = core.weights.average()
    W, W2 = state["weights.W"][:, : D + 1].astype(float), state["weights.sparse"][:, 0].astype(float)
    dense, sparse = (A @ z + W @ z) / 2, (z2 @ A2 + z2 @ W2) / 2
    curved = np.mean(random_feature_scores(core.curves, x), axis=0) if curves else np.zeros(K)
    g = 0.5 if curves else 0.0
    p = (1 - g) * softmax(dense + 0.3 * sparse) + g * softmax(dense + curved + 0.3 * sparse)
    p2 = (1 - g) * softmax(sparse + 0.6 * dense) + g * softmax(sparse + 0.6 * (dense + curved))
    decision = learner.decide(sa.Row(X[0], S[0]))
    H, G = state["step_sizes.H"].copy(), state["step_sizes.G"].astype(float)
    learner.update(decision, label=3)
    step = 3.0 if curves else 4.0
    moved = state["weights.W"][:, : D + 1] - W
    np.testing.assert_allclose(moved, step * np.outer(np.eye(K)[3] - p, z), atol=2e-5)
    e = np.eye(K)[3] - p2
    H += 3 / (300 + 4) * (e**2 - H)
    e *= np.sqrt((H.mean() + 1e-12) / (H + 0.1 * H.mean() + 1e-12))
    G += z2**2 * (e**2).sum()
    wanted = 0.67 * np.sqrt(K) * np.outer(z2 / (0.06 + np.sqrt(G)), e)
    np.testing.assert_allclose(state["weights.sparse"][:, 0] - W2, wanted, atol=5e-5)


def test_the_score_is_the_gated_sum() -> None:
    X, S, y = rows(200)
    learner = made(curves=0)
    learner.run((X, S), y)
    core, state = learner.core, learner.core.state()
    state["part_gates.gates"][GATES] = 0.6, 0.3
    x, bias, values, sparse_bias = scaled(core.scaling, X[0], S[0].indices, S[0].data)
    dense = averaged_scores(core.weights, x, bias=bias)[0]
    both = averaged_scores(core.weights, x, S[0].indices, values, bias=bias, sparse_bias=sparse_bias)[0]
    got = learner.scores((X[:1], S[:1]))[0]
    np.testing.assert_allclose(got, 0.6 * dense + 0.3 * (both - dense), atol=1e-5)


def test_rows_with_one_part_have_no_gates() -> None:
    X, S, y = rows(50)
    for part in (X, S):
        learner = sa.SetLogit(n_labels=K, n_features=part.shape[1], set_size=2)
        learner.run(part, y)
        assert learner.core.state()["part_gates.gates"].size == 0


@pytest.mark.parametrize("noise", ["dense", "sparse"])
def test_the_gate_of_a_part_that_is_noise_closes(noise: str) -> None:
    random = np.random.default_rng(1)
    n, k = 12_000, 6
    X = random.normal(size=(n, 8)).astype(np.float32)
    S = (random.random((n, 40)) < 0.2).astype(np.float32)
    told = S if noise == "dense" else X
    y = (told @ random.normal(size=(told.shape[1], k))).argmax(axis=1)
    alone = sa.SetLogit(n_labels=k, n_features=told.shape[1], set_size=2)
    both = sa.SetLogit(n_labels=k, n_features=(8, 40), set_size=2)
    S = csr_matrix(S)
    errors = alone.run(S if noise == "dense" else X, y)[0] / n, both.run((X, S), y)[0] / n
    dense, sparse = both.core.state()["part_gates.gates"][GATES]
    assert (dense if noise == "dense" else sparse) < 0.5 < (sparse if noise == "dense" else dense)
    assert errors[1] < 1.1 * errors[0] + 0.01


def test_both_parts_together_are_better_than_each() -> None:
    X, S, y = rows(6000)
    errors = []
    for part, width in ((X, D), (S, WIDTH), ((X, S), (D, WIDTH))):
        learner = sa.SetLogit(n_labels=K, n_features=width, set_size=2)
        errors.append(learner.run(part, y)[0] / len(y))
    assert errors[2] < 0.6 * min(errors[:2])


def test_single_calls_and_the_fused_loop_agree_bit_for_bit(tmp_path: Any) -> None:
    X, S, y = rows(500)
    fused, single = (made(seed=1, forget=0.002, false_no=0.1) for _ in range(2))
    fused.run((X, S), y)
    for i in range(500):
        decision = single.decide(sa.Row(X[i], S[i]))
        single.update(decision, hit=bool(y[i] in decision.labels))
        if i == 250:
            single.save(tmp_path / "half.npz")
            single = sa.load(tmp_path / "half.npz")
    theirs = single.core.state()
    for name, array in fused.core.state().items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
