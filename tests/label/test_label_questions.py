"""Questions and answers: which labels are shown, who is asked, what can be taken back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from label_jobs import (
    DIGITS,
    SMALL_ROWS,
    WORDS,
    add_answers,
    answer_some,
    digit_rows,
    small_job,
    tickets,
    write_table,
)

import superarm as sa
from superarm.errors import FeedbackError, InvalidInput
from superarm.journal.errors import JournalLocked
from superarm.label.question import word_weights
from superarm.label.rows_to_label import RowsToLabel


def test_after_none_the_next_best_of_the_same_row() -> None:
    job = small_job(max_labels=1)
    first = job.ask()
    job.answer(first, none=True)
    second = job.ask()
    assert second.row == first.row
    assert second.labels != first.labels
    job.answer(second, none=True)
    third = job.ask()
    assert third.row == first.row
    assert {*first.labels, *second.labels, *third.labels} == {"a", "b", "c"}
    job.answer(third, label=third.labels[0])
    assert job.ask().row != first.row


@pytest.mark.parametrize("yes_no", [False, True])
def test_a_label_that_was_denied_is_not_shown_again(yes_no: bool) -> None:
    names = list("abcdefg")
    job = sa.Labelling([{"n": float(i)} for i in range(30)], labels=names, target=1.0, yes_no=yes_no)
    denied: list[str] = []
    first = question = job.ask()
    while question is not None and first is not None and question.row == first.row:
        if len(denied) == len(names):  # all were: some come again, once
            job.answer(question, none=True)
            assert job.ask().row != first.row
            assert job.results()[first.row]["how"] == "none fits"
            break
        assert not set(denied) & set(question.labels)
        denied += question.labels
        job.answer(question, **({"yes": False} if yes_no else {"none": True}))
        question = job.ask()
    assert sorted(denied) == names


def test_a_row_that_no_label_fits_is_left() -> None:
    job = small_job(max_labels=2)
    first = job.ask()
    job.answer(first, none=True)
    assert job.results()[first.row]["how"] == ""  # the third label is the only one left, and may not fit
    add_answers(job, [{"row": first.row, "labels": ["a", "b", "c"]}])
    assert job.results()[first.row]["how"] == "none fits"
    assert job.results()[first.row]["label"] is None
    assert job.disagreements() == []
    after = job.ask()
    assert after.row != first.row
    job.add_label("d")  # whether it fits is asked
    assert job.results()[first.row]["how"] == ""
    again = next(q for q in iter(job.ask, None) if q.row == first.row or job.skip(q))
    assert again.labels == ["d"]
    job.answer(again, label="d")
    assert job.results()[first.row]["how"] == "named"


@pytest.mark.parametrize("target", [1.0, 0.97])
def test_rows_that_no_label_fits_get_none_however_many_buttons_there_are(target: float) -> None:
    """Where the last label that is left was given unasked, a quarter of the rows had a wrong one."""
    random, names = (
        np.random.default_rng(6),
        [f"L{label}" for label in range(6)],
    )  # five buttons, and one more
    truth = [None if row % 4 == 0 else str(random.choice(names)) for row in range(120)]
    rows = [{"text": f"{label}w{row % 3} id{row}"} for row, label in enumerate(truth)]
    job = sa.Labelling(rows, labels=names, target=target)
    answer_some(job, truth, 120)
    asked = [one for one in job.results() if one["how"] not in ("", "accepted")]
    assert len(asked) > 70
    assert [one["label"] for one in asked] == [truth[one["row"]] for one in asked]
    assert job.state.none_fits_share > 0.05


def test_a_yes_leaves_no_doubt_that_a_label_fits() -> None:
    job = small_job(yes_no=True)
    add_answers(
        job, [{"row": 0, "labels": ["a", "b"], "hit": True}, {"row": 0, "labels": ["a"], "hit": False}]
    )
    assert (job.results()[0]["label"], job.results()[0]["how"]) == ("b", "excluded")


def test_no_row_goes_to_two_people_and_a_question_stays_until_it_is_answered() -> None:
    job = small_job()
    asked = [job.ask(by=name) for name in ("ann", "bob", "cy")]
    assert len({one.row for one in asked if one is not None}) == 3
    assert job.ask(by="ann") == asked[0]


def test_equal_rows_are_asked_once() -> None:
    rows = [{"n": float(i % 5)} for i in range(50)]
    job = sa.Labelling(rows, labels=["odd", "even"], target=1.0)
    count = 0
    while (question := job.ask()) is not None:
        job.answer(question, label=("even", "odd")[int(question.values["n"]) % 2])
        count += 1
    assert count == 5
    assert job.progress().labelled == 50
    assert [one["label"] for one in job.results()] == [("even", "odd")[i % 5 % 2] for i in range(50)]


def test_undo_skip_settle_and_disagreements() -> None:
    job = small_job()
    question = job.ask("ann")
    job.answer(question, label="a", by="ann")
    again = job.undo("ann")
    assert again.row == question.row
    assert job.progress().labelled == 0
    job.answer(again, label="b", by="ann")
    assert job.results()[question.row]["label"] == "b"
    add_answers(job, [{"row": question.row, "label": "c", "labels": ["a", "b", "c"], "by": "bob"}])
    (one,) = job.disagreements()
    assert [answer["label"] for answer in one["answers"]] == ["b", "c"]
    job.set_final_label(question.row, "c", by="cy")
    assert job.disagreements() == []
    assert job.results()[question.row] | {"by": ""} == {
        "row": question.row, "label": "c", "belief": 1.0, "clicks": 2, "how": "final", "by": ""
    }  # fmt: skip
    again = job.undo("cy")  # takes the settlement back
    assert again.row == question.row
    assert [one["row"] for one in job.disagreements()] == [question.row]
    assert job.results()[question.row]["how"] == "named"
    assert job.undo("cy") is None
    job.skip(again, "cy")
    skipped = job.ask("ann")
    job.skip(skipped, "ann")
    other = job.ask("ann")
    assert other.row != skipped.row
    assert job.undo("nobody") is None


def test_two_who_name_labels_that_were_not_shown_disagree() -> None:
    job = small_job()
    add_answers(job, [{"row": 3, "by": "ann", "label": "a", "labels": ["c"]}])
    add_answers(job, [{"row": 3, "by": "bob", "label": "b", "labels": ["c"]}])
    assert [one["row"] for one in job.disagreements()] == [3]
    for label in ("a", "b", "c"):  # the last word counts
        job.set_final_label(3, label)
    assert job.results()[3]["label"] == "c"


def test_a_share_is_asked_twice_of_somebody_else() -> None:
    job = small_job(second_opinion_share=1.0)
    people_of: dict[int, set[str]] = {}
    for turn in range(400):
        name = ("ann", "bob")[turn % 2]
        question = job.ask(name)
        if question is None:
            break
        job.answer(question, label="a", by=name)
        people_of.setdefault(question.row, set()).add(name)
    assert all(people == {"ann", "bob"} for people in people_of.values())
    assert len(people_of) == 40


@pytest.mark.parametrize("gone", ["excluded", "undone"])
def test_second_opinions_end_when_the_second_person_does_not_count(gone: str) -> None:
    job = small_job(second_opinion_share=1.0)
    job.answer(job.ask("bob"), label="a", by="bob")
    if gone == "excluded":
        job.exclude_person("bob")
    else:
        job.undo("bob")
        job.skip(job.ask("bob"), by="bob")
    asked: list[int] = []
    while (question := job.ask("ann")) is not None:
        asked.append(question.row)
        job.answer(question, label="a", by="ann")
        assert len(asked) <= 200
    assert job.progress().finished
    assert sum(asked.count(row) == 2 for row in range(40)) >= 39


def test_what_was_taken_back_is_no_click_and_no_audit() -> None:
    rows = digit_rows(300)
    job = sa.Labelling(rows, labels=DIGITS, target=0.9)
    while (question := job.ask()) is not None and not question.audit:
        job.answer(question, label=rows.truth[question.row])
    before = job.progress()
    job.answer(question, label=rows.truth[question.row])
    assert (job.progress().clicks, job.progress().audits) == (before.clicks + 1, before.audits + 1)
    again = job.undo()
    assert (job.progress().clicks, job.progress().audits) == (before.clicks, before.audits)
    assert job.people()[""]["clicks"] == before.clicks
    assert job.results()[question.row]["clicks"] == 0
    job.answer(again, label=rows.truth[question.row])
    assert (job.progress().clicks, job.progress().audits) == (before.clicks + 1, before.audits + 1)
    job.undo()
    job.skip(job.ask())
    assert job.people()[""]["clicks"] == job.progress().clicks == before.clicks


def test_an_answer_counts_once_and_its_row_must_be_there() -> None:
    job = small_job()
    answer = {"row": 3, "label": "a", "by": "ann"}
    assert add_answers(job, [answer, dict(answer), answer | {"by": "bob"}]) == 2
    assert add_answers(job, [answer]) == 0
    assert job.progress().clicks == 2
    for row in (-1, 40, 99, "3", 1.5, None):
        with pytest.raises(InvalidInput, match="row of Labelling must be a number from 0 to 39"):
            add_answers(job, [{"row": row, "label": "a"}])
    with pytest.raises(InvalidInput, match="answer of Labelling must be one with label or labels"):
        add_answers(job, [{"row": 3}])
    assert job.progress().clicks == 2


def test_a_row_asked_again_can_be_skipped() -> None:
    job = small_job(second_opinion_share=1.0)
    asked = []
    while (question := job.ask("ann")) is not None and len(asked) < 300:
        asked.append(question.row)
        if asked.count(question.row) > 1:
            job.skip(question, "ann")
        else:
            job.answer(question, label="a", by="ann")
    assert question is None
    assert max(asked.count(number) for number in set(asked)) <= 2


def test_reasons_name_the_word_that_decides(tmp_path: Path) -> None:
    rows = RowsToLabel.read(write_table(tmp_path / "tickets.jsonl", tickets(600)), answers="team")
    job = sa.Labelling(rows, labels=list(WORDS), target=1.0)
    answer_some(job, rows.truth, 300)
    word, _ = max(word_weights(job, job.ask())["text"], key=lambda pair: pair[1])
    assert word in " ".join(WORDS.values())


def test_an_answer_that_is_sent_twice_counts_once() -> None:
    """A client whose response was lost sends it again, when the next question may be open already."""
    job = small_job()
    first, other = job.ask("ann"), job.ask("bob")
    for _ in range(2):
        job.answer(first.id, label="a", by="ann")
        second = job.ask("ann")
        job.skip(other.id, by="bob")
    assert job.progress().clicks == 1
    assert len(job.state.answers[int(job.rows.item_of_row[other.row])]) == 1
    for reply in ({"label": "b"}, {"none": True}):
        with pytest.raises(FeedbackError, match="the question was answered before"):
            job.answer(first.id, **reply, by="ann")
    with pytest.raises(FeedbackError, match="the question was answered before"):
        job.skip(first.id, by="ann")
    with pytest.raises(FeedbackError, match="is somebody else's"):
        job.answer(first.id, label="a", by="bob")
    job.answer(second.id, label="c", by="ann")
    again = job.undo("ann")
    with pytest.raises(FeedbackError, match="taken back"):  # it is not in the journal any more
        job.answer(second.id, label="c", by="ann")
    job.answer(again, label="b", by="ann")
    assert job.results()[second.row]["label"] == "b"


def test_a_late_answer_counts_unless_somebody_else_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    job = small_job()
    late, bobs, zoes = (job.ask(name) for name in ("ann", "bob", "zoe"))
    monkeypatch.setattr("superarm.label.question.QUESTION_TIMEOUT", 0.0)
    assert job.ask("bob") == bobs  # others' questions stay, too
    job.answer(late, label="a", by="ann")
    assert job.results()[late.row]["label"] == "a"
    assert job.ask("eve").row in {bobs.row, zoes.row}
    name, question = ("bob", bobs) if job.ask("eve").row == bobs.row else ("zoe", zoes)
    with pytest.raises(FeedbackError, match="timed out after 0 minutes, and somebody else was asked"):
        job.answer(question, label="a", by=name)


def test_whoever_asked_without_a_name_is_told_to_ask_with_it() -> None:
    job = small_job()
    question = job.ask()
    with pytest.raises(FeedbackError, match=r"asked without a name; ask again, by ask\(by='anna'\)"):
        job.answer(question, label="a", by="anna")
    with pytest.raises(
        FeedbackError, match=r"question of Labelling must be what ask\(\) returned.*, got None"
    ):
        job.answer(None, label="a")
    job.answer(job.ask(by="anna"), label="a", by="anna")


@pytest.mark.parametrize("label", [2, 2.0, np.int64(2), np.float32(2), "2"])
def test_labels_may_be_given_as_numbers(label: object) -> None:
    job = sa.Labelling(SMALL_ROWS, labels=[0, 1, 2])
    question = job.ask()
    job.answer(question, label=label)
    job.answer(question, label="2")  # sent twice
    assert job.results()[question.row]["label"] == "2"
    job.set_final_label(question.row, 1)
    assert job.results()[question.row]["label"] == "1"
    with pytest.raises(InvalidInput, match=r"must be one of the labels .*, got '7'"):
        job.answer(job.ask(), label=7)
    both = sa.Labelling(SMALL_ROWS, labels=[True, 0.5, 1.0])
    for value in (True, 0.5, 1.0):
        both.answer(both.ask(), label=value)
    assert {one["label"] for one in both.results()} == {"True", "0.5", "1.0", None}


def test_a_frame_is_resumed_with_the_frame(tmp_path: Path) -> None:
    path = tmp_path / "py.db"
    with small_job(journal=path) as job:
        job.answer(job.ask(), label="a")
        with pytest.raises(
            JournalLocked, match=r"py\.db is open in this process already, since .*: close\(\)"
        ):
            small_job(journal=path)
    with sa.Labelling.resume(path, SMALL_ROWS) as job:
        assert job.progress().clicks == 1
    frame = pytest.importorskip("pandas").DataFrame(SMALL_ROWS)
    with sa.Labelling.resume(path, frame) as job:
        assert job.progress().clicks == 1
    with pytest.raises(
        InvalidInput, match=r"not there any more: the table; rows= .*says where they are, or holds"
    ):
        sa.Labelling.resume(path)
    with pytest.raises(
        InvalidInput, match="must be a file, a pandas, Polars or Arrow table, or a list of dicts"
    ):
        sa.Labelling.resume(path, 5)
    with pytest.raises(
        InvalidInput, match="labels of the table must be one of its columns n, note, or a list of"
    ):
        sa.Labelling(SMALL_ROWS, labels="teams.txt")


def test_what_cannot_be_taken_is_said_in_one_sentence(tmp_path: Path) -> None:
    job = small_job()
    question = job.ask()
    with pytest.raises(FeedbackError, match="one of label=, none=True, yes="):
        job.answer(question)
    with pytest.raises(InvalidInput, match="one of the labels"):
        job.answer(question, label="z")
    with pytest.raises(FeedbackError, match="questions of yes or no"):
        job.answer(question, yes=True)
    job.answer(question, label="a")
    assert job.progress().clicks == 1
    with pytest.raises(FeedbackError, match="the question was answered before"):
        job.answer(question, label="b")
    with pytest.raises(FeedbackError, match="its question was not asked since superarm was started"):
        job.answer("nonsense", label="b")
    with pytest.raises(InvalidInput, match="no such file"):
        sa.Labelling(tmp_path / "nope.csv", labels=["a", "b"])
    nothing = [[{}], [{"team": "a"}, {"team": "b"}], [{"n": {"a": 1}}]]
    for rows, got in zip(nothing, ("no column", "no column", r"n \(of type dict\)"), strict=True):
        with pytest.raises(InvalidInput, match=f"with at least one feature, got {got}"):
            sa.Labelling(rows, labels="team" if "team" in rows[0] else ["a", "b"])
    for labels, got in (
        (["a", "b", " a"], "distinct names, also without spaces .* got 'a' twice"),
        (["a"], "two names"),
    ):
        with pytest.raises(InvalidInput, match=f"labels of Labelling must be .*{got}"):
            sa.Labelling([{"n": 1.0}], labels=labels)
    with pytest.raises(InvalidInput, match="or a list of dicts, got an empty list"):
        sa.Labelling([], labels=["a", "b"])
    with pytest.raises(InvalidInput, match="labels of superarm label must be given"):
        sa.Labelling([{"n": 1.0}])
    for name in ("", " ", "two\nlines", "two\u2028lines", "nul\0", "x" * 1_001):
        with pytest.raises(
            InvalidInput, match="label of Labelling must be a name of at most 1,000 characters on one"
        ):
            sa.Labelling([{"n": 1.0}], labels=["a", name])
    joined = ["👩‍👩‍👧‍👦", "می‌خواهم"]  # with characters that join and part others
    assert sa.Labelling([{"n": 1.0}], labels=joined).label_names == joined
    with pytest.raises(InvalidInput, match=r"from 0\.5 to 1"):
        sa.Labelling([{"n": 1.0}], labels=["a", "b"], target=1.5)


def test_denials_of_all_that_are_still_open_are_a_share_of_all_rows() -> None:
    rows = [{"n": float(row)} for row in range(400)]
    job = sa.Labelling(rows, labels=["a", "b"], target=1.0)
    add_answers(job, [{"row": row, "labels": ["a", "b"]} for row in range(400)])
    job.add_label("c")
    assert 0.0 < job.state.none_fits_share < 1.0
    assert all(0.0 <= one["belief"] <= 1.0 for one in job.results())


def test_a_yes_and_a_denial_of_all_are_a_disagreement_that_is_not_asked_about_for_ever() -> None:
    job = small_job(yes_no=True)
    add_answers(job, [{"row": 0, "labels": ["a", "b"], "hit": True, "by": "ben"}])
    for label in ("a", "b", "c"):
        add_answers(job, [{"row": 0, "labels": [label], "hit": False, "by": "anna"}])
    assert [one["row"] for one in job.disagreements()] == [0]
    assert job.state.done[0]
    assert job.state.doubt[0] > 0.2
