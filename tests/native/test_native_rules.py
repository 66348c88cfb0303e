"""The compiled rules against naive twins: plain Python in float64, by their equations, same uniforms."""

from __future__ import annotations

from itertools import pairwise
from math import comb, exp, factorial, log, sqrt
from typing import Any

import numpy as np
import pytest

from superarm.data.labels import LabelVocabulary
from superarm.decisions import Decision
from superarm.explore import Boltzmann, Dilute, Greedy, RunnerUp, Uniform
from superarm.native.core import ScoresCore
from superarm.native.randomness import uniform_number as uniform
from superarm.native.stateless_rules import log_order_probability

SEED = 7


def ranked(s: Any, among: list[int]) -> list[int]:
    return sorted(among, key=lambda r: (-s[r], r))


def floyd(n: int, m: int, round_: int, first: int) -> list[int]:
    """m out of n positions, all sets alike."""
    drawn: list[int] = []
    for i in range(m):
        at = int(uniform(SEED, round_, first + i) * (n - m + i + 1))
        drawn.append(at if at not in drawn else n - m + i)
    return drawn


class NaiveGreedy:
    def choose(self, s: Any, among: list[int], m: int, t: int) -> tuple[list[int], float, float]:
        return ranked(s, among)[:m], 1.0, 1.0


class NaiveUniform:
    def choose(self, s: Any, among: list[int], m: int, t: int) -> tuple[list[int], float, float]:
        shown = [among[i] for i in floyd(len(among), m, t, 0)]
        chance = 1 / comb(len(among), m)
        return shown, chance, chance / factorial(m)


class NaiveBoltzmann:
    def choose(self, s: Any, among: list[int], m: int, t: int) -> tuple[list[int], float, float]:
        e = np.exp(2.0 * (s[among] - max(s[among])))
        P = 0.8 * e / e.sum() + 0.2 / len(among)
        at = min(int((np.cumsum(P) <= uniform(SEED, t, 0)).sum()), len(among) - 1)
        return [among[at]], P[at], P[at]


class NaiveDilute:
    """One label after another, with the weights of eq. 5 among those that are left."""

    def choose(self, s: Any, among: list[int], m: int, t: int) -> tuple[list[int], float, float]:
        n, inside = len(among), ranked(s, among)[:m]
        top, outside = set(inside), [r for r in among if r not in inside]
        P = {r: 0.7 / m * (r in top) + 0.3 / n for r in among}
        drawn, Z = list[int](), 1.0
        for i in range(m):
            left = inside + outside
            total = sum(P[r] for r in left)
            point, chosen = uniform(SEED, t, i) * total, left[-1]
            for r in left:
                point -= P[r]
                if point < 0:
                    chosen = r
                    break
            Z *= P[chosen] / total
            drawn.append(chosen)
            if chosen in inside:  # the last one takes the place of the one that left
                inside[inside.index(chosen)] = inside[-1]
                inside.pop()
            else:
                outside.remove(chosen)
        return drawn, self.of_set(frozenset(drawn), P), Z

    def of_set(self, left: frozenset[int], P: dict[int, float], gone: float = 0.0) -> float:
        """Over all orders."""
        if not left:
            return 1.0
        total = sum(P.values()) - gone
        return sum(P[r] / total * self.of_set(left - {r}, P, gone + P[r]) for r in left)


