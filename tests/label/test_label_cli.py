"""superarm label and superarm labels."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import superarm as sa
from superarm.cli.app import app


def run(*args: object) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    path = tmp_path / "tickets.csv"
    words = {"login": "password reset", "billing": "invoice wrong", "ads": "banner broken"}
    lines = [f"{i},please {text} {i % 11},{team}" for i, (team, text) in enumerate(list(words.items()) * 60)]
    path.write_text("id,text,team\n" + "\n".join(lines) + "\n")
    return path


def test_how_many_clicks_would_it_take(tickets: Path) -> None:
    told = json.loads(run("label", tickets, "--answers", "team", "--target", 1, "--json").stdout)
    assert set(told) == {
        "rows", "n_labels", "target", "clicks", "audits", "clicks_per_row", "labelled", "wrong", "wrong_rate",
        "estimated_wrong_rate", "interval", "by_tenth",
    }  # fmt: skip
    assert (told["rows"], told["n_labels"], told["labelled"], told["wrong"]) == (180, 3, 180, 0)
    assert not list(tickets.parent.glob("*.db"))
    shown = run("label", tickets, "--answers", "team")
    assert "clicks a row" in shown.stdout
    assert "features: text (text" in shown.stderr


def test_labels_go_out_with_a_model_and_come_in_again(tickets: Path, tmp_path: Path) -> None:
    journal = tmp_path / "tickets.csv.labels.db"
    assert (
        run("label", tickets, "--answers", "team", "--target", 1, "--journal", journal, "--json").exit_code
        == 0
    )
    out, model = tmp_path / "labelled.csv", tmp_path / "team.npz"
    done = run("labels", "export", journal, "--output", out, "--model", model, "--target", 1)
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(out.open()))
    assert len(rows) == 180
    assert list(rows[0]) == ["id", "text", "team", "row", "label", "belief", "clicks", "how", "by"]
    assert all(row["label"] == row["team"] for row in rows)
    assert sa.load(model).predict([{"text": "please banner broken"}])[0] == "ads"
    refused = run("labels", "export", journal, "--output", out)
    assert refused.exit_code == 2
    assert "a new file, or given with --force" in refused.stderr
    assert (
        "labels: login, billing, money"
        not in run("labels", "change", journal, "--rename", "ads=adverts").stderr
    )
    assert run("labels", "export", journal, "--output", out, "--force").exit_code == 0
    assert {row["label"] for row in csv.DictReader(out.open())} == {"login", "billing", "adverts"}


def test_what_is_wrong_is_said(tickets: Path, tmp_path: Path) -> None:
    for args, words in (
        (("label", tickets, "--answers", "nope"), "answers of"),
        (("label", tickets, "--json"), "--json of superarm label must be used with --answers"),
        (("label", tmp_path / "none.csv", "--answers", "team"), "no such file"),
        (("labels", "export", tmp_path / "no.db", "--output", tmp_path / "x.csv"), "no such journal"),
        (("label", tickets, "--no-browser"), "labels of superarm label must be given"),
    ):
        done = run(*args)
        assert done.exit_code == 2, done.output
        assert words in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.labels.db"))


def test_verify_and_serve_leave_a_labelling_alone(tickets: Path, tmp_path: Path) -> None:
    journal = tmp_path / "l.db"
    run("label", tickets, "--answers", "team", "--target", 1, "--journal", journal, "--json")
    for args in (
        ("verify", journal),
        ("replay", journal),
        ("export", journal, "--output", tmp_path / "o.jsonl"),
    ):
        done = run(*args)
        assert done.exit_code != 0
        assert "a labelling" in done.stderr
        assert "Traceback" not in done.output
