"""Checks of decisions and predictions: sets, propensities, eligible labels, names."""

from __future__ import annotations

from math import exp, inf, isclose
from typing import Any

import numpy as np

from superarm.checks.helpers import (
    NAMES,
    K,
    LearnerFactory,
    answer,
    check,
    expect,
    expect_refusal,
    has_size,
    make_data,
    make_trained,
    row_as,
    saved_and_loaded,
    state_bytes,
)
from superarm.errors import InvalidInput
from superarm.native.cursor import Cursor


@check
def decision_is_consistent(make: LearnerFactory) -> None:
    """labels is a permutation of drawn, best first; propensities are probabilities."""
    X, y = make_data()
    learner = make()
    for x, label in zip(X, y, strict=True):
        scores = learner.scores(x[None])[0]
        decision = learner.decide(x)
        labels, p, z = decision.labels, decision.propensity, decision.ordered_propensity
        expect(sorted(labels) == sorted(decision.drawn), "labels and drawn are different sets")
        expect(len(set(labels)) == len(labels), "a label is shown twice")
        expect(
            has_size(learner, labels, learner.set_size),
            f"{len(labels)} labels shown, not set_size (a rule that may show fewer has sizes_vary = True)",
        )
        expect(has_size(learner, set(decision.top), learner.set_size), "the top set has another size")
        expect((np.diff(scores[labels]) <= 0).all(), "labels are not shown best first")
        if p is None or not 0.0 < p <= 1.0 or not isclose(p, exp(decision.log_propensity)):
            raise AssertionError(f"propensity {p} is no probability, or not exp of its log")
        expect(z is None or 0.0 < z <= p * (1 + 1e-9), f"ordered propensity {z} exceeds the set's, {p}")
        answer(learner, decision, label)


@check
def propensity_is_how_often_a_set_is_drawn(make: LearnerFactory) -> None:
    """Of many draws in one state, each set and each order comes as often as its propensity says, to 5 deviations."""
    X, _ = make_data(rounds=1)
    learner = make_trained(make)
    start, n = learner.cursor(), 1000
    for eligible in (None, [0, 2, 3, 4]):
        inverse: dict[Any, list[float]] = {}  # 1 / propensity of each draw of a set, or of an order
        for i in range(n):
            cursor = Cursor(start.round + i, start.draw_state)
            decision = learner.decide(X[0], eligible=eligible, cursor=cursor)
            order, p, z = tuple(decision.drawn), decision.propensity, decision.ordered_propensity
            inverse.setdefault(frozenset(order), []).append(1.0 / p if p else inf)
            if z is not None:
                inverse.setdefault(order, []).append(1.0 / z)
        for drawn, values in inverse.items():
            p = len(values) / sum(values)
            expect(
                abs(len(values) - n * p) <= 5.0 + 5.0 * (n * p * max(0.0, 1.0 - p)) ** 0.5,
                f"{list(drawn)} was drawn in {len(values)} of {n} rounds, its propensity is {p:.3g}",
            )


@check
def eligible_and_set_size_are_respected(make: LearnerFactory) -> None:
    """A decision shows only eligible labels, and set_size of them; wrong arguments are refused."""
    X, _ = make_data(rounds=50)
    learner = make_trained(make)
    for i, x in enumerate(X):
        eligible = [[1, 3, 4], [0, 2], [4], [2, 4, 0, 1]][i % 4]
        decision = learner.decide(x, eligible=eligible)
        expect(set(decision.labels) <= set(eligible), f"{decision.labels} shown, {eligible} eligible")
        expect(set(decision.top) <= set(eligible), f"top set {decision.top}, {eligible} eligible")
        expect(has_size(learner, decision.labels, min(learner.set_size, len(eligible))), "another set size")
        expect(decision.eligible == sorted(eligible), "Decision.eligible differs from the eligible labels")
        if len(eligible) <= learner.set_size and not learner.rule.sizes_vary:
            expect(decision.propensity == 1.0, "all eligible labels shown, yet not with probability 1")
        answer(learner, decision, eligible[0])
        for size in (1, 3):
            if learner.shows_one_label and size > 1:
                with expect_refusal(InvalidInput, "a larger set"):
                    learner.decide(x, set_size=size)
            else:
                decision = learner.decide(x, set_size=size)
                expect(has_size(learner, decision.labels, size), f"set_size={size} was not respected")
                answer(learner, decision, 1)
    for wrong in ([], [0, 0], [0, K], [-1], ["no such"], [0.5]):
        with expect_refusal(InvalidInput, f"eligible={wrong}"):
            learner.decide(X[0], eligible=wrong)
    sizes: list[Any] = [0, -1, K + learner.rule.sizes_vary, 1.5, "2"]
    for wrong_size in sizes:
        with expect_refusal(InvalidInput, f"set_size={wrong_size!r}"):
            learner.decide(X[0], set_size=wrong_size)


@check
def rank_and_predict_agree(make: LearnerFactory) -> None:
    """rank orders all labels; predict and predict_set are its beginning."""
    X, _ = make_data(rounds=20)
    learner = make_trained(make)
    best, sets = learner.predict(X), learner.predict_set(X)
    for i, x in enumerate(X):
        order = learner.rank(x)
        expect(sorted(order) == list(range(K)), "rank is no permutation of the labels")
        expect(order == learner.rank(row_as(x, "sparse")), "rank differs between a dense and a sparse row")
        expect(best[i] == order[0], "predict is not the first of rank")
        expect(has_size(learner, sets[i], learner.set_size), "predict_set has another size")
        expect(list(sets[i]) == order[: len(sets[i])], "predict_set is not the beginning of rank")
    before = state_bytes(learner)
    learner.predict(X)
    expect(state_bytes(learner) == before, "predict changed the learner")


@check
def names_are_kept(make: LearnerFactory) -> None:
    """Labels with names behave as their indices do, also after save and load."""
    X, y = make_data(rounds=40)
    named, plain = make(labels=NAMES, seed=1), make(seed=1)
    for x, label in zip(X, y, strict=True):
        decision, other = named.decide(x), plain.decide(x)
        expect(decision.drawn == [NAMES[i] for i in other.drawn], "names and indices drew differently")
        answer(named, decision, label)
        answer(plain, other, label)
    loaded = saved_and_loaded(named)
    for each in (named, loaded):
        expect(each.labels == tuple(NAMES), "the names were lost")
        expect(each.rank(X[0]) == [NAMES[i] for i in plain.rank(X[0])], "rank has other names")
        expect(each.predict(X).tolist() == [NAMES[i] for i in plain.predict(X)], "predict has other names")
        limited = each.decide(X[0], eligible=["bee", "dog", "eel"])
        expect(set(limited.labels) <= {"bee", "dog", "eel"}, "eligible names were not respected")
        with expect_refusal(InvalidInput, "an index for a name"):
            each.decide(X[0], eligible=[1, 3])
