"""Rules in plain Python: as exact as compiled ones; sets of any size; what they raise arrives."""

from __future__ import annotations

import pickle
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import superarm as sa
from superarm.errors import InvalidInput
from superarm.explore import Choice, DrawContext, Mixture, PlainRule, distribution_of, rule_from, rules


class Growing(PlainRule):
    """As many labels as have a score above a level, at least one; every tenth time, one more.

    Deciding moves a count, a miss lowers the level.
    """

    n_draw_state = 1
    n_memory = 1
    sizes_vary = True

    def __init__(
        self, *, step: float = 0.5, set_size: int | None = None, seed: int = 0, labels: Any = None
    ) -> None:
        super().__init__(set_size=set_size, seed=seed, labels=labels)
        self.step = step

    def choose(self, context: DrawContext) -> Choice:
        order = np.argsort(-context.scores, kind="stable")
        size = max(1, int((context.scores > -context.memory[0]).sum()))
        if context.draw_state[0] % 10 == 9:
            size = min(len(order), size + 1)
        return Choice(order[:size], 1.0, draw_log=[size])

    def log_size(self, n: int, m: int) -> int:
        return 1

    def on_decided(self, draw_state: Any, draw_log: Any) -> None:
        draw_state[0] += 1.0

    def on_feedback(self, draw_state: Any, memory: Any, draw_log: Any, hit: bool) -> None:
        if not hit:
            memory[0] += self.step / draw_log[0]

    @classmethod
    def distribution_from(cls, record: Any, top: Any, eligible: Any, m: int) -> Mixture:
        return Mixture(eligible, m, [(record["shown"], 1.0)])


class Coin(PlainRule):
    """One of the best two."""

    name = "a-coin"

    def choose(self, context: DrawContext) -> Choice:
        best = np.argsort(-context.scores)[:2]
        return Choice([best[int(context.uniform(0) * len(best))]], 1.0 / len(best))

    @classmethod
    def distribution_from(cls, record: Any, top: Any, eligible: Any, m: int) -> Mixture:
        raise NotImplementedError


class Wrong(Coin):
    name = "wrong"
    gives: Any = Choice([0], 1.0)

    def choose(self, context: DrawContext) -> Choice:
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives  # type: ignore[no-any-return]


def test_sets_of_many_sizes() -> None:
    scores = np.random.default_rng(0).normal(size=(40, 6))
    many, single = (Growing(labels=list("abcdef")) for _ in range(2))
    many.id = single.id
    decisions = many.decide_many(scores)
    assert set(decisions.sizes.tolist()) >= {2, 3, 4}
    for i, s in enumerate(scores):
        decision = single.decide(s)
        above = int((s > 0).sum())
        assert decision.set_size == decisions.sizes[i] == min(6, max(1, above) + (i % 10 == 9))
        assert decision.to_dict() == decisions[i].to_dict()
        assert decision.rule == {"name": "Growing", "step": 0.5, "draw_log": [decision.set_size]}
        assert single.draw_log_from(decision.rule).tolist() == [decision.set_size]


def test_answers_move_it_and_a_pickle_keeps_that() -> None:
    rule = Growing()
    s = [0.5, -0.1, -0.3, -0.6]
    first = rule.decide(s)
    assert first.set_size == 1
    rule.update(first, hit=False)
    assert rule.decide(s).set_size == 3
    assert pickle.loads(pickle.dumps(rule)).decide(s).set_size == 3


def test_it_is_a_rule_like_any_other() -> None:
    assert rules()["a-coin"] is Coin
    assert isinstance(rule_from({"name": "Growing", "step": 2.0}, "test"), Growing)
    assert "PlainRule" not in rules()
    rule = Coin(seed=5)
    shown = [rule.decide([2.0, 1.0, 0.0]) for _ in range(400)]
    assert {decision.labels[0] for decision in shown} == {0, 1}
    assert 150 < sum(decision.labels == [0] for decision in shown) < 250
    assert {decision.propensity for decision in shown} == {0.5}
    assert shown[0].top == [0]


def test_with_a_learner(tmp_path: Path) -> None:
    """Singly, in batches and in the fused loop; the same bits."""
    random = np.random.default_rng(2)
    X, y = random.normal(size=(80, 3)).astype(np.float32), random.integers(0, 5, 80)
    one, many = (sa.SetLogit(n_labels=5, n_features=3, explore=Growing(step=0.02), seed=1) for _ in range(2))
    counts = one.run(X, y)
    for x, label in zip(X, y, strict=True):
        decision = many.decide(x)
        many.update(decision, hit=bool(label in decision.labels))
    assert many.decide(X[0]).labels == one.decide(X[0]).labels
    assert one.cursor() == many.cursor()
    assert counts[2] < counts[0]  # sets are larger than one label
    one.save(tmp_path / "model.npz")
    many.decide_many(X)
    sizes = sa.load(tmp_path / "model.npz").decide_many(X).sizes.tolist()
    assert sizes == one.decide_many(X).sizes.tolist()
    assert len(set(sizes)) > 1