class NaiveRunnerUp:
    """Without ties, and with its clock."""

    def __init__(self, explore: float, share: float, forget: float) -> None:
        self.explore, self.share, self.forget = explore, share, forget
        self.t = self.M = 0.0

    def choose(self, s: Any, among: list[int], m: int, t: int) -> tuple[list[int], float, float]:
        n, order = len(among), ranked(s, among)
        if n == m:
            return order, 1.0, 1.0
        self.t, self.M = self.t * (1 - self.forget), self.M * (1 - self.forget)
        e = np.exp(np.asarray(s, np.float64) - s[order[0]])
        p, w, q = e / e[among].sum(), 0.5 - 0.4 * self.explore, 1.0
        if self.explore < 1 and self.M > 0:
            B = (0.07 * sqrt(m) + self.explore / (1 - self.explore)) * sqrt(n * self.t)
            q = min(1.0, B / self.M)
        best = p[order[0]]
        if m == 1:
            b = [p[r] * (p[r] / best) ** w for r in among]
            cost = sum(b_r * (best - p[r]) for b_r, r in zip(b, among, strict=True))
        else:
            b = [min(1.0, 2 * p[r] / (1 - best)) * (p[r] / best) ** w for r in order[1:m]]
            cost = sum(b_r * (p[r] - p[order[m]]) for b_r, r in zip(b, order[1:m], strict=True))
        self.t, self.M = self.t + 1, self.M + cost
        edges = [0.0, *np.cumsum([q * b_r for b_r in b])]

        def shown(u: float) -> frozenset[int]:
            hit = [i for i in range(len(b)) if edges[i] <= u < edges[i + 1]]
            if m == 1:
                return frozenset([among[hit[0]] if hit else order[0]])
            if n - m > 1:
                hit += [i for i in range(len(b)) if edges[i] <= u + 1 < edges[i + 1]]
            return frozenset([r for i, r in enumerate(order) if i - 1 not in hit][:m])

        cuts = sorted({0.0, 1.0, *(c - j for c in edges for j in (0, 1) if 0 < c - j < 1)})
        if self.share and uniform(SEED, t, 1) < self.share:
            made = frozenset(among[i] for i in floyd(n, m, t, 2))
        else:
            made = shown(uniform(SEED, t, 0))
        few = sum(high - low for low, high in pairwise(cuts) if shown((low + high) / 2) == made)
        chance = (1 - self.share) * few + self.share / comb(n, m)
        return ranked(s, list(made)), chance, chance


TWINS: dict[str, Any] = {
    "greedy": (Greedy(), NaiveGreedy),
    "uniform": (Uniform(), NaiveUniform),
    "boltzmann": (Boltzmann(gamma=0.2, alpha=2.0), NaiveBoltzmann),
    "dilute": (Dilute(gamma=0.3), NaiveDilute),
    "show": (RunnerUp(explore=0.0), lambda: NaiveRunnerUp(0.0, 0.0, 0.0)),
    "forgetful": (RunnerUp(forget=0.05), lambda: NaiveRunnerUp(0.5, 0.0, 0.05)),
    "rank": (RunnerUp(explore="rank", uniform=0.2), lambda: NaiveRunnerUp(1.0, 0.2, 0.0)),
}
SIZES = [(2, 1), (5, 1), (5, 2), (5, 4), (5, 5), (9, 3), (20, 6), (40, 3), (150, 1), (150, 4)]


def core_of(rule: Any, k: int) -> Any:
    core = ScoresCore(k, rule.make_kernel(k, SEED))
    core.bind(decision_class=Decision, rule=rule, vocabulary=LabelVocabulary(k), id="test")
    return core


def decide(core: Any, s: Any, among: list[int] | None = None, m: int = 1, cursor: Any = None) -> Any:
    eligible = core.all_labels if among is None else np.array(among)
    return core.decide(np.asarray(s, np.float32), None, eligible, m, cursor)


@pytest.mark.parametrize(("k", "m"), SIZES)
@pytest.mark.parametrize("name", TWINS)
def test_as_its_naive_twin(name: str, k: int, m: int) -> None:
    if name == "boltzmann" and m > 1:
        pytest.skip("it knows only m = 1")
    rule, twin = TWINS[name]
    core, naive = core_of(rule, k), twin()
    random = np.random.default_rng(k + m)
    for t in range(120):
        s = random.normal(size=k).astype(np.float32)
        among = sorted(random.choice(k, random.integers(m, k + 1), replace=False).tolist()) if t % 3 else None
        made = decide(core, s, among, m)
        shown, of_set, ordered = naive.choose(s, list(range(k)) if among is None else among, m, t)
        drawn = made.sets[m : 2 * m].tolist()
        assert (
            drawn == shown if name in ("dilute", "boltzmann", "uniform") else sorted(drawn) == sorted(shown)
        )
        assert made.sets[:m].tolist() == ranked(s, drawn)
        assert made.sets[2 * m :].tolist() == ranked(s, among or list(range(k)))[:m]
        assert made.log_propensity == pytest.approx(log(of_set), abs=2e-5)
        if m == 1 or name == "dilute":
            assert made.ordered_propensity == pytest.approx(ordered, rel=2e-5)


