"""What every learner gets from compiled code, tried on one: beside `superarm.checks`, for learners of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import superarm as sa
from superarm.checks.helpers import (
    LAYOUTS,
    D,
    K,
    LearnerFactory,
    answer,
    expect,
    expect_refusal,
    fingerprint,
    make_data,
    make_for_layout,
    row_as,
    rows_as,
    run_rounds,
    state_bytes,
)
from superarm.decisions.decision import Decision
from superarm.errors import InvalidInput, WeightsOverflow
from superarm.learners import Learner
from superarm.native.scaling import StandardScaling


def label_weights(learner: Learner, labels: list[int]) -> list[bytes]:
    """Return the weights of these labels, where the core has linear weights."""
    state = learner.core.state()
    axes = {"weights.dense": 0, "weights.sparse": 1}
    return [state[name].take(labels, axis).tobytes() for name, axis in axes.items() if name in state]


def bad_row_stops_a_run(make: LearnerFactory) -> None:
    """A run stops before a bad row, with all rounds before it learnt."""
    X, y = make_data()
    broken = X.copy()
    broken[70, 1] = np.nan
    learner, short = make(), make()
    with expect_refusal(InvalidInput, "NaN in a run"):
        learner.run(broken, y)
    short.run(X[:70], y[:70])
    expect(fingerprint(learner) == fingerprint(short), "the run did not stop before the bad row")


def overflow_leaves_the_last_good_state(make: LearnerFactory) -> None:
    """However large the rows are, an update is refused, or leaves all weights finite."""
    X, y = make_data(rounds=40)
    for power in (5, 10, 15, 19, 25, 30, 37, 38):
        for kind in LAYOUTS:
            learner = make_for_layout(make, kind)
            run_rounds(learner, X[:10], y[:10], kind)
            for x, label in zip(X, y, strict=True):
                row = np.clip(x, -3, 3) * np.float32(10.0**power)
                before = fingerprint(learner)
                try:
                    decision = learner.decide(row_as(row, kind))
                    before = fingerprint(learner)
                    answer(learner, decision, label)
                except WeightsOverflow as error:
                    expect("round" in str(error), f"the message names no round: {error}")
                    expect(fingerprint(learner) == before, "a refused update changed the learner")
                    break
            finite = all(np.isfinite(array).all() for array in learner.core.state().values())
            expect(finite, f"rows of size 1e{power} left weights that are not finite")


def _moves_all(learner: Learner) -> bool:
    """Return whether an update may move any label: by A^-1, by a softmax over all, by whatever `learn` does."""
    return (
        isinstance(learner, sa.SetLogit | sa.AveragedSoftmax | sa.PlainLearner)
        or getattr(learner, "matrix", None) == "full"
    )


def ineligible_labels_keep_weights(make: LearnerFactory) -> None:
    """Weights of labels that could not be shown do not move, unless the algorithm moves all of them."""
    X, _ = make_data()
    for kind in LAYOUTS:
        learner = make_for_layout(make, kind)
        if _moves_all(learner):
            return
        run_rounds(learner, X[:30], np.arange(30) % K, kind)
        before = label_weights(learner, [0, 3])
        for i, x in enumerate(X[30:]):
            answer(learner, learner.decide(row_as(x, kind), eligible=[4, 1, 2]), [1, 2, 4][i % 3])
        expect(label_weights(learner, [0, 3]) == before, "weights of ineligible labels moved")


def dense_equals_sparse(make: LearnerFactory) -> None:
    """All kinds of rows lead to the same weights, up to float32 (unless the learner standardises them)."""
    X, y = make_data(rounds=60)
    dense = make(seed=1)
    drawn = run_rounds(dense, X, y)
    if isinstance(dense.core.scaling, StandardScaling):
        return
    for kind in ("sparse", "mixed"):
        other = make_for_layout(make, kind, seed=1)
        expect(run_rounds(other, X, y, kind) == drawn, f"dense and {kind} rows lead to different sets")
        a, b = dense.scores(X), other.scores(rows_as(X, kind))
        a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
        scale = max(1.0, float(np.abs(a).max()))
        expect(np.abs(a - b).max() <= 1e-4 * scale, f"dense and {kind} scores differ")


def deciding_moves_a_cursor_only(make: LearnerFactory) -> None:
    """decide(cursor=cursor) changes only the cursor; advance then moves the learner."""
    X, y = make_data(rounds=30)
    usual, other = make(seed=9), make(seed=9)
    for x, label in zip(X, y, strict=True):
        expected, cursor = usual.decide(x), other.cursor()
        before = None if other.core is None else state_bytes(other)
        decision = other.decide(x, cursor=cursor)
        expect(decision.drawn == expected.drawn, "another set at a cursor")
        expect(other.round == decision.round, "deciding at a cursor moved the learner")
        expect(before is None or state_bytes(other) == before, "deciding at a cursor moved the learner")
        other.advance(Decision.from_dict(decision.to_dict()))
        expect(other.cursor() == usual.cursor(), "advance did not make up for deciding at a cursor")
        answer(usual, expected, label)
        answer(other, decision, label)
    expect(
        state_bytes(usual) == state_bytes(other), "decide, and decide at a cursor and advance, differ in bits"
    )


INTERNALS: dict[str, Callable[[LearnerFactory], None]] = {
    function.__name__: function
    for function in (
        bad_row_stops_a_run,
        overflow_leaves_the_last_good_state,
        ineligible_labels_keep_weights,
        dense_equals_sparse,
        deciding_moves_a_cursor_only,
    )
}


def run_internal(name: str, cls: type[Learner], **params: Any) -> None:
    """Run one of the `INTERNALS` on small learners of a class."""

    def make(**common: Any) -> Learner:
        size = {} if cls.shows_one_label else {"set_size": 2}
        return cls(**{"n_features": D, "n_labels": K, **size, **params, **common})

    INTERNALS[name](make)