@pytest.mark.parametrize(
    ("gives", "error", "says"),
    [
        (ZeroDivisionError("oh"), ZeroDivisionError, "oh"),
        (Choice([], 1.0), InvalidInput, "shown of Wrong.choose must be at most 1 distinct positions of 3"),
        (Choice([0, 1], 1.0), InvalidInput, "shown of Wrong.choose must be at most 1"),
        (Choice([3], 1.0), InvalidInput, "distinct positions of 3, at least one, got"),
        (Choice([0], 0.0), InvalidInput, r"probability of Wrong.choose must be in \(0, 1\], got 0.0"),
        (
            Choice([0], 0.5, draw_log=[1.0]),
            InvalidInput,
            "draw_log of Wrong.choose must be at most 0 numbers",
        ),
    ],
)
def test_what_goes_wrong_there_arrives_here(gives: Any, error: type[Exception], says: str) -> None:
    rule = Wrong()
    rule.gives = gives
    with pytest.raises(error, match=says):
        rule.decide([1.0, 2.0, 3.0])
    with pytest.raises(error, match=says):
        rule.decide_many(np.zeros((4, 3)))
    assert rule.round == 0
    rule.gives = Choice([2], 1.0)
    assert rule.decide([1.0, 2.0, 3.0]).labels == [2]
    learner = sa.SetLogit(n_labels=3, n_features=1, explore=rule)
    rule.gives = gives
    with pytest.raises(error, match=says):
        learner.decide([1.0])
    with pytest.raises(error, match=says):
        learner.run(np.ones((5, 1)), np.zeros(5, int))
    assert learner.round == 0


def test_any_set_can_be_asked_about() -> None:
    class Half(Coin):
        name = "half"

        @classmethod
        def distribution_from(cls, record: Any, top: Any, eligible: Any, m: int) -> Mixture:
            return Mixture(eligible, m, [([r], 0.5) for r in (0, 1)])

    rule = Half()
    assert (
        sum(rule.distribution([2.0, 1.0, 0.0]).probability(labels) for labels in combinations(range(3), 1))
        == 1.0
    )
    draw = distribution_of(rule.decide([2.0, 1.0, 0.0]))
    assert draw is not None
    assert draw.inclusion().tolist() == [0.5, 0.5, 0.0]


def test_a_class_that_is_defined_again_is_the_later_one() -> None:
    """As in a notebook, where a cell is run a second time."""

    def define(share: float) -> type[Coin]:
        class Again(Coin):
            name = "again"

            @classmethod
            def distribution_from(cls, record: Any, top: Any, eligible: Any, m: int) -> Mixture:
                return Mixture(eligible, m, [([0], share), ([1], 1.0 - share)])

        return Again

    older, newer = define(0.9), define(0.5)
    assert rules()["again"] is newer
    draw = distribution_of(newer().decide([2.0, 1.0, 0.0]))
    assert draw is not None
    assert draw.probability([0]) == 0.5
    assert older is not newer


class Failing(Growing):
    """A rule that raises in one of its hooks."""

    fails_in = ""

    def on_decided(self, draw_state: Any, draw_log: Any) -> None:
        if self.fails_in == "on_decided":
            raise RuntimeError("no clock")
        super().on_decided(draw_state, draw_log)

    def on_feedback(self, draw_state: Any, memory: Any, draw_log: Any, hit: bool) -> None:
        if self.fails_in == "on_feedback":
            raise RuntimeError("no memory")
        super().on_feedback(draw_state, memory, draw_log, hit)


@pytest.mark.parametrize("way", ["alone", "single", "many", "run"])
def test_an_error_in_on_feedback_arrives_with_that_answer(way: str) -> None:
    rule, X = Failing(), np.ones((1, 2), np.float32)
    rule.fails_in = "on_feedback"
    learner = sa.SetLogit(n_labels=3, n_features=2, explore=rule)
    alone, one, many = rule.decide([0.0, 0.0, 0.0]), learner.decide(X[0]), learner.decide_many(X)
    calls: dict[str, Any] = {
        "alone": lambda: rule.update(alone, hit=True),
        "single": lambda: learner.update(one, hit=True),
        "many": lambda: learner.update_many(many, [True]),
        "run": lambda: learner.run(X, [0]),
    }
    with pytest.raises(RuntimeError, match="no memory"):
        calls[way]()
    rule.fails_in = ""
    learner.decide([0.0, 0.0])  # it has not stuck


@pytest.mark.parametrize("way", ["alone", "alone many", "single", "many", "run"])
def test_an_error_in_on_decided_arrives_with_that_decision(way: str) -> None:
    rule, X = Failing(), np.ones((1, 3), np.float32)
    rule.fails_in = "on_decided"
    learner = sa.SetLogit(n_labels=3, n_features=3, explore=rule)
    calls: dict[str, Any] = {
        "alone": lambda: rule.decide(X[0]),
        "alone many": lambda: rule.decide_many(X),
        "single": lambda: learner.decide(X[0]),
        "many": lambda: learner.decide_many(X),
        "run": lambda: learner.run(X, [0]),
    }
    with pytest.raises(RuntimeError, match="no clock"):
        calls[way]()
    assert (rule.round, learner.round) == (0, 0)
    rule.fails_in = ""
    calls[way]()


def test_an_error_in_on_decided_arrives_with_advance() -> None:
    rule = Failing()
    learner = sa.SetLogit(n_labels=3, n_features=2, explore=rule)
    elsewhere = learner.decide([1.0, 0.0], cursor=learner.cursor())
    rule.fails_in = "on_decided"
    with pytest.raises(RuntimeError, match="no clock"):
        learner.advance(elsewhere)


def test_an_error_in_on_feedback_stops_a_list_of_answers() -> None:
    rule = Failing()
    learner = sa.SetLogit(n_labels=3, n_features=2, explore=rule)
    decisions = [learner.decide([1.0, 0.0]) for _ in range(3)]
    rule.fails_in = "on_feedback"
    with pytest.raises(RuntimeError, match="no memory"):
        learner.update_many(decisions, [True] * 3)
    assert [decision.round in learner.answered for decision in decisions] == [True, False, False]
