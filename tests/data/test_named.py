"""Rows with names, one at a time: numbers, words, texts, dates, vectors and gaps, everywhere where rows go."""

from __future__ import annotations

import json
import math
import warnings
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from people import CITIES, people

import superarm as sa
from superarm.data.cells import json_row
from superarm.data.columns import Columns
from superarm.data.encoding import encode_row
from superarm.data.rows import Row
from superarm.errors import InvalidInput

LABELS = [f"label {i}" for i in range(6)]

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(-(2.0**90), 2.0**90, width=32),
    st.just(math.nan),
    st.text(max_size=8),
    st.dates(),
    st.datetimes(),
)
rows = st.dictionaries(st.text(min_size=1, max_size=6), values, max_size=12)


def open_columns(places: int = 40, words: int = 256) -> Columns:
    return Columns(n_word_features=words, n_open_numbers=places)


def grow(columns: Columns, row: Any) -> tuple[Any, Columns]:
    """Return a row, and its columns with the new names."""
    return encode_row(columns, row, "this", {}, grow_for=2)


def bits(row: Any) -> bytes:
    """All numbers of a row."""
    if not isinstance(row, Row):
        return bytes(row.tobytes())
    return row.dense.tobytes() + row.indices.tobytes() + row.values.tobytes()


def numbers(columns: Any) -> list[str]:
    return [name for name, kind in columns.kinds.items() if kind == "numbers"]


def state_of(learner: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in learner.core.state().items()}


def play(learner: Any, X: Any, y: Any) -> float:
    hits = 0
    for x, label in zip(X, y, strict=True):
        decision = learner.decide(x)
        hit = learner.labels[label] in decision.labels
        learner.update(decision, hit=hit)
        hits += hit
    return hits / len(y)


# ---------------------------------------------------------------- the dense row


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_names_does_not_matter(row: dict[str, Any], random: Any) -> None:
    shuffled = list(row.items())
    random.shuffle(shuffled)
    one, two = open_columns(10, 16), open_columns(10, 16)
    (a, one), (b, two) = grow(one, row), grow(two, dict(shuffled))
    assert bits(a) == bits(b)
    assert numbers(one) == numbers(two)
    assert np.isfinite(a.dense if isinstance(a, Row) else a).all()


@given(rows)
def test_a_gap_is_a_name_left_out(row: dict[str, Any]) -> None:
    _, names = grow(open_columns(), row)
    gaps = {name: value for name, value in row.items() if value is not None and value == value}
    for gap in (None, math.nan, pd.NA, pd.NaT, np.float32("nan")):
        full = dict.fromkeys(row, gap) | gaps
        assert bits(names.encode_row(full, "this")) == bits(names.encode_row(gaps, "this"))


@given(rows)
def test_json_ready_rows_mean_the_same(row: dict[str, Any]) -> None:
    plain = json.loads(json.dumps(json_row(row), allow_nan=False))
    assert bits(grow(open_columns(), row)[0]) == bits(grow(open_columns(), plain)[0])


@given(st.lists(rows, min_size=1, max_size=5))
def test_the_layout_survives_json(several: list[dict[str, Any]]) -> None:
    names = open_columns(5, 8)
    for row in several:
        _, names = grow(names, row)
    back = Columns.from_dict(json.loads(json.dumps(names.to_dict())))
    for row in several:
        assert bits(back.encode_row(row, "this")) == bits(names.encode_row(row, "this"))


@given(st.lists(rows, min_size=1, max_size=6))
def test_places_are_never_taken_away(several: list[dict[str, Any]]) -> None:
    """New names come later; what has a place keeps it."""
    names = open_columns(10, 16)
    before: list[str] = []
    for row in several:
        _, grown = grow(names, row)
        assert names.names == before  # as they were
        names = grown
        assert names.names[: len(before)] == before
        before = names.names
    assert len(numbers(names)) <= 8  # of 10: two are shared


def test_a_row_that_is_refused_changes_no_columns() -> None:
    names = open_columns(10, 16)
    _, names = grow(names, {"n": 1.0})
    before = names.to_dict()
    with pytest.raises(InvalidInput, match="x\\['bad'\\] of this"):
        grow(names, {"m": 2.0, "note": "a text of many words", "bad": {"a": 1}})
    assert names.to_dict() == before