@pytest.mark.parametrize("name", TWINS)
def test_choosing_moves_nothing_and_what_moves_is_written_down(name: str) -> None:
    """Deciding at a cursor, and counting the decision in later from its draw log, is deciding."""
    rule, _ = TWINS[name]
    one, other = core_of(rule, 8), core_of(rule, 8)
    random = np.random.default_rng(0)
    for t in range(60):
        s = random.normal(size=8).round(t % 3)  # with ties, now and then
        before = {key: array.copy() for key, array in other.state().items()}
        cursor = other.cursor()
        again = decide(other, s, m=1, cursor=other.cursor())
        made = decide(other, s, m=1, cursor=cursor)
        live = decide(one, s, m=1)
        assert again.draw_log == made.draw_log == live.draw_log
        assert again.sets.tolist() == made.sets.tolist() == live.sets.tolist()
        assert all(np.array_equal(before[key], array) for key, array in other.state().items())
        # all that moves a rule is in the record
        numbers = rule.draw_log_from(made.rule)
        other.round = made.round + 1
        other.advance(numbers)
        assert cursor == one.cursor() == other.cursor()
        if t % 2:
            for core, decision in ((one, live), (other, made)):
                core.update(
                    decision,
                    s.astype(np.float32),
                    core.all_labels,
                    decision.sets,
                    decision.draw_log,
                    True,
                    -1,
                    None,
                )


def test_best_labels_of_any_number() -> None:
    """By counting, by selecting, by a bound: the same order, and of equals the first wins."""
    random = np.random.default_rng(1)
    for k in [*range(1, 70), 128, 300, 1000]:
        core = core_of(Greedy(), k)
        for m in {min(k, m) for m in (1, 2, 6, k // 3 + 1, k // 2 + 1, 17, k)}:
            for s in (
                random.normal(size=k),
                random.integers(-2, 3, k),
                np.zeros(k),
                -np.arange(k),
                np.arange(k),
            ):
                s = s.astype(np.float32)
                assert decide(core, s, m=m).sets[:m].tolist() == ranked(s, list(range(k)))[:m]


def test_all_tied_is_uniform() -> None:
    core, n = core_of(RunnerUp(), 6), 4000
    seen = np.zeros(6)
    for _ in range(n):
        made = decide(core, np.zeros(6), m=3)
        assert exp(made.log_propensity) == pytest.approx(1 / 20)
        seen[made.sets[:3]] += 1
    np.testing.assert_allclose(seen / n, 0.5, atol=4.5 * sqrt(0.25 / n))


def test_clock_and_pending() -> None:
    """t and M move when something can be left out; whatever is decided is pending, and answers halve it."""
    core = core_of(RunnerUp(), 4)
    decide(core, np.arange(4), m=4)
    assert core.cursor().draw_state.tolist() == [0.0, 0.0, 1.0]
    made = [decide(core, np.arange(4), m=2) for _ in range(500)]
    t, M, pending = core.cursor().draw_state
    cost = np.frombuffer(made[0].draw_log)[0]
    assert (t, pending) == (500.0, 300.0)
    assert pytest.approx(500 * cost) == M
    one = made[0]
    for left in (150.0, 75.0, 37.0):
        core.update(one, np.zeros(4, np.float32), core.all_labels, one.sets, one.draw_log, False, -1, None)
        assert core.cursor().draw_state[2] == left
    assert core.state()["rule.answers"].tolist() == [3.0]


def test_a_long_product_does_not_underflow() -> None:
    k, m = 3000, 300
    core = core_of(Dilute(gamma=0.01), k)
    made = decide(core, -np.arange(k), m=m)
    drawn, top = made.sets[m : 2 * m].tolist(), made.sets[2 * m :].tolist()
    order = np.array([top.index(label) if label in top else m for label in drawn])
    log_z = log_order_probability(order, k, 0.01)
    assert np.isfinite([made.log_propensity, log_z]).all()
    assert log_z < -400 < made.log_propensity
