"""Checks of decisions and predictions: sets, propensities, eligible labels, names."""

from __future__ import annotations

from math import exp, isclose
from typing import Any

import numpy as np

from superarm.checks.kit import (
    LAYOUTS,
    NAMES,
    K,
    Make,
    answer,
    arrays,
    check,
    data,
    ensure,
    fits,
    learner_for,
    play,
    refused,
    row_as,
    saved_and_loaded,
    trained,
    weights,
)
from superarm.errors import InvalidInput


@check
def decision_is_consistent(make: Make) -> None:
    """labels is a permutation of drawn, best first; propensities are probabilities."""
    X, y = data()
    learner = make()
    for x, label in zip(X, y, strict=True):
        scores = learner.scores(x[None])[0]
        decision = learner.decide(x)
        labels, p, z = decision.labels, decision.propensity, decision.ordered_propensity
        ensure(sorted(labels) == sorted(decision.drawn), "labels and drawn are different sets")
        ensure(len(set(labels)) == len(labels), "a label is shown twice")
        ensure(fits(learner, labels, learner.set_size), "not set_size labels")
        ensure(fits(learner, set(decision.top), learner.set_size), "the top set has another size")
        ensure((np.diff(scores[labels]) <= 0).all(), "labels are not shown best first")
        if p is None or not 0.0 < p <= 1.0 or not isclose(p, exp(decision.log_propensity)):
            raise AssertionError(f"propensity {p} is no probability, or not exp of its log")
        ensure(z is None or 0.0 < z <= p * (1 + 1e-9), f"ordered propensity {z} exceeds the set's, {p}")
        answer(learner, decision, label)


@check
def eligible_and_set_size_are_respected(make: Make) -> None:
    """A decision shows what it may, as much as it may; or says why not."""
    X, _ = data(rounds=50)
    learner = trained(make)
    for i, x in enumerate(X):
        eligible = [[1, 3, 4], [0, 2], [4], [2, 4, 0, 1]][i % 4]
        decision = learner.decide(x, eligible=eligible)
        ensure(set(decision.labels) <= set(eligible), f"{decision.labels} shown, {eligible} eligible")
        ensure(set(decision.top) <= set(eligible), f"top set {decision.top}, {eligible} eligible")
        ensure(fits(learner, decision.labels, min(learner.set_size, len(eligible))), "another set size")
        ensure(decision.eligible == sorted(eligible), "the Decision forgot the eligible labels")
        if len(eligible) <= learner.set_size and not learner.rule.sizes_vary:
            ensure(decision.propensity == 1.0, "all eligible labels shown, yet not with probability 1")
        answer(learner, decision, eligible[0])
        for size in (1, 3):
            if learner.single_label and size > 1:
                with refused(InvalidInput, "a larger set"):
                    learner.decide(x, set_size=size)
            else:
                decision = learner.decide(x, set_size=size)
                ensure(fits(learner, decision.labels, size), f"set_size={size} was not respected")
                answer(learner, decision, 1)
    for wrong in ([], [0, 0], [0, K], [-1], ["no such"], [0.5]):
        with refused(InvalidInput, f"eligible={wrong}"):
            learner.decide(X[0], eligible=wrong)
    sizes: list[Any] = [0, -1, K + learner.rule.sizes_vary, 1.5, "2"]
    for wrong_size in sizes:
        with refused(InvalidInput, f"set_size={wrong_size!r}"):
            learner.decide(X[0], set_size=wrong_size)


@check
def ineligible_rows_stay(make: Make) -> None:
    """Weights of labels that could not be shown do not move (unless it says that they do)."""
    X, _ = data()
    for kind in LAYOUTS:
        learner = learner_for(make, kind)
        if learner.moves_ineligible:
            return
        play(learner, X[:30], np.arange(30) % K, kind)
        before = weights(learner, [0, 3])
        for i, x in enumerate(X[30:]):
            answer(learner, learner.decide(row_as(x, kind), eligible=[4, 1, 2]), [1, 2, 4][i % 3])
        ensure(weights(learner, [0, 3]) == before, "weights of ineligible labels moved")


@check
def rank_and_predict_agree(make: Make) -> None:
    """rank orders all labels; predict and predict_set are its beginning."""
    X, _ = data(rounds=20)
    learner = trained(make)
    best, sets = learner.predict(X), learner.predict_set(X)
    for i, x in enumerate(X):
        order = learner.rank(x)
        ensure(sorted(order) == list(range(K)), "rank is no permutation of the labels")
        ensure(order == learner.rank(row_as(x, "sparse")), "rank differs between a dense and a sparse row")
        ensure(best[i] == order[0], "predict is not the first of rank")
        ensure(fits(learner, sets[i], learner.set_size), "predict_set has another size")
        ensure(list(sets[i]) == order[: len(sets[i])], "predict_set is not the beginning of rank")
    before = arrays(learner)
    learner.predict(X)
    ensure(arrays(learner) == before, "predict changed the learner")


@check
def names_are_kept(make: Make) -> None:
    """Label names go in and come out, everywhere, also from a file."""
    X, y = data(rounds=40)
    named, plain = make(labels=NAMES, seed=1), make(seed=1)
    for x, label in zip(X, y, strict=True):
        decision, other = named.decide(x), plain.decide(x)
        ensure(decision.drawn == [NAMES[i] for i in other.drawn], "names and numbers drew differently")
        answer(named, decision, label)
        answer(plain, other, label)
    loaded = saved_and_loaded(named)
    for each in (named, loaded):
        ensure(each.labels == tuple(NAMES), "the names were lost")
        ensure(each.rank(X[0]) == [NAMES[i] for i in plain.rank(X[0])], "rank has other names")
        ensure(each.predict(X).tolist() == [NAMES[i] for i in plain.predict(X)], "predict has other names")
        limited = each.decide(X[0], eligible=["bee", "dog", "eel"])
        ensure(set(limited.labels) <= {"bee", "dog", "eel"}, "eligible names were not respected")
        with refused(InvalidInput, "a number for a name"):
            each.decide(X[0], eligible=[1, 3])