table = st.fixed_dictionaries(
    {
        "n": st.one_of(st.none(), st.floats(-1e6, 1e6, width=32)),
        "i": st.integers(-100, 100),
        "b": st.booleans(),
        "w": st.one_of(st.none(), st.sampled_from(["a", "b", "", "2024-05-01", "7"])),
        "d": st.one_of(st.none(), st.dates(date(1900, 1, 1), date(2100, 1, 1))),
        "t": st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
        "x": st.one_of(st.none(), st.text(max_size=30), st.just("card not working")),
        "v": st.one_of(st.none(), st.lists(st.floats(-9, 9, width=32), min_size=2, max_size=2)),
    }
)


DECLARED = Columns(
    [
        {"name": "n", "kind": "numbers"},
        {"name": "i", "kind": "numbers"},
        {"name": "b", "kind": "yes or no"},
        {"name": "w", "kind": "words"},
        {"name": "d", "kind": "dates"},
        {"name": "t", "kind": "dates", "has_time": True},
        {"name": "x", "kind": "text"},
        {"name": "v", "kind": "vector", "length": 2},
    ],
    text_width=1024,
)


@given(st.lists(table, min_size=1, max_size=8))
def test_tables_are_their_rows(several: list[dict[str, Any]]) -> None:
    """Column by column gives the bits of row by row: pandas, Polars, a list of dicts; values and what JSON has."""
    expected = [bits(DECLARED.encode_row(row, "this")) for row in several]
    plain = [json.loads(json.dumps(json_row(row))) for row in several]
    assert [bits(DECLARED.encode_row(row, "this")) for row in plain] == expected
    assert [bits(DECLARED.encode_row(DECLARED.parse_row(row, "this"), "this")) for row in plain] == expected
    kinds = {"n": pl.Float64, "i": pl.Int64, "b": pl.Boolean, "w": pl.String, "d": pl.Date, "t": pl.Datetime}
    kinds |= {"x": pl.String, "v": pl.List(pl.Float64)}
    for X in (several, plain, pl.DataFrame(several, schema=kinds), pd.DataFrame(several)):
        made = DECLARED.encode_table(X, "this")
        assert [bits(made.row(i)) for i in range(len(several))] == expected


def test_kinds_of_values() -> None:
    names = open_columns()
    for value in (41, 41.0, np.int8(41), np.float64(41), Decimal(41)):
        row, names = grow(names, {"a": value})
        assert row[0] == 41.0
    assert names.encode_row({"a": True}, "this")[0] == names.encode_row({"a": np.True_}, "this")[0] == 1.0
    same = ["2024-05-01", date(2024, 5, 1), np.datetime64("2024-05-01")]
    first = names.encode_row({"a": same[0]}, "this")
    assert first[0] == 19844.0  # days since 1970
    # the weekday and the month, two places each
    assert (first[2 * names.dense_part.n_numbers :] != 0).sum() == 4
    assert all(np.array_equal(names.encode_row({"a": value}, "this"), first) for value in same[1:2])
    noon = names.encode_row({"a": datetime(2024, 5, 1, 12)}, "this")
    assert noon[0] == 19844.5
    for value in ("2024-05-01T12:00", "2024-05-01 12:00:00Z", datetime(2024, 5, 1, 12, tzinfo=UTC)):
        assert np.array_equal(names.encode_row({"a": value}, "this"), noon)
    assert names.encode_row({"a": timedelta(hours=36)}, "this")[0] == 1.5
    assert names.encode_row({"a": "2024-02-30"}, "this")[0] == 0.0  # no such day: a word
    assert np.array_equal(
        names.encode_row({"c": np.str_("Rome")}, "this"), names.encode_row({"c": "Rome"}, "this")
    )


NO_VALUES = [[], ["a"], {"a": 1}, b"bytes", 1j, object()]
INFINITE = [math.inf, -math.inf, 1e39, 10**400, Decimal("inf")]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        *((value, "a number, a word") for value in NO_VALUES),
        *((value, "finite as a 32-") for value in INFINITE),
    ],
)
def test_other_values_are_refused(value: Any, wanted: str) -> None:
    learner = sa.SetLogit(labels=LABELS, set_size=2)
    with pytest.raises(InvalidInput, match=rf"x\['a'\] of SetLogit must be {wanted}"):
        learner.decide({"b": 1, "a": value})
    assert learner.columns is None or learner.columns.names == []
    assert learner.round == 0


# ---------------------------------------------------------------- learners


