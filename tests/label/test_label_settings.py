"""Settings of a labelling: what is left out is as in the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from label_jobs import SMALL_ROWS, small_job, tickets, write_table

import superarm as sa
from superarm.errors import InvalidInput
from superarm.journal.errors import JournalMismatch
from superarm.label.labelling_journal import LabellingJournal, LabellingSettings

TEAMS = ["login", "billing", "ads"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "t.jsonl", tickets(30))


def saved(journal: Path) -> LabellingSettings:
    with LabellingJournal(journal, read_only=True) as opened:
        return opened.saved_settings


def test_the_command_goes_on_with_the_settings_of_its_journal(
    table: Path, monkeypatch: pytest.MonkeyPatch, run_here: Any
) -> None:
    journal = Path(f"{table}.labels.db")
    options = {"target": 0.9, "second_opinion_share": 0.2, "max_labels": 2, "yes_no": True, "seed": 7}
    sa.Labelling(table, labels=TEAMS, journal=journal, show=["text"], **options).close()
    monkeypatch.setattr("superarm.cli.label._serve", lambda job, server, *, browser: None)

    before = saved(journal)
    message = run_here("label", table)
    assert "target: 0.9 of the labels right" in message
    assert saved(journal) == before
    message = run_here("label", table, "--target", 0.95, "--max-labels", 3, "--show", "text,site")
    assert "--target was 0.9, and is 0.95 from now on" in message
    assert "--max-labels was 2, and is 3 from now on" in message
    after = saved(journal)
    assert (after.target, after.max_labels, after.show) == (0.95, 3, ["text", "site"])
    assert (after.second_opinion_share, after.yes_no, after.seed) == (0.2, True, 7)


def test_a_target_is_kept_with_the_journal(tmp_path: Path) -> None:
    journal = tmp_path / "l.db"

    def kept() -> tuple[float, float]:
        return saved(journal).target, saved(journal).second_opinion_share

    with small_job(journal=journal):
        assert kept() == (1.0, 0.0)
    with sa.Labelling(SMALL_ROWS, journal=journal, target=0.9, read_only=True):
        assert kept() == (1.0, 0.0)
    with sa.Labelling(SMALL_ROWS, journal=journal, target=0.95, second_opinion_share=0.1):
        pass
    for _ in range(2):
        assert kept() == (0.95, 0.1)
        with sa.Labelling(SMALL_ROWS, journal=journal) as job:  # left out, they stay
            assert (job.settings.target, job.settings.second_opinion_share) == (0.95, 0.1)
    with sa.Labelling(SMALL_ROWS, journal=journal, second_opinion_share=0.0) as job:
        assert (job.settings.target, *kept()) == (0.95, 0.95, 0.0)
    assert sa.Labelling(SMALL_ROWS, labels=["a", "b"]).settings.target == 0.99


def test_a_journal_is_resumed_with_all_that_it_was_made_with(table: Path, tmp_path: Path) -> None:
    journal, moved = tmp_path / "j.db", tmp_path / "elsewhere"
    rows = {"kinds": {"number": "left out"}, "show": ["text"], "seed": 3}
    with sa.Labelling(table, labels=TEAMS, journal=journal, target=0.9, **rows) as job:
        settings, columns = job.settings, job.rows.columns
        question = job.ask()
    with sa.Labelling.resume(journal) as job:
        assert job.settings == settings
        assert job.rows.columns.names == columns.names
        again = job.ask()
        assert again.values == question.values
        assert set(again.values) == {"text"}
    moved.mkdir()
    table.rename(moved / "t.jsonl")
    with pytest.raises(InvalidInput, match=r"the rows of .*j\.db are not there any more: .*t\.jsonl"):
        sa.Labelling.resume(journal)
    with sa.Labelling.resume(journal, str(moved / "t.jsonl"), read_only=True) as job:
        assert job.settings == settings
    with pytest.raises(InvalidInput, match="no such journal"):
        sa.Labelling.resume(tmp_path / "no.db")


def test_rows_beside_the_journal_come_before_those_of_the_old_place(table: Path, tmp_path: Path) -> None:
    with sa.Labelling(table, labels=TEAMS, journal=tmp_path / "j.db", target=1.0) as job:
        job.answer(job.ask(), label="ads")
    copy = tmp_path / "copy"
    copy.mkdir()
    (tmp_path / "j.db").rename(copy / "j.db")
    write_table(copy / "t.jsonl", tickets(31))
    with LabellingJournal(copy / "j.db", read_only=True) as opened:
        assert opened.find_rows() == str(copy / "t.jsonl")
        assert opened.find_rows(str(table)) == str(table)


def test_exports_show_the_columns_that_people_saw(table: Path, tmp_path: Path, run_here: Any) -> None:
    with sa.Labelling(table, labels=TEAMS, journal=tmp_path / "j.db", show=["text"]) as job:
        job.answer(job.ask(), label="ads")
    out = tmp_path / "out.json"
    command = ("labels", "export", tmp_path / "j.db", "--format", "label-studio", "--output", out)
    run_here(*command)
    assert all(set(task["data"]) == {"text"} for task in json.loads(out.read_text()))


def test_what_cannot_change_and_what_cannot_be_is_refused(table: Path, tmp_path: Path) -> None:
    sa.Labelling(table, labels=TEAMS, journal=tmp_path / "j.db").close()
    wanted = (
        r"yes_no of superarm label must be False, which .* was made with \(another journal=, on the command"
    )
    with pytest.raises(JournalMismatch, match=wanted):
        sa.Labelling(table, journal=tmp_path / "j.db", yes_no=True)
    for options, message in (
        ({"second_opinion_share": 1.5}, "second_opinion_share of Labelling must be"),
        ({"max_labels": 0}, "max_labels of Labelling must be"),
        ({"target": 0.3}, r"target of Labelling must be a share of right labels from 0\.5 to 1"),
        ({"show": ["nope"]}, "show of .* must be among"),
    ):
        with pytest.raises(InvalidInput, match=message):
            sa.Labelling(table, journal=tmp_path / "j.db", **options)
        with pytest.raises(InvalidInput, match=message):
            sa.Labelling(table, labels=TEAMS, journal=tmp_path / "new.db", **options)
    assert not (tmp_path / "new.db").exists()
    assert saved(tmp_path / "j.db").target == 0.99


@pytest.mark.parametrize("command", [("export", "--output", "o.json"), ("import", "file.json")])
def test_an_unknown_format_is_refused_before_anything_is_opened(
    command: tuple[str, ...], run_here: Any
) -> None:
    verb, *rest = command
    message = run_here("labels", verb, "no-such.db", *rest, "--format", "nosuch", code=2)
    assert "--format of superarm labels must be one of label-studio" in message


def test_columns_that_are_left_out_are_as_in_the_journal(tmp_path: Path) -> None:
    """The column of labels, too: else it would be shown, and no row would be known again."""
    table, journal = write_table(tmp_path / "t.jsonl", tickets(20)), tmp_path / "l.db"
    kinds = {"site": "left out"}
    with sa.Labelling(table, labels="team", kinds=kinds, journal=journal) as first:
        columns = first.rows.columns.names
    with sa.Labelling(table, journal=journal) as again:
        assert again.progress().labelled == 20
        assert (list(again.rows.cells[0]), again.rows.columns.names) == (["number", "text", "site"], columns)
    with sa.Labelling(table, kinds={"site": "words"}, journal=journal) as other:
        assert "site" in other.rows.columns.names
