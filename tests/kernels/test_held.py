"""Many arrays as one argument (kernels/held.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import superarm as sa
from superarm.decision import Decision
from superarm.errors import InvalidInput
from superarm.kernels.compiling import entry
from superarm.kernels.held import Held, unpacked
from superarm.kernels.linear import MANY, set_apart, weights


class Inner(NamedTuple):
    vector: Any
    flag: bool
    whole: int


class Outer(NamedTuple):
    inner: Inner
    matrix: Any
    number: float
    small: Any
    flags: Any


@entry
def told(held: Any) -> Any:
    """Every part, in a form that Python can compare; the matrix is written to."""
    it = unpacked(held)
    it.matrix[1, 2] += 1.0
    shape, strides = it.matrix.shape, it.matrix.strides
    sums = it.inner.vector.sum(), it.matrix.sum(), it.flags.sum()
    return it.inner.flag, it.inner.whole, it.number, it.small, shape, strides, sums


@pytest.mark.parametrize("flag", [True, False])
def test_what_is_held_is_what_compiled_code_sees(flag: bool) -> None:
    whole = np.arange(24.0).reshape(6, 4)
    matrix = whole[::2]  # not contiguous
    inner = Inner(np.array([3, 4], np.int32), flag, -5)
    held = Held(Outer(inner, matrix, -1.5, np.float32(0.1), np.array([True, False, True])))
    got = told(held)
    assert got == (flag, -5, -1.5, np.float32(0.1), (3, 4), (64, 8), (7, matrix.sum(), 2))
    assert whole[2, 2] == 11.0  # the array itself


def test_arrays_live_as_long_as_their_holder() -> None:
    held = Held(Inner(np.full(100_000, 7.0), True, 0))
    others = [np.full(100_000, float(i)) for i in range(50)]  # would take the place of freed memory
    assert held.value.vector.sum() == 700_000.0
    assert len(others) == 50


def test_classes_of_the_same_name_are_two() -> None:
    """A learner of somebody's own may call its state as ours does."""
    first, second = (NamedTuple("Pair", [(name, Any), ("size", int)]) for name in ("left", "right"))

    @entry
    def left(held: Any) -> Any:
        return unpacked(held).left

    @entry
    def right(held: Any) -> Any:
        return unpacked(held).right

    held = [Held(made(1.5, 2)) for made in (first, second)]
    assert str(held[0].kind) == str(held[1].kind)
    assert held[0].kind != held[1].kind
    assert (left(held[0]), right(held[1])) == (1.5, 1.5)


def test_other_things_are_refused() -> None:
    with pytest.raises(TypeError, match="arrays, numbers and tuples of them, got 'text'"):
        Held(Inner(np.zeros(2), True, "text"))  # type: ignore[arg-type]


def test_another_state_is_another_model() -> None:
    """anneal and alike replace the state; compiled code must see the new one."""
    learner = sa.SetLogit(n_labels=3, n_features=2, curves=0)
    learner.decide([1.0, 0.5])
    before = learner._model
    assert learner._model is before
    learner.state = learner.state._replace(step=0.0)
    decision = learner.decide([1.0, 0.5])
    learner.update(decision, hit=True)
    assert not learner.state.weights.W.any()  # a step of 0
    learner.state = learner.state._replace(step=4.0)
    learner.update(learner.decide([1.0, 0.5]), hit=False)
    assert learner.state.weights.W.any()


@pytest.mark.parametrize("name", ["banditron", "mc-dbf", "mc-slp", "perceptron"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_learners_that_read_no_scores_refuse_a_bad_row(name: str, value: float, sparse: bool) -> None:
    """A late update computes no scores then, which would have shown it."""
    learner = sa.make(name, n_labels=4, n_features=3)
    answer: dict[str, Any] = {"label": 2} if learner.feedback == ("label",) else {"hit": True}
    row: Any = ([0, 2], [1.0, 2.0]) if sparse else [1.0, 0.0, 2.0]
    learner.update(learner.decide(row), **answer)
    stored = learner.decide(row).to_dict()
    before = learner.state.W.tobytes()
    x = Decision.from_dict(stored).x
    (x.values if sparse else x)[1] = value
    with pytest.raises(InvalidInput, match=r"x of .* must be finite"):
        learner.update(Decision.from_dict({**stored, "x": None}, x=x), **answer)
    assert learner.state.W.tobytes() == before
    learner.update(Decision.from_dict(stored), **answer)  # it was not booked


def test_large_weights_are_zero_and_apart() -> None:
    large = weights((MANY // 40 + 1, 10), 0.25)
    assert large.nbytes >= MANY
    assert (large == 0.25).all()
    assert large.ctypes.data % 64 == 0
    assert set_apart(large) is large