def test_the_world_of_people() -> None:
    """Names do as well as the same columns as numbers, which were told what is a word."""
    X, y = people(12_000)
    named = sa.SetLogit(labels=LABELS, set_size=2)
    play(named, X[:6000], y[:6000])
    late = play(named, X[6000:], y[6000:])
    columns = [[x["age"], x["income"], x["vip"], *(x["city"] == c for c in CITIES)] for x in X]
    plain = sa.SetLogit(labels=LABELS, set_size=2)
    matrix = np.array(columns, np.float32)
    plain.run(matrix[:6000], y[:6000])
    wrong = plain.run(matrix[6000:], y[6000:])
    assert late > 0.975
    assert late > 1 - wrong[2] / 6000 - 0.005


@pytest.mark.parametrize("name", ["set-logit", "mc-dbf", "softmax", "soba-diag", "newtron"])
def test_every_learner_takes_names(name: str, tmp_path: Path) -> None:
    """Fused, row by row, from a frame, and after a file: the same bits."""
    X, y = people(300)
    X[5]["late"] = 3.5
    X[7]["age"] = None
    del X[9]["income"]
    size = 1 if name in ("soba-diag", "newtron") else 2
    fused, stepwise, framed = (sa.make(name, labels=LABELS, set_size=size, seed=3) for _ in range(3))
    fused.run(X, y)
    for at, (x, label) in enumerate(zip(X, y, strict=True)):
        if at == 150:
            stepwise.save(tmp_path / "model.npz")
            stepwise = sa.load(tmp_path / "model.npz")
        decision = stepwise.decide(x)
        if "hit" in stepwise.feedback:
            stepwise.update(decision, hit=LABELS[label] in decision.labels)
        else:
            stepwise.update(decision, label=LABELS[label])
    framed.use_columns(sa.Columns.open_for(X, None, "this"))
    framed.run(pl.DataFrame(X), y)
    assert state_of(fused) == state_of(stepwise) == state_of(framed)
    assert fused.columns is not None
    assert numbers(fused.columns) == ["age", "income", "vip", "late"]
    assert fused.columns == stepwise.columns == framed.columns


TEXTS = {"ads": "banner is too small", "login": "cannot log in at all", "bill": "the invoice is wrong"}


@pytest.mark.parametrize(
    "name",
    [
        "set-logit",
        "mc-dbf",
        "softmax",
        "softmax-averaged",
        "pa",
        "soba-diag",
        "newtron",
        "banditron",
        "epabf",
    ],
)
def test_a_text_that_comes_late(name: str, tmp_path: Path) -> None:
    """The sparse part comes with the first text; what has been learnt stays, and text is learnt."""
    labels = list(TEXTS)
    learner = sa.make(name, labels=labels, set_size=1, seed=3)

    def teach(row: dict[str, Any], label: str) -> None:
        decision = learner.decide(row)
        told = {"hit": label in decision.labels} if "hit" in learner.feedback else {"label": label}
        learner.update(decision, **told)

    for i in range(20):
        teach({"age": 20 + i, "city": CITIES[i % 3]}, labels[i % 3])
    early = learner.decide({"age": 30, "city": "Rome"})
    before = learner.scores([{"age": 30, "city": "Rome"}])
    at = learner.cursor()
    learner.decide({"text": TEXTS["ads"]}, cursor=at)  # a service decides so: the learner stays as it is
    assert learner.inputs.layout.n_sparse == 0
    learner.decide({"text": TEXTS["ads"]})
    assert learner.inputs.layout.n_sparse == 65_536
    assert np.allclose(learner.scores([{"age": 30, "city": "Rome"}]), before, atol=1e-6)
    learner.update(early, **({"hit": True} if "hit" in learner.feedback else {"label": early.labels[0]}))
    for i in range(300):
        teach({"text": TEXTS[labels[i % 3]], "city": CITIES[i % 5]}, labels[i % 3])
    if name == "set-logit":
        assert learner.predict([{"text": text} for text in TEXTS.values()]).tolist() == labels
    learner.save(tmp_path / "m.npz")
    again = sa.load(tmp_path / "m.npz")
    assert state_of(again) == state_of(learner)
    assert again.columns == learner.columns


def test_a_learner_that_couples_all_features_takes_no_text() -> None:
    learner = sa.SOBA(labels=list(TEXTS), matrix="full")
    with pytest.raises(InvalidInput, match="columns of SOBA must be without text"):
        learner.decide({"text": "banner is too small"})
    learner.decide({"age": 3})


