"""Every rule, crossed with what every rule promises: exact probabilities, also from its record."""

from __future__ import annotations

import json
from itertools import combinations
from math import comb, exp, sqrt

import numpy as np
import pytest

import superarm as sa
from superarm.errors import InvalidInput
from superarm.explore import Rule, distribution_of, rule_from, rules

VARIANTS = [
    {"name": "dilute", "gamma": 0.3},
    {"name": "greedy"},
    {"name": "uniform"},
    {"name": "boltzmann", "gamma": 0.2, "alpha": 2.0},
    {"name": "runner-up"},
    {"name": "runner-up", "explore": "rank", "uniform": 0.2},
    {"name": "runner-up", "explore": 0.0, "forget": 0.01},
]
SIZES = [(2, 1), (5, 1), (5, 2), (5, 4), (6, 3)]
CASES = [
    pytest.param(variant, k, m, id=f"{'-'.join(map(str, variant.values()))}-{k}-{m}")
    for variant in VARIANTS
    for k, m in SIZES
    if m == 1 or variant["name"] != "boltzmann"
]


def test_every_rule_is_tried() -> None:
    """Those whose sizes vary have tests of their own: test_cover.py."""
    ours = {
        name
        for name, cls in rules().items()
        if cls.__module__.startswith("superarm.explore.") and not cls.sizes_vary
    }
    assert ours == {variant["name"] for variant in VARIANTS}


def made(variant: dict[str, object], m: int, **common: object) -> Rule:
    cls = rules()[str(variant["name"])]
    return cls(set_size=m, **{k: v for k, v in variant.items() if k != "name"}, **common)  # type: ignore[arg-type]


@pytest.mark.parametrize(("variant", "k", "m"), CASES)
def test_probabilities_are_those_of_the_draw(variant: dict[str, object], k: int, m: int) -> None:
    """Over many rounds each set comes as often as its draws said: within 4.5 standard errors."""
    rule = made(variant, m, seed=3)
    random = np.random.default_rng(k * 10 + m)
    scores = random.normal(size=(7, k)).astype(np.float32)
    sets = [frozenset(labels) for labels in combinations(range(k), m)]
    gap, variance = dict.fromkeys(sets, 0.0), dict.fromkeys(sets, 0.0)
    for t in range(1500):
        decision = rule.decide(scores=scores[t % 7])
        back = sa.Decision.from_dict(json.loads(json.dumps(decision.to_dict(), allow_nan=False)))
        draw, again = distribution_of(decision), distribution_of(back, range(k))
        assert draw is not None
        assert again is not None
        shown = frozenset(decision.labels)
        p = {labels: draw.probability(labels) for labels in sets}
        assert sum(p.values()) == pytest.approx(1.0, abs=1e-9)
        assert p[shown] == pytest.approx(exp(decision.log_propensity), rel=1e-9)
        assert again.probability(shown) == p[shown]
        z = decision.ordered_propensity
        assert (z is None) == (m > 1 and rule.name != "dilute")
        assert z is None or z <= decision.propensity * (1 + 1e-9)
        if t < 50:
            inclusion, pairs = draw.inclusion(), draw.pair_inclusion()
            member = np.array([[r in labels for r in range(k)] for labels in sets], float)
            chance = np.array([p[labels] for labels in sets])
            np.testing.assert_allclose(inclusion, chance @ member, atol=1e-9)
            np.testing.assert_allclose(pairs, (member * chance[:, None]).T @ member, atol=1e-9)
            assert inclusion.sum() == pytest.approx(m)
            assert draw.probability([*shown, k]) == 0.0
        for labels in sets:
            gap[labels] += (labels == shown) - p[labels]
            variance[labels] += p[labels] * (1 - p[labels])
    for labels in sets:
        assert abs(gap[labels]) <= 4.5 * sqrt(variance[labels]) + 1e-6


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(map(str, v.values())))
def test_with_a_learner(variant: dict[str, object]) -> None:
    """SetLogit takes any rule; the record comes with the decision, among eligible labels too."""
    m = 1 if variant["name"] == "boltzmann" else 2
    learner = sa.SetLogit(n_labels=6, n_features=3, set_size=m, explore=made(variant, m), seed=4)
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 3)).astype(np.float32), random.integers(0, 6, 60)
    for i, x in enumerate(X):
        among = [0, 2, 3, 5] if i % 3 == 0 else None
        decision = learner.decide(x, eligible=among)
        draw = distribution_of(decision)
        assert draw is not None
        total = sum(draw.probability(labels) for labels in combinations(among or range(6), m))
        assert total == pytest.approx(1.0, abs=1e-9)
        assert draw.probability(decision.labels) == pytest.approx(decision.propensity, rel=1e-6)
        learner.update(decision, hit=bool(y[i] in decision.labels))
    again = sa.SetLogit(**learner.params)
    assert again.rule == learner.rule
    assert rule_from(learner.rule.to_dict(), "test") == learner.rule


def test_names_and_everything_shown() -> None:
    for variant in VARIANTS:
        rule = made(variant, 1, labels=["ant", "bee", "cat"])
        decision = rule.decide(probabilities=[0.2, 0.5, 0.3], eligible=["bee"])
        draw = distribution_of(decision)
        assert (decision.labels, decision.propensity) == (["bee"], 1.0)
        assert draw is not None
        assert draw.probability(["bee"]) == pytest.approx(1.0)


def test_what_cannot_be_is_refused() -> None:
    rule = sa.explore.Dilute(set_size=2)
    for scores in ([1.0], [1.0, np.nan], "ab", [[[1.0, 2.0]]]):
        with pytest.raises(InvalidInput, match="scores of Dilute must be"):
            rule.decide(scores=scores)
    with pytest.raises(InvalidInput, match="probabilities of Dilute must be"):
        rule.decide(probabilities=[0.5, -0.1, 0.6])
    with pytest.raises(InvalidInput, match="scores of Dilute must be given"):
        rule.decide()
    with pytest.raises(
        InvalidInput, match="coverage of Dilute must be left out: Dilute was made without a promise"
    ):
        rule.decide(scores=[1.0, 0.0, 2.0], coverage=0.9)
    with pytest.raises(InvalidInput, match="set_size of Boltzmann must be 1"):
        sa.explore.Boltzmann(set_size=2)
    with pytest.raises(InvalidInput, match="explore of SetLogit must be a rule, one of"):
        sa.SetLogit(n_labels=4, n_features=2, explore={"name": "no such"})


def test_equal_rules_have_equal_hashes() -> None:
    """1 and 1.0 are the same parameter, with one hash; a list has none, and does no harm."""
    whole, number = sa.explore.RunnerUp(explore=1), sa.explore.RunnerUp(explore=1.0)
    assert whole == number
    assert len({whole, number, sa.explore.RunnerUp(explore=0.5)}) == 2

    class Weighted(sa.explore.Uniform):
        def __init__(self, *, weights: tuple[float, ...] = (), set_size: int = 1) -> None:
            super().__init__(set_size=set_size)
            self.weights = weights

    assert len({Weighted(weights=(1, 2)), Weighted(weights=(1.0, 2.0)), Weighted(weights=(3,))}) == 2


def test_uniform_is_uniform() -> None:
    decision = sa.explore.Uniform(set_size=3).decide(scores=np.arange(7))
    assert decision.propensity == pytest.approx(1 / comb(7, 3))
