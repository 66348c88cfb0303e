"""Decision logs as files: ours come back as they were, other people's are understood, bad rows are named."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import polars as pl
import pytest
from logged import write_log
from scipy.sparse import csr_matrix

import superarm as sa
from superarm.errors import InvalidInput
from superarm.logs import BadRow, Log, LogColumns, LoggedDecision, Writer, summarize
from superarm.streams import Arrays

NAMES = ["ant", "bee", "cat", "dog"]
GOOD = "age,income,slot1,slot2,clicked\n30,1.5,red,blue,1\n41,0.25,green,red,0\n"


def row(labels, *, x=None, hit=None, label=None, **summary):
    """A set that somebody else showed."""
    decision = sa.Decision.given(np.ones(2, np.float32) if x is None else x, labels, **summary)
    return LoggedDecision.from_decision(decision, hit=hit, label=label)


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
@pytest.mark.parametrize("names", [None, NAMES])
@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed"])
def test_what_was_written_comes_back(tmp_path, ending, names, kind):
    common = {"labels": names} if names else {"n_labels": 4}
    width = (2, 3) if kind == "mixed" else 3
    learner = sa.MCDBF(**common, n_features=width, set_size=2, gamma=0.4, seed=1)
    every = names or list(range(4))
    written = []
    with Writer(tmp_path / f"log.{ending}") as log:
        for i in range(30):
            pair = ([0, 2], [0.1 * i, 0.3])
            rows = {"dense": [0.1 * i, -1.0, 0.3], "sparse": pair, "mixed": sa.Row([1.0, 0.1 * i], pair, 3)}
            x = rows[kind]
            eligible = every[1:] if i % 3 == 0 else None
            decision = learner.decide(x, eligible=eligible)
            hit = (None, True, False)[i % 3]
            log.add(decision, hit=hit, id=f"id-{i}", time=float(i), context='{"page": 1}')
            written.append(LoggedDecision.from_decision(decision, hit=hit, id=f"id-{i}", time=float(i)))
        log.add(learner.decide(x), label=every[3])
    assert log.rows == 31
    read = list(Log(tmp_path / f"log.{ending}"))
    assert len(read) == 31
    for number, (a, b) in enumerate(zip(written, read, strict=False)):
        assert (a.hit, a.label, a.id, float(b.time)) == (b.hit, b.label, b.id, a.time)
        one, two = a.decision, b.decision
        for field in ("labels", "drawn", "top", "eligible", "rule", "gamma", "learner"):
            assert getattr(one, field) == getattr(two, field), field
        assert two.propensity == pytest.approx(one.propensity)
        assert json.loads(b.context) == {"page": 1}
        assert b.row_index == number
        if kind == "dense":
            np.testing.assert_allclose(two.x, one.x, rtol=1e-6)
        else:
            assert two.x.indices.tolist() == [0, 2]
            np.testing.assert_allclose(two.x.values, one.x.values, rtol=1e-6)
            np.testing.assert_allclose(two.x.dense, one.x.dense, rtol=1e-6)
    assert read[30].label == every[3]
    assert read[30].hit is (every[3] in read[30].decision.labels)


def test_a_long_parquet_log_of_mixed_labels(tmp_path, monkeypatch):
    """Several batches; a batch of numbers and one of names become names."""
    monkeypatch.setattr("superarm.logs.writer.BATCH", 10)
    for names in (3, 10, 0):  # the last batch is short, full, or not there
        with Writer(tmp_path / "log.parquet") as log:
            for one in [row((1, 2), hit=True)] * 20 + [row(("b", 2), hit=False)] * names:
                log.add(one)
        read = list(Log(tmp_path / "log.parquet"))
        assert [len(read), read[0].decision.labels] == [20 + names, [1, 2]]
        assert read[-1].decision.labels == (["b", 2] if names else [1, 2])
        assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


def test_a_failed_run_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr("superarm.logs.writer.BATCH", 10)

    def fail():
        with Writer(tmp_path / "log.csv") as log:
            for _ in range(30):
                log.add(row((1, 2), hit=True))
            raise KeyError("power")

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_other_peoples_columns(tmp_path):
    columns = LogColumns(labels=("slot1", "slot2"), hit="clicked")
    log = Log(write_log(tmp_path, GOOD), columns=columns)
    assert log.feature_columns.names == ["age", "income"]
    first, second = log
    made = first.decision
    assert (made.labels, first.hit, made.x.tolist()) == (["red", "blue"], True, [30.0, 1.5])
    assert (second.decision.labels, second.hit) == (["green", "red"], False)
    one = LogColumns(labels=("slot1", "slot2"), hit="clicked", features=("income",))
    assert next(iter(Log(write_log(tmp_path, GOOD), columns=one))).decision.x.tolist() == [1.5]


def test_lists_in_cells(tmp_path):
    text = 'x,labels,hit\n0.5;1,a; b,yes\n"[0.5, 1]","[""a"", ""c""]",no\n1;2,"[3, 4]",\n'
    records = list(Log(write_log(tmp_path, text)))
    assert [r.decision.labels for r in records] == [["a", "b"], ["a", "c"], [3, 4]]
    assert [r.hit for r in records] == [True, False, None]
    assert records[0].decision.x.tolist() == [0.5, 1.0]


@pytest.mark.parametrize(("text", "hit"), [("Y", True), ("n", False), ("YES", True), ("0.0", False)])
def test_words_of_an_answer(text, hit):
    frame = pl.DataFrame({"a": [1.0, 2.0], "labels": [["p"], ["q"]], "hit": [text, text]})
    assert [record.hit for record in Log(frame)] == [hit, hit]


def test_a_frame_written_by_hand(tmp_path):
    columns = {"a": [1.0, 2.0], "b": [3, 4], "labels": [["p", "q"], ["q", "r"]]}
    frame = pl.DataFrame(columns | {"label": ["p", "p"], "note": ["u", "v"]})
    frame.write_parquet(tmp_path / "log.parquet")
    log = Log(tmp_path / "log.parquet")
    assert log.feature_columns.kinds == {"a": "numbers", "b": "numbers", "note": "words"}
    assert log.feature_columns.left_out == {"labels": "the set", "label": "the outcome"}
    read = [(r.decision.labels, r.hit, r.label) for r in log]
    assert read == [(["p", "q"], True, "p"), (["q", "r"], False, "p")]


@pytest.mark.parametrize("kind", ["npy", "npz", "csr"])
def test_features_in_a_file_of_their_own(tmp_path, kind):
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], np.float32)
    path = tmp_path / ("x.npy" if kind == "npy" else "x.npz")
    if kind == "npy":
        np.save(path, X)
    elif kind == "npz":
        np.savez(path, X=X)
    else:
        S = csr_matrix(X)
        np.savez(path, X_data=S.data, X_indices=S.indices, X_indptr=S.indptr, X_shape=S.shape)
    log = write_log(tmp_path, "labels,hit\n1;2,1\n0;2,0\n")
    rows = [r.decision.x for r in Log(log, matrix=path)]
    if kind == "csr":
        assert rows[0].indices.tolist() == [0, 2]
        assert rows[1].values.tolist() == [3.0]
    else:
        assert [x.tolist() for x in rows] == X.tolist()
    longer = write_log(tmp_path, "labels,hit\n1;2,1\n0;2,0\n0;1,0\n")
    with pytest.raises(InvalidInput, match=r"x of .* must be a matrix with as many rows as .*, got 2 rows"):
        list(Log(longer, matrix=path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hit": "maybe"}, "hit of .*row 2 must be true or false"),
        ({"labels": [1, 1]}, "labels of .*row 2 must be distinct labels"),
        ({"labels": []}, "labels of .*row 2 must be distinct labels"),
        ({"labels": [1, 2.5]}, "labels of .*row 2 must be labels"),
        ({"labels": "[1, 2"}, "labels of .*row 2 must be a list such as"),
        ({"label": 5}, "hit of .*row 2 must be False, as label is 5"),
        ({"x": [1]}, "x of .*row 2 must be 2 numbers"),
        ({"x": [1, "a"]}, "x of .*row 2 must be numbers"),
        ('{"x": [1, 1e999], "labels": [1, 2], "hit": true}', "x of .*row 2 must be finite numbers"),
        ({"propensity": 0}, "propensity of .*row 2 must be in"),
        ({"gamma": 1.5}, "gamma of .*row 2 must be in"),
        ({"drawn": [1, 3]}, "drawn of .*row 2 must be an order of"),
        ({"gamma": 0.1, "top": [1]}, "top of .*row 2 must be 2 distinct labels"),
        ({"eligible": [1, 3]}, "eligible of .*row 2 must be a list"),
        ({"set_size": 3}, "set_size of .*row 2 must be 2"),
        (
            {"x": None, "x_indices": [2, 1], "x_values": [1, 2]},
            "x_indices of .*row 2 must be increasing whole",
        ),
        ('{"x": [1, 2], "labels"', "row 2 must be a JSON object"),
        ("[1, 2]", "row 2 must be a JSON object"),
    ],
)
def test_a_bad_row_names_its_line_and_field(tmp_path, changes, message):
    row = {"x": [1, 2], "labels": [1, 2], "hit": True}
    good = json.dumps(row | {"gamma": 0.5, "drawn": [2, 1], "set_size": 2})
    line = changes if isinstance(changes, str) else json.dumps(row | changes)
    path = write_log(tmp_path, f"{good}\n{line}\n\n{good}\n", "log.jsonl")
    with pytest.raises(BadRow, match=message):
        list(Log(path))
    log = Log(path, skip_bad=True)
    assert [r.row_index for r in log] == [0, 2]
    assert log.bad == 1
    assert "row 2" in log.first_bad


def test_bad_rows_of_csv_and_parquet(tmp_path):
    columns = LogColumns(labels=("slot1", "slot2"), hit="clicked", features=("age", "income"))
    for text, message in [
        (GOOD + "1e39,,red,blue,1\n", r"x\['age'\] of .*row 3 must be finite as a 32-bit float, or missing"),
        (GOOD + "1,1,,,1\n", "slot1, slot2 of .*row 3 must be distinct labels"),
        (GOOD + "1,1,red\n", "row 3 must be 5 cells, as the header has, not 3"),
    ]:
        with pytest.raises(BadRow, match=message):
            list(Log(write_log(tmp_path, text), columns=columns))
    columns = {"x": [[1.0], [2.0]], "labels": [[1], [1]], "hit": [True, False], "propensity": [0.5, 7.0]}
    pl.DataFrame(columns).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(BadRow, match=r"propensity of .*row 2 must be in \(0, 1\]"):
        list(Log(tmp_path / "log.parquet"))


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (
            GOOD,
            LogColumns(hit="clicked"),
            r"labels column of .* must be one of age, income, slot1.*\(--labels-column, LogColumns\(labels=…\)\), got",
        ),
        (GOOD, LogColumns(labels=("slot1",)), "hit column of .* must be one of age"),
        (GOOD, LogColumns(labels=("slot1",), hit="clicked", features=("x",)), "features columns of .* among"),
        ("labels,hit\na;b,1\n", LogColumns(), "features of .* must be an x column, columns of numbers"),
        ("labels,hit\n", LogColumns(), "has no rows"),
    ],
)
def test_a_file_that_is_no_log_is_refused_at_once(tmp_path, text, columns, message):
    with pytest.raises(InvalidInput, match=message):
        Log(write_log(tmp_path, text), columns=columns)


def test_a_row_outside_of_the_block_is_refused_and_not_lost(tmp_path):
    log, message = Writer(tmp_path / "log.jsonl"), "add of Writer must be in the block of a with statement"
    with pytest.raises(InvalidInput, match=message):
        log.add(row(["a"], hit=True))
    with log:
        log.add(row(["a"], hit=True))
    with pytest.raises(InvalidInput, match=message):
        log.add(row(["a"], hit=True))
    assert log.rows == len(list(Log(tmp_path / "log.jsonl"))) == 1


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidInput, match=r"ending of .* must be one of .parquet, .csv"):
        Log(write_log(tmp_path, GOOD, "log.txt"))
    with pytest.raises(InvalidInput, match=r"no such file: .*none.csv"):
        Log(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match=r"content of .* must be a Parquet file"):
        Log(write_log(tmp_path, GOOD, "log.parquet"))
    with pytest.raises(InvalidInput, match=r"content of .* must be a matrix: an .npy"):
        Log(write_log(tmp_path, "labels,hit\na;b,1\n"), matrix=write_log(tmp_path, "no", "x.npy"))
    np.save(tmp_path / "flat.npy", np.ones(3))
    with pytest.raises(InvalidInput, match=r"content of .*flat.npy must be a matrix"):
        Log(write_log(tmp_path, "labels,hit\na;b,1\n"), matrix=tmp_path / "flat.npy")
    with pytest.raises(InvalidInput, match="path of Writer must be a file in an existing folder"):
        Writer(tmp_path / "none" / "log.csv")


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_reading_streams(tmp_path, ending, monkeypatch):
    """Of a log that is too long to be kept, the memory it takes is a small part of the file."""
    monkeypatch.setattr("superarm.logs.log.CACHE_BYTES", 50_000)
    path = tmp_path / f"log.{ending}"
    with Writer(path) as log:
        for _ in range(1500):
            log.add(row((1, 2), x=np.ones(300, np.float32), hit=True))
    reader = Log(path)
    tracemalloc.start()
    rows = sum(1 for _ in reader)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == 1500
    assert peak < path.stat().st_size / 10
    assert sum(1 for _ in reader) == 1500  # read again


def test_recording_is_simulating(tmp_path):
    """The one-at-a-time loop counts what the fused one counts, and writes a row for each round."""
    from superarm.streams import open_data

    stream = open_data("digits")
    for name, told in (("mc-dbf", False), ("softmax", True)):
        a, b = (sa.make(name, n_labels=10, n_features=64, set_size=3, seed=2) for _ in range(2))
        ticks = []
        with Writer(tmp_path / "log.parquet") as writer:
            trace = sa.simulate(a, stream, 2500, log=writer, progress=ticks.append)
        fused = sa.simulate(b, stream, 2500)
        np.testing.assert_array_equal(trace.counts, fused.counts)
        assert sum(ticks) == 2500
        records = list(Log(tmp_path / "log.parquet"))
        assert len(records) == 2500
        assert all((one.label is not None) == told for one in records)
        assert 1 - np.mean([one.hit for one in records]) == pytest.approx(trace.shown_miss_rate)
    wrong = sa.make("mc-dbf", n_labels=9, n_features=64)
    with (
        Writer(tmp_path / "l.csv") as writer,
        pytest.raises(InvalidInput, match="n_labels of MCDBF must be 10"),
    ):
        sa.simulate(wrong, stream, 5, log=writer)


def test_survey_finds_labels_features_and_what_is_known(tmp_path):
    columns = LogColumns(labels=("slot1", "slot2"), hit="clicked")
    log = Log(write_log(tmp_path, GOOD), columns=columns)
    summary = summarize(log)
    assert summary.labels == ("blue", "green", "red")
    assert (summary.rows, summary.answered, summary.hits) == (2, 2, 1)
    assert (summary.n_features, summary.set_size) == (2, 2)
    assert (summary.with_propensity, summary.with_rule) == (0, 0)
    assert summarize(log, labels=["red", "green", "blue", "pink"]).n_labels == 4
    with pytest.raises(InvalidInput, match=r"labels of .* must be among the given ones"):
        summarize(log, labels=["red", "green"])
    with pytest.raises(InvalidInput, match=r"labels of .* must be whole numbers below 5"):
        summarize(log, labels=5)
    numbers = write_log(tmp_path, "x,labels,hit,propensity\n1;2,0;3,1,0.5\n1;2,1;2,0,\n", "numbers.csv")
    summary = summarize(Log(numbers))
    assert (summary.labels, summary.n_labels, summary.with_propensity) == (None, 4, 1)
    assert summarize(Log(numbers), labels=9).n_labels == 9
    far = write_log(tmp_path, "x,labels,hit\n1;2,100;300,1\n", "far.csv")
    assert summarize(Log(far)).labels == (100, 300)
    assert summarize(Log(far, uniform=True)).with_rule == 1
    with pytest.raises(InvalidInput, match="at least two different ones"):
        summarize(Log(write_log(tmp_path, "x,labels,hit\n1;2,7,1\n", "one.csv")))
    with pytest.raises(InvalidInput, match="a log with a row that can be read"):
        summarize(Log(write_log(tmp_path, "x,labels,hit\n1;2,7,so\n", "bad.csv"), skip_bad=True))


def test_recording_sparse_rows(tmp_path):
    """The rows in the log are those of the stream."""
    X = csr_matrix(np.eye(6, 40, dtype=np.float32) + np.eye(6, 40, 9, dtype=np.float32))
    stream = Arrays(X, [0, 1, 2, 0, 1, 2], shuffle=False)
    learner = sa.MCDBF(n_labels=3, n_features=40, set_size=1)
    with Writer(tmp_path / "log.jsonl") as writer:
        sa.simulate(learner, stream, 6, log=writer)
    read = [one.decision.x.indices.tolist() for one in Log(tmp_path / "log.jsonl")]
    assert read == [[i, i + 9] for i in range(6)]


def test_labels_must_differ_as_text():
    with pytest.raises(InvalidInput, match="labels of SetLogit must be distinct when written as text"):
        sa.SetLogit(labels=["1", 1])


def test_empty_lines_before_the_header_do_not_count(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("\n\na;labels;hit\n1;red;1\n\n2;blue;0\n")
    assert [record.hit for record in Log(file)] == [True, False]
