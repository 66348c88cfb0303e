"""explore=Cover(...) over all learners: kept by those that take any set, refused by those that are bound to theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learner_internals import INTERNALS, run_internal

import superarm as sa
from superarm.checks import CHECKS, run_check
from superarm.errors import InvalidInput
from superarm.explore import Cover, Dilute, RunnerUp, Uniform
from superarm.learners.registry import learners_by_name, make, parse
from superarm.parameters import parameters

TOLD = {"perceptron", "softmax", "pa", "softmax-averaged"}
FREE = TOLD | {"set-logit"}
BOUND = learners_by_name().keys() - FREE
NAMES = ["ant", "bee", "cat", "dog", "emu", "fox"]


def rows(n: int, noise: float = 1.0) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 4)).astype(np.float32)
    y = (X @ random.normal(size=(4, 6)) + noise * random.gumbel(size=(n, 6))).argmax(axis=1)
    return X, y


def made(name: str, **parameters: Any) -> Any:
    cls, fixed = learners_by_name()[name]
    return cls(**{"labels": NAMES, "n_features": 4, "explore": Cover(coverage=0.9)} | fixed | parameters)


def test_every_learner_is_of_one_kind() -> None:
    assert {
        name for name in learners_by_name() if "explore" in parameters(learners_by_name()[name][0])
    } == FREE


@pytest.mark.parametrize("name", sorted(FREE))
def test_the_promise_is_kept_with_sets_of_many_sizes(name: str) -> None:
    X, y = rows(12_000)
    learner = made(name)
    learner.run(X, y)
    kept = learner.coverage
    assert kept.kept == pytest.approx(0.9, abs=0.01)
    assert kept.warm_up == (0 if name in TOLD else 2400)
    assert kept.answers == 12_000 - kept.warm_up
    assert 1.0 < kept.mean_size < 5.0
    sets = [learner.decide(x).labels for x in X[:300]]
    assert len({len(one) for one in sets}) > 2
    predicted = learner.predict_set(X[:300])
    assert len({len(one) for one in predicted}) > 2
    if name in TOLD:  # whatever is shown teaches: nothing is left out
        assert [set(one) for one in sets] == [set(one) for one in predicted]


# the perceptron moves the top label, which at first is any
@pytest.mark.parametrize("name", sorted(TOLD - {"perceptron"}))
def test_learners_that_are_told_the_label_learn_the_same_from_any_set(name: str) -> None:
    X, y = rows(500)
    plain = learners_by_name()[name][0](labels=NAMES, n_features=4, set_size=2)
    plain.run(X, y)
    for rule in (Cover(coverage=0.8), Uniform(), RunnerUp(), Dilute(gamma=0.3)):
        other = made(name, explore=rule, set_size=2)
        other.run(X, y)
        np.testing.assert_array_equal(other.scores(X), plain.scores(X))
        decision = other.decide(X[0])
        assert sa.explore.distribution_of(decision).probability(decision.labels) == pytest.approx(
            decision.propensity
        )


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", sorted(TOLD))
def test_check(name: str, check: str) -> None:
    run_check(check, learners_by_name()[name][0], explore=Cover(coverage=0.7, warm_up=20))


@pytest.mark.parametrize("internal", INTERNALS)
@pytest.mark.parametrize("name", sorted(TOLD))
def test_internals(name: str, internal: str) -> None:
    run_internal(internal, learners_by_name()[name][0], explore=Cover(coverage=0.7, warm_up=20))


@pytest.mark.parametrize("name", sorted(TOLD))
def test_late_answers_files_and_other_levels(name: str, tmp_path: Any) -> None:
    X, y = rows(600)
    learner = made(name)
    learner.run(X[:300], y[:300])
    waiting = [learner.decide(x, coverage=0.6) for x in X[300:350]]
    for decision, label in zip(reversed(waiting), reversed(y[300:350]), strict=True):
        learner.update(decision, label=NAMES[label])
    assert learner.coverage_at(0.6).answers == 50
    learner.save(tmp_path / "model")
    again = sa.load(tmp_path / "model")
    assert again.params == learner.params
    assert (again.coverage, again.set_size) == (learner.coverage, 6)
    for one in (learner, again):
        one.run(X[350:], y[350:])
    assert again.decide(X[0]).labels == learner.decide(X[0]).labels
    assert again.coverage == learner.coverage


@pytest.mark.parametrize("name", sorted(BOUND))
def test_those_that_are_bound_to_their_own_sets_refuse_in_one_sentence(name: str) -> None:
    size = {"n_labels": 6, "n_features": 4}
    wanted = "must be left out"
    with pytest.raises(InvalidInput, match=f"coverage of .* {wanted}: its update needs its own top set"):
        make(f"{name}:coverage=0.9", **size)
    with pytest.raises(InvalidInput, match=f"explore of .* {wanted}"):
        make(name, explore=Cover(), **size)
    cls = parse(name)[0]
    with pytest.raises(InvalidInput, match=f"explore of {cls.__name__} {wanted}"):
        cls(explore=Cover(), **size)
    with pytest.raises(InvalidInput, match=f"coverage of .* {wanted}: .* was made without a promise"):
        make(name, **size).decide(np.zeros(4), coverage=0.9)


@pytest.mark.parametrize("name", sorted(FREE))
def test_words_and_a_coverage_stand_for_rules(name: str) -> None:
    """On the command line, too."""
    X, y = rows(300)
    for spec, rule in (("coverage=0.9", Cover(coverage=0.9)), ("explore=rank", RunnerUp(explore="rank"))):
        by_word, by_rule = make(f"{name}:{spec}", labels=NAMES, n_features=4), made(name, explore=rule)
        assert by_word.rule == rule
        assert by_word.set_size == by_rule.set_size
        assert by_word.run(X, y).tolist() == by_rule.run(X, y).tolist()


@pytest.mark.parametrize("name", sorted(FREE))
def test_what_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"explore of .* must be .*, got 'most'"):
        made(name, explore="most")
    with pytest.raises(InvalidInput, match=r"explore of .* must be left out with coverage"):
        made(name, coverage=0.9)
    with pytest.raises(InvalidInput, match=r"uniform of .* must be left to the rule"):
        made(name, uniform=0.1)
    with pytest.raises(InvalidInput, match=r"set_size of .* must be 1 \(its theory or its rule"):
        made(name, explore=sa.explore.Boltzmann(), set_size=2)
    cls = parse(name)[0]
    with pytest.raises(InvalidInput, match=f"sed of {cls.__name__} must be one of .* did you mean 'seed'"):
        cls(sed=1, n_labels=6)
    with pytest.raises(InvalidInput, match=f"{cls.__name__} takes parameters by name, as in .* got 6"):
        cls(6)
    with pytest.raises(InvalidInput, match=r"set_size of .* must be below n_labels = 6"):
        made(name, explore=None, set_size=6)
