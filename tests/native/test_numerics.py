"""The compiled primitives against NumPy: weights, rows of length 1, randomness."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_hooks import add_outer, missing_kernels, scale_and_count, scaled, weighted_scores
from scipy.stats import chisquare, kstest

from superarm.native.linear import Weights
from superarm.native.randomness import uniform_number
from superarm.native.rows import RowBlock
from superarm.native.scaling import StandardScaling, UnitScaling

# Seeds are fixed, so these tests never flicker; good numbers fail each with this probability.
SIGNIFICANCE = 1e-4
MASK = 2**64 - 1


def test_every_kernel_has_its_function():
    assert missing_kernels() == []


# ---------------------------------------------------------------- scores and steps


def problem(k, d, seed=0):
    """The same weights for dense and for sparse rows, the constant last; and a row with zeros."""
    random = np.random.default_rng(seed)
    plain = random.normal(size=(k, d + 1)).astype(np.float32)
    dense, sparse = Weights(k, d, 0), Weights(k, 0, d)
    dense.arrays["dense"][:, : d + 1] = plain
    sparse.arrays["sparse"][...] = plain.T
    x = (random.normal(size=d) * (random.random(d) < 0.5)).astype(np.float32)
    return plain.astype(float), dense, sparse, x


def stored(x):
    index = np.flatnonzero(x)
    return {"indices": index, "values": x[index]}


@pytest.mark.parametrize("factor", [1.0, 0.5])
@pytest.mark.parametrize("bias", [0.0, 0.1, 2.0])
@pytest.mark.parametrize(("k", "d"), [(2, 1), (5, 7), (7, 16), (11, 33), (10, 512)])
def test_scores(k, d, bias, factor):
    W, dense, sparse, x = problem(k, d)
    wanted = W @ np.append(factor * x.astype(float), bias)
    found = (
        weighted_scores(dense, x, factor=factor, bias=bias),
        weighted_scores(sparse, **stored(x), factor=factor, sparse_bias=bias),
    )
    for s in found:
        np.testing.assert_allclose(s, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bias", [0.0, 0.1])
@pytest.mark.parametrize(("k", "d"), [(2, 1), (5, 7), (11, 33)])
def test_add(k, d, bias):
    W, dense, sparse, x = problem(k, d)
    labels, c = [k - 1, 0, k - 1], [0.5, -2.0, 0.25]  # one of them twice
    for label, value in zip(labels, c, strict=True):
        W[label] += value * np.append(x, bias)
    assert add_outer(dense, labels, c, x, bias=bias)
    assert add_outer(sparse, labels, c, **stored(x), sparse_bias=bias)
    np.testing.assert_allclose(dense.arrays["dense"][:, : d + 1], W, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sparse.arrays["sparse"].T, W, rtol=1e-5, atol=1e-5)
    assert not dense.arrays["dense"][:, d + 1 :].any()


def test_a_row_with_both_parts_has_the_sum_of_both_scores():
    _, dense, sparse, x = problem(6, 9)
    both = Weights(6, 9, 9)
    both.restore({**dense.state(), **sparse.state()})
    wanted = weighted_scores(dense, x, bias=0.1) + weighted_scores(sparse, **stored(x), sparse_bias=0.2)
    np.testing.assert_allclose(
        weighted_scores(both, x, **stored(x), bias=0.1, sparse_bias=0.2), wanted, rtol=1e-5
    )


def test_weights_start_on_a_cache_line():
    for k, d, width in ((3, 16, 0), (7, 5, 4), (1, 1, 1)):
        for array in Weights(k, d, width, 2.5).state().values():
            assert array.dtype == np.float32
            assert array.ctypes.data % 64 == 0
            assert (array == 2.5).all()


@pytest.mark.parametrize("c", [1.0, 999.0, 1e6, 1e20, 1e29, 1e31, np.inf, np.nan])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e10, 1e25, 1e30, 1e36, 3e38])
def test_a_step_keeps_weights_finite_or_is_not_made(c, size):
    x = np.array([0.5, -1.0], np.float32) * np.float32(size)
    for weights, row in ((Weights(2, 2, 0), {"x": x}), (Weights(2, 0, 2), {"indices": [0, 1], "values": x})):
        made = add_outer(weights, [1], [c], **row)
        if c <= 1e6 and size <= 1e10:
            assert made
        for array in weights.state().values():
            assert np.isfinite(array).all()
            assert made or not array.any()


# ---------------------------------------------------------------- rows

INDICES, VALUES, STARTS = np.zeros(1, np.int32), np.ones(1, np.float32), np.array([0, 1])
MATRIX = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((MATRIX.astype(float),), "dense must be"),
        ((MATRIX.T,), "dense must be"),
        ((None, INDICES, VALUES.astype(float), STARTS), "must be int32, float32 and int64 vectors"),
        ((MATRIX, INDICES, VALUES, STARTS), "as many rows"),
    ],
)
def test_arrays_that_compiled_code_would_misread_are_refused(parts, message):
    with pytest.raises((TypeError, ValueError), match=message):
        RowBlock(*parts)


# ---------------------------------------------------------------- rows on one scale


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1.0, 1e12, 1e30])
def test_unit_scales_to_length_one(size):
    """Whatever the scale, also where squares leave float32."""
    x = np.array([3.0, 0.0, -4.0], np.float32) * np.float32(size)
    dense, bias, *_ = scaled(UnitScaling(3, 0, 0.1), x)
    np.testing.assert_allclose(dense, [0.6, 0.0, -0.8], rtol=1e-5)
    *_, values, sparse_bias = scaled(UnitScaling(0, 3, 0.1), None, [0, 2], x[[0, 2]])
    np.testing.assert_allclose(values, [0.6, -0.8], rtol=1e-5)
    mixed, first, rest, second = scaled(UnitScaling(1, 3, 0.1), x[:1], [2], x[2:])
    np.testing.assert_allclose([*mixed, *rest], [0.6, -0.8], rtol=1e-5)
    assert [bias, sparse_bias, first, second] == pytest.approx([0.1, 0.1, 0.1, 0.0])


def test_unit_leaves_a_row_of_zeros_and_shows_what_is_no_number():
    assert scaled(UnitScaling(3, 0, 0.1), np.zeros(3))[0].tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(scaled(UnitScaling(2, 0, 0.1), [1.0, np.nan])[0]).any()


@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_standard_rows_do_not_depend_on_units(bias):
    random = np.random.default_rng(0)
    one, other = (StandardScaling(4, 0, bias=bias, sparse_bias=0.0) for _ in range(2))
    for x in random.normal(size=(200, 4)).astype(np.float32):
        scale_and_count(one, x)
        scale_and_count(other, x * np.float32(1000.0))
    x = random.normal(size=4).astype(np.float32)
    a, b = scaled(one, x)[0], scaled(other, x * np.float32(1000.0))[0]
    np.testing.assert_allclose(a, b, rtol=1e-4)
    assert scaled(one, x)[1] == pytest.approx(bias)


# ---------------------------------------------------------------- randomness


def mix(z):
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


@given(st.integers(0, 2**62 - 1), st.integers(0, 2**62 - 1), st.integers(0, 1000))
@settings(deadline=None)
def test_uniform_is_what_it_says(seed, round_, draw):
    """The same 53 bits from Python's own whole numbers: on any machine."""
    z = 0
    for part in (seed, round_, draw):
        z = mix((z + (part + 1) * 0x9E3779B97F4A7C15) & MASK)
    assert uniform_number(seed, round_, draw) == (z >> 11) / 2**53


