"""Wrong clicks: "none of these" by a slip, second opinions, and an error interval that holds from the beginning."""

from __future__ import annotations

import numpy as np
import pytest
from label_jobs import DIGITS, add_answers, answer_some, digit_rows, noisy_rows, small_job

import superarm as sa
from superarm.errors import InvalidInput
from superarm.label.answers import Answer, AnswerTable, prior_of_hypotheses
from superarm.label.error_rates import PersonErrorRates
from superarm.label.simulated_labeller import simulate_labeller, simulated_answer


@pytest.mark.parametrize("yes_no", [False, True])
def test_a_row_whose_right_label_was_denied_by_a_slip_gets_it(yes_no: bool) -> None:
    rows = digit_rows(400)
    job, n_clicks, slip = sa.Labelling(rows, labels=DIGITS, target=0.97, yes_no=yes_no), 0, -1
    while (question := job.ask()) is not None:
        n_clicks += 1
        right = rows.truth[question.row]
        if n_clicks > 150 and slip < 0 and question.labels[0] == right:
            slip = question.row
            job.answer(question, **({"yes": False} if yes_no else {"none": True}))
        else:
            job.answer(question, **simulated_answer(question, right, 0.0, np.random.default_rng(0)))
    assert slip >= 0
    assert job.results()[slip]["label"] == rows.truth[slip]


