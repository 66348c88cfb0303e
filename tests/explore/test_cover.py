"""Cover: exact probabilities, by enumeration and by frequencies; a promise that holds for any sequence."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from itertools import combinations, pairwise, permutations
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import superarm as sa
from superarm.decisions import Decision
from superarm.errors import InvalidInput
from superarm.explore import Cover, distribution_of, rule_from

SCORES = {
    "no ties": [1.2, 0.9, 0.4, 0.1, -0.3, -0.8],
    "all tied": [0.0] * 6,
    "tied at the top": [1.0, 1.0, 0.2, 0.1, 0.0, -0.1],
    "tied in the middle": [1.0, 0.5, 0.5, 0.5, 0.0, -0.1],
    "tied tail": [1.0, 0.3, 0.0, 0.0, 0.0, 0.0],
}
CAPS = [None, 1, 2, 4]


def rule_at(q: float | None, **parameters: Any) -> Cover:
    """A rule with this threshold; ``None``: in its warm-up."""
    rule = Cover(coverage=0.8, warm_up=10**9 if q is None else 0, **parameters)
    rule.decide([0.0] * 6)
    if q is not None:
        rule._core.kernel.state()["thresholds"][0] = q
    rule._core.kernel.state()["draw_state"][:] = 0.0
    return rule


def by_words(s: list[float], q: float | None, cap: int | None) -> dict[frozenset[int], float]:
    """The rule as its docstring has it, at q_b = 1, over all orders that the ties allow."""
    p = np.exp(s) / np.exp(s).sum()
    most = len(s) if cap is None else cap
    best = sorted(p, reverse=True)
    if q is None:
        size = int(np.argmin(np.abs(np.cumsum(best) - 0.5).round(9))) + 1
    else:
        size = max(1, sum(value >= exp(-q) * (1 - 1e-6) for value in best))
    size = min(size, most)
    orders = [o for o in permutations(range(len(s))) if all(s[a] >= s[b] for a, b in pairwise(o))]
    found: Counter[frozenset[int]] = Counter()
    for order in orders:
        ranked = order[:size]
        pi = [min(1.0, 2 * p[r] / (1 - p[order[0]])) for r in ranked[1:]]
        ends = np.cumsum(pi) if q is not None else np.zeros(0)
        cuts = sorted({0.0, 1.0, *(c - j for c in ends for j in (0, 1) if 0 < c - j < 1)})
        for low, high in pairwise(cuts):
            u = (low + high) / 2
            gone = [i + 1 for j in (0, 1) for i, c in enumerate(ends) if c - pi[i] <= u + j < c]
            shown = frozenset(r for i, r in enumerate(ranked) if i not in gone)
            found[shown] += (high - low) / len(orders)  # type: ignore[assignment]
    return dict(found)


@pytest.mark.parametrize("q", [None, 0.0, 1.2, 1.9, 2.6])
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("name", SCORES)
def test_probabilities_are_those_of_the_words(name: str, cap: int | None, q: float | None) -> None:
    s = SCORES[name]
    expected = by_words(s, q, cap)
    if any(value == s[0] for value in s[1:]) or name in ("tied in the middle", "tied tail"):
        # ties inside the set keep their order: only how many of a group are shown has one probability
        ways: Counter[Any] = Counter()
        for shown, chance in expected.items():
            ways[tuple(sorted(s[i] for i in shown))] += chance  # type: ignore[assignment]
        draw = rule_at(q, set_size=cap).distribution(s)
        found: Counter[Any] = Counter()
        for size in range(1, 7):
            for shown in combinations(range(6), size):
                found[tuple(sorted(s[i] for i in shown))] += draw.probability(shown)  # type: ignore[assignment]
        for way, chance in ways.items():
            assert found[way] == pytest.approx(chance, abs=1e-6), way
        return
    draw = rule_at(q, set_size=cap).distribution(s)
    for size in range(1, 7):
        for shown in combinations(range(6), size):
            assert draw.probability(shown) == pytest.approx(expected.get(frozenset(shown), 0.0), abs=1e-6)


@pytest.mark.parametrize("uniform", [0.0, 0.1])
@pytest.mark.parametrize("q", [None, 1.2, 1.9])
@pytest.mark.parametrize("name", SCORES)
def test_sets_come_as_often_as_they_should(name: str, q: float | None, uniform: float) -> None:
    """And sum to one; inclusion and pairs are those of the sets; chi-squared at 1e-6."""
    s, n = SCORES[name], 3000
    rule = rule_at(q, uniform=uniform, set_size=4, seed=7)
    draw = rule.distribution(s)
    every = [frozenset(c) for size in range(1, 7) for c in combinations(range(6), size)]
    chances = {shown: draw.probability(shown) for shown in every}
    assert sum(chances.values()) == pytest.approx(1.0)
    both = np.zeros((6, 6))
    for shown, chance in chances.items():
        both[np.ix_(sorted(shown), sorted(shown))] += chance
    np.testing.assert_allclose(draw.pair_inclusion(), both, atol=1e-9)
    np.testing.assert_allclose(draw.inclusion(), both.diagonal(), atol=1e-9)
    counts: Counter[frozenset[int]] = Counter()
    for _ in range(n):
        rule._core.kernel.state()["draw_state"][:] = 0.0  # the budget of the first round
        decision = rule.decide(s)
        counts[frozenset(decision.labels)] += 1  # type: ignore[arg-type]
        assert decision.propensity == pytest.approx(chances[frozenset(decision.labels)])  # type: ignore[arg-type]
    usual = [shown for shown in every if chances[shown] * n >= 5]
    rest = n - sum(counts[shown] for shown in usual)
    expected = n - sum(chances[shown] * n for shown in usual)
    value = sum((counts[shown] - chances[shown] * n) ** 2 / (chances[shown] * n) for shown in usual)
    value += (rest - expected) ** 2 / max(expected, 1.0)
    assert value < chi2.ppf(1 - 1e-6, len(usual))


def bound(rule: Cover, answers: int, k: int, coverage: float) -> float:
    return (1 - coverage) * answers + (log(k / 1e-4) + rule.eta - log(k / sqrt(1 - coverage))) / rule.eta


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("world", ["outside", "worst", "lies", "change"])
def test_promise_holds_for_any_sequence(world: str, coverage: float) -> None:
    """The truth is chosen by an enemy who sees the set, or by one who chooses the scores."""
    k, rounds = 6, 4000
    random = np.random.default_rng(3)
    rule = Cover(coverage=coverage, warm_up=0, seed=1)
    misses = 0
    for t in range(rounds):
        scores = random.normal(size=k) * 3
        if world == "lies":
            scores = np.array([9.0, 5.0, 0.0, 0.0, 0.0, -20.0])
        decision = rule.decide(scores)
        outside = [r for r in range(k) if r not in decision.labels]
        if world == "outside":  # missed whenever that is possible
            hit = not outside
        elif world == "worst":
            hit = int(scores.argmin()) in decision.labels
        elif world == "lies":
            hit = 5 in decision.labels
        else:  # right for half of the time, and then never
            hit = (int(scores.argmax() if t < rounds // 2 else scores.argmin())) in decision.labels
        misses += not hit
        rule.update(decision, hit=hit)
        assert misses <= bound(rule, t + 1, k, coverage) + 1e-6
    assert rule.observed_coverage().answers == rounds
    assert rule.observed_coverage().kept == pytest.approx(1 - misses / rounds)


def test_promise_holds_with_late_answers() -> None:
    """The bound grows by the answers that wait."""
    k, wait, coverage = 5, 50, 0.9
    rule, random = Cover(coverage=coverage, warm_up=0), np.random.default_rng(0)
    waiting: list[tuple[Decision, bool]] = []
    misses = answers = 0
    for _ in range(4000):
        decision = rule.decide(random.normal(size=k) * 2)
        waiting.append((decision, len(decision.labels) == k))
        if len(waiting) > wait:
            decision, hit = waiting.pop(int(random.integers(wait)))  # in any order
            rule.update(decision, hit=hit)
            misses, answers = misses + (not hit), answers + 1
            assert misses <= bound(rule, answers, k, coverage) + wait


@pytest.mark.parametrize("answers", [100.0, 1000.0, 50_000.0])
@pytest.mark.parametrize("certain", [0.2, 0.5, 1.0])
def test_what_leaving_out_may_cost_falls_with_doubt_and_time(certain: float, answers: float) -> None:
    rule, p = rule_at(9.0), [0.5, 0.3, 0.1, 0.05, 0.03, 0.02]
    rule._core.kernel.state()["draw_state"][:] = answers, 0.2 * answers, certain * answers
    decision = rule.decide(probabilities=p)
    beta = min(0.95, 3 * certain**1.5 / (1 + answers / (500 * len(p))))
    share = beta * 0.2 * (answers + 1) / (0.2 * answers)
    bids = [min(1.0, 2 * value / 0.5) for value in p[1:]]
    assert decision.rule is not None
    assert decision.rule["sums"] == pytest.approx(np.cumsum(bids) * min(1.0, share))
    assert decision.rule["cost"] == pytest.approx(np.dot(bids, p[1:]))
    assert decision.rule["certainty"] == pytest.approx(np.dot(p, p))


@pytest.mark.parametrize(("recent", "left"), [(0.0, 1.0), (0.2, 1.0), (0.25, 0.75), (0.4, 0.0), (0.9, 0.0)])
def test_less_is_left_out_while_more_is_missed_than_is_allowed(recent: float, left: float) -> None:
    """0.2 are allowed."""
    rule, p = rule_at(9.0), [0.5, 0.3, 0.1, 0.05, 0.03, 0.02]
    state = rule._core.kernel.state()
    state["draw_state"][:] = 1000.0, 200.0, 500.0
    usual = rule.distribution(probabilities=p).inclusion()
    state["recent_misses"][0] = recent
    np.testing.assert_allclose(
        1.0 - rule.distribution(probabilities=p).inclusion(), left * (1.0 - usual), atol=1e-9
    )
    before = float(state["recent_misses"][0])
    rule.update(rule.decide(probabilities=p), hit=True)
    assert state["recent_misses"][0] == pytest.approx(before - before / 500)


@pytest.mark.parametrize("share", [1.0, 0.1, 0.02])
def test_leaving_out_costs_a_share_of_what_is_allowed_at_another_coverage_too(share: float) -> None:
    """Most requests are easy to keep, with one label; that leaves nothing over for the others."""
    rule, random, costs = Cover(coverage=0.5, warm_up=0), np.random.default_rng(0), []
    for _ in range(4000):
        p = np.exp(3.0 * np.sort(random.normal(size=12))[::-1])
        p /= p.sum()
        coverage = 0.99 if random.random() < share else None
        decision = rule.decide(probabilities=p, coverage=coverage)
        assert decision.rule is not None
        rule.update(decision, hit=bool(random.choice(12, p=p) in decision.labels))
        if coverage:
            left = np.diff([0.0, *decision.rule.get("sums", ())])
            costs.append(float(left @ p[1 : len(left) + 1]))
    assert 0.0 < float(np.mean(costs)) < 0.01


def test_noes_that_false_no_explains_are_no_trouble() -> None:
    """Hopeless rows, nearly all labels shown, a fifth of the answers wrong: as was said."""
    rule, random = Cover(coverage=0.95, warm_up=0, false_no=0.2), np.random.default_rng(5)
    for _ in range(4000):
        decision = rule.decide(random.normal(size=4) * 0.1)
        rule.update(decision, hit=bool(random.integers(4) in decision.labels and random.random() > 0.2))
    assert rule.observed_coverage().trouble is None
    assert rule.observed_coverage().noes_to_all < 200

    def no_answers_any_more() -> None:
        for _ in range(500):
            rule.update(rule.decide(random.normal(size=4) * 0.1), hit=False)

    with pytest.warns(UserWarning, match="of 4,... answers were no although all labels were shown"):
        no_answers_any_more()


def test_noes_to_everything_do_not_wind_the_threshold_up() -> None:
    """A night without answers, all taken for noes, where some are known to be wrong: gone soon."""
    rule, scores = Cover(coverage=0.95, warm_up=0, false_no=0.1), [3.0, 1.0, 0.0, -3.0]

    def night() -> None:
        for _ in range(5000):
            rule.update(rule.decide(scores), hit=False)

    with pytest.warns(UserWarning, match="although all labels were shown"):
        night()
    assert rule.observed_coverage().threshold < log(4 / 1e-4) + 1
    for _ in range(2000):
        rule.update(rule.decide(scores), hit=True)
    assert len(rule.decide(scores).labels) == 1


def test_warm_up_does_not_count() -> None:
    rule = Cover(coverage=0.9, warm_up=3)
    for t in range(5):
        decision = rule.decide([3.0, 1.0, 0.0, 0.0])
        assert decision.rule is not None
        assert decision.rule["counts"] == (t >= 3)
        rule.update(decision, hit=False)
    assert rule.observed_coverage().answers == 2
    assert Cover().make_kernel(4, 0).state()["warm_up"][0] == 1600
    assert Cover().make_kernel(100, 0).state()["warm_up"][0] == 10_000


def test_another_level_has_a_threshold_of_its_own() -> None:
    rule = Cover(coverage=0.9, warm_up=0)
    scores = [2.0, 1.5, 1.0, 0.5]
    before = log(4 / sqrt(0.1))
    for _ in range(20):
        rule.update(rule.decide(scores, coverage=0.5), hit=True)
    assert rule.observed_coverage().answers == 0
    assert rule.observed_coverage().threshold == pytest.approx(before)
    assert rule.observed_coverage(0.5).answers == 20
    assert rule.observed_coverage(0.5).threshold < before
    assert rule.decide(scores).rule["coverage"] == 0.9  # type: ignore[index]
    for i in range(14):
        rule.update(rule.decide(scores, coverage=0.1 + i / 100), hit=True)
    with pytest.raises(InvalidInput, match="coverage of Cover must be one of the 16"):
        rule.decide(scores, coverage=0.77)
    assert rule.decide(scores, coverage=0.5).rule["coverage"] == 0.5  # type: ignore[index]


def test_the_same_one_by_one_and_many() -> None:
    S = np.random.default_rng(0).normal(size=(200, 7))
    one, many = (Cover(coverage=0.8, warm_up=50, seed=3) for _ in range(2))
    decisions = many.decide_many(S)
    for i, s in enumerate(S):
        assert one.decide(s).to_dict() == decisions[i].to_dict() | {"learner": one.id}
    assert len(set(decisions.sizes.tolist())) > 1


def test_a_stored_decision_moves_the_threshold_as_well() -> None:
    rules = [Cover(coverage=0.9, warm_up=0, seed=3, labels=list("abcd")) for _ in range(2)]
    for rule, stored in zip(rules, (False, True), strict=True):
        for t in range(50):
            decision = rule.decide([1.0, 0.5, 0.1, 0.0])
            known = Decision.from_dict(decision.to_dict()) if stored else decision
            draw = distribution_of(known, list("abcd"))
            assert draw is not None
            assert draw.probability(decision.labels) == pytest.approx(decision.propensity)
            rule.update(known, hit=t % 3 > 0)
    assert rules[0].observed_coverage() == rules[1].observed_coverage()


@pytest.mark.parametrize(("false_no", "false_yes"), [(0.0, 0.0), (0.1, 0.05)])
def test_an_answer_counts_by_the_belief_that_the_truth_was_eligible(
    false_no: float, false_yes: float
) -> None:
    p = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    rule = Cover(coverage=0.5, warm_up=0, set_size=1, false_no=false_no, false_yes=false_yes)
    rule.update(rule.decide(probabilities=p), hit=False)
    assert rule.observed_coverage().answers == 1  # every label was eligible: there is no doubt
    decision = rule.decide(probabilities=p, eligible=[0, 2, 3])
    assert decision.labels == [0]
    stored = Decision.from_dict(decision.to_dict()).rule
    no = [0.4 * false_no, 0.25 * (1 - false_yes), 0.35 * (1 - false_yes)]  # shown, not shown, not eligible
    yes = [0.4 * (1 - false_no), 0.25 * false_yes, 0.35 * false_yes]
    assert stored is not None
    assert stored["weight_of_no"] == pytest.approx((no[0] + no[1]) / sum(no), abs=1e-6)
    assert stored["weight_of_yes"] == pytest.approx((yes[0] + yes[1]) / sum(yes), abs=1e-6)
    rule.update(decision, hit=False)
    assert rule.observed_coverage().answers == pytest.approx(1 + stored["weight_of_no"])
    sure = rule.decide([0.0, 3000.0, 0.0], eligible=[0, 2])  # the weight of label 1 must stay finite
    assert sure.rule is not None
    assert sure.rule["weight_of_no"] == pytest.approx(0.0, abs=1e-9)
    assert sure.rule["weight_of_yes"] == pytest.approx(0.0 if false_yes else 1.0, abs=1e-9)


def test_the_promise_is_about_rows_whose_truth_is_eligible() -> None:
    """Where the truth is often ineligible, the sets of all rows grew to nearly all labels."""
    random = np.random.default_rng(0)
    rule = Cover(coverage=0.9, warm_up=0, seed=1)
    sizes, kept = [], []
    for t in range(12_000):
        s = random.normal(size=12) * 2.5
        y = int(np.argmax(s + random.gumbel(size=12)))
        eligible = None if t % 2 else range(4, 12)
        decision = rule.decide(s, eligible=eligible)
        rule.update(decision, hit=y in decision.labels)
        if t >= 2000 and (eligible is None or y in eligible):
            kept.append(y in decision.labels)
            sizes.append(len(decision.labels))
    assert rule.observed_coverage().kept == pytest.approx(0.9, abs=0.005)
    assert np.mean(kept) == pytest.approx(0.9, abs=0.015)
    assert np.mean(sizes) < 4


def test_a_small_size_breaks_the_promise_and_says_so() -> None:
    rule, random = Cover(coverage=0.95, warm_up=0, set_size=1), np.random.default_rng(0)

    def use() -> None:
        for _ in range(3000):
            rule.update(rule.decide([0.1, 0.0, 0.0]), hit=bool(random.random() < 0.5))

    with pytest.warns(UserWarning, match=r"set_size is too small for a coverage of 0\.95"):
        use()
    kept = rule.observed_coverage()
    assert kept.kept < 0.6
    assert kept.capped_misses > 1000
    assert kept.threshold < log(3 / 1e-4) + 2 * rule.eta  # it does not wind up


def test_parameters() -> None:
    assert rule_from(Cover(coverage=0.8, eta=0.2).to_dict(), "x") == Cover(coverage=0.8, eta=0.2)
    for wrong in (0.0, 1.0, True, "much", None):
        with pytest.raises(InvalidInput, match="coverage of Cover must be above 0 and below 1"):
            Cover(coverage=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"uniform of Cover must be below 1 - coverage = 0\.05"):
        Cover(coverage=0.95, uniform=0.05)
    with pytest.raises(InvalidInput, match="false_no of Cover must be below 1 - false_yes"):
        Cover(false_no=0.5, false_yes=0.5)


@pytest.mark.parametrize("again", [copy.copy, lambda rule: pickle.loads(pickle.dumps(rule))])
def test_the_rule_of_a_label_learner_chooses_as_the_learner_does(again: Any) -> None:
    """A learner that is told every label leaves nothing out; neither does its rule, used alone."""
    random = np.random.default_rng(0)
    learner = sa.AveragedSoftmax(n_labels=5, n_features=3, seed=1, explore=Cover(coverage=0.8))
    for x in random.normal(size=(300, 3)):
        learner.update(learner.decide(x), label=int(random.integers(5)))
    for x in random.normal(size=(20, 3)).astype(np.float32):
        decision = learner.decide(x)
        distribution = again(learner.current_rule()).distribution(learner.scores([x])[0])
        assert distribution.probability(decision.labels) == pytest.approx(decision.propensity) == 1.0


@pytest.mark.parametrize("coverage", [0.0, 1.0, 1.5, True])
def test_a_coverage_that_cannot_be_is_refused(coverage: Any) -> None:
    learner = sa.SetLogit(n_labels=5, n_features=2, coverage=0.9)
    with pytest.raises(InvalidInput, match="coverage of SetLogit must be above 0 and below 1"):
        learner.coverage_at(coverage)


def test_a_target_beyond_those_that_have_room_is_refused_everywhere() -> None:
    learner = sa.SetLogit(n_labels=3, n_features=1, explore=Cover(coverage=0.5, warm_up=0))
    for i in range(15):
        learner.update(learner.decide([1.0], coverage=0.6 + i / 100), hit=True)
    calls = (
        lambda: learner.decide([1.0], coverage=0.9),
        lambda: learner.predict_set([[1.0]], coverage=0.9),
        lambda: learner.coverage_at(0.9),
    )
    for call in calls:
        with pytest.raises(InvalidInput, match="coverage of SetLogit must be one of the 16 targets in use"):
            call()


def test_each_learner_that_shares_a_rule_warns_of_its_own_broken_promise() -> None:
    rule = Cover(coverage=0.9, warm_up=0)
    for seed in (0, 1):
        learner = sa.SetLogit(n_labels=5, n_features=1, set_size=1, seed=seed, explore=rule)
        with pytest.warns(UserWarning, match="set_size is too small") as caught:
            learner.run(np.ones((2000, 1)), np.arange(2000) % 5)
        learner.run(np.ones((100, 1)), np.arange(100) % 5)  # once is enough
        assert len(caught) == 1


def test_the_warm_up_is_told_when_the_labels_are_known() -> None:
    rule = Cover()
    with pytest.raises(InvalidInput, match="labels of Cover must be known"):
        rule.observed_coverage()
    rule.decide([0.0] * 10)
    assert rule.observed_coverage().warm_up == Cover(labels=range(10)).observed_coverage().warm_up == 4000
