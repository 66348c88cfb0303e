"""With declared columns a table gives the same model, bit for bit, by every way in."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lab_kit import run

import superarm as sa
from superarm.data.encoding import is_matrix
from superarm.data.tables import open_table
from superarm.errors import InvalidInput
from superarm.logs import Log, LogColumns, Policy, evaluate, summarize, train
from superarm.logs.nightly import decide_file, learn_file
from superarm.service import Client, DecisionRequest, OutcomeRequest, Service
from superarm.sklearn import SetFeedbackClassifier
from superarm.streams import Arrays, from_frame
from superarm.streams.data_files import read_data

TEAMS = ["ads", "billing", "login", "shipping"]
WORDS = {"ads": "banner", "billing": "invoice", "login": "password", "shipping": "parcel"}
SITES = ["Rome", "Oslo", "New York"]
FEATURES = ["text", "site", "age", "share", "opened", "member"]
N = 120


def tickets() -> list[dict[str, Any]]:
    """Rows as Python has them."""
    random, rows = np.random.default_rng(3), []
    for i in range(N):
        team = TEAMS[random.integers(4)]
        filler = " ".join(random.choice(["my", "the", "please", "help", "with", "again"], 4))
        rows.append(
            {
                "text": None if i % 17 == 5 else f"{filler} {WORDS[team].upper()}, très late 👍",
                "site": None if i % 13 == 7 else SITES[random.integers(3)],
                "age": None if i % 11 == 3 else int(random.integers(18, 80)),
                "share": float(np.round(random.random(), 3)),
                "opened": date(2024, 1 + i % 12, 1 + i % 28),
                "member": bool(random.integers(2)),
                "team": team,
            }
        )
    return rows


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ways-in") / "tickets.csv"
    rows = tickets()
    with path.open("w", newline="", encoding="utf-8") as file:
        sheet = csv.DictWriter(file, list(rows[0]))
        sheet.writeheader()
        sheet.writerows(rows)
    return path


@pytest.fixture(scope="module")
def columns(table: Path) -> sa.Columns:
    found = sa.Columns.infer(table, reserved={"team": "the label"})
    kinds = ["text", "words", "numbers", "numbers", "dates", "yes or no"]
    assert found.kinds == dict(zip(FEATURES, kinds, strict=True))
    return found.for_labels(4)


def new(columns: sa.Columns, seed: int = 0) -> Any:
    learner = sa.SetLogit(labels=TEAMS, set_size=2, seed=seed)
    learner.use_columns(columns)
    return learner


def state(learner: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in learner.core.state().items()}


def by_dicts(learner: Any, rows: list[dict[str, Any]], teams: list[str]) -> dict[str, bytes]:
    for row, team in zip(rows, teams, strict=True):
        decision = learner.decide(row)
        learner.update(decision, hit=team in decision.labels)
    return state(learner)


@pytest.fixture(scope="module")
def expected(columns: sa.Columns) -> dict[str, bytes]:
    rows = tickets()
    given = [{name: row[name] for name in FEATURES} for row in rows]
    return by_dicts(new(columns), given, [row["team"] for row in rows])


def frames(table: Path) -> dict[str, Any]:
    import pyarrow as pa

    rows = tickets()
    polars = pl.DataFrame(rows)
    return {
        "texts of a CSV": list(open_table(table).valid_rows()),
        "pandas": pd.DataFrame(rows),
        "pandas, of a CSV": pd.read_csv(table, parse_dates=["opened"]),
        "Polars": polars,
        "Polars, of a CSV": pl.read_csv(table, try_parse_dates=True),
        "Arrow": pa.Table.from_pylist(rows),
        "JSON": json.loads(polars.write_json()),
    }


WAYS_IN = ["texts of a CSV", "pandas", "pandas, of a CSV", "Polars", "Polars, of a CSV", "Arrow", "JSON"]


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_tables(way_in: str, table: Path, columns: sa.Columns, expected: dict[str, bytes]) -> None:
    learner, frame = new(columns), frames(table)[way_in]
    stream = from_frame(frame, label="team", columns=columns, shuffle=False)
    sa.simulate(learner, stream, N)
    assert state(learner) == expected
    again = new(columns)
    numbers = [TEAMS.index(row["team"]) for row in tickets()]
    again.inputs.warned |= {"team"}  # the label is in the table: a new column, of which it is warned
    again.run(frame, numbers)
    assert state(again) == expected


def test_simulate(table: Path, columns: sa.Columns, expected: dict[str, bytes]) -> None:
    learner = new(columns)
    stream = Arrays(**read_data(table, label="team", columns=columns), shuffle=False)
    assert stream.labels == tuple(TEAMS)
    sa.simulate(learner, stream, N)
    assert state(learner) == expected


def test_sklearn(table: Path, columns: sa.Columns) -> None:
    frame = frames(table)["pandas"]
    model = SetFeedbackClassifier(set_size=2, passes=1, shuffle=False, random_state=3, columns=columns)
    model.fit(frame[FEATURES], frame["team"])
    own = new(columns, seed=model.learner_.seed)
    assert state(model.learner_) == by_dicts(
        own, [{name: row[name] for name in FEATURES} for row in tickets()], list(frame["team"])
    )


@pytest.fixture
def open_service(tmp_path: Path, columns: sa.Columns) -> Callable[[], Service]:
    columns.write(tmp_path / "columns.json")
    return lambda: Service.open(
        tmp_path / "events.db",
        labels=TEAMS,
        set_size=2,
        learner="set-logit:uniform=0.0",
        columns=tmp_path / "columns.json",
    )


def test_the_client(
    open_service: Callable[[], Service], live: Callable[[Service], Any], expected: dict[str, bytes]
) -> None:
    service = open_service()
    with Client(live(service).url) as client:
        for row in tickets():
            shown = client.decide({name: row[name] for name in FEATURES})
            client.outcome(shown.id, hit=row["team"] in shown.labels)
        assert state(service.follower.projector.learner) == expected


def test_the_service(open_service: Callable[[], Service], table: Path, expected: dict[str, bytes]) -> None:
    service = open_service()
    rows = list(open_table(table).valid_rows())
    try:
        for row in rows:
            x = {name: row[name] for name in FEATURES}
            shown = service.call(DecisionRequest(x))
            assert shown.warnings == ()
            hit = row["team"] in shown.labels
            service.call(OutcomeRequest(shown.id, hit))
        assert state(service.follower.projector.learner) == expected
        strange = service.call(DecisionRequest({"age": "old", "size": 3}))
        assert list(strange.warnings) == [
            "column 'age' holds numbers, got 'old': the number counts as missing, and this as a word",
            "column 'size' is new: it is left out",
            *(f"column {name!r} is missing" for name in FEATURES if name != "age"),
        ]
        assert service.column_warnings.n_decisions == 1
    finally:
        service.close()


def test_label(table: Path, columns: sa.Columns, tmp_path: Path) -> None:
    """What `labels export --model` writes is what a learner with its file of columns learns from dicts."""
    job = sa.Labelling(table, labels="team", journal=tmp_path / "labels.db")
    assert job.progress().labelled == N
    job.close()
    run("labels", "export", tmp_path / "labels.db", "--model", tmp_path / "team.npz")
    declared = sa.Columns.read(tmp_path / "team.columns.json")
    assert declared.to_dict()["columns"] == columns.to_dict()["columns"]
    reference, rows = sa.SetLogit(labels=TEAMS, set_size=1, seed=job.settings.seed), tickets()
    reference.use_columns(declared)
    random = np.random.default_rng(job.settings.seed)
    for i in np.concatenate([random.permutation(N) for _ in range(3)]):
        given = sa.Decision.given({name: rows[i][name] for name in FEATURES}, [rows[i]["team"]])
        reference.update(given, label=rows[i]["team"])
    assert state(sa.load(tmp_path / "team.npz")) == state(reference)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "pandas"])
def test_logs(tmp_path: Path, columns: sa.Columns, ending: str) -> None:
    """Sets that somebody else chose, in every format of logs."""
    random, reference, rows = np.random.default_rng(0), new(columns), []
    for row in tickets():
        shown = random.permutation(TEAMS)[:2].tolist()
        rows.append(
            {name: row[name] for name in FEATURES} | {"labels": shown, "solved": row["team"] in shown}
        )
        given = sa.Decision.given({name: row[name] for name in FEATURES}, shown)
        reference.update(given, hit=row["team"] in shown)
    path = tmp_path / f"log.{ending}"
    source: Any = path
    if ending == "csv":
        texts = pl.DataFrame([row | {"labels": ";".join(row["labels"])} for row in rows])
        texts.write_csv(path)
    elif ending == "jsonl":
        pl.DataFrame(rows).write_ndjson(path)
    elif ending == "parquet":
        pl.DataFrame(rows).write_parquet(path)
    else:
        source = pd.DataFrame(rows)
    log = Log(source, columns=LogColumns(hit="solved"), feature_columns=[columns])
    learner, summary = new(columns), summarize(log, labels=TEAMS)
    train(log, learner, summary, holdout=0.0)
    assert state(learner) == state(reference)
    assert "solved" not in learner.columns.columns
    told = []
    for each in (source, rows):
        read = Log(each, columns=LogColumns(hit="solved"), feature_columns=[columns], uniform=True)
        policy = Policy("it", learner=learner)
        told.append(repr(asdict(evaluate(read, [policy], summarize(read, labels=TEAMS), holdout=None))))
    assert told[0] == told[1]


def test_files(tmp_path: Path, table: Path, columns: sa.Columns) -> None:
    """Tonight's rows, tomorrow's answers."""
    rows = tickets()
    given = [{name: row[name] for name in FEATURES} for row in rows]
    reference = new(columns)
    made = reference.decide_many(given)
    hits = [row["team"] in one.labels for row, one in zip(rows, made, strict=True)]
    reference.update_many(made, hits)
    learner = new(columns)
    learner.save(tmp_path / "m.npz")
    for ending in ("csv", "parquet"):
        model = tmp_path / f"{ending}.npz"
        learner.save(model)
        source = tmp_path / f"rows.{ending}"
        if ending == "csv":
            source = table
        else:
            pl.DataFrame(rows).write_parquet(source)
        decided = decide_file(model, source, tmp_path / "d.parquet")
        assert decided.unused == ("team",)
        ids = pl.read_parquet(tmp_path / "d.parquet")["id"]
        pl.DataFrame({"id": ids, "hit": hits}).write_csv(tmp_path / "answers.csv")
        assert learn_file(model, tmp_path / "d.parquet", tmp_path / "answers.csv").learnt == N
        assert state(sa.load(model)) == state(reference)


def test_vectors_beside_a_table(tmp_path: Path) -> None:
    """An .npy for simulate, train and decide; a list in a dict; a column of lists."""
    random = np.random.default_rng(0)
    vectors, teams = random.normal(size=(60, 3)).astype(np.float32), [TEAMS[i % 4] for i in range(60)]
    np.save(tmp_path / "v.npy", vectors)
    table = tmp_path / "t.csv"
    ages = [20 + i % 9 for i in range(60)]
    pl.DataFrame({"age": ages, "team": teams}).write_csv(table)
    stream = Arrays(**read_data(table, label="team", vectors=tmp_path / "v.npy"), shuffle=False)
    assert stream.columns.kinds == {"age": "numbers", "vectors": "vector"}
    learner = sa.SetLogit(labels=TEAMS, set_size=2)
    sa.simulate(learner, stream, 60)
    rows = [{"age": age, "vectors": vector} for age, vector in zip(ages, vectors.tolist(), strict=True)]
    assert state(learner) == by_dicts(new(stream.columns), rows, teams)
    learner.save(tmp_path / "m.npz")
    pl.DataFrame({"age": ages}).write_csv(tmp_path / "rows.csv")
    made = decide_file(
        tmp_path / "m.npz", tmp_path / "rows.csv", tmp_path / "d.parquet", vectors=tmp_path / "v.npy"
    )
    assert (made.rows, made.missing, made.unused) == (60, (), ())
    log = tmp_path / "log.csv"
    pl.DataFrame({"age": ages, "labels": ["ads;login"] * 60, "hit": [i % 2 for i in range(60)]}).write_csv(
        log
    )
    read = Log(log, vectors=tmp_path / "v.npy")
    assert read.feature_columns.kinds == {"age": "numbers", "vectors": "vector"}
    assert next(iter(read)).decision.x["vectors"] == vectors[0].tolist()
    np.save(tmp_path / "short.npy", vectors[:5])
    with pytest.raises(
        sa.errors.InvalidInput, match=r"vectors of .*short.npy must be a matrix with as many rows as"
    ):
        read_data(table, label="team", vectors=tmp_path / "short.npy")
    mine = [{"age": 1.0}]
    np.save(tmp_path / "one.npy", vectors[:1])
    (row,) = open_table(mine, vectors=tmp_path / "one.npy").valid_rows()
    assert row.keys() == {"age", "vectors"}
    assert mine == [{"age": 1.0}]  # the caller's rows stay as they are


@pytest.mark.parametrize(
    ("content", "encoding"),
    [("a,b\n1,2\n".encode("utf-16"), "UTF-16"), ("a,b\nþað,2\n".encode("cp1252"), "WINDOWS-1252")],
)
def test_another_encoding_is_told_with_its_remedy(tmp_path, content, encoding):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=f"must be text in UTF-8.*iconv -f {encoding} -t UTF-8"):
        list(open_table(path).rows())


def test_empty_rows_at_the_end_of_a_csv_are_skipped_and_told(tmp_path: Path) -> None:
    """As Excel writes them; between other rows they are rows without a value."""
    path = tmp_path / "excel.csv"
    path.write_text("a;b\n1;2\n;\n\n3;4\n; \n;;;\n\n")
    table = open_table(path)
    with pytest.warns(UserWarning, match="excel.csv: 2 empty rows at its end are skipped"):
        rows = list(table.rows())
    assert rows == [{"a": "1", "b": "2"}, {"a": None, "b": None}, {"a": "3", "b": "4"}]
    assert list(table.rows()) == rows  # told once


def test_names_that_are_numbers_are_read_in_a_batch_as_one_by_one() -> None:
    columns = sa.Columns([sa.Column("1", "numbers"), sa.Column("2", "numbers")])
    row = {1: 2.0, 2: 3.0}
    assert (
        columns.encode_row(row, "test").tolist()
        == columns.encode_table([row], "test").dense[0].tolist()
        == [2, 3, 0, 0]
    )
    assert columns.parse_row(row, "test") == {"1": 2.0, "2": 3.0}


def test_an_arrow_table_of_numbers_is_a_matrix_as_a_frame_is() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a", "b"])
    tables = [frame, pl.from_pandas(frame), pl.from_pandas(frame).to_arrow(), frame.to_numpy()]
    batches = [sa.SetLogit(n_labels=3, n_features=2, seed=0).decide_many(table) for table in tables]
    assert all(batch.rows.dense.tobytes() == batches[0].rows.dense.tobytes() for batch in batches)
    gaps = pl.DataFrame({"a": [1.0, None], "n": [1, None]})
    columns = sa.Columns.infer(gaps)
    assert (
        columns.encode_table(gaps.to_arrow(), "t").dense.tobytes()
        == columns.encode_table(gaps, "t").dense.tobytes()
    )


def test_a_column_of_intervals_is_no_matrix() -> None:
    frame = pd.DataFrame({"band": pd.cut(np.arange(30.0), 3), "size": np.arange(30) % 7})
    frame["band"] = frame["band"].astype(pd.IntervalDtype(np.float64, "right"))
    assert not is_matrix(frame)


def test_vectors_may_be_named_by_a_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("size,label\n1,a\n2,b\n4,a\n", encoding="utf-8")
    np.save(tmp_path / "v.npy", np.eye(3, 8))
    stream = sa.streams.open_data(str(tmp_path / "t.csv"), label="label", vectors=str(tmp_path / "v.npy"))
    assert stream.columns is not None
    assert "vectors" in stream.columns.names
