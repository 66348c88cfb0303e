"""The journal of a labelling, and the rows that it knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from label_jobs import DIGITS, WORDS, answer_some, small_job, tickets, write_table

import superarm as sa
from superarm.errors import InvalidInput
from superarm.journal.errors import JournalMismatch
from superarm.label.labelling_journal import LabellingJournal, create_labelling_journal
from superarm.label.rows_to_label import RowsToLabel
from superarm.label.simulated_labeller import simulate_labeller


def test_stop_and_go_on_gives_the_same_state(tmp_path: Path) -> None:
    rows, journal = RowsToLabel.read("digits"), tmp_path / "digits.labels.db"
    with sa.Labelling(rows, labels=DIGITS, journal=journal) as job:
        answer_some(job, rows.truth, 120)
        job.undo()
        before, weights = job.progress(), job.state.model.learner.scores(job.state.model.features)
    with sa.Labelling(RowsToLabel.read("digits"), journal=journal) as job:
        after = job.progress()
        assert (after.clicks, after.rows_asked, after.audits) == (
            before.clicks,
            before.rows_asked,
            before.audits,
        )
        np.testing.assert_array_equal(job.state.model.learner.scores(job.state.model.features), weights)
        assert job.label_names == DIGITS
    with pytest.raises(JournalMismatch, match="seed of superarm label must be 0"):
        sa.Labelling(rows, journal=journal, seed=1)


def test_whoever_only_reads_writes_nothing(tmp_path: Path) -> None:
    journal = tmp_path / "l.db"
    with pytest.raises(InvalidInput, match="no such journal"):
        small_job(journal=journal, read_only=True)
    with small_job(journal=journal) as job:
        question = job.ask()
        with small_job(journal=journal, read_only=True) as reader:
            assert reader.results() == job.results()
            asked = reader.ask()
            with pytest.raises(
                InvalidInput, match="read_only of Labelling must be False to answer or change"
            ):
                reader.answer(asked, label="a")
            with pytest.raises(InvalidInput, match="read_only of Labelling"):
                reader.add_label("d")
        job.answer(question, label="a")
        assert job.progress().clicks == 1


def test_rows_that_came_or_went_are_told(tmp_path: Path) -> None:
    rows, journal = tickets(30), tmp_path / "t.labels.db"
    path = write_table(tmp_path / "t.jsonl", rows)
    with sa.Labelling(RowsToLabel.read(path, answers="team"), labels=list(WORDS), journal=journal) as job:
        answer_some(job, job.rows.truth, 10)
        asked = job.progress().rows_asked
        gone = job.rows.cells[int(np.flatnonzero(~job.state.done)[0])]["number"]
    changed = [row for row in reversed(rows) if row["number"] != gone] + [dict(rows[0], number=99)]
    with (
        pytest.warns(
            UserWarning, match="1 distinct rows are new, and 1 gone or changed; answers about those"
        ),
        sa.Labelling(RowsToLabel.read(write_table(path, changed), answers="team"), journal=journal) as job,
    ):
        assert job.progress().rows_asked == asked  # rows moved; their answers went with them


TABLE_AS_CSV = """zip;amount;count;when;paid;note;seen
01067;3.50;1;2024-05-01;True;cannot log in;1.5.2024 09:30
01069;4;;2024-05-02;False;;2.5.2024 00:00
10115;12.25;3;2024-05-03;True;NA;3.5.2024 17:05
04109;0.1;12345678901;2024-05-04;False;parcel lost;31.12.2024 23:59
"""


@pytest.mark.parametrize("way", ["as inferred", "as texts", "empty texts", "parsed dates", "polars", "arrow"])
def test_a_frame_and_the_file_that_it_was_read_from_have_the_same_rows(tmp_path: Path, way: str) -> None:
    pandas = pytest.importorskip("pandas")
    path, journal = tmp_path / "t.csv", tmp_path / "t.db"
    path.write_text(TABLE_AS_CSV)
    options = {"as texts": {"dtype": str}, "empty texts": {"dtype": str, "keep_default_na": False}}
    options["parsed dates"] = {"parse_dates": ["when"]}
    frame = pandas.read_csv(path, sep=";", **options.get(way, {}))
    if way == "parsed dates":
        frame["seen"] = pandas.to_datetime(frame["seen"], format="%d.%m.%Y %H:%M")
    elif way == "polars":
        frame = pytest.importorskip("polars").read_csv(path, separator=";", try_parse_dates=True)
    elif way == "arrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    with sa.Labelling(frame, labels=["a", "b"], target=1.0, journal=journal) as job:
        for row in range(4):
            job.set_final_label(row, "ab"[row % 2])
    for rows in (path, frame):
        with sa.Labelling(rows, journal=journal) as job:  # a warning would be an error
            assert [one["label"] for one in job.results()] == ["a", "b", "a", "b"]
            assert job.journal.rows_added == ""


def test_a_file_that_honestly_has_other_rows_is_told_in_python_too(tmp_path: Path) -> None:
    path, journal = tmp_path / "t.csv", tmp_path / "t.db"
    path.write_text(TABLE_AS_CSV)
    with sa.Labelling(path, labels=["a", "b"], journal=journal) as job:
        job.set_final_label(0, "a")
    path.write_text(TABLE_AS_CSV.replace("cannot", "could not"))
    told = "1 distinct rows are new, and 1 gone or changed; answers about those are not in view"
    with pytest.warns(UserWarning, match=told):
        sa.Labelling.resume(journal, read_only=True).close()
    with pytest.warns(UserWarning, match=told):
        sa.Labelling(path, journal=journal).close()
    sa.Labelling(path, journal=journal).close()  # told once


def test_equal_rows_with_different_labels_are_told_in_python_too(tmp_path: Path) -> None:
    rows, journal = [{"n": 1.0, "y": "a"}, {"n": 1.0, "y": "b"}, {"n": 2.0, "y": "b"}], tmp_path / "t.db"
    told = "rows whose copies have other labels in the table: 1; they are asked about"
    with pytest.warns(UserWarning, match=told):
        sa.Labelling(rows, labels="y", journal=journal).close()
    sa.Labelling(rows, labels="y", journal=journal).close()  # a journal keeps the labels that it began with


def test_labels_in_a_column_teach_first(tmp_path: Path) -> None:
    rows = [row | {"team": row["team"] if row["number"] < 100 else ""} for row in tickets(300)]
    job = sa.Labelling(write_table(tmp_path / "t.jsonl", rows), labels="team", target=1.0)
    assert job.label_names == sorted(WORDS)
    progress = job.progress()
    assert (progress.labelled, progress.clicks) == (100, 0)
    assert {one["how"] for one in job.results()} == {"file", ""}
    question = job.ask()
    assert question.beliefs[0] > 0.6  # it has learnt from them
    assert question.row >= 100


def test_a_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    from superarm.service import Service

    path = tmp_path / "events.db"
    Service.open(path, labels=["a", "b", "c"], set_size=1, n_features=2).close()
    with pytest.raises(JournalMismatch, match="the journal of a labelling"):
        sa.Labelling([{"n": 1.0}], labels=["a", "b"], journal=path)


def test_a_journal_whose_settings_have_another_layout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.labels.db"
    options = {"yes_no": False, "seed": 0}
    meta = {"kind": "labelling", "labels": ["a", "b"], "made": 1.0, "rows": "t.csv", "options": options}
    create_labelling_journal(path, meta)
    wanted = r"the settings in .*old\.labels\.db have another layout \(.*`read_options`\): another version"
    with pytest.raises(JournalMismatch, match=wanted):
        sa.Labelling([{"n": 1.0}], labels=["a", "b"], journal=path)
    with pytest.raises(JournalMismatch, match=wanted):
        LabellingJournal(path)


def test_a_folder_of_pictures_and_one_of_texts(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(0)
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(60):
        light = random.integers(0, 60, (20, 20, 3)) + (150 if number % 2 else 0)
        image.fromarray(light.astype(np.uint8)).save(folder / f"{number:02}.png")
    rows = RowsToLabel.read(folder)
    truth: list[str | None] = ["day" if int(row["picture"][:2]) % 2 else "night" for row in rows.cells]
    job = sa.Labelling(rows, labels=["day", "night"], target=1.0)
    assert job.rows.picture(0) == ((folder / "00.png").read_bytes(), "image/png")
    assert simulate_labeller(job, truth)["wrong"] == 0
    vectors = tmp_path / "v.npy"
    np.save(vectors, random.normal(size=(60, 4)).astype(np.float32))
    assert RowsToLabel.read(folder, vectors=vectors).encode_items(2).layout.n_dense == 4
    texts = tmp_path / "texts"
    texts.mkdir()
    for row in tickets(50):
        (texts / f"{row['number']}.txt").write_text(row["text"])
    job = sa.Labelling(texts, labels=list(WORDS), target=1.0)
    question = job.ask()
    assert set(question.values) == {"file", "text"}
    (folder / "broken.png").write_bytes(b"no picture")
    with_broken = RowsToLabel.read(folder)
    assert (len(with_broken), with_broken.unreadable, with_broken.n_skipped) == (60, ["broken.png"], 0)
    assert with_broken.keys == rows.keys
    for file in folder.glob("[0-9]*.png"):
        file.unlink()
    with pytest.raises(
        InvalidInput, match=r"pictures of .*photos must be some that can be read, got 1 broken"
    ):
        RowsToLabel.read(folder)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidInput, match=r"pictures .* or texts"):
        RowsToLabel.read(empty)