def numbers(along, seed=0, round_=0, draw=0, n=100_000):
    """Uniforms along the seeds (0), the rounds (1) or the draws (2)."""
    step = [int(i == along) for i in range(3)]
    return np.array(
        [uniform_number(seed + i * step[0], round_ + i * step[1], draw + i * step[2]) for i in range(n)]
    )


@pytest.mark.parametrize("along", [0, 1, 2], ids=["seeds", "rounds", "draws"])
def test_uniform_is_uniform(along):
    u = numbers(along)
    assert u.min() >= 0.0
    assert u.max() < 1.0
    assert kstest(u, "uniform").pvalue > SIGNIFICANCE
    assert chisquare(np.bincount((u * 1000).astype(int), minlength=1000)).pvalue > SIGNIFICANCE
    low_bits = (u * 2**53).astype(np.int64) & 255
    assert chisquare(np.bincount(low_bits, minlength=256)).pvalue > SIGNIFICANCE
    for power in (1, 2, 3):  # moments: 1/(p+1), with the spread that the next ones give
        spread = np.sqrt((1 / (2 * power + 1) - 1 / (power + 1) ** 2) / len(u))
        assert abs((u**power).mean() - 1 / (power + 1)) < 4 * spread


@pytest.mark.parametrize("along", [0, 1, 2], ids=["seeds", "rounds", "draws"])
def test_neighbours_are_independent(along):
    """Pairs (u_i, u_i+1) and pairs of neighbouring streams fill a 20 x 20 board evenly."""
    u = numbers(along)
    pairs = [(u[0::2], u[1::2])]
    for other in {"seed", "round_", "draw"} - {("seed", "round_", "draw")[along]}:
        pairs.append((u, numbers(along, **{other: 1})))
    for a, b in pairs:
        board = np.bincount((a * 20).astype(int) * 20 + (b * 20).astype(int), minlength=400)
        assert chisquare(board).pvalue > SIGNIFICANCE


def test_arguments_do_not_mix():
    """(seed, round, draw) is no sum: permuted and shifted arguments give other numbers."""
    values = {uniform_number(a, b, c) for a in range(20) for b in range(20) for c in range(20)}
    assert len(values) == 20**3