def test_vectors() -> None:
    learner = sa.SetLogit(labels=LABELS, set_size=2)
    learner.decide({"embedding": [0.5, -1.0, 0.25], "age": 41})
    row = learner.columns.encode_row({"embedding": np.array([0.5, -1.0, 0.25])}, "this")
    assert row[:3].tolist() == [0.5, -1.0, 0.25]
    gap = learner.columns.encode_row({"age": 41}, "this")
    marks = gap[learner.columns.dense_part.n_numbers : learner.columns.dense_part.n_numbers + 3]
    assert np.allclose(marks, 3**-0.5)  # one mark of length 1
    with pytest.raises(InvalidInput, match=r"x\['other'\] of SetLogit must be in the first row, or declared"):
        learner.decide({"other": [1.0, 2.0]})
    with pytest.raises(InvalidInput, match=r"x\['embedding'\] of SetLogit must be a list of 3 numbers"):
        learner.decide({"embedding": [1.0]})


def test_frames_where_matrices_go() -> None:
    X, y = people(200)
    learner = sa.SetLogit(labels=LABELS, set_size=2)
    learner.run(pd.DataFrame(X), y)
    scores = learner.scores(X)
    for frame in (pd.DataFrame(X), pl.DataFrame(X)):
        assert np.array_equal(learner.scores(frame), scores)
        assert np.array_equal(learner.predict(frame), learner.predict(X))
        assert np.array_equal(learner.predict_proba(frame), learner.predict_proba(X))
    assert learner.rank(pd.DataFrame(X).iloc[3]) == learner.rank(X[3])


def test_looking_changes_nothing() -> None:
    X, y = people(100)
    learner = sa.SetLogit(labels=LABELS, set_size=2)
    learner.run(X, y)
    before = learner.columns.to_dict()
    learner.predict([{"new": 3.0}])
    learner.rank({"newer": 3.0, "word": "never seen"})
    assert learner.columns.to_dict() == before


def test_a_number_that_comes_late_is_learnt() -> None:
    """It has its own scale from its first value on."""
    random = np.random.default_rng(0)
    learner = sa.SetLogit(n_labels=2, set_size=1)
    for _ in range(500):
        decision = learner.decide({"noise": random.normal()})
        learner.update(decision, hit=bool(random.random() < 0.5))
    hits = 0
    for t in range(1500):
        money = random.normal(50_000, 10_000)
        decision = learner.decide({"noise": random.normal(), "money": money})
        hit = decision.labels == [int(money > 50_000)]
        learner.update(decision, hit=hit)
        hits += hit and t >= 1000
    assert hits / 500 > 0.9


def test_a_gap_counts_as_the_mean() -> None:
    """The score of a row without its number is that of the mean and of the mark."""
    random = np.random.default_rng(1)
    learner = sa.SetLogit(n_labels=2, set_size=1, explore="rank")
    for _ in range(2000):
        known = random.random() < 0.7
        x = float(random.normal(1000.0, 10.0))
        y = int(x > 1000) if known else 1  # who does not say is of kind 1
        decision = learner.decide({"x": x if known else None})
        learner.update(decision, hit=decision.labels == [y])
    assert learner.predict([{"x": 1010.0}, {"x": 990.0}, {}]).tolist() == [1, 0, 1]
    assert 999 < learner.core.state()["scaling.mean"][0] < 1001  # gaps do not pull it to 0
    assert 8 < learner.core.state()["scaling.var"][0] ** 0.5 < 12


def test_a_given_set_with_names() -> None:
    X, _ = people(2)
    made = sa.Decision.given({**X[0], "when": date(2024, 5, 1)}, labels=LABELS[:2])
    back = sa.Decision.from_dict(json.loads(json.dumps(made.to_dict())))
    one, two = (sa.SetLogit(labels=LABELS, set_size=2) for _ in range(2))
    one.update(made, hit=True)
    two.update(back, hit=True)
    assert state_of(one) == state_of(two)
    assert numbers(one.columns) == ["age", "income", "vip", "when"]


def test_own_decisions_hold_the_row_as_it_came() -> None:
    learner = sa.SetLogit(labels=LABELS, set_size=2)
    decision = learner.decide({"age": 41, "city": "Rome"})
    assert decision.x == {"age": 41, "city": "Rome"}
    stored = sa.Decision.from_dict(json.loads(json.dumps(decision.to_dict(), allow_nan=False)))
    learner.update(stored, hit=True)


