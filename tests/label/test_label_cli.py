"""superarm label and superarm labels."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import superarm as sa
from superarm.cli.label import _describe
from superarm.cli.options import read_labels
from superarm.cli.output import print_reading
from superarm.errors import InvalidInput
from superarm.journal.errors import JournalUnavailable
from superarm.label.erase import erase_person
from superarm.label.labelling_journal import LabellingJournal, create_labelling_journal
from superarm.label.rows_to_label import RowsToLabel
from superarm.label.simulated_labeller import simulate_labeller
from superarm.label.table_export import write_table
from superarm.service import DecisionRequest, Service


def run(*args: object) -> Any:
    """The command, as people run it."""
    return subprocess.run(
        [sys.executable, "-m", "superarm", *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    path = tmp_path / "tickets.csv"
    words = {"login": "password reset", "billing": "invoice wrong", "ads": "banner broken"}
    lines = [
        f"{i},please {text} of {i * i} days,{team}" for i, (team, text) in enumerate(list(words.items()) * 60)
    ]
    path.write_text("id,text,team\n" + "\n".join(lines) + "\n")
    return path


def test_a_long_journal_is_told_to_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with LabellingJournal(tmp_path / "a.db") as journal:
        sa.Labelling([{"n": 1.0}, {"n": 2.0}], labels=["a", "b"], journal=journal)
        print_reading(journal)
        for _ in range(1_000):
            journal.change({"what": "rows", "keys": []})
        print_reading(journal)
    assert capsys.readouterr().err == f"reading 1,001 events of {tmp_path / 'a.db'}\n"


def test_how_many_clicks_would_it_take(tickets: Path) -> None:
    outcome = json.loads(run("label", tickets, "--answers", "team", "--target", 1, "--json").stdout)
    assert set(outcome) == {
        "rows", "n_labels", "target", "clicks", "audits", "clicks_per_row", "labelled", "none_fits", "wrong",
        "wrong_rate", "estimated_wrong_rate", "target_met", "interval", "by_tenth",
    }  # fmt: skip
    assert (outcome["rows"], outcome["n_labels"], outcome["labelled"], outcome["wrong"]) == (180, 3, 180, 0)
    assert not list(tickets.parent.glob("*.db"))
    shown = run("label", tickets, "--answers", "team")
    assert "clicks a row" in shown.stdout
    assert "features: text (text" in shown.stderr


@pytest.fixture
def labelled(tickets: Path) -> Path:
    """The journal of tickets that somebody has labelled, each of them."""
    journal = tickets.with_name("tickets.csv.labels.db")
    rows = RowsToLabel.read(tickets, answers="team")
    with sa.Labelling(rows, labels=["login", "billing", "ads"], target=1.0, journal=journal) as job:
        simulate_labeller(job, rows.truth)
    return journal


def test_a_simulation_touches_no_journal(tickets: Path, labelled: Path, run_here: Any) -> None:
    before = labelled.read_bytes()
    message = run_here("label", tickets, "--answers", "team", "--journal", labelled, code=2)
    assert (
        "--journal of superarm label must be left out with --answers: a simulation keeps nothing" in message
    )
    run_here("label", tickets, "--answers", "team", "--json")
    assert labelled.read_bytes() == before


def test_labels_go_out_with_a_model_and_come_in_again(labelled: Path, tmp_path: Path, run_here: Any) -> None:
    journal, out, model = labelled, tmp_path / "labelled.csv", tmp_path / "team.npz"
    done = run("labels", "export", journal, "--output", out, "--model", model)
    assert done.returncode == 0, done.stderr
    rows = read(out)
    assert len(rows) == 180
    assert list(rows[0]) == ["id", "text", "row", "label", "belief", "clicks", "how", "by"]
    assert [row["label"] for row in rows] == ["login", "billing", "ads"] * 60
    assert sa.load(model).predict([{"text": "please banner broken"}])[0] == "ads"
    columns = tmp_path / "team.columns.json"
    assert f"written to {model} (its columns: {columns})" in done.stderr
    assert sa.Columns.read(columns) == sa.load(model).columns
    for asked in ({"set_size": 2}, {"coverage": 0.9}):  # a short list, to people who say yes or no
        service = Service.open(tmp_path / f"{next(iter(asked))}.db", model=model, **asked)
        request = DecisionRequest({"text": "please banner broken"})
        shown = service.call(request).labels
        assert shown[0] == "ads" or "coverage" in asked
        assert len(shown) == 2 or "coverage" in asked
        service.close()
    message = run_here("labels", "export", journal, "--output", out, code=2)
    assert "a new file, or given with --force" in message
    message = run_here("labels", "export", journal, "--output", tmp_path / "labelled.xlsx", code=2)
    assert "a file that ends in one of .parquet, .csv, .tsv, .jsonl, .ndjson" in message
    message = run_here("labels", "change", journal, "--rename", "ads", "adverts")
    assert "labels: login, billing, adverts" in message
    run_here("labels", "export", journal, "--output", out, "--force")
    assert {row["label"] for row in read(out)} == {"login", "billing", "adverts"}
    for ending in (".CSV", ".Tsv"):
        upper = tmp_path / f"again{ending}"
        run_here("labels", "export", journal, "--output", upper)
        assert len(upper.read_text().splitlines()[0].split("," if ending == ".CSV" else "\t")) == 8


def test_a_model_needs_labels_and_a_change_comes_alone(tickets: Path, tmp_path: Path, run_here: Any) -> None:
    journal, model = tmp_path / "l.db", tmp_path / "m.npz"
    sa.Labelling(tickets, labels=["Ads", "Legal, privacy"], target=1.0, journal=journal).close()
    message = run_here("labels", "export", journal, "--model", model, code=2)
    assert f"rows of {tickets} must be labelled, at least some, for a model, got no label" in message
    assert not model.exists()
    message = run_here("labels", "change", journal, "--disable", "Ads", "--add", "Job", code=2)
    assert "must be one change at a time: --add, --rename, --merge, --disable" in message
    message = run_here("labels", "change", journal, "--add", "ads")
    assert "labels: Ads, 'Legal, privacy', ads 0 of 180 labelled" in message
    with sa.Labelling.resume(journal) as job:
        job.answer(job.ask(), label="Ads")
        assert job.rows.name == str(tickets)
    message = run_here("labels", "export", journal, "--model", model)
    assert "a model of 3 labels, learnt from 1 rows, written to" in message


def test_answers_move_to_another_journal(
    tickets: Path, labelled: Path, tmp_path: Path, run_here: Any
) -> None:
    other, answers = tmp_path / "other.db", tmp_path / "answers.jsonl"
    rows = RowsToLabel.read(tickets, answers="team")
    sa.Labelling(rows, labels=["login", "billing"], target=1.0, seed=3, journal=other).close()
    message = run_here("labels", "export", labelled, "--format", "answers", "--output", answers)
    n_answers = len(answers.read_text().splitlines())
    assert f"{n_answers:,} answers written to" in message
    command = ("labels", "import", other, answers, "--format", "answers")
    message = run_here(*command)
    assert f"{n_answers:,} answers taken over; new labels: ads" in message
    assert "180 of 180 labelled" in message
    assert "0 answers taken over; 180 that were known before 180 of 180 labelled" in run_here(*command)


def test_what_is_wrong_is_said(tickets: Path, tmp_path: Path, run_here: Any) -> None:
    for args, words in (
        (("label", tickets, "--answers", "nope"), "answers of"),
        (("label", tickets, "--json"), "superarm label --json needs --answers"),
        (("label", tmp_path / "none.csv", "--answers", "team"), "no such file"),
        (("labels", "export", tmp_path / "no.db", "--output", tmp_path / "x.csv"), "no such journal"),
        (("label", tickets, "--no-browser"), "labels of superarm label must be given"),
    ):
        message = run_here(*args, code=2)
        assert words in message
    assert not list(tmp_path.glob("*.labels.db"))


def test_a_label_that_stands_twice_is_named_with_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    path.write_text("login\n\nbilling \n login\n")
    with pytest.raises(
        InvalidInput, match=r"line 4 of .*labels.txt must be another label than that of line 1, got 'login'"
    ):
        read_labels(path)
    path.write_text("login\n\n")
    with pytest.raises(InvalidInput, match=r"labels of .*labels.txt must be at least two, one a line, got 1"):
        read_labels(path)
    path = tmp_path / "teams.csv"
    path.write_text("Team;Leiter\nlogin;Anna\nbilling;Ben\n")
    wanted = (
        "labels of .*teams.csv must be one a line, without a header and further columns, got 'Team;Leiter'"
    )
    with pytest.raises(InvalidInput, match=wanted):
        read_labels(path)
    path.write_text("login\nbilling, payments\n")
    assert read_labels(path) == ["login", "billing, payments"]


def test_a_refused_command_leaves_nothing_behind(
    tickets: Path, tmp_path: Path, run_here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the journal of digits would be
    labels, folder = tmp_path / "labels.txt", tmp_path / "texts"
    labels.write_text("login\nbilling\n")
    folder.mkdir()
    (folder / "a.txt").write_text("a text")
    people = tmp_path / "people.txt"
    people.write_text("anna short\n")
    taken = socket.create_server(("127.0.0.1", 0))
    before = sorted(tmp_path.rglob("*"))
    for rows, option, value, words in (
        (tickets, "--keys", "nome=x", "--keys of superarm label must be for labels, none"),
        (tickets, "--keys", "none", "--keys of superarm label must be a visible character for none"),
        (tickets, "--token-file", people, "token of superarm label must be at least 16 visible"),
        (tickets, "--token-file", tmp_path / "no", "--token-file of superarm label must be a file"),
        (tickets, "--host", "0.0.0.0", "needs --token-file"),
        (tickets, "--port", taken.getsockname()[1], "--port of superarm label must be free"),
        (tickets, "--show", "nope", "show of"),
        (tickets, "--vectors", tmp_path / "no.npy", "no.npy"),
        (tickets, "--text", "nope", "nope"),
        ("digits", "--vectors", tmp_path / "no.npy", "vectors of digits must be left out"),
        ("digits", "--answers", "z", "answers of digits must be y"),
        ("digits", "--text", "y", "kinds of digits must be left out"),
        (folder, "--numbers", "text", "kinds of"),
        (folder, "--answers", "text", "answers of"),
    ):
        message = run_here("label", rows, "--labels", labels, "--no-browser", option, value, code=2)
        assert words in message
        assert sorted(tmp_path.rglob("*")) == before, option
    taken.close()


def test_labels_are_renamed_and_merged(tickets: Path, tmp_path: Path, run_here: Any) -> None:
    journal = tmp_path / "l.db"
    sa.Labelling(tickets, labels=["x", "x=1", "y=2", "z"], target=1.0, journal=journal).close()

    def change(*option: str, code: int = 0) -> str:
        return run_here("labels", "change", journal, *option, code=code)

    assert "option '--merge' requires 2 arguments" in change("--merge", "x", code=2)
    wanted = "label of Labelling must be one of the labels (or add it), got 'w'"
    assert wanted in change("--rename", "w", "v", code=2)
    assert "labels: x, x=1, two=2, z " in change("--rename", "y=2", "two=2")
    assert "labels: x=1, two=2, z " in change("--merge", "x", "two=2")


def test_a_folder_says_what_it_skips_and_which_file_is_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "texts"
    (folder / ".checkpoints").mkdir(parents=True)
    for name in ("a.txt", "b.txt", ".hidden.txt", ".checkpoints/a.txt", "notes.md"):
        (folder / name).write_bytes(f"\ufeffa text from {name}".encode())
    rows = RowsToLabel.read(folder)
    assert [row["file"] for row in rows.cells] == ["a.txt", "b.txt"]
    assert not rows.cells[0]["text"].startswith("\ufeff")
    labels, journal = tmp_path / "labels.txt", tmp_path / "l.db"
    labels.write_text("x\ny\n")
    with sa.Labelling(rows, labels=["x", "y"], journal=journal) as job:
        _describe(job)
    assert f"3 files of {folder} skipped: hidden, or neither pictures nor .txt" in capsys.readouterr().err
    (folder / "c.txt").write_bytes("Grüße".encode("latin-1"))
    before = journal.read_bytes()
    done = run("label", folder, "--labels", labels, "--journal", journal, "--no-browser")
    assert done.returncode == 2
    assert "c.txt must be UTF-8 (convert it, or take it out of the folder), got byte 0xfc at 2" in " ".join(
        done.stderr.split()
    )
    assert journal.read_bytes() == before


def test_equal_rows_with_different_labels_are_asked_about(tmp_path: Path) -> None:
    path, journal = tmp_path / "t.csv", tmp_path / "l.db"
    lines = ["card broken,a", "card broken,b", "card broken,a", "cannot log in,b", "cannot log in,b", "lost,"]
    path.write_text("text,team\n" + "\n".join(lines) + "\n")
    rows = RowsToLabel.read(path, label="team")
    warning = "rows whose copies have other labels in the table: 1; they are asked about"
    with pytest.warns(UserWarning, match=warning):
        job = sa.Labelling(rows, journal=journal, target=1.0)
    with job:
        assert [one["label"] for one in job.results()] == [None, None, None, "b", "b", None]
        asked = set()
        while (question := job.ask()) is not None:
            asked.add(question.row)
            job.answer(question, label="a")
        assert asked == {0, 5}
    sa.Labelling(rows, journal=journal, target=1.0).close()  # warned of once
    path.write_text(path.read_text().replace("lost,", "lost,a"))
    done = run("label", path, "--answers", "team")
    assert done.returncode == 0, done.stderr
    assert f"WARNING: {warning}" in " ".join(done.stderr.split())


def test_export_tells_changed_rows_and_writes_nothing_to_the_journal(
    tickets: Path, labelled: Path, tmp_path: Path, run_here: Any
) -> None:
    lines = tickets.read_text().splitlines()
    tickets.write_text(
        "\n".join([*lines[:2], lines[2].replace("please", "kindly"), *lines[3:], "x,new,"]) + "\n"
    )
    before, change = (
        labelled.read_bytes(),
        "since the last time 2 distinct rows are new, and 1 gone or changed",
    )
    for number in range(2):
        message = run_here("labels", "export", labelled, "--output", tmp_path / f"{number}.csv")
        assert f"WARNING: {change}; answers about those are not in view" in message
        assert "179 of 181 labelled" in message
    assert labelled.read_bytes() == before
    assert change in run_here("labels", "change", labelled, "--add", "spam")
    with sa.Labelling(RowsToLabel.read(tickets, answers="team"), journal=labelled, target=1.0) as job:
        assert job.journal.rows_added == ""  # it was change
        message = run_here("labels", "export", labelled, "--output", tmp_path / "open.csv")


def test_an_empty_name_is_nobodys(labelled: Path, run_here: Any) -> None:
    for option in ("--erase", "--exclude"):
        for name in ("", "nobody"):
            message = run_here("labels", "change", labelled, option, name, code=2)
            assert f"the name of a person, but nobody has answered under a name yet, got '{name}'" in message
    with sa.Labelling(
        RowsToLabel.read(labelled.with_name("tickets.csv"), answers="team"), journal=labelled
    ) as job:
        assert job.progress().rows_asked == 180


def test_a_simulated_labeller_knows_only_labels_of_the_file(
    tickets: Path, tmp_path: Path, run_here: Any
) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("login\nbills\n")
    message = run_here("label", tickets, "--answers", "team", "--labels", labels, code=2)
    assert f"column 'team' of {tickets} must be only labels of {labels}, got ['billing', 'ads']" in message
    labels.write_text("login\nbilling\nads\nspam\n")
    run_here("label", tickets, "--answers", "team", "--labels", labels, "--json")


def test_the_labels_of_a_column_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"

    def notes_about(cells: list[str]) -> str:
        path.write_text("text,y\n" + "".join(f"some text {i},{cell}\n" for i, cell in enumerate(cells)))
        rows = RowsToLabel.read(path, label="y")
        with sa.Labelling(rows) as job:
            _describe(job)
        return " ".join(capsys.readouterr().err.split())

    with pytest.warns(
        UserWarning, match=r"taken as labels: \?, NA; if they mean that there is none, empty those"
    ):
        words = notes_about(["a", "b", "b", "?", "", "NA"])
    assert "labels in the table: b (2), a (1), ? (1), NA (1); 1 rows without" in words
    numbers = notes_about(["1", "2", "2", "?", "", "NA"])
    assert "labels in the table: 2 (2), 1 (1); 3 rows without" in numbers
    assert "i9 (1), and 2 more; 0 rows without" in notes_about([f"i{i}" for i in range(12)])


def test_json_stands_alone_and_warnings_beside_it(tmp_path: Path, run_here: Any) -> None:
    path, output = tmp_path / "t.csv", io.StringIO()
    lines = ["card,Ads", "card,ads ", ",login", "NA,login", "reset,ADS", "1/2,log in"]
    path.write_text("text,team\n" + "\n".join(lines) + "\n")
    with contextlib.redirect_stdout(output):
        told = run_here("label", path, "--answers", "team", "--json")
    assert json.loads(output.getvalue())["rows"] == 6
    for warning in (
        "WARNING: rows whose copies have other labels in the table: 1; they are asked about",
        "WARNING: 2 rows have no value in any column: they are one question, and get one label",
        "are different labels: ADS, Ads, ads",
        "these answers are too few to be sure",
    ):
        assert warning in told


def test_a_simulation_needs_two_labels(tmp_path: Path, run_here: Any) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text,team\ncard,ads\nreset,ads\n")
    message = run_here("label", path, "--answers", "team", code=2)
    assert f"column 'team' of {path} must be at least two different labels, got ['ads']" in message


def test_what_a_column_of_numbers_cannot_read_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [f"{i},50 €" if i % 2 else f"{i}.50" for i in range(59)]
    rows = [{"amount": cell, "kind": "ab"[i % 2]} for i, cell in enumerate([*cells, "a lot"])]
    job = sa.Labelling(rows, labels=["hi", "lo"])
    _describe(job)
    told = capsys.readouterr().err
    assert "amount (numbers, with decimal commas and points, 1 words)" in told
    assert "WARNING: column 'amount' holds numbers, got 'a lot'" in told
    features = job.rows.encode_items(2).dense
    assert features[:59, 0].tolist() == [i + 0.5 for i in range(59)]


def test_an_export_is_not_labelled_again_as_it_is(labelled: Path, tmp_path: Path, run_here: Any) -> None:
    """Its columns would be learnt from, and what only a model said be taken as right."""
    out = tmp_path / "out.csv"
    run_here("labels", "export", labelled, "--output", out)
    message = run_here("label", out, "--labels", "label", "--answers", "label", code=2)
    assert "must be a table without row, belief, clicks, how, by" in message
    own = read(out)
    for row in own:  # a table of somebody's own, which has columns of these names
        del row["belief"]
    assert list(RowsToLabel.read(own, label="label").cells[0]) == ["id", "text", "row", "clicks", "how", "by"]


def test_columns_of_the_table_keep_their_names(tmp_path: Path, run_here: Any) -> None:
    table = tmp_path / "t.csv"
    table.write_text("text,by,how\n" + "".join(f"note {i},ann,far {i}\n" for i in range(8)))
    with sa.Labelling(table, labels=["a", "b"], target=1.0, journal=tmp_path / "t.db") as job:
        job.answer(job.ask("bob"), label="a", by="bob")
    out = tmp_path / "out.csv"
    message = run_here("labels", "export", tmp_path / "t.db", "--output", out)
    assert "keeps them: here how is superarm_how, by is superarm_by" in message
    rows = read(out)
    assert list(rows[0])[:3] == ["text", "by", "how"]
    assert {row["by"] for row in rows} == {"ann"}
    assert sorted(row["superarm_by"] for row in rows)[-1] == "bob"
    with pytest.raises(InvalidInput, match="got what superarm labels export has written"):
        RowsToLabel.read(out, label="label")


def test_vectors_of_a_file_of_their_own_are_no_column_of_the_export(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.eye(3, dtype=np.float32))
    (tmp_path / "texts").mkdir()
    for name in "abc":
        (tmp_path / "texts" / f"{name}.txt").write_text(f"a text about {name}")
    table, added = [{"note": name} for name in "abc"], ["row", "label", "belief", "clicks", "how", "by"]
    for source, columns in ((table, ["note"]), (tmp_path / "texts", ["file", "text"])):
        job = sa.Labelling(source, labels=["x", "y"], vectors=tmp_path / "v.npy")
        assert "vectors" in job.rows.columns.names
        write_table(job, tmp_path / "out.csv")
        assert list(read(tmp_path / "out.csv")[0]) == columns + added


def test_verify_and_serve_leave_a_labelling_alone(labelled: Path, tmp_path: Path, run_here: Any) -> None:
    for args in (
        ("verify", labelled),
        ("replay", labelled),
        ("export", labelled, "--output", tmp_path / "o.jsonl"),
    ):
        assert "a labelling" in run_here(*args, code=2)


def test_a_persons_answers_are_erased(tickets: Path, tmp_path: Path, run_here: Any) -> None:
    journal = tmp_path / "y[1]l.db"  # no pattern of names
    leftover = tmp_path / ".y[1]l.db.4711-1.part"
    leftover.write_text("what a crash has left, with zoe in it")
    with sa.Labelling(tickets, labels=["login", "billing", "ads"], target=1.0, journal=journal) as job:
        for i in range(12):
            name = ("ann", "zoe")[i % 2]
            question = job.ask(name)
            job.answer(question, label="ads", by=name)
        job.undo("ann")
        job.undo("zoe")
        job.add_label("spam", by="zoe")
        kept = {one["row"] for one in job.results() if one["by"] == "ann"}
    assert len(kept) == 5
    message = run_here("labels", "change", journal, "--erase", "zoe")
    assert "6 answers of zoe erased" in message
    assert sorted(path.name for path in tmp_path.glob("*l.db*") if "shm" not in path.name) == [
        "y[1]l.db", "y[1]l.db-mark", "y[1]l.db.lock",
    ]  # fmt: skip
    assert all(b"zoe" not in path.read_bytes() for path in tmp_path.glob("*l.db*"))
    with sa.Labelling(tickets, journal=journal, target=1.0) as job:
        assert {one["row"] for one in job.results() if one["label"]} == kept
        assert "spam" in job.label_names
        question = job.ask("ann")
        job.answer(question, label="login", by="ann")
        run_here("labels", "change", journal, "--erase", "ann", code=2)  # somebody works on it
    for option, owner in (
        ("--erase", "--erase of superarm labels change"),
        ("--exclude", "person of Labelling"),
    ):
        message = run_here("labels", "change", journal, option, "zoe", code=2)
        assert f"{owner} must be one of ann, got 'zoe'" in message


def test_an_erasure_that_fails_leaves_the_journal_as_it_was(
    tickets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "l.db"
    with sa.Labelling(tickets, labels=["login", "ads"], target=1.0, journal=journal) as job:
        job.answer(job.ask("zoe"), label="ads", by="zoe")
        before = job.results()

    def fail(*paths: Path) -> None:
        raise OSError("no room")

    # the last step before the new file gets its name
    monkeypatch.setattr("superarm.label.erase.discard", fail)
    with pytest.raises(OSError, match="no room"):
        erase_person(journal, "zoe")
    monkeypatch.undo()
    names = {path.name for path in tmp_path.iterdir() if "l.db" in path.name}
    assert names - {"l.db-shm", "l.db-wal"} == {"l.db", "l.db-mark", "l.db.lock"}
    with sa.Labelling(tickets, journal=journal) as job:
        assert job.results() == before
    assert erase_person(journal, "zoe") == 1


def test_an_erasure_whose_new_log_cannot_be_emptied_leaves_the_journal_as_it_was(
    tickets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "l.db"
    with sa.Labelling(tickets, labels=["login", "ads"], target=1.0, journal=journal) as job:
        for person in ("ann", "zoe"):
            job.answer(job.ask(person), label="ads", by=person)
        before = job.results()
    readers = []

    def create_and_read(new: Path, meta: Any) -> None:
        create_labelling_journal(new, meta)
        readers.append(sqlite3.connect(new))
        readers[0].execute("BEGIN")
        readers[0].execute("SELECT * FROM events").fetchall()

    monkeypatch.setattr("superarm.label.erase.create_labelling_journal", create_and_read)
    with pytest.raises(JournalUnavailable, match="cannot be emptied"):
        erase_person(journal, "zoe")
    readers[0].close()
    with sa.Labelling(tickets, journal=journal) as job:
        assert job.results() == before
