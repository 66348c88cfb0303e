"""Checks of bits: the same seed, a file, JSON and batches lead to the same state."""

from __future__ import annotations

import json

from superarm.checks.helpers import (
    LAYOUTS,
    ROUNDS,
    LearnerFactory,
    answer,
    check,
    expect,
    fingerprint,
    make_data,
    make_for_layout,
    row_as,
    rows_as,
    run_rounds,
    saved_and_loaded,
    state_bytes,
)
from superarm.decisions.decision import Decision


@check
def fused_equals_stepwise(make: LearnerFactory) -> None:
    """`run` and round-by-round calls give the same bits, whatever the rows."""
    X, y = make_data()
    for kind in LAYOUTS:
        fused, stepwise = make_for_layout(make, kind, seed=3), make_for_layout(make, kind, seed=3)
        counts = fused.run(rows_as(X, kind), y)
        drawn = run_rounds(stepwise, X, y, kind)
        expect(state_bytes(fused) == state_bytes(stepwise), f"{kind} run and decide/update differ in bits")
        expect(fused.round == stepwise.round == ROUNDS, "run counts other rounds than decide")
        expect(fused.answered.count == stepwise.answered.count == ROUNDS, "run leaves rounds unanswered")
        missed = sum(label not in shown for label, shown in zip(y, drawn, strict=True))
        expect(counts[2] == missed, "run counts other shown misses than decide")


@check
def same_seed_same_draws(make: LearnerFactory) -> None:
    """The same seed gives the same bits; another seed other draws, if the learner draws at all."""
    X, y = make_data(rounds=300)
    first, twin, other = make(seed=5), make(seed=5), make(seed=6)
    drawn = run_rounds(first, X, y)
    expect(run_rounds(twin, X, y) == drawn, "the same seed gave different draws")
    expect(state_bytes(first) == state_bytes(twin), "the same seed gave different bits")
    if make().decide(X[0]).propensity != 1.0:
        expect(run_rounds(other, X, y) != drawn, "another seed gave the same draws")


@check
def save_load_continues(make: LearnerFactory) -> None:
    """A learner that was saved and loaded continues with the same bits, open decisions included."""
    X, y = make_data()
    for kind in LAYOUTS:
        learner = make_for_layout(make, kind, seed=2)
        run_rounds(learner, X[:50], y[:50], kind)
        rows = [row_as(x, kind) for x in X]
        open_ = [learner.decide(x) for x in rows[50:55]]
        answer(learner, open_[3], y[53])
        loaded = saved_and_loaded(learner)
        expect(type(loaded) is type(learner), "another class came back")
        expect(loaded.params == learner.params, "other parameters came back")
        for each in (learner, loaded):
            answer(each, open_[1], y[51])
            run_rounds(each, X[55:], y[55:], kind)
            answer(each, open_[4], y[54])
        expect(state_bytes(loaded) == state_bytes(learner), "the loaded learner went on to other bits")
        expect(
            fingerprint(loaded) == fingerprint(learner), "the loaded learner counts other rounds or answers"
        )


@check
def decision_survives_json(make: LearnerFactory) -> None:
    """A Decision that was stored as JSON leads to the same bits."""
    X, y = make_data(rounds=40)
    for kind in LAYOUTS:
        direct, stored = make_for_layout(make, kind, seed=8), make_for_layout(make, kind, seed=8)
        for i, label in enumerate(y):
            x = row_as(X[i], kind)
            eligible = [0, 2, 3, 4] if i % 3 == 0 else None
            label = 2 if eligible and label == 1 else label
            answer(direct, direct.decide(x, eligible=eligible), label)
            decision = stored.decide(x, eligible=eligible)
            text = json.dumps(decision.to_dict(), allow_nan=False)
            back = Decision.from_dict(json.loads(text))
            expect(back.to_dict() == decision.to_dict(), "from_dict gave another Decision back")
            answer(stored, back, label)
        expect(state_bytes(direct) == state_bytes(stored), "a stored Decision was learnt from differently")


@check
def batches_equal_single_calls(make: LearnerFactory) -> None:
    """decide_many and update_many (of columns, of lists of stored decisions) give the bits of single calls."""
    X, y = make_data(rounds=60)
    for kind in LAYOUTS:
        single, columns, stored = (make_for_layout(make, kind, seed=4) for _ in range(3))
        decisions = columns.decide_many(rows_as(X, kind))
        one_by_one = [single.decide(row_as(x, kind)) for x in X]
        rows = [Decision.from_dict(stored.decide(row_as(x, kind)).to_dict()) for x in X]
        expect(decisions.labels.tolist() == [d.labels for d in one_by_one], f"{kind}: other sets in a batch")
        for decision, label in zip(one_by_one, y, strict=True):
            answer(single, decision, label)
        hits = [label in decision.drawn for decision, label in zip(one_by_one, y, strict=True)]
        answers = {"hits": hits} if "hit" in single.feedback else {"labels": y}
        columns.update_many(decisions, **answers)
        stored.update_many(rows, **answers)
        expect(state_bytes(columns) == state_bytes(single), f"{kind}: update_many and update differ in bits")
        expect(
            state_bytes(stored) == state_bytes(single),
            f"{kind}: a list of decisions was learnt from differently",
        )