def test_a_row_that_no_label_fits_is_asked_about_once_more_until_there_were_others() -> None:
    n, names = 120, list("abcdefgh")
    job = sa.Labelling([{"n": float(i)} for i in range(n)], labels=names, target=1.0, max_labels=4)
    questions: dict[int, list[list[str]]] = {}
    while (question := job.ask()) is not None:
        questions.setdefault(question.row, []).append(question.labels)
        fits = question.row % 4
        job.answer(question, **({"none": True} if not fits else {"label": names[fits]}))
    nones = [asked for row, asked in questions.items() if row % 4 == 0]
    assert sorted(nones[0][0] + nones[0][1]) == names  # each label, and then
    assert len(nones[0]) == 3  # the most believed of them again
    assert all(len(asked) == 2 for asked in nones[-10:])  # it is known by then that there are such rows
    progress = job.progress()
    assert (progress.none_fits, progress.labelled) == (n // 4, n - n // 4)
    assert f"{n - n // 4} of {n} labelled, {n // 4} that no label fits, " in str(progress)
    assert job.state.none_fits_share == pytest.approx(n / 4 / (n + 100), abs=0.01)


def test_a_doubt_that_none_fits_counts_as_an_error() -> None:
    job = small_job(max_labels=9)
    add_answers(
        job, [{"row": 0, "labels": ["a", "b"], "by": "ann"}, {"row": 0, "labels": ["b", "c"], "by": "bob"}]
    )
    assert job.results()[0]["how"] == "none fits"
    assert job.results()[0]["belief"] < 0.999
    assert 0.001 < job.estimator.expected_wrong_asked() < 0.5


def test_the_probability_that_none_fits_is_that_of_bayes() -> None:
    prior, e, share = np.full(2, 0.5), 0.1, 0.02
    answers = [Answer(1, "ann", (0,), False), Answer(2, "ann", (1,), False)]
    none, one = share * (1 - e) ** 2, (1 - share) * e * (1 - e)  # one label was shown: one other answer
    belief = AnswerTable(answers, np.ones(2, bool), False).posterior(prior_of_hypotheses(prior, share), e)
    assert belief == pytest.approx(np.array([one / 2, one / 2, none]) / (none + one))


def test_a_simulated_labeller_counts_rows_that_were_lost_as_wrong() -> None:
    rows = digit_rows(100)
    job = sa.Labelling(rows, labels=DIGITS, target=1.0)
    for _ in range(2):
        add_answers(
            job, [{"row": row, "labels": DIGITS, "by": by} for row in range(3) for by in ("ann", "bob")]
        )
    outcome = simulate_labeller(job, rows.truth)
    assert outcome["none_fits"] + outcome["labelled"] == 100
    assert outcome["wrong"] == outcome["none_fits"]


@pytest.mark.parametrize(("wrong", "met"), [(0.1, True), (0.5, False)])
def test_the_end_is_no_target_met_that_the_estimate_denies(wrong: float, met: bool) -> None:
    rows = noisy_rows(150, 0.05, seed=0, k=20)
    job = sa.Labelling(rows, labels=[str(label) for label in range(20)], target=0.99)
    outcome, progress = simulate_labeller(job, rows.truth, wrong=wrong), job.progress()
    assert progress.finished
    assert outcome["target_met"] is progress.target_met is met
    assert (progress.wrong <= 0.01) is met
    assert ("the target of 0.99 was missed" in str(progress)) is not met


@pytest.mark.parametrize("target", [0.99, 0.9])
def test_a_few_rows_with_right_answers_are_not_called_doubtful(target: float) -> None:
    job = sa.Labelling([{"text": "good"}, {"text": "bad"}], labels=["a", "b"], target=target)
    while (question := job.ask()) is not None:
        job.answer(question, label="ab"[question.row])
    progress = job.progress()
    assert progress.finished
    assert "doubtful" not in str(progress)
    assert (
        "by the estimate the target of 0.99 is met, but these answers are too few to be sure" in str(progress)
    ) is (target == 0.99)
    assert progress.target_met is (target == 0.9)


def test_a_target_of_1_that_is_missed_blames_no_answers() -> None:
    job = sa.Labelling([{"text": f"word{i % 3} x{i}"} for i in range(12)], labels=["a", "b", "c"], target=1)
    while (question := job.ask()) is not None:
        job.answer(question, label="abc"[question.row % 3])
    progress = job.progress()
    assert not progress.target_met
    assert "missed: by the estimate more than 1 label in 1,000 may be wrong" in str(progress)
    assert "contradict" not in str(progress)


def test_people_have_names_and_one_column_may_be_shown() -> None:
    rows = [{"text": "good", "n": 1}, {"text": "bad", "n": 2}]
    job = sa.Labelling(rows, labels=["a", "b"], show="text")
    with pytest.raises(InvalidInput, match=r"by of Labelling must be a person: .* got 3"):
        job.ask(by=3)  # type: ignore[arg-type]
    assert list(job.ask().values) == ["text"]
    with pytest.raises(InvalidInput, match=r"or a list of dicts, got an empty list"):
        sa.Labelling([], labels=["a", "b"])


def test_rows_of_which_all_labels_were_denied_are_asked_whether_a_new_one_fits() -> None:
    truth = [None if row % 3 == 0 else "bc"[row % 2] for row in range(40)]
    job = small_job(max_labels=9)
    answer_all(job, truth)
    n_none = truth.count(None)
    assert job.progress().none_fits == n_none
    job.add_label("d")
    progress = job.progress()
    assert (progress.labelled, progress.none_fits, progress.finished) == (40 - n_none, 0, False)
    truth[0] = "d"  # fits one of them
    answer_all(job, truth)
    progress = job.progress()
    assert (progress.labelled, progress.none_fits) == (41 - n_none, n_none - 1)
    assert job.results()[0]["label"] == "d"


def answer_all(job: sa.Labelling, truth: list[str | None]) -> None:
    while job.ask() is not None:
        answer_some(job, truth, 1)


def people_who_differ() -> sa.Labelling:
    """Ben names a label of ten rows, of which anna says that none fits."""
    job = small_job()
    for row in range(40):
        is_none, label = row >= 30, "abc"[row % 3]
        add_answers(job, [{"row": row, "labels": ["a", "b", "c"], "label": label, "by": "ben"}])
        named = {} if is_none else {"label": label}
        add_answers(job, [{"row": row, "labels": ["a", "b", "c"], "by": "anna"} | named])
    return job


def test_none_of_these_counts_against_a_label_that_another_has_named() -> None:
    job = people_who_differ()
    job.state.error_rates.fit()
    beliefs = [one["belief"] for one in job.results()[30:]]
    assert max(beliefs) < 0.99
    assert [one["row"] for one in job.disagreements()] == list(range(30, 40))
    assert job.estimator.expected_wrong_asked() > 1.0
    assert job.people()["anna"]["wrong_rate"] < 0.01
    before = job.results()[30]["belief"]
    add_answers(job, [{"row": 30, "labels": ["b", "a", "c"], "label": "a", "by": "ben"}])
    assert job.results()[30]["clicks"] == 3
    assert job.results()[30]["belief"] == pytest.approx(
        before, abs=0.1
    )  # who repeats it is no further witness
    assert [answer["by"] for answer in job.disagreements()[0]["answers"]] == ["anna", "ben"]
    add_answers(job, [{"row": 30, "labels": ["a", "b", "c"], "by": "cy"}])
    assert job.results()[30]["label"] is None
    assert job.results()[30]["belief"] > 0.99


def test_the_last_word_may_be_that_none_fits() -> None:
    job = people_who_differ()
    for row in range(30, 40):
        job.set_final_label(row, None, by="cy")
    assert job.disagreements() == []
    assert {(one["label"], one["belief"], one["how"]) for one in job.results()[30:]} == {
        (None, 1.0, "none fits")
    }
    job.state.error_rates.fit()
    assert job.people()["anna"]["wrong_rate"] < 0.01
    assert job.people()["ben"]["wrong_rate"] == pytest.approx(0.25, abs=0.03)
    assert job.undo("cy") is not None
    assert [one["row"] for one in job.disagreements()] == [39]
    job.add_label("d")  # of which it said nothing
    assert {one["how"] for one in job.results()[30:39]} == {""}
    job.set_final_label(30, "d")
    assert job.results()[30]["label"] == "d"


@pytest.mark.parametrize("people", [("ann",), ("ann", "bob")])
@pytest.mark.slow
def test_second_opinions_do_not_keep_the_work_from_its_end(people: tuple[str, ...]) -> None:
    rows = digit_rows(900)

    def n_clicks(share: float) -> int:
        job, clicks = sa.Labelling(rows, labels=DIGITS, target=0.97, second_opinion_share=share), 0
        while any((question := job.ask(by)) is not None for by in np.roll(people, clicks)):
            by = next(by for by in people if job.ask(by) is question)
            job.answer(question, by=by, label=rows.truth[question.row])
            clicks += 1
        assert job.progress().finished
        assert job.progress().labelled == 900
        return clicks

    assert n_clicks(0.2) < 1.5 * n_clicks(0.0)


def test_second_opinions_are_clicks_that_are_left() -> None:
    few, many = (small_job(second_opinion_share=share) for share in (0.0, 1.0))
    for job in (few, many):
        add_answers(job, [{"row": row, "label": "a", "by": "ann"} for row in range(20)])
        add_answers(job, [{"row": row, "label": "a", "by": "bob"} for row in range(20) if row >= 10])
        job.planner.begin_round()
    assert many.planner.n_second_opinions() == 10
    assert many._clicks_left() == few._clicks_left() + 10 + 20


def test_the_upper_rate_is_high_until_answers_say_something() -> None:
    """With a model that knows nothing, wrong answers cannot be noticed; with one that is sure they would be."""
    stats = pytest.importorskip("scipy.stats")
    n = 200
    for sure, few, many in ((0.0, 0.3, 0.4), (1.0, 0.005, 0.02)):
        rates = PersonErrorRates(n)
        prior = prior_of_hypotheses((1.0 - sure) * np.full(4, 0.25) + sure * np.eye(4)[0], 0.0)
        table = AnswerTable([Answer(1, "ann", (0, 1, 2), True, 0)], np.ones(4, bool), False)
        for item in range(n):
            rates.set_answers(item, prior, table)
        assert (rates.upper_rates() == rates.upper_rates()[0]).all()
        rates.fit()
        assert few < rates.upper_rates()[0] < many
    assert rates.upper_rates()[0] == pytest.approx(stats.beta.ppf(0.975, 0.5, n + 0.5), rel=0.15)


@pytest.mark.parametrize("wrong", [0.0, 0.1])
@pytest.mark.slow
def test_the_interval_holds_from_the_beginning(wrong: float) -> None:
    held = []
    for seed in range(4):
        rows = digit_rows(1_000)
        job = sa.Labelling(rows, labels=DIGITS, target=0.97, seed=seed)
        random = np.random.default_rng((seed, 5))
        for n_clicks in range(1, 401):
            question = job.ask()
            if question is None:
                break
            job.answer(question, **simulated_answer(question, rows.truth[question.row], wrong, random))
            if n_clicks % 100 == 0:
                settled = [(one["label"], rows.truth[one["row"]]) for one in job.results() if one["how"]]
                share = np.mean([label != right for label, right in settled])
                low, high = job.progress().interval
                held.append(low <= share <= high)
                assert high < 0.5
    assert len(held) >= 12
    assert np.mean(held) >= 0.9
