"""Late outcomes, and blocks of events: learnt in their order, the same bits as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from journal_kit import bits, decide_until_label_left_out, projected, replayed, save_promise
from service_kit import LABELS, Clock, D, rows

import superarm as sa
from superarm.data.rows import Row
from superarm.errors import InvalidInput
from superarm.explore import Cover
from superarm.learners.registry import make
from superarm.service import DecisionRequest, OutcomeRequest


def twin_of():
    return sa.SetLogit(labels=LABELS, n_features=D, set_size=2, seed=0, uniform=0.02)


def given(decision):
    """A decision, as a set that another learner chose."""
    odds = {"top": decision.top, "eligible": LABELS, "rule": decision.rule}
    return sa.Decision.given(decision.x, decision.drawn, decision.propensity, **odds)


@pytest.mark.parametrize("learner", ["set-logit", "banditron:gamma=0.3"])
def test_a_late_yes_after_a_learnt_no_is_learnt_where_the_learner_can(drive, learner):
    clock = Clock()
    can = learner == "set-logit"
    driver = drive(learner=learner, set_size=1 + can, timeout=10.0, default_outcome=False, clock=clock)
    twin = twin_of() if can else make(learner, labels=LABELS, n_features=D, set_size=1, seed=0)
    (x,) = rows(1)
    driver.decide(DecisionRequest(x, "a"))
    decision = twin.decide(x)
    clock.now += 11.0
    assert driver.expire() == 1
    twin.update(decision, hit=False)
    outcome = driver.outcome(OutcomeRequest("a", hit=True)).outcome
    if can:
        twin.update(given(decision), hit=True)
    assert bits(driver.learner) == bits(twin)
    assert (outcome["late"], outcome["learnt"], driver.stats.refused) == (True, can, int(not can))
    assert replayed(driver, from_start=True).same


def test_a_late_yes_to_a_set_with_a_label_left_out_is_learnt(drive, tmp_path):
    clock = Clock()
    options = {"timeout": 10.0, "default_outcome": False, "clock": clock}
    driver = drive(model=save_promise(tmp_path / "promise.npz"), **options)
    made = decide_until_label_left_out(driver)
    clock.now += 11.0
    assert driver.expire() == 1
    outcome = driver.outcome(OutcomeRequest(made.id, hit=True)).outcome
    assert (outcome["late"], outcome["learnt"], driver.stats.refused) == (True, True, 0)
    live = bits(driver.learner)
    assert replayed(driver, from_start=True).same
    driver.store.close()  # killed: the next start projects it again
    assert bits(drive(**options).learner) == live


def test_a_late_outcome_that_cannot_be_taken_as_given_is_refused(drive, monkeypatch):
    clock = Clock()
    driver = drive(timeout=10.0, default_outcome=False, clock=clock)
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    clock.now += 11.0
    driver.expire()

    def refuse(*args, **kwargs):
        raise InvalidInput("no such set")

    monkeypatch.setattr(sa.Decision, "given", refuse)
    outcome = driver.outcome(OutcomeRequest("a", hit=True)).outcome
    assert (driver.outage, outcome["learnt"], driver.stats.refused) == (None, False, 1)


@pytest.mark.parametrize("default", [False, True], ids=["miss", "hit"])
@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("learner", ["set-logit", "banditron:gamma=0.3"])
def test_a_late_label_after_a_default_is_learnt_where_the_learner_takes_labels(
    drive, learner, shown, default
):
    """The label says more than a default with the same hit; a learner of hits has nothing more to learn."""
    clock = Clock()
    takes_labels = learner == "set-logit"
    options = {"learner": learner, "set_size": 1 + takes_labels, "clock": clock}
    driver = drive(timeout=10.0, default_outcome=default, shadows=["set-logit:step=2"], **options)
    twin = twin_of() if takes_labels else make(learner, labels=LABELS, n_features=D, set_size=1, seed=0)
    (x,) = rows(1)
    labels = driver.decide(DecisionRequest(x, "a")).labels
    decision = twin.decide(x)
    clock.now += 11.0
    assert driver.expire() == 1
    twin.update(decision, hit=default)
    label = next(label for label in LABELS if (label in labels) == shown)
    outcome = driver.outcome(OutcomeRequest("a", label=label)).outcome
    if takes_labels:
        twin.update(given(decision), label=label)
    assert bits(driver.learner) == bits(twin)
    assert (outcome["late"], outcome["learnt"]) == (True, takes_labels)
    assert driver.stats.learnt == 1 + takes_labels
    assert driver.stats.refused == int(not takes_labels and shown != default)
    (shadow,) = driver.projector.shadows.values()
    assert shadow.n_learnt == 2
    assert replayed(driver, from_start=True).same
    driver.close()
    assert drive(shadows=["set-logit:step=2"]).find("a").outcome["learnt"] is takes_labels


KINDS = {
    "dense": [np.array([i % 3, 1.0, -i], np.float32) for i in range(60)],
    "sparse": [Row(None, ([i % 4, 5 + i % 3], [1.0, i]), 9) for i in range(60)],
    "mixed": [Row([1.0, i], ([i % 5], [0.5]), 6) for i in range(60)],
    "names": [{"age": i if i % 7 else "41", f"n{i % 9}": 1.5, "town": f"t{i % 5}"} for i in range(60)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_events_give_the_bits_of_single_ones(drive, kind):
    width = {"dense": 3, "sparse": 9, "mixed": (2, 6), "names": None}[kind]
    driver = drive(n_features=width)
    dice, open_ = np.random.default_rng(5), []
    for i, x in enumerate(KINDS[kind]):
        eligible = tuple(LABELS[:4]) if i % 6 == 5 else None
        open_.append(driver.decide(DecisionRequest(x, f"d{i}", eligible=eligible)).id)
        if i == 30:
            driver.add_labels(["new"])
        while len(open_) > 3:  # late, and in any order
            id_ = open_.pop(int(dice.integers(len(open_))))
            driver.outcome(OutcomeRequest(id_, hit=i % 3 == 0))
    live = bits(driver.learner)
    whole, single = projected(driver)
    assert bits(whole.learner) == bits(single.learner) == live
    assert whole.totals.stats == single.totals.stats == driver.stats
    assert replayed(driver, from_start=True).same


def promise_of(driver):
    """What moves the promise, and what is counted of it, but for decisions."""
    names = ("targets", "thresholds", "recent_misses", "tally", "warm_up")
    return {name: driver.learner.core.state()[f"rule.{name}"].tobytes() for name in names}


def save_trained_promise(path):
    """Save a model that promises a coverage, and has learnt to show few labels; it has counted 0 answers."""
    learner = sa.SetLogit(labels=LABELS, n_features=D, set_size=2)
    for x in rows(500, 7):
        decision = learner.decide(x)
        learner.update(decision, label=LABELS[int(x.argmax())])
    learner.with_new_rule(explore=Cover(coverage=0.5, warm_up=0), set_size=None).save(path)
    return path


@pytest.mark.parametrize("late", ["hit", "miss", "label", "missed label"])
@pytest.mark.parametrize("default", [False, True, None])
def test_a_default_moves_no_promise_and_the_late_answer_moves_it_as_one_in_time(
    drive, tmp_path, default, late
):
    """Of two services, one hears every answer in time, the other after the timeout."""
    model, clock = save_trained_promise(tmp_path / "promise.npz"), Clock()
    prompt = drive("prompt.db", model=model, group="g")
    slow = drive("slow.db", model=model, group="g", timeout=10.0, default_outcome=default, clock=clock)
    before = promise_of(slow)
    for i, x in enumerate(rows(4)):
        request = DecisionRequest(x, f"d{i}", context={"g": "one"})
        shown, later = prompt.decide(request), slow.decide(request)
        assert i > 0 or shown.labels == later.labels
        assert len(later.labels) < len(LABELS)
        wanted = late in ("hit", "label")
        if i == 0:  # the decisions are the same, so the promise must be, too
            clock.now += 11.0
            assert slow.expire() == 1
            assert promise_of(slow) == before
            assert slow.learner.coverage.answers == 0
        for driver, made in ((prompt, shown), (slow, later)):
            label = next(name for name in LABELS if (name in made.labels) == wanted)
            answer = {"label": label} if late.endswith("label") else {"hit": wanted}
            driver.outcome(OutcomeRequest(f"d{i}", **answer))
        if i == 0:
            assert promise_of(slow) == promise_of(prompt) != before
    coverage = slow.learner.coverage
    assert coverage.answers == 4
    (counts,) = slow.stats.coverage_by_group.values()
    assert (counts.outcomes, counts.hits / counts.outcomes) == (4, pytest.approx(coverage.kept))
    assert replayed(slow, from_start=True).same
    whole, single = projected(slow)
    live = bits(slow.learner)
    assert bits(whole.learner) == bits(single.learner) == live
    slow.store.close()  # killed
    assert bits(drive("slow.db").learner) == live


def test_a_late_answer_does_not_shorten_the_warm_up(drive):
    clock = Clock()
    driver = drive(set_size=None, coverage=0.9, timeout=10.0, default_outcome=False, clock=clock)
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    before = promise_of(driver)
    clock.now += 11.0
    assert driver.expire() == 1
    driver.outcome(OutcomeRequest("a", hit=True))
    assert driver.stats.learnt == 2
    assert promise_of(driver) == before


def test_a_promise_goes_on_after_a_rollback(drive, tmp_path):
    driver = drive(model=save_trained_promise(tmp_path / "promise.npz"))
    driver.run(10, hits=lambda i: True)
    before = promise_of(driver)
    driver.rollback(0)
    assert promise_of(driver) == before
    assert driver.learner.coverage.answers == 10
    assert replayed(driver, from_start=True).same
