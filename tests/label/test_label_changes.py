"""Labels and people that change while people work."""

from __future__ import annotations

from pathlib import Path

import pytest
from label_jobs import add_answers, small_job, tickets, write_table

import superarm as sa
from superarm.errors import FeedbackError, InvalidInput


def test_labels_change_while_labelling() -> None:
    job = small_job()
    for _ in range(10):
        question = job.ask()
        job.answer(question, label="abc"[question.row % 3])
    job.add_label("d")
    job.rename_label("a", "first")
    job.merge_labels("b", "c")
    assert job.label_names == ["first", "c", "d"]
    assert {one["label"] for one in job.results()} == {"first", "c", None}
    before = job.progress().labelled
    job.disable_label("c")
    assert job.progress().labelled < before  # its rows are open again
    with pytest.raises(InvalidInput, match="at least two"):
        job.disable_label("d")
    question = job.ask()
    assert set(question.labels) <= {"first", "d"}


def test_a_name_that_is_gone_can_come_back(tmp_path: Path) -> None:
    journal = tmp_path / "l.db"
    with small_job(journal=journal) as job:
        for row, label in enumerate("abcabc"):
            add_answers(job, [{"row": row, "label": label}])
        job.add_label("d")
        job.disable_label("a")
        assert [one["label"] for one in job.results()[:6]] == [None, "b", "c", None, "b", "c"]
        add_answers(job, [{"row": 9, "label": "b"}])
        job.add_label("a")  # as it was, with its answers
        assert [one["label"] for one in job.results()[:6]] == ["a", "b", "c", "a", "b", "c"]
        add_answers(job, [{"row": 9, "label": "a", "by": by} for by in ("ann", "bob", "cy")])
        assert job.results()[9]["label"] == "a"  # although the model's answer of before did not know it
        job.rename_label("a", "first")
        job.add_label("a")  # another one
        job.set_final_label(7, "a")
        job.merge_labels("b", "c")
        job.add_label("b")  # another one
        job.set_final_label(8, "b")
        job.disable_label("d")
        job.rename_label("c", "d")
        expected = ["first", "d", "d", "first", "d", "d", None, "a", "b"]
        assert [one["label"] for one in job.results()[:9]] == expected
        assert sorted(job.label_names) == ["a", "b", "d", "first"]
        for name in job.label_names:
            with pytest.raises(InvalidInput, match="a new name"):
                job.add_label(name)
    with small_job(journal=journal) as job:
        assert [one["label"] for one in job.results()[:9]] == expected


def test_labels_of_the_file_and_settled_ones_stay_when_others_go(tmp_path: Path) -> None:
    rows = [row | {"team": row["team"] if row["number"] < 60 else ""} for row in tickets(90)]
    job = sa.Labelling(write_table(tmp_path / "t.jsonl", rows), labels="team", target=1.0)
    job.add_label("spam")
    job.set_final_label(80, "login")
    job.disable_label("spam")
    assert job.progress().labelled == 61
    job.merge_labels("ads", "billing")
    assert job.progress().labelled == 61
    assert {one["label"] for one in job.results()} == {"billing", "login", None}
    question = job.ask("ann")
    with pytest.raises(FeedbackError, match="is somebody else's"):
        job.skip(question, "bob")


def test_a_persons_answers_can_be_left_out() -> None:
    job = small_job()
    for name in ("ann", "bob") * 5:
        question = job.ask(name)
        job.answer(question, label="a", by=name)
    assert job.progress().labelled == 10
    job.exclude_person("bob")
    assert job.progress().labelled == 5
    assert job.ask("bob") is job.undo("bob") is None
    with pytest.raises(InvalidInput, match="must be one whose answers count, got bob, excluded already"):
        job.exclude_person("bob")
    job.include_person("bob")
    assert job.progress().labelled == 10
    with pytest.raises(
        InvalidInput, match="person of Labelling must be one of ann, bob, got 'bo'; did you mean 'bob'"
    ):
        job.exclude_person("bo")
    with pytest.raises(InvalidInput, match="must be the name of a person, but nobody is excluded, got 'bob'"):
        job.include_person("bob")  # who is not left out
    job.answer(job.ask(), label="a")
    with pytest.raises(InvalidInput, match=r"must be one of ann, bob, got 'file'"):
        job.exclude_person("file")
    with pytest.raises(InvalidInput, match="person of Labelling must be one of ann, bob, got ''"):
        job.exclude_person("")  # it would be all who gave no name
    with pytest.raises(InvalidInput, match="the name of a person, but nobody has answered under a name yet"):
        small_job().exclude_person("ann")


@pytest.mark.parametrize("name", ["ann, bob", "file", " ann", "ann\nbob", "x" * 1_001])
def test_a_person_is_one_name_in_every_export(name: str) -> None:
    job = small_job()
    wanted = "by of Labelling must be a person: a name .* on one line, without commas, and not 'file'"
    for act in (
        lambda: job.ask(name),
        lambda: add_answers(job, [{"row": 0, "label": "a", "by": name}]),
        lambda: job.set_final_label(0, "a", by=name),
        lambda: job.add_label("d", by=name),
    ):
        with pytest.raises(InvalidInput, match=wanted):
            act()
    assert job.progress().clicks == 0
