"""One learner in several threads: calls take turns, and each gives the bits that it gives alone."""

from __future__ import annotations

import copy
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import superarm as sa

X = np.random.default_rng(0).normal(size=(1500, 20)).astype(np.float32)


@contextmanager
def beside(*calls: Callable[[], object]) -> Iterator[None]:
    """Repeat calls, each in a thread of its own, while the block runs; raise what one of them raises."""
    errors: list[BaseException] = []
    is_over = threading.Event()

    def repeat(call: Callable[[], object]) -> None:
        try:
            while not is_over.is_set():
                call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=repeat, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert not errors, errors


@pytest.fixture(autouse=True)
def _threads_change_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def learner() -> sa.SetLogit:
    return sa.SetLogit(n_labels=8, n_features=20, set_size=2, seed=0)


def test_predictions_beside_predictions_are_the_same() -> None:
    model = learner()
    model.update_many(model.decide_many(X), X[:, 0] > 0)
    expected, wrong = model.predict_proba(X), []
    with beside(lambda: wrong.append(int((model.predict_proba(X) != expected).sum()))):
        for _ in range(40):
            wrong.append(int((model.predict_proba(X) != expected).sum()))
    assert sum(wrong) == 0


@pytest.mark.parametrize("params", [{"set_size": 2}, {"coverage": 0.9}], ids=["runner-up", "cover"])
def test_deciding_and_learning_beside_predictions_give_the_same_bits(params) -> None:
    def trace(model: sa.SetLogit) -> list[object]:
        seen = []
        for i, x in enumerate(X):
            decision = model.decide(x)
            seen.append((decision.drawn, decision.propensity))
            model.update(decision, hit=i % 3 == 0)
        return [*seen, model.scores(X[:5]).tobytes()]

    quiet, busy = (sa.SetLogit(n_labels=8, n_features=20, seed=0, **params) for _ in range(2))
    expected = trace(quiet)
    # before the first row there is a core to be made, by whoever comes first
    with beside(lambda: busy.scores(X[:400]), lambda: busy.rank(X[0])):
        assert trace(busy) == expected


def test_labels_are_added_beside_everything_else() -> None:
    model = sa.SetLogit(labels=list("abcd"), set_size=2, seed=0)
    row = {"text": "w1 z2", "age": 3}
    model.decide(row)
    counts = []
    with beside(
        lambda: model.predict_proba([row] * 20),
        lambda: model.rank(row),
        lambda: (model.update(model.decide(row), hit=True), counts.append(1)),
    ):
        for i in range(25):
            model.add_labels([f"n{i}"])
            model.predict([row])
    assert model.round == model.answered.count + 1 == len(counts) + 1
    assert model.n_labels == 29


def test_many_threads_decide_and_learn_each_round_once() -> None:
    model = learner()
    rounds: list[int] = []

    def many() -> None:
        decisions = model.decide_many(X[:300])
        model.update_many(decisions, X[:300, 0] > 0)
        rounds.extend(decisions.round.tolist())

    def single() -> None:
        decision = model.decide(X[0])
        model.update(decision, hit=True)
        rounds.append(decision.round)

    with beside(many, single, lambda: model.scores(X)):
        for _ in range(30):
            many()
    assert sorted(rounds) == list(range(model.round))
    assert model.answered.count == model.round


def test_a_learner_is_saved_and_copied_beside_learning(tmp_path) -> None:
    model = sa.SetLogit(labels=list("abcd"), set_size=2, seed=0)
    model.decide({"text": "w1"})
    words = iter(range(10**6))
    with beside(lambda: model.update(model.decide({"text": f"w{next(words)}", "n": 1.0}), hit=True)):
        for _ in range(15):
            copied = copy.deepcopy(model)
            assert copied.round - copied.answered.count in (1, 2)
            model.save(tmp_path / "model.npz")
            sa.load(tmp_path / "model.npz")


def test_a_collection_of_garbage_in_the_midst_of_a_decision_lets_nobody_in() -> None:
    """Finalizers, and callbacks of the collector, may run where a Decision is made, and use the learner."""
    model = sa.SetLogit(n_labels=8, n_features=20, seed=0, coverage=0.8)
    for x in X[:600]:  # decisions differ from now on, in what their rule has written down, too
        decision = model.decide(x)
        model.update(decision, hit=int(abs(x[0]) * 4) % 8 in decision.labels)
    alone, first, inner = copy.deepcopy(model), model.round, list[sa.Decision]()

    def on_collection(phase: str, info: object) -> None:
        if phase == "start" and len(inner) < 300:
            inner.append(model.decide(X[len(inner) % 1500]))

    thresholds = gc.get_threshold()
    gc.callbacks.append(on_collection)
    gc.set_threshold(1)
    try:
        outer = [model.decide(x) for x in X[:200]]
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(on_collection)
    decisions = sorted(outer + inner, key=lambda decision: decision.round)
    assert inner
    assert [decision.round for decision in decisions] == list(range(first, model.round))
    for decision in decisions:
        again = alone.decide(decision.x)
        assert (again.drawn, again.propensity, again.rule) == (
            decision.drawn,
            decision.propensity,
            decision.rule,
        )
