"""Rows standardised online: a naive twin, what one value can do, and columns that change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_curves import Robust
from native_hooks import scale_and_count, scaled

from superarm.native.scaling import StandardScaling

BIAS = 0.3


def standard(d: int, width: int = 0, **parameters: Any) -> StandardScaling:
    return StandardScaling(d, width, bias=BIAS, sparse_bias=0.2, **parameters)


def columns(n: int) -> dict[str, Any]:
    """Columns of many kinds, and in the middle of some a change."""
    random, half = np.random.default_rng(0), np.arange(n) >= n // 2
    normal = random.normal(size=n)
    rare = (random.random(n) < 0.03) * random.uniform(1, 3, n)
    bad = np.where(np.arange(n) % 997 == 500, 1e15, random.normal(size=n))
    return {
        "normal": 7 + 3 * normal,
        "whole numbers": np.round(4 * normal),
        "cauchy": random.standard_cauchy(n),
        "constant": np.full(n, 5.0),
        "constant, then not": np.where(half, normal, 0.0),
        "rare": rare,
        "rare, then louder": np.where(half, 1000 * rare, rare),
        "bad values": bad,
        "sentinels": np.where(random.random(n) < 0.02, -999.0, random.uniform(0, 5, n)),
        "from the first": np.where(np.arange(n) == 0, 1e12, normal),
        "wider": np.where(half, 1000 * normal, normal),
        "narrower": np.where(half, normal / 1000, 50 + normal),
        "moved": np.where(half, normal + 400, normal),
        "tiny": 1e-20 * normal,
    }


@pytest.mark.parametrize("forget", [0.0, 0.01])
def test_a_naive_twin_computes_the_same(forget: float) -> None:
    """The statistics of each column after every 50 rows, and the row as it reaches the weights."""
    kinds = columns(6000)
    X = np.column_stack(list(kinds.values())).astype(np.float32)
    fast, twin = standard(len(kinds), forget=forget), Robust(len(kinds), forget)
    state = fast.state()
    for i, x in enumerate(X):
        wanted = twin(x.astype(float))
        if i % 50 == 0:
            for name, mean, var, mean_, var_ in zip(
                kinds, state["mean"], state["var"], twin.mean, twin.var, strict=True
            ):
                assert mean == pytest.approx(mean_, abs=0.01 * np.sqrt(var_) + 1e-6), (name, i)
                assert var == pytest.approx(var_, rel=0.02, abs=1e-30), (name, i)
            got = scaled(fast, x)[0] / np.sqrt(1 - BIAS**2)
            np.testing.assert_allclose(got, wanted, rtol=0.02, atol=0.02)
        scale_and_count(fast, x)
        twin.absorb(x.astype(float))


# ------------------------------------------------------------ what one value can do


def counted(values: Any, **parameters: Any) -> StandardScaling:
    scaling = standard(1, **parameters)
    for x in values:
        scale_and_count(scaling, [x])
    return scaling


@given(
    st.integers(16, 300),
    st.sampled_from(["normal", "cauchy", "rare", "whole numbers", "bad values", "sentinels"]),
    st.floats(-1e14, 1e14).map(np.float32),
    st.sampled_from([0.0, 0.01]),
)
@settings(deadline=None, max_examples=200)
def test_one_value_moves_mean_and_variance_within_the_bound(
    n: int, kind: str, x: float, forget: float
) -> None:
    scaling = counted(columns(n)[kind].astype(np.float32), forget=forget)
    state = {
        name: float(array[0])
        for name, array in scaling.state().items()
        if name in ("mean", "var", "nonmode_share", "limit", "mode")
    }
    if state["var"] == 0.0:
        return  # the usual value only: the column has no scale yet
    rate, mean, var = max(1 / (n + 1), forget), state["mean"], state["var"]
    few = state["nonmode_share"] < min(0.25, 8 * rate) * 1.001
    if few and 1000 * state["nonmode_share"] * (x - state["mode"]) ** 2 < var:
        return  # it begins anew
    scale_and_count(scaling, [x])
    after = scaling.state()
    limit = state["limit"]  # of three rows ago at most: a row moves it by a few per cent
    assert limit == pytest.approx(4 * np.sqrt(var / state["nonmode_share"]), rel=0.25)
    assert abs(after["mean"][0] - mean) <= rate * limit * 1.001
    assert (1 - rate) * 0.999 <= after["var"][0] / var <= (1 + rate * limit**2 / var) * 1.001


@pytest.mark.parametrize("at", [0, 1, 2, 7, 15, 16, 40])
@pytest.mark.parametrize("bad", [100.0, -999.0, 1e15])
def test_a_bad_value_among_the_first(at: int, bad: float) -> None:
    x = np.random.default_rng(1).normal(size=60)
    good = counted(x).state()
    x[at] = bad
    state = counted(x).state()
    assert abs(state["mean"][0] - good["mean"][0]) < 0.2
    assert 0.8 < np.sqrt(state["var"][0] / good["var"][0]) < 1.3


@pytest.mark.parametrize("bad", [[1e15], [-1e6] * 5, [1e3, 1e12]])
@pytest.mark.parametrize("at", [0, 10, 100, 1500])
def test_bad_values_in_a_column_that_was_constant(at: int, bad: list[float]) -> None:
    """They have no limit, as it has no scale yet: the values that come later do not vanish beside them."""
    random = np.random.default_rng(3)
    x = np.r_[np.zeros(1600), (random.random(400) < 0.1) * random.uniform(1, 3, 400)]
    good = counted(x).state()
    state = counted(np.r_[x[:at], bad, x[at:]]).state()
    assert abs(state["mean"][0] - good["mean"][0]) < 0.2
    assert 0.5 < np.sqrt(state["var"][0] / good["var"][0]) < 2.0


@pytest.mark.parametrize("share", [0.5, 0.03])
def test_a_column_that_is_mostly_0_keeps_its_variance(share: float) -> None:
    """What is rare there is no outlier, and among it a bad value is."""
    random = np.random.default_rng(2)
    x = (random.random(20_000) < share) * random.uniform(1, 3, 20_000)
    assert counted(x).state()["var"][0] == pytest.approx(x.var(), rel=0.1)
    bad = x.copy()
    bad[3000] = 1e15
    assert counted(bad).state()["var"][0] == pytest.approx(x.var(), rel=0.15)


def test_what_is_far_out_is_told_from_what_is_farther_and_never_beyond_7_5() -> None:
    scaling = standard(2)
    for x in np.random.default_rng(3).normal(size=(2000, 2)):
        scale_and_count(scaling, x)
    sd = np.sqrt(scaling.state()["var"][0])
    sizes = np.array([1, 4.9, 5.1, 6, 10, 100, 1e4, 1e15])
    z = []
    for size in sizes:
        row = scaled(scaling, [size, 1.0])[0]
        z.append(row[0] / row[1])  # over the z of the other column, about 1
    assert (np.diff(z[:7]) > 0).all()
    assert max(z) < 7.5 * sd * 1.1
    mirrored = scaled(scaling, [-100.0, 1.0])[0]
    assert mirrored[0] / mirrored[1] == pytest.approx(-z[5], rel=0.02)


def test_a_value_in_a_sparse_part_counts_as_one_row() -> None:
    """However large: the rows after it are scaled as if it had been 1."""
    after = []
    for value in (1.0, 1e14):
        scaling = standard(2, 5)
        for x in np.random.default_rng(4).normal(size=(100, 2)):
            scale_and_count(scaling, x, [0, 3], [1.0, 2.0])
        scale_and_count(scaling, [0.5, 0.5], [1, 3], [value, 1.0])
        after.append(scaled(scaling, [1.0, -1.0], [0, 1, 3], [1.0, 1.0, 1.0]))
    for one, other in zip(*after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_missing_numbers_leave_their_statistics() -> None:
    """Of two numbers the second is missing in every second row, with anything in its place."""
    random, scaling, seen = np.random.default_rng(5), standard(4, n_numbers=2), []
    for i, x in enumerate(random.normal(3.0, 2.0, size=(400, 2))):
        seen += [x[1]] * (i % 2)
        scale_and_count(scaling, [x[0], x[1] if i % 2 else 1e9, 0.0, 0.0 if i % 2 else 1.0])
    assert scaling.state()["mean"][1] == pytest.approx(np.mean(seen), abs=0.05)
    assert scaling.state()["n_values"][1] == 200


# ------------------------------------------------------------ columns that change


@pytest.mark.parametrize("name", ["wider", "narrower", "moved", "rare, then louder"])
def test_a_column_that_changes_is_followed(name: str) -> None:
    """10,000 rows after the change its scale is that of the rows since."""
    x = columns(24_000)[name].astype(np.float32)
    state, now = counted(x[:22_000]).state(), x[12_000:22_000]
    assert np.sqrt(state["var"][0] / now.var()) == pytest.approx(1.0, abs=0.4)
    assert abs(state["mean"][0] - now.mean()) < 0.5 * now.std()


@pytest.mark.parametrize("name", ["normal", "whole numbers", "rare", "wider", "moved"])
def test_without_outliers_statistics_are_those_of_the_rows(name: str) -> None:
    x = columns(6000)[name][:3000]
    state = counted(x).state()
    assert state["mean"][0] == pytest.approx(x.mean(), abs=0.05 * x.std())
    assert state["var"][0] == pytest.approx(x.var(), rel=0.05)
