"""Checks of answers: late, twice, foreign, of the wrong kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm.checks.kit import (
    K,
    Make,
    answer,
    bits,
    data,
    ensure,
    refused,
    saved_and_loaded,
    trained,
)
from superarm.decisions.decision import Decision
from superarm.errors import FeedbackError

# in the order in which they run
__all__ = [
    "feedback_comes_when_it_comes",
    "foreign_decision_is_refused",
    "given_sets_are_learnt_or_refused",
    "second_answer_is_refused",
    "wrong_kind_of_feedback_is_refused",
]


def feedback_comes_when_it_comes(make: Make) -> None:
    """Late, in any order, or never."""
    X, y = data(rounds=40)
    learner = make()
    decisions = [learner.decide(x) for x in X]
    order = np.random.default_rng(0).permutation(40)
    for i in order[:30]:
        answer(learner, decisions[i], y[i])
    for i in range(40):
        ensure((i in learner.answered) == (i in order[:30]), f"round {i} is booked wrongly")
    ensure(np.isfinite(learner.scores(X)).all(), "scores are not finite after late feedback")


def second_answer_is_refused(make: Make) -> None:
    """One Decision, one answer; also after save and load, and after the Decision was stored."""
    X, y = data(rounds=6)
    learner = make()
    decisions = [learner.decide(x) for x in X]
    for i in (4, 1, 0):
        answer(learner, decisions[i], y[i])
    for each in (learner, saved_and_loaded(learner)):
        before = bits(each)
        for i in (4, 1, 0):
            again = Decision.from_dict(decisions[i].to_dict())
            for decision in (decisions[i], again):
                with refused(FeedbackError, "a second answer"):
                    answer(each, decision, 0)
        ensure(bits(each) == before, "a refused answer changed the learner")
        answer(each, decisions[2], y[2])


def foreign_decision_is_refused(make: Make) -> None:
    """A Decision of another learner, even of one made alike, or of the future."""
    X, _ = data(rounds=3)
    learner, other = trained(make), trained(make)
    before = bits(learner)
    with refused(FeedbackError, "another learner's decision"):
        answer(learner, other.decide(X[0]), 0)
    mine = learner.decide(X[0]).to_dict()
    future = Decision.from_dict({**mine, "round": learner.round + 5})
    with refused(FeedbackError, "a decision it has not made"):
        answer(learner, future, 0)
    anything: dict[str, Any] = {"hit": True} if "hit" in learner.feedback else {"label": 0}
    with refused(FeedbackError, "no decision at all"):
        learner.update(None, **anything)  # type: ignore[arg-type]
    ensure(bits(learner)[0] == before[0], "a refused answer changed the weights")


def wrong_kind_of_feedback_is_refused(make: Make) -> None:
    """Neither answer, both, one it does not take, or something that is no answer."""
    X, _ = data(rounds=1)
    learner = trained(make)
    decision = learner.decide(X[0])
    before = bits(learner)
    hit = True if "hit" in learner.feedback else None
    label = 0 if "label" in learner.feedback else None
    wrong: list[dict[str, Any]] = [{}, {"hit": True, "label": 0}]
    wrong += [{"label": 0}] if label is None else [{"label": K}, {"label": -1}, {"label": "no such"}]
    wrong += [{"hit": True}] if hit is None else [{"hit": 2}, {"hit": "yes"}]
    for values in wrong:
        with refused(ValueError, f"the answer {values}"):
            learner.update(decision, **values)
    ensure(bits(learner) == before, "a refused answer changed the learner")
    answer(learner, decision, 0)


def given_sets_are_learnt_or_refused(make: Make) -> None:
    """A set that somebody else chose: learnt from once, or refused."""
    X, _ = data(rounds=1)
    learner = trained(make)
    before = bits(learner)
    given = Decision.given(X[0], labels=[3] if learner.single_label else [3, 1])
    if not learner.learns_from_given:
        with refused(FeedbackError, "a given set"):
            answer(learner, given, 3)
        ensure(bits(learner) == before, "a refused set changed the learner")
        return
    answer(learner, given, 3)
    ensure(bits(learner)[0] != before[0], "a given set taught nothing")
    with refused(FeedbackError, "a given set, twice"):
        answer(learner, given, 3)
