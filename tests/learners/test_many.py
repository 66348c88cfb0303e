"""decide_many and update_many: the same bits as one by one, in columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix

import superarm as sa
from superarm.checks.helpers import fingerprint, state_bytes
from superarm.data.rows import as_rows
from superarm.decisions.decisions import Decisions, DrawnSets
from superarm.errors import FeedbackError, InvalidInput

LABELS = ["ant", "bee", "cat", "dog", "eel"]
SPECS = ["set-logit", "set-logit:uniform=0.2", "mc-dbf:gamma=0.3", "mc-dbf:estimate=minimum-variance"]
SPECS += ["softmax", "soba"]


def data(n: int = 120, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    X = (random.normal(size=(n, 7)) * (random.random((n, 7)) < 0.6)).astype(np.float32)
    return X, (X @ random.normal(size=(7, 5))).argmax(axis=1)


def pair(spec: str, **more: Any) -> list[Any]:
    size = 1 if spec == "soba" else 2
    pair_ = [sa.make(spec, labels=LABELS, set_size=size, seed=4, **more) for _ in range(2)]
    pair_[1].id = pair_[0].id
    return pair_


def bits(learner: Any) -> Any:
    return state_bytes(learner), learner.round, learner.answered.start, bytes(learner.answered.bits)


def answers(learner: Any, y: Any, decisions: Decisions) -> dict[str, Any]:
    names = np.array(LABELS)[y]
    if "hit" in learner.feedback:
        return {"hits": (decisions.labels == names[:, None]).any(axis=1)}
    return {"labels": names.tolist()}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("spec", SPECS)
def test_the_same_bits_as_one_by_one(spec: str, sparse: bool) -> None:
    X, y = data()
    many, single = pair(spec, n_features=7)
    for start in range(0, len(y), 40):
        part, labels = X[start : start + 40], y[start : start + 40]
        decisions = many.decide_many(csr_matrix(part) if sparse else part)
        one_by_one = [single.decide(csr_matrix(x[None]) if sparse else x) for x in part]
        for a, b in zip(decisions, one_by_one, strict=True):
            assert a.to_dict() == b.to_dict()
        many.update_many(decisions, **answers(many, labels, decisions))
        for decision, label in zip(one_by_one, labels, strict=True):
            name = LABELS[label]
            if "hit" in single.feedback:
                single.update(decision, hit=name in decision.labels)
            else:
                single.update(decision, label=name)
    assert bits(many) == bits(single)


@pytest.mark.parametrize("each", [False, True])
def test_a_label_that_was_not_eligible_is_refused(each: bool) -> None:
    X, _ = data(3)
    learner, _ = pair("set-logit")
    some = ["ant", "bee", "cat"]
    decisions = learner.decide_many(X, eligible=[some] * 3 if each else some)
    with pytest.raises(FeedbackError, match=r"must be one of the eligible labels .*, got 'eel'"):
        learner.update_many(decisions, labels=["ant", "eel", "cat"])
    assert learner.update_many(decisions, labels=["ant", None, "cat"]) == 2


def test_eligible_for_all_or_for_each() -> None:
    X, _ = data(30)
    many, single = pair("set-logit")
    some = ["ant", "cat", "eel"]
    a = many.decide_many(X, eligible=iter(some))
    b = [single.decide(x, eligible=some) for x in X]
    assert [d.to_dict() for d in a] == [d.to_dict() for d in b]
    each = [some if i % 2 else ["bee", "dog"] for i in range(30)]
    c = many.decide_many(X, eligible=each)
    d = [single.decide(x, eligible=among) for x, among in zip(X, each, strict=True)]
    assert [one.to_dict() for one in c] == [one.to_dict() for one in d]
    assert many.update_many(a, [True] * 30) == many.update_many(c, [False] * 30) == 30
    for decision in b:
        single.update(decision, hit=True)
    for decision in d:
        single.update(decision, hit=False)
    assert bits(many) == bits(single)
    with pytest.raises(InvalidInput, match="at least set_size = 2 labels"):
        many.decide_many(X, eligible=[some] * 29 + [["ant"]])
    with pytest.raises(InvalidInput, match="one for each of 30 rows"):
        many.decide_many(X, eligible=[some] * 29)


def test_answers_that_never_come() -> None:
    X, _ = data(20)
    many, single = pair("set-logit")
    decisions = many.decide_many(X)
    hits = [None, True, float("nan"), np.int64(0), *([None] * 16)]
    assert many.update_many(decisions, hits) == 2
    one_by_one = [single.decide(x) for x in X]
    single.update(one_by_one[1], hit=True)
    single.update(one_by_one[3], hit=False)
    assert bits(many) == bits(single)
    assert many.update_many(decisions[4:], pl.Series([True] * 16)) == 16
    assert many.update_many(decisions[np.array([2, 0])], [1, 0]) == 2
    assert many.answered.count == 20


def test_a_part_or_one_of_them() -> None:
    X, _ = data(10)
    learner = sa.SetLogit(labels=LABELS, set_size=2)
    decisions = learner.decide_many(X)
    assert len(decisions) == 10
    assert decisions[-1].round == 9
    assert [d.round for d in decisions[3:5]] == [3, 4]
    assert decisions[2:4][1].to_dict() == decisions[3].to_dict()
    with pytest.raises(IndexError):
        decisions[10]
    assert repr(decisions) == "Decisions(10 x 2 labels, rounds 0 to 9)"
    X[:] = 7.0  # the caller's array is the caller's
    assert decisions[0].x[0] != 7.0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("names", [LABELS, None, [3, 1, 4, 15, 9]])
def test_through_a_frame_and_back(sparse: bool, names: Any) -> None:
    X, _ = data(30)
    learners = [sa.SetLogit(labels=names, n_labels=5, set_size=2, n_features=7, seed=1) for _ in range(2)]
    learners[1].id = learners[0].id
    rows = csr_matrix(X) if sparse else X
    direct, stored = (learner.decide_many(rows) for learner in learners)
    frame = stored.to_frame()
    assert frame.height == 30
    assert frame["labels"].to_list() == direct.labels.tolist()
    assert np.array_equal(frame["propensity"].to_numpy(), direct.propensity)
    back = Decisions.from_frame(frame, learners[1].vocabulary)
    assert back.rows.layout.kind == ("sparse" if sparse else "dense")
    hits = np.arange(30) % 3 == 0
    learners[0].update_many(direct, hits)
    learners[1].update_many(back, hits)
    assert bits(learners[0]) == bits(learners[1])
    assert "x" not in stored.to_frame(rows=False).columns


def test_labels_of_mixed_types_stay_as_they_are() -> None:
    learner, X = sa.SetLogit(labels=[1, "a", 2], set_size=2), np.eye(3)
    best = {type(learner.rank(x)[0]) for x in X}
    decisions = learner.decide_many(X)
    assert {type(label) for label in learner.predict(X)} == best
    assert decisions.labels.tolist() == [list(decision.labels) for decision in decisions]
    assert {type(label) for label in decisions.labels.flat} == {int, str}
    frame = decisions.to_frame()  # whose columns have one type
    assert frame["labels"].to_list() == [[str(label) for label in row] for row in decisions.labels]
    back = Decisions.from_frame(frame, learner.vocabulary)
    assert back.labels.tolist() == decisions.labels.tolist()
    assert learner.update_many(back, [True, False, None]) == 2


def test_whole_floats_are_labels_as_pandas_has_them_in_columns_with_gaps() -> None:
    learner = sa.SetLogit(labels=pd.Series([1, 2, 3, None]).dropna().unique())
    assert learner.labels == (1, 2, 3)
    decisions = learner.decide_many(np.eye(3))
    assert learner.update_many(decisions, labels=pd.Series([1, None, 3])) == 2
    with pytest.raises(FeedbackError, match=r"labels of SetLogit must be known labels or None, got 2.5"):
        learner.update_many(decisions[1:2], labels=[2.5])


@pytest.mark.parametrize("hits", [{0: True, 1: False}, {True, False}])
def test_answers_without_an_order_are_refused(hits: Any) -> None:
    learner = sa.SetLogit(n_labels=3)
    decisions = learner.decide_many(np.eye(2))
    with pytest.raises(
        FeedbackError, match=r"hits of SetLogit must be a list with one for each decision, got \{"
    ):
        learner.update_many(decisions, hits)
    assert learner.update_many(decisions, [True, False]) == 2


def test_wrong_answers_are_refused_as_a_whole() -> None:
    X, _ = data(8)
    learner, other = (sa.SetLogit(labels=LABELS, set_size=2) for _ in range(2))
    decisions = learner.decide_many(X)
    learner.update(decisions[3], hit=True)
    before = bits(learner)
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (decisions, {"hits": [True] * 8}, "was answered before"),
        (decisions[np.array([1, 1])], {"hits": [True, True]}, "was answered before"),
        (decisions[4:], {"hits": [True] * 3}, "3 answers to 4 decisions"),
        (decisions[4:], {"hits": [True, True, "yes", None]}, "hits of SetLogit must be True, False or None"),
        (decisions[4:], {"labels": ["ant", "bee", "fox", None]}, "known labels"),
        (decisions[4:], {}, "answers of SetLogit"),
        (other.decide_many(X), {"hits": [True] * 8}, "its own"),
        (list(decisions), {"hits": [True] * 8}, "was answered before"),
        (3, {"hits": [True] * 8}, "Decisions, as decide_many"),
    ]
    for these, answer, message in refused:
        with pytest.raises(FeedbackError, match=message):
            learner.update_many(these, **answer)
    assert bits(learner) == before
    assert learner.update_many(decisions[4:], [True] * 4) == 4


@pytest.mark.parametrize("coverage", [None, 0.8])
def test_a_bad_row_moves_nothing(coverage: float | None) -> None:
    X, _ = data(10)
    bad = X.copy()
    bad[6, 2] = np.nan
    learner, twin = (sa.SetLogit(labels=LABELS, set_size=2, coverage=coverage, seed=4) for _ in range(2))
    twin.id = learner.id
    with pytest.raises(InvalidInput, match="x of SetLogit must be finite"):
        learner.decide_many(bad)
    assert (learner.round, learner.n_features, learner.cursor()) == (0, None, twin.cursor())
    learner.decide_many(X), twin.decide_many(X)
    with pytest.raises(InvalidInput, match="x of SetLogit must be finite"):
        learner.decide_many(bad)
    assert (learner.round, learner.cursor()) == (10, twin.cursor())
    for one, other in zip(learner.decide_many(X), twin.decide_many(X), strict=True):
        assert one.to_dict() == other.to_dict()


def test_labels_added_in_between() -> None:
    X, _ = data(10)
    many, single = pair("set-logit")
    decisions, one_by_one = many.decide_many(X), [single.decide(x) for x in X]
    for it in (many, single):
        it.add_labels(["fox"])
    many.update_many(decisions, [True] * 10)
    for decision in one_by_one:
        single.update(decision, hit=True)
    assert bits(many) == bits(single)


def test_no_rows() -> None:
    learner = sa.SetLogit(labels=LABELS, set_size=2, n_features=3)
    decisions = learner.decide_many(np.zeros((0, 3), np.float32))
    assert len(decisions) == 0
    assert learner.update_many(decisions, []) == 0
    assert decisions.to_frame().height == 0
    assert repr(decisions) == "Decisions(0 x 0 labels, no rounds)"


def stored(x: Any) -> Any:
    at = np.flatnonzero(x)
    return at, x[at]


ROWS: dict[str, Any] = {
    "dense": lambda x: x,
    "sparse": stored,
    "mixed": lambda x: sa.Row(x[:3], stored(x[3:]), 4),
    "named": lambda x: {f"c{i}": float(v) for i, v in enumerate(x) if v} | {"word": "abc"[int(x[0] != 0)]},
}


@pytest.mark.parametrize("spec", ["set-logit", "mc-dbf:gamma=0.3", "softmax"])
@pytest.mark.parametrize("kind", list(ROWS))
def test_a_list_of_decisions_of_any_kind(kind: str, spec: str) -> None:
    """Live and restored, any eligible lists, any sizes, some without an answer: the bits of one by one."""
    X, y = data(60)
    width = {"dense": 7, "sparse": 7, "mixed": (3, 4)}.get(kind)
    many, single = pair(spec, n_features=width)
    random = np.random.default_rng(1)
    made: list[list[Any]] = [[], []]
    for i, x in enumerate(X):
        among = None if i % 3 else [LABELS[j] for j in np.sort(random.permutation(5)[: 2 + i % 4])]
        size = None if i % 5 else 1 + i % 4
        for learner, decisions in zip((many, single), made, strict=True):
            decision = learner.decide(ROWS[kind](x), eligible=among, set_size=size)
            decisions.append(sa.Decision.from_dict(decision.to_dict()) if i % 2 else decision)
    names = [LABELS[label] if label else None for label in y]
    for i, decision in enumerate(made[0]):
        if decision.eligible is not None and names[i] not in decision.eligible:
            names[i] = None
    if "hit" in many.feedback:
        hits = [None if n is None else n in d.labels for n, d in zip(names, made[0], strict=True)]
        done = many.update_many(made[0], hits)
        for decision, hit in zip(made[1], hits, strict=True):
            hit is None or single.update(decision, hit=hit)
    else:
        done = many.update_many(made[0], labels=names)
        for decision, name in zip(made[1], names, strict=True):
            name is None or single.update(decision, label=name)
    assert done == sum(name is not None for name in names)
    assert bits(many) == bits(single)


def test_a_list_of_given_decisions() -> None:
    X, _ = data(40)
    many, single = pair("set-logit", n_features=7)
    for learner in (many, single):
        given_ = [sa.Decision.given(x, [LABELS[i % 5], LABELS[(i + 2) % 5]]) for i, x in enumerate(X)]
        own = [learner.decide(x) for x in X[:10]]
        mixed = [*given_[:20], *own, *given_[20:]]
        hits = [i % 3 == 0 for i in range(50)]
        if learner is many:
            assert learner.update_many(mixed, hits) == 50
            with pytest.raises(FeedbackError, match="was answered before"):
                learner.update_many(given_[:2], [True, True])
        else:
            for decision, hit in zip(mixed, hits, strict=True):
                learner.update(decision, hit=hit)
    assert bits(many) == bits(single)


def test_a_list_is_refused_as_a_whole() -> None:
    X, _ = data(4)
    learner, other = (sa.SetLogit(labels=LABELS, set_size=2) for _ in range(2))
    decisions, strange = [learner.decide(x) for x in X], other.decide(X[0])
    learnt, *_ = fingerprint(learner)
    for wrong, message in (
        ([decisions[0], decisions[0]], "was answered before"),
        ([decisions[0], strange], "its own"),
        ([decisions[0], 3], "a Decision"),
    ):
        with pytest.raises(FeedbackError, match=message):
            learner.update_many(wrong, [True, True])
    with pytest.raises(FeedbackError, match=r"one of the eligible labels \(.*, hit=False is the answer\)"):
        learner.update_many([learner.decide(X[0], eligible=["ant", "bee"])], labels=["cat"])
    assert fingerprint(learner)[0] == learnt
    assert learner.answered.count == 0


def test_sizes_of_their_own() -> None:
    X, _ = data(6)
    learner = sa.MCDBF(labels=LABELS, set_size=2)
    made = [learner.decide(x, set_size=1 + i % 3) for i, x in enumerate(X)]
    draws = DrawnSets.from_lists(
        [d.sets for d in made],
        [d.size for d in made],
        [d.log_propensity for d in made],
        [np.frombuffer(d.draw_log) for d in made],
    )
    decisions = Decisions(
        rows=as_rows(X, None, "it"),
        draws=draws,
        eligible=None,
        rule=learner.rule,
        round=np.arange(6),
        learner=learner.id,
        vocabulary=learner.vocabulary,
    )
    assert decisions.sizes.tolist() == [1, 2, 3, 1, 2, 3]
    assert [part.tolist() for part in decisions.labels] == [d.labels for d in made]
    assert decisions.set_size == 3
    assert repr(decisions) == "Decisions(6 x 1 to 3 labels, rounds 0 to 5)"
    assert [d.to_dict() for d in decisions] == [d.to_dict() for d in made]
    back = Decisions.from_frame(decisions.to_frame(), learner.vocabulary)
    assert [part.tolist() for part in back.top] == [d.top for d in made]
    assert learner.update_many(back, [True] * 6) == 6
    alike = decisions[np.array([0, 3])]
    assert alike.labels.shape == (2, 1)
