"""Learners in plain Python: every promise, and every place where learners go."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_internals import INTERNALS, run_internal
from plain_learner import PlainSteps

import superarm as sa
from superarm.checks import CHECKS, check_learner, run_check
from superarm.errors import InvalidInput, ModelFileError, WeightsOverflow
from superarm.explore import Boltzmann, Choice, Dilute, PlainRule
from superarm.explore.plain import DrawContext
from superarm.learners.registry import learners_by_name

FILE = Path(__file__).resolve().parents[1] / "plain_learner.py"


@pytest.mark.parametrize("check", CHECKS)
def test_every_promise(check: str) -> None:
    run_check(check, PlainSteps)


@pytest.mark.parametrize("name", INTERNALS)
def test_what_its_core_inherits(name: str) -> None:
    run_internal(name, PlainSteps)


def test_it_learns_beside_the_compiled_ones() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 6)).astype(np.float32)
    y = (X @ random.normal(size=(6, 5))).argmax(axis=1)
    stream = sa.streams.Arrays(X, y)
    trace = sa.simulate(PlainSteps(n_labels=5, set_size=2), stream, rounds=1500)
    assert trace.learner == "PlainSteps"
    assert trace.window(0.5, 1.0)["shown_miss_rate"] < 0.25


def test_memory_is_empty_before_the_first_row() -> None:
    learner = PlainSteps(n_labels=4, set_size=2)
    assert learner.memory == copy.deepcopy(learner).memory == {}
    learner.decide([1.0, 0.0])
    assert learner.memory["W"].shape == (4, 3)


def test_by_its_file(tmp_path: Path) -> None:
    learner = sa.make(f"{FILE}:PlainSteps:step=0.5", n_labels=4, n_features=2, set_size=2)
    assert learner.params["step"] == 0.5
    learner.update(learner.decide([1.0, 0.0]), hit=True)
    learner.save(tmp_path / "model.npz")
    back = sa.load(tmp_path / "model.npz")
    assert back.memory["answers"] == 1
    assert np.array_equal(back.memory["W"], learner.memory["W"])
    assert "PlainLearner" not in learners_by_name()
    assert "plain" not in learners_by_name()


def test_in_the_service(tmp_path: Path) -> None:
    from superarm.service import DecisionRequest, OutcomeRequest, Service

    asked: dict[str, Any] = {"labels": ["a", "b", "c"], "n_features": 2, "set_size": 1}
    service = Service.open(tmp_path / "j.db", learner=f"{FILE}:PlainSteps", **asked)
    service.call(DecisionRequest(np.array([1.0, 0.0], np.float32), "one"))
    service.call(OutcomeRequest("one", True))
    W = service.follower.projector.learner.memory["W"].copy()
    assert W.any()
    service.close()
    again = Service.open(tmp_path / "j.db", learner=f"{FILE}:PlainSteps")
    assert np.array_equal(again.follower.projector.learner.memory["W"], W)
    again.close()


def test_batches_names_and_rules() -> None:
    learner = PlainSteps(labels=["a", "b", "c", "d"], set_size=2, explore=Dilute(gamma=0.2), seed=1)
    rows = [{"x": float(i), "w": "even" if i % 2 == 0 else "odd"} for i in range(20)]
    decisions = learner.decide_many(rows)
    assert learner.update_many(decisions, [i % 2 == 0 for i in range(20)]) == 20
    assert learner.memory["answers"] == 20
    assert decisions[3].rule == {"name": "dilute", "gamma": 0.2}
    twin = PlainSteps(**learner.params)
    assert twin.rule == learner.rule
    assert len(learner.decide_many([])) == 0


def test_labels_can_be_added_and_copies_made() -> None:
    learner = PlainSteps(labels=["a", "b", "c"], set_size=1)
    learner.update(learner.decide([1.0, 2.0]), hit=False)
    learner.add_labels(["d"])
    assert learner.memory["W"].shape == (4, 3)
    assert learner.memory["answers"] == 1
    for twin in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert twin.rank([1.0, 2.0]) == learner.rank([1.0, 2.0])
        twin.update(twin.decide([0.0, 1.0]), hit=True)
    assert learner.memory["answers"] == 1


def test_a_failing_learn_leaves_all_as_it_was() -> None:
    calls = []

    class Fails(PlainSteps):
        def learn(self, x: Any, shown: Any, hit: bool) -> None:
            calls.append(hit)
            self.memory["W"] += 1.0
            if hit:
                raise RuntimeError("no")
            self.memory["W"][0, 0] = np.inf

    learner = Fails(n_labels=3, set_size=1)
    decision = learner.decide([1.0, 2.0])
    with pytest.raises(RuntimeError, match="no"):
        learner.update(decision, hit=True)
    with pytest.raises(WeightsOverflow, match="must stay finite"):
        learner.update(decision, hit=False)
    assert calls == [True, False]  # once for each answer
    assert not learner.memory["W"].any()
    assert learner.core.answered.count == 0


def test_what_is_missing_is_named() -> None:
    class Empty(sa.PlainLearner):
        pass

    class Wrong(PlainSteps):
        def score(self, x: Any) -> Any:
            return [0.0]

    class Strange(PlainSteps):
        def begin(self) -> Any:
            return [1]

    class Forgetful(PlainSteps):
        def __init__(self, *, rate: float = 1.0, **common: Any) -> None:
            super().__init__(**common)

    class Counting(PlainSteps):
        def begin(self) -> Any:
            return {**super().begin(), "seen": np.int64(0)}

    with pytest.raises(TypeError, match=r"Empty must define begin\(\)"):
        Empty(n_labels=3).decide([1.0])
    with pytest.raises(InvalidInput, match="3 numbers, one for each label"):
        Wrong(n_labels=3).decide([1.0])
    with pytest.raises(TypeError, match="must return a dict"):
        Strange(n_labels=3).decide([1.0])
    with pytest.raises(InvalidInput, match="explore of PlainSteps must be 'show', "):
        PlainSteps(n_labels=3, explore="most")
    with pytest.raises(InvalidInput, match="its rule knows no larger sets"):
        PlainSteps(n_labels=3, set_size=2, explore=Boltzmann())
    with pytest.raises(TypeError, match=r"__init__ of Forgetful must keep its parameter rate as self\.rate"):
        assert Forgetful(n_labels=3).params
    with pytest.raises(
        AssertionError, match=r"memory\['seen'\] of Counting must be an array, or a value that JSON"
    ):
        check_learner(Counting)
    for method, arguments in (("score", (None,)), ("learn", (None, None, True))):
        with pytest.raises(TypeError, match="must define"):
            getattr(sa.PlainLearner(n_labels=3), method)(*arguments)


def test_labels_that_a_learner_cannot_take_are_not_added() -> None:
    class Three(sa.PlainLearner):
        def begin(self):
            if self.n_labels > 3:
                raise RuntimeError("only three")
            return {"W": np.zeros((self.n_labels, self.row_length), np.float32)}

        def score(self, x):
            return self.memory["W"] @ x

        def learn(self, x, shown, hit):
            self.memory["W"][shown] += x

    learner = Three(n_labels=3, n_features=2)
    learner.update(learner.decide([1.0, 0.0]), hit=True)
    with pytest.raises(RuntimeError, match="only three"):
        learner.add_labels(1)
    assert (learner.n_labels, learner.core.k) == (3, 3)
    learner.update(learner.decide([1.0, 0.0]), hit=True)


def test_columns_that_a_learner_cannot_have_are_not_kept() -> None:
    learner = sa.SOBA(matrix="full", n_labels=3)
    with pytest.raises(InvalidInput, match="without text"):
        learner.use_columns(
            sa.Columns([{"name": "age", "kind": "numbers"}, {"name": "note", "kind": "text"}])
        )
    assert learner.columns is None
    learner.update(learner.decide([1.0, 0.0]), hit=True)


@pytest.mark.parametrize("stated", [0.5, 0.9, 0.02])
def test_a_rule_whose_propensity_is_a_lie(stated: float) -> None:
    class Liar(PlainRule):
        name = "liar"

        def choose(self, context: DrawContext) -> Choice:
            order = np.argsort(-context.scores, kind="stable")
            if context.uniform(0) < 0.8:
                return Choice(order[: context.set_size], 0.8)
            return Choice(order[-context.set_size :], stated)

        @classmethod
        def distribution_from(cls, record: Any, top: Any, eligible: Any, m: int) -> Any:
            raise NotImplementedError

    check = "propensity_is_how_often_a_set_is_drawn"
    with pytest.raises(
        AssertionError, match=rf"was drawn in 2\d\d of 1000 rounds, its propensity is {stated}"
    ):
        run_check(check, PlainSteps, explore=Liar())


def test_two_files_of_one_name_in_two_folders(tmp_path: Path) -> None:
    files = [tmp_path / folder / "mine.py" for folder in "ab"]
    for file in files:
        file.parent.mkdir()
        file.write_text(
            f"from superarm import Banditron\nclass Mine(Banditron):\n    folder = {file.parent.name!r}\n"
        )
    learners = [sa.make(f"{file}:Mine", n_labels=4, n_features=2) for file in files]
    for learner, folder in zip(learners, "ab", strict=True):
        learner.save(tmp_path / "model.npz")
        assert [learner.folder, sa.load(tmp_path / "model.npz").folder] == [folder, folder]
        assert pickle.loads(pickle.dumps(learner)).folder == folder


def test_a_model_of_a_class_that_two_modules_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [type("OfTwoModules", (sa.Banditron,), {"__module__": f"module_{i}"}) for i in range(2)]
    learner = mine[0](n_labels=4, n_features=2)
    learner.save(tmp_path / "model.npz")
    assert type(sa.load(tmp_path / "model.npz")) is mine[0]
    monkeypatch.setattr(mine[0], "__module__", "moved")
    with pytest.raises(
        ModelFileError, match="must be of its own module module_0: moved and module_1 have one"
    ):
        sa.load(tmp_path / "model.npz")