def test_width_as_asked_for() -> None:
    learner = sa.SetLogit(labels=LABELS, set_size=2, n_features=64)
    learner.decide({"age": 41})
    assert (learner.n_features, learner.columns.n_dense) == (64, 64)
    with pytest.raises(InvalidInput, match="n_features of SetLogit must be left out, or at least 8"):
        sa.SetLogit(labels=LABELS, set_size=2, n_features=4).decide({"age": 41})


def test_kinds_of_rows_do_not_mix() -> None:
    plain = sa.SetLogit(labels=LABELS, set_size=2)
    plain.decide([1.0, 2.0])
    assert plain.n_features == 2
    with pytest.raises(InvalidInput, match="x of SetLogit must be 2 numbers, as its first row was"):
        plain.decide({"age": 41})
    with pytest.raises(InvalidInput, match="of length 2"):
        plain.decide([1.0, 2.0, 3.0])
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [0.5, 1.5]})
    assert plain.scores(frame).shape == (2, 6)  # numbers only: as good as a matrix
    sparse = sa.SetLogit(labels=LABELS, set_size=2, n_features=9)
    sparse.decide(([1, 3], [1.0, 1.0]))
    with pytest.raises(InvalidInput, match="9 numbers, as its first row was"):
        sparse.decide({"age": 41})


