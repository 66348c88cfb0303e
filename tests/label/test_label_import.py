"""What an import says of answers that it did not take over, and of labels that have other names now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from superarm.errors import InvalidInput
from superarm.journal.events import AnswerBody
from superarm.label import Labelling
from superarm.label.formats import ImportedAnswer, export_labels, read_answers
from superarm.label.importing import import_answers

TEXTS = ("charged twice", "cannot log in", "parcel lost", "cannot log in")  # the last is a copy


def make_job() -> Labelling:
    return Labelling([{"text": text} for text in TEXTS], labels=["billing", "login", "delivery"], target=1.0)


def answer(row: int, label: str | None = None, *shown: str, by: str = "ann", **more: Any) -> ImportedAnswer:
    body = AnswerBody(by=by, labels=list(shown), label=label, **more)
    return ImportedAnswer({"text": TEXTS[row] if row < len(TEXTS) else "nowhere"}, body)


def test_every_answer_is_accounted_for() -> None:
    job = make_job()
    answers = [
        answer(0, "billing"),
        answer(1, "login"),
        answer(3, "login"),
        answer(3, "login", by="bob"),
        answer(9, "login"),
    ]
    counts = import_answers(job, answers)
    assert (counts.answers, counts.repeated, counts.known, counts.unknown) == (3, 1, 0, 1)
    assert str(counts) == (
        "3 answers taken over; 1 about rows that are not in the table; "
        "1 that say the same as another about the same or an equal row"
    )
    counts = import_answers(job, [*answers, answer(2, "delivery")])
    assert (counts.answers, counts.repeated, counts.known, counts.unknown) == (1, 1, 3, 1)
    assert "3 that were known before" in str(counts)


def test_old_names_mean_what_labels_are_called_now(tmp_path: Path) -> None:
    job, path = make_job(), tmp_path / "answers.jsonl"
    import_answers(job, [answer(0, "billing"), answer(1, "login", "login", "delivery")])
    assert export_labels(job, path, "answers") == 2
    job.rename_label("billing", "invoices")
    job.add_label("ads")
    job.merge_labels("login", "delivery")
    counts = import_answers(job, read_answers(path, "answers"))
    assert (counts.answers, counts.known, counts.new_labels) == (0, 2, ())
    counts = import_answers(job, [answer(2, "billing", by="bob"), answer(1, "login", by="bob")])
    assert (counts.answers, counts.new_labels) == (2, ())
    assert [result["label"] for result in job.results()] == ["invoices", "delivery", "invoices", "delivery"]
    assert job.label_names == ["invoices", "delivery", "ads"]
    # "not login" says nothing about delivery, which it was merged into
    counts = import_answers(
        job, [answer(0, None, "login", by="eve"), answer(2, None, "login", "ads", by="eve")]
    )
    assert (counts.answers, counts.empty, counts.new_labels) == (1, 1, ())
    item = int(job.rows.item_of_row[2])
    assert [answer.shown for answer in job.state.valid_answers(item) if answer.by == "eve"] == [(3,)]


def test_a_name_that_another_label_has_now_means_that_label() -> None:
    job = make_job()
    job.rename_label("login", "accounts")
    job.add_label("login")
    import_answers(job, [answer(1, "login")])
    assert job.results()[1]["label"] == "login"
    assert job.label_names == ["billing", "accounts", "delivery", "login"]


def test_a_label_that_was_disabled_comes_back() -> None:
    job = make_job()
    job.rename_label("login", "accounts")
    job.disable_label("accounts")
    counts = import_answers(job, [answer(1, "login")])
    assert (counts.answers, counts.new_labels) == (1, ("accounts",))
    assert job.label_names == ["billing", "accounts", "delivery"]


@pytest.mark.parametrize("content", [b"text,team\ncharged twice,billing\n", b"PAR1\x15\xff\xfe"])
def test_the_refusal_of_a_table_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "labelled.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="superarm label TABLE --labels COLUMN"):
        list(read_answers(path, "label-studio"))
    path.write_text(json.dumps([]))
    assert list(read_answers(path, "label-studio")) == []
