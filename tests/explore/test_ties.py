"""Ties and batches: equal scores are ranked at random, and every set keeps its exact probability."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import superarm as sa
from superarm.explore import Cover, RunnerUp, distribution_of

# scores with ties at the top, in the middle, at the end of what can be shown, and everywhere
SCORES = {
    "none": [0.9, 0.7, 0.4, 0.1, -0.3, -0.8],
    "all": [0.0] * 6,
    "top": [1.0, 1.0, 0.2, 0.1, 0.0, -0.1],
    "middle": [1.0, 0.5, 0.5, 0.5, 0.0, -0.1],
    "two groups": [0.7, 0.1, 0.7, 0.1, 0.1, -1.0],
    "tail": [1.0, 0.3, 0.0, 0.0, 0.0, 0.0],
}


def shown_by_ranks(p: Any, order: tuple[int, ...], m: int, explore: float) -> dict[frozenset[int], float]:
    """The rule at q = 1 for one order of the labels, by its words: sets and their probabilities."""
    n, sharp, best = len(p), 0.5 - 0.4 * explore, p[order[0]]
    if m == 1:
        out = {frozenset([r]): p[r] * (p[r] / best) ** sharp for r in order}
        out[frozenset([order[0]])] += 1.0 - sum(out.values())
        return out
    pi = [min(1.0, 2 * p[r] / (1 - best)) * (p[r] / best) ** sharp for r in order[1:m]]
    ends = np.cumsum(pi)
    cuts = sorted({0.0, 1.0, *(c - j for c in ends for j in (0, 1) if 0 < c - j < 1)})
    out = {}
    for low, high in pairwise(cuts):
        u, gone = (low + high) / 2, []
        for j in range(min(2, n - m)):
            gone += [i + 1 for i in range(m - 1) if ends[i] - pi[i] <= u + j < ends[i]]
        shown = frozenset([r for i, r in enumerate(order) if i not in gone][:m])
        out[shown] = out.get(shown, 0.0) + high - low
    return out


def enumerated(scores: list[float], m: int, explore: float) -> dict[frozenset[int], float]:
    """Over all orders that the ties allow, each as probable as any other."""
    p = np.exp(scores) / np.exp(scores).sum()
    orders = [
        order
        for order in permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    total: dict[frozenset[int], float] = {}
    for order in orders:
        for shown, chance in shown_by_ranks(p, order, m, explore).items():
            total[shown] = total.get(shown, 0.0) + chance / len(orders)
    return total


@pytest.mark.parametrize("explore", [0.0, 1.0])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("case", SCORES)
def test_every_set_has_its_exact_probability(case: str, m: int, explore: float) -> None:
    scores = SCORES[case]
    exact = enumerated(scores, m, explore)
    seen = set()
    for seed in range(40):
        decision = RunnerUp(set_size=m, seed=seed, explore=explore).decide(scores=scores)
        assert decision.propensity == pytest.approx(exact[frozenset(decision.labels)], rel=1e-5)
        seen.add(frozenset(decision.labels))
    assert len(seen) >= min(3, sum(chance > 0.2 for chance in exact.values()))
    # asked again, also after a round trip: all sets, labels and pairs
    stored = sa.Decision.from_dict(decision.to_dict())
    draw = distribution_of(stored, labels=range(6))
    assert draw is not None
    pairs = np.zeros((6, 6))
    for labels in combinations(range(6), m):
        chance = exact.get(frozenset(labels), 0.0)
        assert draw.probability(labels) == pytest.approx(chance, rel=1e-5, abs=1e-9)
        pairs[np.ix_(labels, labels)] += chance
    np.testing.assert_allclose(draw.pair_inclusion(), pairs, atol=1e-6)
    np.testing.assert_allclose(draw.inclusion(), np.diagonal(pairs), atol=1e-6)


@pytest.mark.parametrize("uniform", [0.0, 0.2])
@pytest.mark.parametrize("m", [1, 3])
def test_frequencies_are_the_propensities(m: int, uniform: float) -> None:
    """At 99.99 %; the seed is fixed, so it never flickers."""
    rule = RunnerUp(set_size=m, explore="rank", uniform=uniform)
    counts: Counter[frozenset[int]] = Counter()
    chance: dict[frozenset[int], float] = {}
    n = 20_000
    for _ in range(n):
        decision = rule.decide(scores=SCORES["two groups"])
        counts[frozenset(decision.labels)] += 1
        chance[frozenset(decision.labels)] = decision.propensity  # type: ignore[assignment]
    assert sum(chance.values()) == pytest.approx(1.0, abs=1e-6)
    statistic = sum((counts[key] - n * p) ** 2 / (n * p) for key, p in chance.items())
    assert statistic < chi2.ppf(0.9999, len(chance) - 1)


RULES = {
    "runner-up, 1": {"rule": RunnerUp, "set_size": 1, "explore": 1.0},
    "runner-up, 2": {"rule": RunnerUp, "set_size": 2, "explore": 1.0},
    "runner-up, 4": {"rule": RunnerUp, "set_size": 4},
    "cover, warm-up": {"rule": Cover, "coverage": 0.9},
    "cover": {"rule": Cover, "coverage": 0.5, "warm_up": 0},
    "cover, capped": {"rule": Cover, "coverage": 0.9, "warm_up": 0, "set_size": 3},
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("case", SCORES)
def test_weights_of_the_top_set_average_one(case: str, name: str) -> None:
    """The top set must not depend on the draw: then 1{S = top} / p(S) is 1 on average, if p(top) > 0."""
    params = dict(RULES[name])
    rule: Any = params.pop("rule")
    tops, weights = set(), []
    for seed in range(1500):
        decision = rule(seed=seed, **params).decide(scores=SCORES[case])
        tops.add(tuple(decision.top))
        weights.append((set(decision.labels) == set(decision.top)) / decision.propensity)
    assert len(tops) == 1
    draw = distribution_of(decision)
    assert draw is not None
    probability = draw.probability(decision.top)
    if probability < 1e-9:
        assert sum(weights) == 0.0
    else:  # 5 standard errors; the seeds are fixed
        error = ((1.0 / probability - 1.0) / len(weights)) ** 0.5
        assert np.mean(weights) == pytest.approx(1.0, abs=5 * error + 1e-6)


def test_eligible_labels_tie_among_themselves() -> None:
    rule = RunnerUp(set_size=2, labels=list("abcdef"))
    shown: Counter[str] = Counter()
    for _ in range(300):
        decision = rule.decide(scores=[0.0] * 6, eligible=["b", "d", "f"])
        assert decision.propensity == pytest.approx(1 / 3)
        shown.update(decision.labels)
        draw = distribution_of(decision)
        assert draw is not None
        np.testing.assert_allclose(draw.inclusion(), 2 / 3)
    assert set(shown) == {"b", "d", "f"}
    assert min(shown.values()) > 150


def test_a_record_names_few_labels() -> None:
    """Of thousands that are tied, or of thousands that are not, the record names the fewer."""
    n = 3000
    for scores, key in ((np.zeros(n), "untied"), (np.r_[1.0, np.zeros(9), np.full(n - 10, -1.0)], "tied")):
        decision = RunnerUp(set_size=4).decide(scores=scores)
        record = decision.rule
        assert record is not None
        assert len(record[key]) < 10
        draw = distribution_of(decision)
        assert draw is not None
        assert draw.probability(decision.labels) == pytest.approx(decision.propensity, rel=1e-6)


@pytest.mark.parametrize("m", [1, 4])
def test_many_labels_of_a_learner(m: int) -> None:
    """Decisions keep only the numbers that were written, and can still be asked again."""
    learner = sa.SetLogit(n_labels=200, n_features=3, set_size=m, explore="rank")
    random = np.random.default_rng(0)
    for i in range(60):
        decision = learner.decide(random.normal(size=3).astype(np.float32))
        draw = distribution_of(decision)
        assert draw is not None
        assert draw.probability(decision.labels) == pytest.approx(decision.propensity, rel=1e-6)
        assert draw.inclusion().sum() == pytest.approx(m)
        learner.update(decision, hit=i % 7 == 0)


# ------------------------------------------------------------ the first thousand people, and batches


@pytest.mark.parametrize("seed", [0, 1])
def test_a_thousand_people_before_the_first_answer_see_all_labels(seed: int) -> None:
    learner = sa.SetLogit(n_labels=30, n_features=5, set_size=3, seed=seed)
    rows = np.random.default_rng(seed).normal(size=(1000, 5)).astype(np.float32)
    shown: Counter[int] = Counter()
    first: Counter[int] = Counter()
    for x in rows:
        decision = learner.decide(x)
        assert decision.propensity == pytest.approx(1 / 4060)
        shown.update(decision.labels)
        first[decision.labels[0]] += 1
    # each is shown 100 times on average, with a standard deviation of 9.5
    assert len(shown) == 30
    assert 60 < min(shown.values()) <= max(shown.values()) < 140
    assert max(first.values()) < 70


def nights(sizes: list[int], seed: int) -> list[float]:
    """Decide all night, hear the answers in the morning: the share of hits of each night."""
    random = np.random.default_rng(100 + seed)
    centres = random.normal(size=(20, 16))
    learner, hits = sa.SetLogit(n_labels=20, n_features=16, set_size=3, seed=seed), []
    for size in sizes:
        y = random.integers(0, 20, size)
        X = (centres[y] + random.normal(size=(size, 16))).astype(np.float32)
        decisions = [learner.decide(x) for x in X]
        answers = [bool(label in decision.labels) for label, decision in zip(y, decisions, strict=True)]
        for decision, hit in zip(decisions, answers, strict=True):
            learner.update(decision, hit=hit)
        hits.append(float(np.mean(answers)))
    return hits


def test_the_second_night_is_good() -> None:
    """Blobs, 20 labels, 3 shown. When all first sets were alike, the second night hit about a third."""
    first, second = nights([4000, 2000], seed=0)
    assert first == pytest.approx(3 / 20, abs=0.03)
    assert second > 0.85


def test_what_is_pending_counts_as_asked() -> None:
    """After a short first night little is known: the second must not ask about the same labels only."""
    _, _, third = nights([50, 1500, 1500], seed=0)
    assert third > 0.7


def test_where_answers_come_at_once_nothing_is_pending() -> None:
    learner = sa.SetLogit(n_labels=6, n_features=3, set_size=2)
    x = np.ones(3, np.float32)
    for i in range(5):
        learner.update(learner.decide(x), hit=bool(i % 2))
        assert learner.cursor().draw_state[2] == 0.0
    open_ones = [learner.decide(x) for _ in range(400)]
    assert learner.cursor().draw_state[2] == 300.0
    learner.update(open_ones[0], hit=False)
    assert learner.cursor().draw_state[2] == 150.0


def test_a_batch_goes_on_after_save_and_load(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4)).astype(np.float32)
    learner = sa.SetLogit(n_labels=8, n_features=4, set_size=3)
    learner.run(X, random.integers(0, 8, 300))
    for x in X[:40]:
        learner.decide(x)
    learner.save(tmp_path / "model.npz")
    again = sa.load(tmp_path / "model.npz")
    for x in X[40:120]:
        one, other = learner.decide(x), again.decide(x)
        assert one.to_dict() == other.to_dict()


def test_a_rule_alone_without_answers_stays_as_it_is() -> None:
    rule = RunnerUp(set_size=2, explore="rank")
    first = rule.decide(scores=[2.0, 1.0, 0.0, -1.0])
    for _ in range(500):
        last = rule.decide(scores=[2.0, 1.0, 0.0, -1.0])
    assert last.top == first.top == [0, 1]
    assert "groups" not in (last.rule or {})