def test_a_newcomers_frame() -> None:
    """What pandas makes of a table: categories, nullable columns, numbers as names, one row of it."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "when": pd.date_range("2024-01-01", periods=60, freq="7h"),
            "qty": pd.array([None if i % 9 == 0 else i % 5 for i in range(60)], dtype="Int64"),
            "shop": pd.Categorical(random.choice(["A", "B"], 60)),
            "ok": pd.array([None if i % 7 == 0 else bool(i % 2) for i in range(60)], dtype="boolean"),
            "note": [None if i % 3 else f"t{i}" for i in range(60)],
            "waited": pd.to_timedelta(np.arange(60), unit="h"),
            5: np.arange(60),
        }
    )
    y = frame["shop"].cat.codes.to_numpy()
    learner = sa.SetLogit(labels=LABELS, set_size=2)
    with pytest.warns(
        sa.ColumnWarning, match="column 'note' is taken for an id: .* declared .learner.use_columns"
    ):
        learner.run(frame, y)
    assert learner.columns.kinds == {
        "qty": "numbers",
        "shop": "words",
        "ok": "yes or no",
        "waited": "numbers",
    }
    assert learner.columns.left_out == {
        "when": "time: it goes on with the rows",
        "note": "an id: hardly any word twice",
        "5": "counts the rows",
    }
    one = learner.scores(frame.iloc[[3]])
    assert np.array_equal(one, learner.scores([frame.iloc[3]]))
    assert np.array_equal(one, learner.scores([frame.iloc[3].to_dict()]))
    assert learner.decide(frame.iloc[[3]]).x == learner.decide(frame.iloc[3]).x
    for wrong, message in (
        ([1.0, 2.0], "x of SetLogit must be a row with names"),
        (frame.iloc[:2], "x of SetLogit must be a row with names"),
    ):
        with pytest.raises(InvalidInput, match=message):
            learner.decide(wrong)
    with pytest.raises(InvalidInput, match="columns of the table must be of different names"):
        learner.predict(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InvalidInput, match="y of SetLogit must be label indices"):
        learner.run(frame, np.array(LABELS)[y])


def test_a_frame_of_numbers_as_wide_as_announced_is_a_matrix() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    y = np.arange(50) % 6
    framed, plain = (sa.SetLogit(labels=LABELS, set_size=2, n_features=3) for _ in range(2))
    framed.run(pd.DataFrame(X), y)
    plain.run(X, y)
    assert state_of(framed) == state_of(plain)
    assert framed.columns is None


def test_an_empty_row_is_a_row_of_gaps() -> None:
    learner = sa.SetLogit(labels=LABELS, set_size=2)
    learner.update(learner.decide({}), hit=True)
    learner.update(learner.decide({"age": 3}), hit=True)
    assert numbers(learner.columns) == ["age"]


@pytest.mark.parametrize("hit", [np.int64(1), 1, np.bool_(True), 1.0, np.float32(1)])
def test_one_is_a_hit(hit: Any) -> None:
    one, two = (sa.SetLogit(n_labels=3, set_size=1) for _ in range(2))
    one.update(one.decide([1.0, 0.0]), hit=hit)
    two.update(two.decide([1.0, 0.0]), hit=True)
    assert state_of(one) == state_of(two)


def test_a_journal_of_dense_rows_and_names() -> None:
    """What a service keeps: dense rows, and the names whenever they have changed."""
    X, y = people(60)
    X[20]["late"] = 1.5
    learner, replayed = (sa.SetLogit(labels=LABELS, set_size=2, seed=1) for _ in range(2))
    replayed.id, said = learner.id, None
    for x, label in zip(X, y, strict=True):
        decision = learner.decide(x)
        learner.update(decision, hit=LABELS[label] in decision.labels)
        if learner.columns.to_dict() != said:
            said = learner.columns.to_dict()
            replayed.use_columns(json.loads(json.dumps(said)))
        again = replayed.decide(decision.x)
        assert again.to_dict() == decision.to_dict()
        replayed.update(again, hit=LABELS[label] in again.labels)
    assert state_of(replayed) == state_of(learner)
    assert replayed.decide(X[20]).to_dict() == learner.decide(X[20]).to_dict()
    with pytest.raises(InvalidInput, match="with new ones at the end"):
        replayed.use_columns({**said, "columns": said["columns"][::-1]})
    with pytest.raises(InvalidInput, match="columns of SetLogit must be for 7 features"):
        sa.SetLogit(labels=LABELS, set_size=2, n_features=7).use_columns(said)


settings.register_profile("named", deadline=None)
settings.load_profile("named")


def test_a_refused_row_leaves_no_names_behind() -> None:
    """Else a journal, which knows nothing of it, would give later names other places."""
    for weights in (0.0, np.inf):  # before the first row that was taken, and after it
        one, two = (sa.Perceptron(labels=LABELS, set_size=2) for _ in range(2))
        for learner in (one, two):
            if weights:
                learner.update(learner.decide({"age": 41}), label=LABELS[0])
                learner.core.state()["weights.dense"][:] = weights
        with pytest.raises((InvalidInput, sa.errors.WeightsOverflow)):
            one.decide({"big": 3.0, "city": "Rome"} if weights else {"age": 41, "bad": []})
        rows = [{"age": 41, "income": 1.0}, {"zip": 3, "age": None}]
        for learner in (one, two):
            learner.core is None or learner.core.state()["weights.dense"].fill(0.0)
        assert [one.decide(x).labels for x in rows] == [two.decide(x).labels for x in rows]
        assert one.columns.to_dict() == two.columns.to_dict()
        assert state_of(one) == state_of(two)


def test_a_sparse_row_is_no_row_with_names() -> None:
    """Its two parts of different lengths were an error of NumPy's."""
    learner = sa.SetLogit(n_labels=3)
    learner.update(learner.decide({"a": 1.0}), hit=True)
    for x in (([0, 1], [1.0]), ([0], [1.0]), [1.0]):
        with pytest.raises(InvalidInput, match="x of SetLogit must be a row with names"):
            learner.decide(x)


def test_columns_that_cannot_be_read_are_told_once():
    frame = pd.DataFrame({"age": range(40), "city": ["Rome", "Oslo"] * 20})
    frame["month"] = pd.period_range("2024-01", periods=40, freq="M")
    frame["words"] = [["a", "b"]] * 40
    learner = sa.SetLogit(labels=["x", "y"], set_size=1)
    with pytest.warns(sa.ColumnWarning) as caught:
        learner.decide_many(frame)
    sentences = [str(one.message) for one in caught]
    assert "SetLogit: column 'month' cannot be read (of type Period); it is left out" in sentences
    assert "SetLogit: column 'words' cannot be read (lists); it is left out" in sentences
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.decide_many(frame)


def test_columns_are_not_written_into_no_folder(tmp_path):
    columns = sa.Columns.infer([{"age": 1}, {"age": 2}])
    for path in (tmp_path / "none" / "columns.json", tmp_path):
        with pytest.raises(InvalidInput, match="path of columns must be a file in an existing folder, got"):
            columns.write(path)
    with pytest.raises(
        InvalidInput, match=r"table of superarm must be a file, .* or a list of dicts, got NoneType"
    ):
        sa.Columns.infer(None)
