"""A service with a none_label: never shown, and learnt as the truth where an outcome names it."""

from __future__ import annotations

import pytest
from journal_kit import bits, projected, replayed
from service_kit import rows

import superarm as sa
from superarm.errors import InvalidInput
from superarm.service import DecisionRequest, OutcomeRequest

LABELS = ["a", "b", "c", "d", "nothing"]
SPEC = "set-logit:none_label=nothing"


def test_disabled_labels_leave_the_others_that_can_be_shown(drive):
    driver = drive(labels=LABELS, learner=SPEC)
    driver.disable_labels(["a"])
    shown = {label for made in driver.run(20) for label in made.labels}
    assert shown == {"b", "c", "d"}
    assert replayed(driver).same


def test_none_label_is_not_one_of_those_that_are_left(drive):
    driver = drive(labels=LABELS, learner=SPEC)
    with pytest.raises(InvalidInput, match="leave more than the 2 shown"):
        driver.disable_labels(["a", "b"])
    promising = drive("promise.db", labels=LABELS, learner=f"{SPEC},coverage=0.9", set_size=None)
    with pytest.raises(InvalidInput, match="fewer than all"):
        promising.disable_labels(LABELS[:4])
    promising.disable_labels(LABELS[:3])
    assert promising.decide(DecisionRequest(rows(1)[0])).labels == ["d"]


@pytest.mark.parametrize("eligible", [None, ("a", "b", "c")])
def test_an_outcome_that_names_it_is_learnt_as_the_library_does(drive, eligible):
    driver = drive(labels=LABELS, learner=SPEC, shadows=[f"{SPEC},step=2", "set-logit:step=2"])
    names = {"labels": LABELS, "n_features": 5, "set_size": 2, "seed": 0}
    twin = sa.SetLogit(**names, none_label="nothing")
    told, untold = sa.SetLogit(**names, none_label="nothing", step=2), sa.SetLogit(**names, step=2)
    for i, x in enumerate(rows(30)):
        driver.decide(DecisionRequest(x, f"d{i}", eligible=eligible))
        outcome = driver.outcome(OutcomeRequest(f"d{i}", label="nothing")).outcome
        assert (outcome["hit"], outcome["label"], outcome["learnt"]) == (False, "nothing", True)
        made = twin.decide(x, eligible=eligible)
        twin.update(made, label="nothing")
        parts = {"top": made.top, "rule": made.rule, "eligible": made.eligible}
        given = sa.Decision.given(x, made.drawn, made.propensity, **parts)
        told.update(given, label="nothing")
        given = sa.Decision.given(x, made.drawn, made.propensity, **parts)
        untold.update(
            given, hit=False
        )  # for a learner without none_label it is a label that was not eligible
    assert bits(driver.learner, "weights") == bits(twin, "weights")
    shadows = driver.projector.shadows.values()
    assert [bits(shadow.learner, "weights") for shadow in shadows] == [
        bits(told, "weights"),
        bits(untold, "weights"),
    ]
    assert replayed(driver, from_start=True).same
    whole, single = projected(driver)
    assert bits(whole.learner) == bits(single.learner)
