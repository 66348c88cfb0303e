"""The likelihood of one bit: against plain arithmetic, finite differences, and the other frameworks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.errors import InvalidInput
from superarm.losses import posterior, set_nll

NOISE = [(0.0, 0.0), (0.02, 0.1), (0.0, 0.3), (0.4, 0.0)]


def example(n: int = 12, k: int = 6, m: int = 2, seed: int = 0) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    shown = np.argsort(random.random((n, k)), axis=1)[:, :m]
    return 2.0 * random.normal(size=(n, k)), shown, random.random(n) < 0.5


def plainly(logits: Any, shown: Any, hit: Any, false_yes: float, false_no: float) -> Any:
    """The same from its definition, without any care for very small numbers."""
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    inside = np.take_along_axis(p, shown, axis=1).sum(axis=1)
    q = (1 - false_no) * inside + false_yes * (1 - inside)
    return -np.log(np.where(hit, q, 1 - q))


@pytest.mark.parametrize("shown", [[[True, True, True]], [[True, False, False]], [[False, False, False]]])
@pytest.mark.parametrize("hit", [True, False])
def test_half_precision_is_computed_in_single_precision(shown: Any, hit: bool) -> None:
    logits = np.array([[0.5, -2.0, 3.0]], np.float16)
    mask = np.array(shown)
    for function in (set_nll, posterior):
        half, single = (function(x, mask, [hit]) for x in (logits, logits.astype(np.float32)))
        assert np.isfinite(half).all()
        assert np.array_equal(half, single)


@pytest.mark.parametrize(("false_yes", "false_no"), NOISE)
def test_its_definition(false_yes: float, false_no: float) -> None:
    logits, shown, hit = example()
    expected = plainly(logits, shown, hit, false_yes, false_no)
    noise = {"false_yes": false_yes, "false_no": false_no}
    assert np.allclose(set_nll(logits, shown, hit, reduction="none", **noise), expected, rtol=1e-12)
    assert np.isclose(set_nll(logits, shown, hit, **noise), expected.mean())
    assert np.isclose(set_nll(logits, shown, hit, reduction="sum", **noise), expected.sum())
    mask = np.zeros(logits.shape, bool)
    np.put_along_axis(mask, shown, True, axis=1)
    assert set_nll(logits, mask, hit.astype(int), **noise) == set_nll(logits, shown, hit, **noise)


@settings(deadline=None)
@given(st.floats(-1e4, 1e4), st.booleans(), st.sampled_from(NOISE))
def test_stable_in_the_logarithm(far: float, hit: bool, noise: tuple[float, float]) -> None:
    """However sure and wrong the network is: a finite loss, and the right one where it can be told."""
    logits = np.array([[far, 0.0, 0.0]])
    loss = float(set_nll(logits, [[0]], [hit], false_yes=noise[0], false_no=noise[1]))
    assert np.isfinite(loss)
    assert loss >= -1e-12
    if noise == (0.0, 0.0):
        gap = far - np.log(2.0) if not hit else np.log(2.0) - far  # log odds against the answer
        assert np.isclose(loss, np.logaddexp(0.0, gap), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("false_yes", "false_no"), NOISE)
def test_jax_gradient_by_finite_differences(false_yes: float, false_no: float) -> None:
    jax = pytest.importorskip("jax")
    logits, shown, hit = example()
    noise = {"false_yes": false_yes, "false_no": false_no}

    def loss(values: Any) -> Any:
        return set_nll(values, shown, hit, **noise)

    value, slope = jax.jit(jax.value_and_grad(loss))(jax.numpy.asarray(logits, "float32"))
    assert np.isclose(float(value), loss(logits), rtol=1e-5)
    wanted, h = np.zeros_like(logits), 1e-6
    for at in np.ndindex(*logits.shape):
        step = np.zeros_like(logits)
        step[at] = h
        wanted[at] = (loss(logits + step) - loss(logits - step)) / (2 * h)
    assert np.allclose(np.asarray(slope), wanted, atol=2e-6)


@pytest.mark.parametrize("far", [-300.0, -80.0, 80.0, 300.0])
@pytest.mark.parametrize("hit", [True, False])
def test_jax_gradient_far_out(far: float, hit: bool) -> None:
    """In float32: no NaN, and a slope that leads back."""
    jax = pytest.importorskip("jax")
    logits = jax.numpy.asarray([[far, 0.0, 0.0]], "float32")
    slope = np.asarray(jax.grad(lambda v: set_nll(v, np.array([[0]]), np.array([hit])))(logits))[0]
    assert np.isfinite(slope).all()
    wrong = (far < 0) == hit
    expected = (-1.0 if hit else 1.0) if wrong else 0.0
    assert np.isclose(slope[0], expected, atol=1e-6)


def test_torch_agrees() -> None:
    torch = pytest.importorskip("torch")
    logits, shown, hit = example()
    values = torch.tensor(logits, requires_grad=True)
    loss = set_nll(values, torch.tensor(shown), torch.tensor(hit), false_yes=0.02, false_no=0.1)
    loss.backward()
    assert np.isclose(loss.item(), set_nll(logits, shown, hit, false_yes=0.02, false_no=0.1))
    assert torch.isfinite(values.grad).all()


def test_all_labels_shown() -> None:
    logits = np.zeros((2, 3))
    assert np.allclose(set_nll(logits, [[0, 1, 2]] * 2, [True, True]), 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": np.zeros(3)}, "logits of set_nll must be n x k"),
        ({"logits": [[0.0, 1.0]]}, "logits of set_nll must be an array of NumPy, JAX or PyTorch"),
        ({"shown": [0]}, "shown of set_nll must be n x m"),
        ({"shown": [[True, False]]}, "n x k of true and false"),
        ({"shown": [[0, 3]]}, "shown of set_nll must be label indices from 0 to 2, got 3"),
        ({"shown": [[-1]]}, "label indices from 0 to 2, got -1"),
        ({"shown": [[1, 0, 0]]}, "for a mask, use booleans"),
        ({"shown": [[0], [1, 2]]}, r"sets of one size\), or a mask of n x k booleans"),
        ({"shown": [[0.5]]}, "shown of set_nll must be n x m label indices"),
        ({"hit": [True, False]}, "hit of set_nll must be 1 answers"),
        ({"hit": [None]}, r"hit\[0\] of set_nll must be true or false .*, got None"),
        ({"hit": [float("nan")]}, r"hit\[0\] of set_nll must be true or false"),
        ({"hit": [-1]}, r"hit\[0\] of set_nll must be true or false"),
        ({"hit": [2]}, r"hit\[0\] of set_nll must be true or false"),
        ({"hit": ["no"]}, r"hit\[0\] of set_nll must be true or false .*, got .*no"),
        ({"hit": np.array([pd.NA], object)}, r"hit\[0\] of set_nll must be true or false"),
        ({"false_yes": 0.6, "false_no": 0.5}, "below 1 together"),
        ({"false_yes": -0.1}, "false_yes and false_no of set_nll"),
        ({"reduction": "median"}, "reduction of set_nll"),
    ],
)
def test_what_it_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        set_nll(**{"logits": np.zeros((1, 3)), "shown": [[0]], "hit": [True], **change})


@pytest.mark.parametrize(
    "hit", [[True, False], [1, 0], np.array([1.0, 0.0]), np.array([True, False], object)]
)
def test_answers_in_every_spelling(hit: Any) -> None:
    logits = np.log([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    expected = set_nll(logits, [[0, 1], [0, 1]], [True, False])
    assert set_nll(logits, [[0, 1], [0, 1]], hit) == expected
    assert set_nll(logits, pd.DataFrame({"first": [0, 0], "second": [1, 1]}), pd.Series(hit)) == expected


def test_a_library_with_nothing_but_the_array_api() -> None:
    strict = pytest.importorskip("array_api_strict")
    given = example()
    assert np.isclose(float(set_nll(strict.asarray(given[0]), *given[1:])), set_nll(*given))
    assert np.allclose(np.asarray(posterior(strict.asarray(given[0]), *given[1:])), posterior(*given))


def test_the_type_of_the_logits_is_kept() -> None:
    logits, *given = example()
    for function in (set_nll, posterior):
        assert function(logits.astype(np.float32), *given).dtype == np.float32


def test_posterior_refuses_in_its_own_name() -> None:
    for change, message in (
        ({"shown": [0]}, "shown of posterior must be n x m"),
        ({"logits": [[0.0, 1.0]]}, "logits of posterior must be an array"),
    ):
        with pytest.raises(InvalidInput, match=message):
            posterior(**{"logits": np.zeros((1, 3)), "shown": [[0]], "hit": [True], **change})


def test_a_linear_network_learns_from_bits() -> None:
    """Plain gradient steps on the loss, sets from a rule: three of four errors go."""
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, 8))
    y = (X @ random.normal(size=(8, 5))).argmax(axis=1)
    rule, W = sa.explore.RunnerUp(set_size=2, explore="rank"), np.zeros((8, 5))
    for start in range(0, 4000, 50):
        x = X[start : start + 50]
        decisions = rule.decide_many(scores=x @ W)
        hit = (decisions.labels == y[start : start + 50, None]).any(axis=1)
        p = np.exp(x @ W - (x @ W).max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        inside = np.zeros(p.shape, bool)
        np.put_along_axis(inside, decisions.labels, True, axis=1)
        post = p * (inside == hit[:, None])
        W += x.T @ (post / post.sum(axis=1, keepdims=True) - p) / 50  # minus the slope of set_nll
    assert ((X @ W).argmax(axis=1) == y).mean() > 0.85


@pytest.mark.parametrize(("false_yes", "false_no"), NOISE)
def test_the_posterior_by_its_definition(false_yes: float, false_no: float) -> None:
    logits, shown, hit = example()
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    inside = np.zeros(p.shape, bool)
    np.put_along_axis(inside, shown, True, axis=1)
    yes = np.where(inside, 1 - false_no, false_yes)
    expected = p * np.where(hit[:, None], yes, 1 - yes)
    expected /= expected.sum(axis=1, keepdims=True)
    noise = {"false_yes": false_yes, "false_no": false_no}
    assert np.allclose(posterior(logits, shown, hit, **noise), expected, atol=1e-12)
    assert np.allclose(posterior(logits, inside, hit, **noise), expected, atol=1e-12)
    with pytest.raises(InvalidInput, match="hit of posterior must be 12 answers"):
        posterior(logits, shown, hit[:3])


def test_the_posterior_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    given = example()
    made = posterior(*map(torch.tensor, given), false_no=0.1)
    assert np.allclose(made.numpy(), posterior(*given, false_no=0.1), atol=1e-9)


@pytest.mark.parametrize("function", [set_nll, posterior])
def test_logits_that_are_no_numbers_are_refused(function):
    with pytest.raises(InvalidInput, match=r"logits of .* must be numbers, got NaN among them"):
        function(np.array([[np.nan, 0.0, 1.0]]), [[0]], [True])
