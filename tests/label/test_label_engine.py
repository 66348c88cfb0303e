"""Beliefs, questions, estimates and the journal of a labelling."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import superarm as sa
from superarm.errors import FeedbackError, InvalidInput
from superarm.journal.errors import JournalForeign
from superarm.label.belief import PRIOR_ANSWERS, PRIOR_WRONG, Answer, WrongAnswers, likelihoods, posterior
from superarm.label.calibration import chance, fit
from superarm.label.journal import read_meta
from superarm.label.question import reasons
from superarm.label.rows import LabelRows
from superarm.label.simulated import play

DIGITS = [str(digit) for digit in range(10)]
WORDS = {"login": "password account sign", "billing": "invoice card charge", "ads": "campaign click banner"}


def tickets(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows whose text decides the team."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        team = str(random.choice(list(WORDS)))
        words = [
            str(random.choice(WORDS[team].split())),
            *(str(random.choice(["please", "help", "now", "my"])) for _ in range(3)),
        ]
        rows.append(
            {
                "number": number,
                "text": " ".join(words),
                "site": str(random.choice(["Rome", "Oslo"])),
                "team": team,
            }
        )
    return rows


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


# ---------------------------------------------------------------- beliefs


@pytest.mark.parametrize("yes_no", [False, True])
def test_beliefs_are_those_of_enumeration(yes_no: bool) -> None:
    """Against a world of people who say something else with the chance e, each other thing alike."""
    k, e, prior = 4, 0.1, np.array([0.4, 0.3, 0.2, 0.1])
    shown = (0, 2)
    says = [True, False] if yes_no else [0, 2, None]

    def right(y: int) -> Any:
        return (y in shown) if yes_no else (y if y in shown else None)

    for first, second in itertools.product(says, repeat=2):
        weights = np.zeros(k)
        for y in range(k):
            chances = [1 - e if said == right(y) else e / (len(says) - 1) for said in (first, second)]
            weights[y] = (0.98 * prior[y] + 0.02 / k) * np.prod(chances)
        answers = [
            Answer(1, "a", shown, bool(said))
            if yes_no
            else Answer(1, "a", shown, said is not None, -1 if said is None else said)
            for said in (first, second)
        ]
        np.testing.assert_allclose(posterior(prior, answers, {"a": e}, yes_no), weights / weights.sum())


def test_rates_of_wrong_answers_are_found() -> None:
    """Two people answer the same rows; one is wrong in a tenth of them."""
    random, k, n = np.random.default_rng(0), 5, 4000
    rates, true = WrongAnswers(n), {"good": 0.0, "bad": 0.1}
    for _ in range(4):  # as the state does when it looks again
        random = np.random.default_rng(0)
        for row in range(n):
            y = int(random.integers(k))
            prior = np.full(k, 0.05)
            prior[y if random.random() < 0.8 else (y + 1) % k] += 0.75
            answers = []
            for by, wrong in true.items():
                said = (y + int(random.integers(1, k))) % k if random.random() < wrong else y
                answers.append(Answer(1, by, tuple(range(k)), True, said))
            rates.put(row, prior, answers, yes_no=False)
        rates.fit()
    assert rates.rate("good") < 0.005
    assert rates.rate("bad") == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("yes_no", [False, True])
def test_the_rate_is_the_most_probable_one(yes_no: bool) -> None:
    """Against the probability of all answers, label by label."""
    random, k, n = np.random.default_rng(1), 4, 60
    wrong, rows = WrongAnswers(n), []
    for row in range(n):
        prior, shown = random.dirichlet(np.ones(k)), (0, 2)
        says = [bool(random.random() < 0.5) for _ in range(2)]
        answers = [Answer(1, "a", shown, said, -1 if yes_no or not said else 2) for said in says]
        wrong.put(row, prior, answers, yes_no)
        rows.append((0.98 * prior + 0.02 / k, answers))

    def log_probability(e: float) -> float:
        total = PRIOR_WRONG * np.log(e) + PRIOR_ANSWERS * np.log1p(-e)
        for p, answers in rows:
            total += np.log((p * likelihoods(answers, k, {"a": e}, yes_no).prod(axis=0)).sum())
        return float(total)

    for _ in range(20):
        wrong.fit()
    grid = np.linspace(0.002, 0.6, 3000)
    best = grid[np.argmax([log_probability(e) for e in grid])]
    assert wrong.rate("a") == pytest.approx(best, abs=0.02)


def test_calibration_finds_the_line() -> None:
    random = np.random.default_rng(0)
    z = random.normal(-2.0, 1.5, 20_000)
    e = (random.random(len(z)) < chance(np.array([0.3, 0.6]), z)).astype(float)
    assert fit(z, e)[0] == pytest.approx([0.3, 0.6], abs=0.1)
    assert fit(np.zeros(0), np.zeros(0))[0] == pytest.approx([0.0, 1.0])


# ---------------------------------------------------------------- a whole labelling


def test_every_row_is_looked_at_and_right() -> None:
    rows = LabelRows.read("digits")
    found = play(sa.Labelling(rows, labels=DIGITS, target=1.0), rows.truth)
    assert found["labelled"] == found["rows"] == 1797
    assert found["wrong"] == found["audits"] == 0
    assert 1.0 <= found["clicks_per_row"] <= 1.06  # 1.02 when this was written
    assert found["by_tenth"][0] > found["by_tenth"][-1]


def test_a_target_takes_fewer_clicks_and_is_told_with_an_interval() -> None:
    inside, rates = 0, []
    for seed in range(6):
        rows = LabelRows.read("digits")
        found = play(sa.Labelling(rows, labels=DIGITS, target=0.97, seed=seed), rows.truth)
        low, high = found["interval"]
        inside += low <= found["wrong_rate"] <= high
        rates.append(found["wrong_rate"])
        assert found["clicks_per_row"] < 0.4
        assert 0 < found["audits"] < found["clicks"]
    assert np.mean(rates) <= 0.03
    assert inside >= 5


def test_no_label_is_accepted_before_audits_and_what_is_told_is_what_there_is() -> None:
    """A sentence told 40 labels, and the file had 150 of them, 110 of a model that no audit had checked."""
    rows = LabelRows.read("digits")
    job = sa.Labelling(rows, labels=DIGITS, target=0.9)
    while (question := job.ask()) is not None:
        job.answer(question, label=rows.truth[question.number])
        if job.progress().clicks % 25 == 15:
            results, now = job.results(), job.progress()
            assert now.labelled == sum(result["label"] is not None for result in results)
            accepted = sum(result["how"] == "accepted" for result in results)
            assert now.labelled == now.asked + accepted
            if now.audits < 100:
                assert accepted == 0
    assert job.progress().labelled == sum(result["label"] is not None for result in job.results()) == 1797


@pytest.mark.parametrize(("target", "twice"), [(1.0, 0.0), (0.99, 0.1)])
def test_the_told_share_of_wrong_clicks_is_the_true_one(target: float, twice: float) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 4))
    truth = (x[:, 0] > 0) + 2 * (x[:, 1] > 0)
    rows = [{f"x{i}": v for i, v in enumerate(row)} for row in x.tolist()]
    job = sa.Labelling(rows, labels=list("abcd"), target=target, twice=twice)
    assert job.people() == {}
    clicks, wrong = {"ann": 0, "bob": 0}, 0
    for turn in range(2_000):
        by = ("ann", "bob")[turn % 2]
        question = job.ask(by)
        if question is None:
            continue
        slip = int(random.integers(1, 4)) if by == "bob" and random.random() < 0.2 else 0
        job.answer(question, label="abcd"[(truth[question.number] + slip) % 4], by=by)
        clicks[by], wrong = clicks[by] + 1, wrong + bool(slip)
    told = job.people()
    assert {name: one["clicks"] for name, one in told.items()} == clicks
    assert told["ann"]["wrong_rate"] < 0.005
    assert told["bob"]["wrong_rate"] == pytest.approx(wrong / clicks["bob"], abs=0.03)


@pytest.mark.parametrize("target", [0.99, 1.0])
def test_no_number_of_clicks_is_told_while_only_doubts_are_left(target: float) -> None:
    """Of a person who is wrong in a quarter of the clicks: "about 1 click left" was told hundreds of times."""
    random = np.random.default_rng(0)
    x = random.normal(size=(400, 4))
    truth = (x[:, 0] > 0) + 2 * (x[:, 1] > 0)
    job = sa.Labelling(
        [{f"x{i}": v for i, v in enumerate(row)} for row in x.tolist()], labels=list("abcd"), target=target
    )
    outlooks = []
    while (question := job.ask()) is not None:
        label = random.integers(4) if random.random() < 0.3 else truth[question.number]
        job.answer(question, label="abcd"[label])
        now = job.progress()
        outlooks.append(now.outlook)
        if now.left:
            assert now.left <= 2 * np.count_nonzero(~job.state.done)
            assert now.outlook == f"about {now.left} click{'s' if now.left > 1 else ''} left"
        elif now.clicks >= 50 and not now.finished:
            assert now.outlook in now.sentence
    assert outlooks[9] == "clicks left: too early to say"
    assert outlooks[-1] == ""
    assert outlooks.count("about 1 click left") < 10
    told = "clicks left: no number can be told, doubtful rows are asked about until enough is sure"
    assert outlooks.count(told) > 100


@pytest.mark.parametrize("yes_no", [False, True])
def test_wrong_clicks_are_found_and_asked_again(yes_no: bool) -> None:
    rows = LabelRows.read("digits")
    without = play(sa.Labelling(rows, labels=DIGITS, target=1.0, yes_no=yes_no), rows.truth)
    job = sa.Labelling(rows, labels=DIGITS, target=1.0, yes_no=yes_no)
    found = play(job, rows.truth, wrong=0.03)
    assert found["clicks"] <= 1.3 * without["clicks"]
    assert found["wrong_rate"] <= 0.01
    assert job.people()[""]["wrong_rate"] == pytest.approx(0.03, abs=0.01)


def test_a_table_with_text(tmp_path: Path) -> None:
    path = table(tmp_path / "tickets.jsonl", tickets(600))
    rows = LabelRows.read(path, answers="team")
    job = sa.Labelling(rows, labels=list(WORDS), target=0.98, show=["text"])
    question = job.ask()
    assert question is not None
    assert list(question.row) == ["text"]
    assert "team" not in rows.columns.names  # type: ignore[union-attr]
    found = play(job, rows.truth)
    assert found["wrong_rate"] <= 0.02
    assert found["clicks_per_row"] < 0.7
    model = job.model()
    assert model.predict([{"text": "invoice please", "site": "Rome"}])[0] == "billing"
    assert list(job.labels().columns) == ["row", "label", "belief", "clicks", "how", "by"]


def test_reasons_name_the_word_that_decides(tmp_path: Path) -> None:
    rows = LabelRows.read(table(tmp_path / "tickets.jsonl", tickets(600)), answers="team")
    job = sa.Labelling(rows, labels=list(WORDS), target=1.0)
    for _ in range(300):
        question = job.ask()
        assert question is not None
        truth = rows.truth[question.number]
        job.answer(question, **({"label": truth} if truth in question.labels else {"none": True}))
    question = job.ask()
    assert question is not None
    words = reasons(job, question)["text"]
    best = max(words, key=lambda pair: pair[1])[0]
    assert best in " ".join(WORDS.values())


# ---------------------------------------------------------------- questions and answers


def small(**options: Any) -> sa.Labelling:
    rows = [{"n": float(i % 7), "note": f"row {i}"} for i in range(40)]
    return sa.Labelling(rows, labels=["a", "b", "c"], target=1.0, **options)


def test_after_none_the_next_best_of_the_same_row() -> None:
    job = small(most=1)
    first = job.ask()
    assert first is not None
    job.answer(first, none=True)
    second = job.ask()
    assert second is not None
    assert second.number == first.number
    assert second.labels != first.labels
    job.answer(second, none=True)
    third = job.ask()
    assert third is not None
    assert third.number != first.number  # the third label is the only one left
    assert job.results()[first.number]["how"] == "excluded"


@pytest.mark.parametrize("target", [0.98, 1.0])
def test_clicks_left_are_about_what_it_takes(target: float) -> None:
    rows = LabelRows.read("digits")
    job = sa.Labelling(rows, labels=DIGITS, target=target)
    told: list[tuple[int, int | None]] = []
    while (question := job.ask()) is not None:
        truth = rows.truth[question.number]
        job.answer(question, **({"label": truth} if truth in question.labels else {"none": True}))
        if int(job.state.clicks.sum()) % 50 == 0:
            told.append((int(job.state.clicks.sum()), job.progress().left))
    took = int(job.state.clicks.sum())
    ratios = [left / (took - clicks) for clicks, left in told if left is not None and clicks < 0.9 * took]
    assert len(ratios) >= 5
    assert 0.5 < min(ratios) <= max(ratios) < 2.5


@pytest.mark.parametrize("yes_no", [False, True])
def test_a_label_that_was_denied_is_not_shown_again(yes_no: bool) -> None:
    names = list("abcdefg")
    job = sa.Labelling([{"n": float(i)} for i in range(30)], labels=names, target=1.0, yes_no=yes_no)
    denied: list[str] = []
    first = question = job.ask()
    while question is not None and first is not None and question.number == first.number:
        assert not set(denied) & set(question.labels)
        denied += question.labels
        job.answer(question, **({"yes": False} if yes_no else {"none": True}))
        question = job.ask()
    # of yes or no, the last one that is left is taken
    assert sorted(denied) == names or (yes_no and len(denied) == len(names) - 1)


def test_a_row_that_no_label_fits_is_left() -> None:
    job = small(most=2)
    first = job.ask()
    assert first is not None
    job.answer(first, none=True)  # the third label is the only one left: it is taken
    job.add_answers([{"row": first.number, "labels": ["a", "b", "c"], "hit": False}])
    assert job.results()[first.number]["how"] == "none fits"
    assert job.results()[first.number]["label"] is None
    assert job.disagreements() == []
    after = job.ask()
    assert after is not None
    assert after.number != first.number
    job.add_label("d")  # what it must have been
    assert job.results()[first.number] == {
        "row": first.number, "label": "d", "belief": pytest.approx(1, abs=0.01), "clicks": 2, "how": "excluded",
        "by": "",
    }  # fmt: skip


def test_no_row_goes_to_two_people_and_a_question_stays_until_it_is_answered() -> None:
    job = small()
    asked = [job.ask(by=name) for name in ("ann", "bob", "cy")]
    assert len({one.number for one in asked if one is not None}) == 3
    assert job.ask(by="ann") == asked[0]


def test_equal_rows_are_asked_once() -> None:
    rows = [{"n": float(i % 5)} for i in range(50)]
    job = sa.Labelling(rows, labels=["odd", "even"], target=1.0)
    count = 0
    while (question := job.ask()) is not None:
        job.answer(question, label=("even", "odd")[int(question.row["n"]) % 2])
        count += 1
    assert count == 5
    assert job.progress().labelled == 50
    assert [one["label"] for one in job.results()] == [("even", "odd")[i % 5 % 2] for i in range(50)]


def test_undo_skip_settle_and_disagreements() -> None:
    job = small()
    question = job.ask("ann")
    assert question is not None
    job.answer(question, label="a", by="ann")
    again = job.undo("ann")
    assert again is not None
    assert again.number == question.number
    assert job.progress().labelled == 0
    job.answer(again, label="b", by="ann")
    assert job.results()[question.number]["label"] == "b"
    job.add_answers([{"row": question.number, "label": "c", "labels": ["a", "b", "c"], "by": "bob"}])
    (one,) = job.disagreements()
    assert [answer["label"] for answer in one["answers"]] == ["b", "c"]
    job.settle(question.number, "c", by="cy")
    assert job.disagreements() == []
    assert job.results()[question.number] | {"by": ""} == {
        "row": question.number, "label": "c", "belief": 1.0, "clicks": 3, "how": "settled", "by": ""
    }  # fmt: skip
    again = job.undo("cy")  # takes the settlement back
    assert again is not None
    assert again.number == question.number
    assert [one["number"] for one in job.disagreements()] == [question.number]
    assert job.results()[question.number]["how"] == "named"
    assert job.undo("cy") is None
    job.skip(again, "cy")
    skipped = job.ask("ann")
    assert skipped is not None
    job.skip(skipped, "ann")
    other = job.ask("ann")
    assert other is not None
    assert other.number != skipped.number
    assert job.undo("nobody") is None


def test_labels_change_while_labelling() -> None:
    job = small()
    for _ in range(10):
        question = job.ask()
        assert question is not None
        job.answer(question, label="abc"[question.number % 3])
    job.add_label("d")
    job.rename_label("a", "first")
    job.merge_labels("b", "c")
    assert job.label_names == ["first", "c", "d"]
    assert {one["label"] for one in job.results()} == {"first", "c", None}
    before = job.progress().labelled
    job.retire_label("c")
    assert job.progress().labelled < before  # its rows are open again
    with pytest.raises(InvalidInput, match="at least two"):
        job.retire_label("d")
    question = job.ask()
    assert question is not None
    assert set(question.labels) <= {"first", "d"}


def test_a_name_that_is_gone_can_come_back(tmp_path: Path) -> None:
    journal = tmp_path / "l.db"
    with small(journal=journal) as job:
        for row, label in enumerate("abcabc"):
            job.add_answers([{"row": row, "label": label}])
        job.add_label("d")
        job.retire_label("a")
        assert [one["label"] for one in job.results()[:6]] == [None, "b", "c", None, "b", "c"]
        job.add_answers([{"row": 9, "label": "b"}])
        job.add_label("a")  # as it was, with its answers
        assert [one["label"] for one in job.results()[:6]] == ["a", "b", "c", "a", "b", "c"]
        job.add_answers([{"row": 9, "label": "a", "by": by} for by in ("ann", "bob", "cy")])
        assert job.results()[9]["label"] == "a"  # although the model's answer of before did not know it
        job.rename_label("a", "first")
        job.add_label("a")  # another one
        job.settle(7, "a")
        job.merge_labels("b", "c")
        job.add_label("b")  # another one
        job.settle(8, "b")
        job.retire_label("d")
        job.rename_label("c", "d")
        expected = ["first", "d", "d", "first", "d", "d", None, "a", "b"]
        assert [one["label"] for one in job.results()[:9]] == expected
        assert sorted(job.label_names) == ["a", "b", "d", "first"]
        for name in job.label_names:
            with pytest.raises(InvalidInput, match="a new name"):
                job.add_label(name)
    with small(journal=journal) as job:
        assert [one["label"] for one in job.results()[:9]] == expected


def test_whoever_only_reads_writes_nothing(tmp_path: Path) -> None:
    journal = tmp_path / "l.db"
    with pytest.raises(InvalidInput, match="no such journal"):
        small(journal=journal, read_only=True)
    with small(journal=journal) as job:
        question = job.ask()
        assert question is not None
        with small(journal=journal, read_only=True) as reader:
            assert reader.results() == job.results()
            asked = reader.ask()
            assert asked is not None
            with pytest.raises(
                InvalidInput, match="read_only of Labelling must be False to answer or change"
            ):
                reader.answer(asked, label="a")
            with pytest.raises(InvalidInput, match="read_only of Labelling"):
                reader.add_label("d")
        job.answer(question, label="a")
        assert job.progress().clicks == 1


def test_a_persons_answers_can_be_left_out() -> None:
    job = small()
    for name in ("ann", "bob") * 5:
        question = job.ask(name)
        assert question is not None
        job.answer(question, label="a", by=name)
    assert job.progress().labelled == 10
    job.leave_out("bob")
    assert job.progress().labelled == 5
    job.take_in("bob")
    assert job.progress().labelled == 10
    with pytest.raises(
        InvalidInput, match="person of Labelling must be one of ann, bob, got 'bo'; did you mean 'bob'"
    ):
        job.leave_out("bo")
    with pytest.raises(InvalidInput, match="must be the name of a person, but nobody is left out, got 'bob'"):
        job.take_in("bob")  # who is not left out
    job.answer(job.ask(), label="a")
    with pytest.raises(InvalidInput, match=r"must be one of ann, bob, got 'file'"):
        job.leave_out("file")
    with pytest.raises(InvalidInput, match="person of Labelling must be one of ann, bob, got ''"):
        job.leave_out("")  # it would be all who gave no name
    with pytest.raises(InvalidInput, match="the name of a person, but nobody has answered under a name yet"):
        small().leave_out("ann")


@pytest.mark.parametrize("name", ["ann, bob", "file", " ann", "ann\nbob", "x" * 1_001])
def test_a_person_is_one_name_in_every_export(name: str) -> None:
    job = small()
    wanted = "by of Labelling must be a person: a name .* on one line, without commas, and not 'file'"
    for act in (
        lambda: job.ask(name),
        lambda: job.add_answers([{"row": 0, "label": "a", "by": name}]),
        lambda: job.settle(0, "a", by=name),
        lambda: job.add_label("d", by=name),
    ):
        with pytest.raises(InvalidInput, match=wanted):
            act()
    assert job.progress().clicks == 0


def test_a_share_is_asked_twice_of_somebody_else() -> None:
    job = small(twice=1.0)
    said: dict[int, set[str]] = {}
    for turn in range(400):
        name = ("ann", "bob")[turn % 2]
        question = job.ask(name)
        if question is None:
            break
        job.answer(question, label="a", by=name)
        said.setdefault(question.number, set()).add(name)
    assert all(people == {"ann", "bob"} for people in said.values())
    assert len(said) == 40


def test_what_cannot_be_taken_is_said_in_one_sentence(tmp_path: Path) -> None:
    job = small()
    question = job.ask()
    assert question is not None
    with pytest.raises(FeedbackError, match="one of label=, none=True, yes="):
        job.answer(question)
    with pytest.raises(InvalidInput, match="one of the labels"):
        job.answer(question, label="z")
    with pytest.raises(FeedbackError, match="questions of yes or no"):
        job.answer(question, yes=True)
    job.answer(question, label="a")
    job.answer(question, label="a")  # sent again: nothing
    assert job.progress().clicks == 1
    with pytest.raises(FeedbackError, match="was answered before"):
        job.answer(question, label="b")
    with pytest.raises(FeedbackError, match="no such question"):
        job.answer("nonsense", label="b")
    with pytest.raises(InvalidInput, match="no such file"):
        sa.Labelling(tmp_path / "nope.csv", labels=["a", "b"])
    with pytest.raises(InvalidInput, match="labels of superarm label must be given"):
        sa.Labelling([{"n": 1.0}])
    with pytest.raises(InvalidInput, match="at least two distinct names"):
        sa.Labelling([{"n": 1.0}], labels=["a", "a"])
    for name in ("", " ", "two\nlines", "two\u2028lines", "nul\0", "x" * 1_001):
        with pytest.raises(
            InvalidInput, match="label of Labelling must be a name of at most 1,000 characters on one"
        ):
            sa.Labelling([{"n": 1.0}], labels=["a", name])
    joined = ["👩‍👩‍👧‍👦", "می‌خواهم"]  # with characters that join and part others
    assert sa.Labelling([{"n": 1.0}], labels=joined).label_names == joined
    with pytest.raises(InvalidInput, match=r"from 0\.5 to 1"):
        sa.Labelling([{"n": 1.0}], labels=["a", "b"], target=1.5)


# ---------------------------------------------------------------- the journal


def answer_some(job: sa.Labelling, truth: list[str | None], count: int) -> None:
    for _ in range(count):
        question = job.ask()
        assert question is not None
        label = truth[question.number]
        job.answer(question, **({"label": label} if label in question.labels else {"none": True}))


def test_stop_and_go_on_gives_the_same_state(tmp_path: Path) -> None:
    rows, journal = LabelRows.read("digits"), tmp_path / "digits.labels.db"
    with sa.Labelling(rows, labels=DIGITS, journal=journal) as job:
        answer_some(job, rows.truth, 300)
        job.undo()
        before, weights = job.progress(), job.state.learner.scores(job.state.rows)
    with sa.Labelling(LabelRows.read("digits"), journal=journal) as job:
        after = job.progress()
        assert (after.clicks, after.asked, after.audits) == (before.clicks, before.asked, before.audits)
        np.testing.assert_array_equal(job.state.learner.scores(job.state.rows), weights)
        assert job.label_names == DIGITS
    with pytest.raises(JournalForeign, match="seed of superarm label must be 0"):
        sa.Labelling(rows, journal=journal, seed=1)


def test_rows_that_came_or_went_are_told(tmp_path: Path) -> None:
    made, journal = tickets(30), tmp_path / "t.labels.db"
    path = table(tmp_path / "t.jsonl", made)
    with sa.Labelling(LabelRows.read(path, answers="team"), labels=list(WORDS), journal=journal) as job:
        answer_some(job, job.rows.truth, 10)
        asked = job.progress().asked
        gone = job.rows.cells[int(np.flatnonzero(~job.state.done)[0])]["number"]
    changed = [row for row in reversed(made) if row["number"] != gone] + [dict(made[0], number=99)]
    with sa.Labelling(LabelRows.read(table(path, changed), answers="team"), journal=journal) as job:
        assert (job.journal.added, job.journal.gone) == (1, 1)
        assert job.progress().asked == asked  # rows moved; their answers went with them


def test_labels_in_a_column_teach_first(tmp_path: Path) -> None:
    made = [row | {"team": row["team"] if row["number"] < 100 else ""} for row in tickets(300)]
    job = sa.Labelling(table(tmp_path / "t.jsonl", made), labels="team", target=1.0)
    assert job.label_names == sorted(WORDS)
    told = job.progress()
    assert (told.labelled, told.clicks) == (100, 0)
    assert {one["how"] for one in job.results()} == {"file", ""}
    question = job.ask()
    assert question is not None
    assert question.beliefs[0] > 0.6  # it has learnt from them
    assert question.number >= 100


def test_labels_of_the_file_and_settled_ones_stay_when_others_go(tmp_path: Path) -> None:
    made = [row | {"team": row["team"] if row["number"] < 60 else ""} for row in tickets(90)]
    job = sa.Labelling(table(tmp_path / "t.jsonl", made), labels="team", target=1.0)
    job.add_label("spam")
    job.settle(80, "login")
    job.retire_label("spam")
    assert job.progress().labelled == 61
    job.merge_labels("ads", "billing")
    assert job.progress().labelled == 61
    assert {one["label"] for one in job.results()} == {"billing", "login", None}
    question = job.ask("ann")
    assert question is not None
    with pytest.raises(FeedbackError, match="with somebody else"):
        job.skip(question, "bob")


def test_a_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    from superarm.service import Service

    path = tmp_path / "events.db"
    Service.open(path, labels=["a", "b", "c"], set_size=1, n_features=2).close()
    with pytest.raises(JournalForeign, match="the journal of a labelling"):
        sa.Labelling([{"n": 1.0}], labels=["a", "b"], journal=path)


# ---------------------------------------------------------------- rows of other kinds


def test_a_folder_of_pictures_and_one_of_texts(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(0)
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(60):
        light = random.integers(0, 60, (20, 20, 3)) + (150 if number % 2 else 0)
        image.fromarray(light.astype(np.uint8)).save(folder / f"{number:02}.png")
    rows = LabelRows.read(folder)
    truth: list[str | None] = ["day" if int(row["picture"][:2]) % 2 else "night" for row in rows.cells]
    job = sa.Labelling(rows, labels=["day", "night"], target=1.0)
    assert job.picture(0) == ((folder / "00.png").read_bytes(), "image/png")
    assert play(job, truth)["wrong"] == 0
    vectors = tmp_path / "v.npy"
    np.save(vectors, random.normal(size=(60, 4)).astype(np.float32))
    assert LabelRows.read(folder, vectors=vectors).features(2).layout.d == 4
    texts = tmp_path / "texts"
    texts.mkdir()
    for row in tickets(50):
        (texts / f"{row['number']}.txt").write_text(row["text"])
    job = sa.Labelling(texts, labels=list(WORDS), target=1.0)
    question = job.ask()
    assert question is not None
    assert set(question.row) == {"file", "text"}
    (folder / "broken.png").write_bytes(b"no picture")
    with pytest.raises(InvalidInput, match=r"picture of .*broken.png must be one that can be read"):
        LabelRows.read(folder)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidInput, match=r"pictures .* or texts"):
        LabelRows.read(empty)


def test_two_who_name_labels_that_were_not_shown_disagree() -> None:
    job = small()
    job.add_answers([{"row": 3, "by": "ann", "label": "a", "labels": ["c"], "hit": False}])
    job.add_answers([{"row": 3, "by": "bob", "label": "b", "labels": ["c"], "hit": False}])
    assert [one["number"] for one in job.disagreements()] == [3]
    for label in ("a", "b", "c"):  # the last word counts
        job.settle(3, label)
    assert job.results()[3]["label"] == "c"


def test_none_of_all_labels_is_no_wrong_answer() -> None:
    job = small(most=9)
    for _ in range(30):
        question = job.ask()
        assert question is not None
        job.answer(question, none=True)
    job.state.wrong_answers.fit()
    assert job.state.wrong_answers.rate("") < 0.01
    assert job.disagreements() == []


def test_a_row_asked_again_can_be_skipped() -> None:
    job = small(twice=1.0)
    asked = []
    while (question := job.ask("ann")) is not None and len(asked) < 300:
        asked.append(question.number)
        if question.again:
            job.skip(question, "ann")
        else:
            job.answer(question, label="a", by="ann")
    assert question is None
    assert max(asked.count(number) for number in set(asked)) <= 2


def test_answers_that_contradict_each_other_often_give_a_rate() -> None:
    wrong = WrongAnswers(1)
    answers = [Answer(1, "", (0, 1), True, label) for label in (0, 1) * 4]
    wrong.put(0, np.full(3, 1 / 3), answers, yes_no=False)
    wrong.fit()
    assert 0.0 < wrong.rate("") < 1.0


def test_a_target_is_kept_with_the_journal(tmp_path: Path) -> None:
    with small(journal=tmp_path / "l.db"):
        assert read_meta(tmp_path / "l.db")["target"] == 1.0
