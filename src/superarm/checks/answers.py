"""Checks of answers and rows: late ones are learnt; a second, foreign or wrong one is refused, and nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm.checks.helpers import (
    D,
    K,
    LearnerFactory,
    answer,
    check,
    expect,
    expect_refusal,
    fingerprint,
    make_data,
    make_trained,
    run_rounds,
    saved_and_loaded,
)
from superarm.decisions.decision import Decision
from superarm.errors import FeedbackError, InvalidInput


@check
def late_feedback_is_learnt(make: LearnerFactory) -> None:
    """Feedback may come late, in any order, or never."""
    X, y = make_data(rounds=40)
    learner = make()
    decisions = [learner.decide(x) for x in X]
    order = np.random.default_rng(0).permutation(40)
    for i in order[:30]:
        answer(learner, decisions[i], y[i])
    for i in range(40):
        expect(
            (i in learner.answered) == (i in order[:30]),
            f"round {i} is wrongly counted as answered or unanswered",
        )
    expect(np.isfinite(learner.scores(X)).all(), "scores are not finite after late feedback")


@check
def second_answer_is_refused(make: LearnerFactory) -> None:
    """A Decision takes one answer; also after save and load, and after the Decision was stored."""
    X, y = make_data(rounds=6)
    learner = make()
    decisions = [learner.decide(x) for x in X]
    for i in (4, 1, 0):
        answer(learner, decisions[i], y[i])
    for each in (learner, saved_and_loaded(learner)):
        before = fingerprint(each)
        for i in (4, 1, 0):
            again = Decision.from_dict(decisions[i].to_dict())
            for decision in (decisions[i], again):
                with expect_refusal(FeedbackError, "a second answer"):
                    answer(each, decision, 0)
        expect(fingerprint(each) == before, "a refused answer changed the learner")
        answer(each, decisions[2], y[2])


@check
def foreign_decision_is_refused(make: LearnerFactory) -> None:
    """A Decision of another learner, even of one made alike, or of a later round is refused."""
    X, _ = make_data(rounds=3)
    learner, other = make_trained(make), make_trained(make)
    before = fingerprint(learner)
    with expect_refusal(FeedbackError, "another learner's decision"):
        answer(learner, other.decide(X[0]), 0)
    mine = learner.decide(X[0]).to_dict()
    future = Decision.from_dict({**mine, "round": learner.round + 5})
    with expect_refusal(FeedbackError, "a decision it has not made"):
        answer(learner, future, 0)
    anything: dict[str, Any] = {"hit": True} if "hit" in learner.feedback else {"label": 0}
    with expect_refusal(FeedbackError, "no decision at all"):
        learner.update(None, **anything)  # type: ignore[arg-type]
    expect(fingerprint(learner)[0] == before[0], "a refused answer changed the weights")


@check
def wrong_kind_of_feedback_is_refused(make: LearnerFactory) -> None:
    """No answer, two, one of a kind that the learner does not take, or an invalid one is refused."""
    X, _ = make_data(rounds=1)
    learner = make_trained(make)
    decision = learner.decide(X[0])
    before = fingerprint(learner)
    hit = True if "hit" in learner.feedback else None
    label = 0 if "label" in learner.feedback else None
    wrong: list[dict[str, Any]] = [{}, {"hit": True, "label": 0}]
    wrong += [{"label": 0}] if label is None else [{"label": K}, {"label": -1}, {"label": "no such"}]
    wrong += [{"hit": True}] if hit is None else [{"hit": 2}, {"hit": "yes"}]
    for values in wrong:
        with expect_refusal(ValueError, f"the answer {values}"):
            learner.update(decision, **values)
    expect(fingerprint(learner) == before, "a refused answer changed the learner")
    answer(learner, decision, 0)


@check
def given_sets_are_learnt_or_refused(make: LearnerFactory) -> None:
    """A set that another system chose is learnt from once, or refused."""
    X, _ = make_data(rounds=1)
    learner = make_trained(make)
    before = fingerprint(learner)
    given = Decision.given(X[0], labels=[3] if learner.shows_one_label else [3, 1])
    if not learner.learns_from(given):
        with expect_refusal(FeedbackError, "a given set"):
            answer(learner, given, 3)
        expect(fingerprint(learner) == before, "a refused set changed the learner")
        return
    answer(learner, given, 3)
    expect(fingerprint(learner)[0] != before[0], "a given set taught nothing")
    with expect_refusal(FeedbackError, "a given set, twice"):
        answer(learner, given, 3)


@check
def bad_rows_are_refused(make: LearnerFactory) -> None:
    """NaN, inf, wrong lengths and broken sparse rows are refused, and nothing changes."""
    good = np.ones(D, np.float32)
    bad: list[Any] = [np.ones(D - 1), np.ones(D + 1), np.ones((2, D)), "row", [None] * D, []]
    bad += [np.full(D, "x"), np.full(D, 1e39)]
    bad += [np.where(np.arange(D) == 2, value, good) for value in (np.nan, np.inf, -np.inf)]
    bad += [([0, D], [1.0, 1.0]), ([-1, 2], [1.0, 1.0]), ([3, 1], [1.0, 1.0]), ([1, 1], [1.0, 1.0])]
    bad += [([0, 1], [1.0]), ([0, 1], [1.0, np.nan]), ([0, 1], [np.inf, 1.0])]
    for kind in ("dense", "sparse"):
        learner, twin = make(), make()
        for each in (learner, twin):
            run_rounds(each, *make_data(3, 30), kind)
        for x in bad:
            with expect_refusal(InvalidInput, f"the row {x!r}"):
                learner.decide(x)
            with expect_refusal(InvalidInput, f"rank of the row {x!r}"):
                learner.rank(x)
        expect(fingerprint(learner) == fingerprint(twin), "a refused row changed the learner")
        for each in (learner, twin):
            run_rounds(each, *make_data(4, 20), kind)
        expect(fingerprint(learner) == fingerprint(twin), "a refused row changed what came after it")
    fresh = make()
    with expect_refusal(InvalidInput, "NaN as the first row"):
        fresh.decide(np.full(D, np.nan))
    expect(fresh.round == 0, "a refused first row was counted")
