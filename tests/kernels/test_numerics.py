"""The compiled primitives against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.stats import chisquare, kstest

from superarm.kernels import (
    Features,
    Standard,
    StandardScratch,
    Unit,
    absorb,
    add_outer,
    centre,
    contains,
    kernel,
    safe_to_add,
    scores,
    softmax,
    squared_norm,
    standardise,
    top_positions,
    uniform,
    unit,
    weights,
)
from superarm.kernels.ranking import all_finite
from superarm.data.rows import sparsify

# Seeds are fixed, so these tests never flicker; good numbers fail each with this probability.
SIGNIFICANCE = 1e-4
MASK = 2**64 - 1


# ---------------------------------------------------------------- top-m, softmax


@given(st.data())
@settings(deadline=None)
def test_top_positions_is_a_stable_sort(data):
    k = data.draw(st.integers(1, 30))
    few = st.sampled_from([-1.0, 0.0, 0.5, 2.0])  # so that there are ties
    s = data.draw(npst.arrays(np.float32, k, elements=few | st.floats(-5, 5, width=32)))
    eligible = np.array(sorted(data.draw(st.sets(st.integers(0, k - 1), min_size=1))))
    top = np.empty(data.draw(st.integers(1, len(eligible))), np.int64)
    top_positions(s, eligible, top)
    assert top.tolist() == np.argsort(-s[eligible], kind="stable")[: len(top)].tolist()


@given(npst.arrays(np.float32, st.integers(1, 20), elements=st.floats(-80, 80, width=32)))
@settings(deadline=None)
def test_softmax(s):
    labels, p = np.arange(len(s))[::-1].copy(), np.zeros(len(s))
    softmax(s, labels, 2.5, p)
    e = np.exp(2.5 * (s[labels].astype(float) - s.max()))
    np.testing.assert_allclose(p, e / e.sum(), rtol=1e-5, atol=1e-30)
    assert p.sum() == pytest.approx(1.0)


def test_contains():
    assert contains(np.array([3, 1, 4]), 1)
    assert not contains(np.array([3, 1, 4]), 2)
    assert not contains(np.array([], np.int64), 2)


@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_all_finite_survives_fast_mathematics(size):
    """x - x == 0 does not: the compiler may fold it."""
    values = np.ones(size, np.float32)
    assert all_finite(values)
    assert all_finite(values * np.float32(3e38))
    for bad in (np.nan, np.inf, -np.inf):
        for at in (0, size // 2, size - 1):
            broken = values.copy()
            broken[at] = bad
            assert not all_finite(broken)


# ---------------------------------------------------------------- scores and updates


def problem(k, d, bias, seed=0):
    """Weights in both layouts (label-major padded, feature-major), and a row with zeros."""
    random = np.random.default_rng(seed)
    plain = random.normal(size=(k, d + 1)).astype(np.float32)
    dense = weights((k, -(-(d + 1) // 16) * 16))
    dense[:, : d + 1] = plain
    sparse = weights((d + 1, k))
    sparse[...] = plain.T
    x = (random.normal(size=d) * (random.random(d) < 0.5)).astype(np.float32)
    return plain.astype(float), dense, sparse, x, np.append(x.astype(float), bias)


def as_is(row, bias=0.0):
    """The row as it is, beside a constant."""
    values = getattr(row, "values", row)
    with np.errstate(over="ignore"):
        return Features(row, np.float32(1.0), bias, float(np.float32(values @ values)))


@kernel
def scored(W, features, out):
    scores(W, features, out)


@pytest.mark.parametrize("bias", [0.0, 0.1, 2.0])
@pytest.mark.parametrize(("k", "d"), [(2, 1), (5, 7), (7, 16), (11, 33), (10, 512)])
def test_scores(k, d, bias):
    W, dense, sparse, x, full = problem(k, d, bias)
    for weights_, row in ((dense, x), (sparse, sparsify(x))):
        out = np.empty(k, np.float32)
        scored(weights_, as_is(row, bias), out)
        np.testing.assert_allclose(out, W @ full, rtol=1e-4, atol=1e-4)
        scored(weights_, as_is(row, bias)._replace(factor=np.float32(0.5)), out)
        half = np.append(0.5 * full[:-1], bias)
        np.testing.assert_allclose(out, W @ half, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bias", [0.0, 0.1])
@pytest.mark.parametrize(("k", "d"), [(2, 1), (5, 7), (11, 33)])
def test_add_outer(k, d, bias):
    W, dense, sparse, x, full = problem(k, d, bias)
    labels = np.array([k - 1, 0, k - 1])  # one of them twice, the last place not used
    c = np.array([0.5, -2.0, 0.25, 9.0])
    wanted = W.copy()
    for label, value in zip(labels, c[:3], strict=True):
        wanted[label] += value * full
    assert add_outer(dense, labels, c, 3, as_is(x, bias))
    assert add_outer(sparse, labels, c, 3, as_is(sparsify(x), bias))
    np.testing.assert_allclose(dense[:, : d + 1], wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sparse.T, wanted, rtol=1e-5, atol=1e-5)
    assert not dense[:, d + 1 :].any()


@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_squared_norm(bias):
    *_, x, full = problem(3, 40, bias)
    for row in (x, sparsify(x)):
        assert squared_norm(as_is(row, bias)) == pytest.approx(full @ full, rel=1e-5)


@kernel
def standardised_norm(scaling, scratch, x):
    found = squared_norm(standardise(scaling, scratch, x))
    absorb(scaling, x)
    return found


@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_squared_norm_of_a_standardised_row(bias):
    """What stands in Features is the squared length of the row as it is now, of both kinds."""
    random = np.random.default_rng(0)
    for sparse in (False, True):
        standard = Standard.start(5, sparse=sparse, bias=bias, forget=0.0)
        scratch = StandardScratch.of(5)
        for x in random.normal(size=(20, 5)).astype(np.float32) * 30:
            found = standardised_norm(standard, scratch, sparsify(x) if sparse else x)
            assert found == pytest.approx(float(scratch.z @ scratch.z) + bias * bias, rel=1e-5)


@kernel
def centred(W, x):
    centre(W, x)


def test_centre():
    """The mean over labels goes away; differences between labels stay."""
    W, dense, sparse, x, _ = problem(6, 10, 0.1)
    centred(dense, as_is(x))
    centred(sparse, as_is(sparsify(x)))
    wanted = W - W.mean(axis=0)
    np.testing.assert_allclose(dense[:, :11], wanted, atol=1e-6)
    np.testing.assert_allclose(sparse.T, wanted, atol=1e-6)


def test_weights_start_on_a_cache_line():
    for shape in ((3, 16), (7, 5), (1, 1)):
        W = weights(shape, 2.5)
        assert W.shape == shape
        assert W.dtype == np.float32
        assert W.ctypes.data % 64 == 0
        assert (W == 2.5).all()


@pytest.mark.parametrize("c", [1.0, 999.0, 1e6, 1e20, 1e29, 1e31, np.inf, np.nan])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e10, 1e25, 1e30, 1e36, 3e38])
def test_safe_to_add_keeps_weights_finite(c, size):
    """If it says yes, the sum is finite; and everyday numbers get a yes."""
    x = np.array([0.5, -1.0], np.float32) * np.float32(size)
    for row in (x, sparsify(x)):
        safe = safe_to_add(np.array([0.1, c]), 2, as_is(row))
        with np.errstate(all="ignore"):
            finite = np.isfinite(np.float32(c) * x).all()
        assert finite or not safe
        if c <= 1e6 and size <= 1e10:
            assert safe
    W = np.zeros((2, 16), np.float32)
    if not safe_to_add(np.array([c]), 1, as_is(x)):
        assert not add_outer(W, np.array([0]), np.array([c]), 1, as_is(x))
        assert not W.any()


@kernel
def on_length_one(x, bias):
    return unit(Unit(bias), 0, x)


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1.0, 1e12, 1e30])
def test_unit_scales_to_length_one(size):
    """Whatever the scale, also where squares leave float32; a row of zeros stays."""
    x = np.array([3.0, 0.0, -4.0], np.float32) * np.float32(size)
    for row in (x, sparsify(x)):
        made = on_length_one(row, 0.1)
        values = made.factor * getattr(made.x, "values", made.x)
        np.testing.assert_allclose(values[values != 0], [0.6, -0.8], rtol=1e-5)
        assert squared_norm(made) == pytest.approx(1.01)
    zero = on_length_one(np.zeros(3, np.float32), 0.1)
    assert (zero.factor, squared_norm(zero)) == (1.0, pytest.approx(0.01))
    assert np.isnan(on_length_one(np.array([1.0, np.nan], np.float32), 0.1).factor)


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
    assert uniform(seed, round_, draw) == (z >> 11) / 2**53


@kernel
def stream(seed, round_, draw, out, along):
    """Uniforms along the seeds (0), the rounds (1) or the draws (2)."""
    for i in range(out.shape[0]):
        a = seed + i if along == 0 else seed
        b = round_ + i if along == 1 else round_
        c = draw + i if along == 2 else draw
        out[i] = uniform(a, b, c)


def numbers(along, seed=0, round_=0, draw=0, n=200_000):
    out = np.empty(n)
    stream(seed, round_, draw, out, along)
    return out


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
    values = {uniform(a, b, c) for a in range(20) for b in range(20) for c in range(20)}
    assert len(values) == 20**3
