"""Exports of Label Studio, Prodigy and Argilla, as their documentation has them; and what we write for them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from label_jobs import DIGITS, add_answers, digit_rows, small_job

from superarm.errors import InvalidInput
from superarm.journal.events import AnswerBody
from superarm.label import Labelling
from superarm.label.formats import ImportedAnswer, export_labels, read_answers
from superarm.label.importing import import_answers
from superarm.label.simulated_labeller import simulate_labeller, simulated_answer

every_tool = pytest.mark.parametrize("format", ["label-studio", "prodigy", "argilla"])
TEAMS = ["billing", "login", "delivery"]
ROWS = [
    {"id": i, "text": text}
    for i, text in enumerate(("charged twice", "cannot log in", "parcel lost", "wrong invoice", "locked out"))
]


def choices(*labels: str, name: str = "team") -> list[dict]:
    value = {"choices": list(labels)}
    return [{"id": "Dx_aB91ISN", "from_name": name, "to_name": "text", "type": "choices", "value": value}]


def annotation(result: list[dict], by: object, at: str, cancelled: bool = False) -> dict:
    return {
        "id": 1001,
        "completed_by": by,
        "result": result,
        "was_cancelled": cancelled,
        "ground_truth": False,
        "prediction": {},
        "created_at": at,
        "updated_at": at,
        "lead_time": 4.288,
        "task": 1,
    }


AT = "2026-03-09T22:16:08Z"
LABEL_STUDIO = [
    {  # the prediction was kept
        "id": 1,
        "data": {"text": "charged twice", "id": 0},
        "annotations": [annotation(choices("billing"), 10, "2026-03-09T22:16:08.728353Z")],
        "predictions": [{"model_version": "1", "score": 0.6, "result": choices("billing")}],
        "project": 83,
    },
    {  # it was taken away and nothing was put in its place; somebody else chose another one, before
        "id": 2,
        "data": {"text": "cannot log in", "id": 1},
        "annotations": [
            annotation([], {"id": 11, "email": "ben@example.org"}, "2026-03-09T23:00:00Z"),
            annotation(choices("login"), 10, "2026-03-09T21:00:00Z"),
        ],
        "predictions": [{"model_version": "1", "score": 0.4, "result": choices("delivery")}],
    },
    {  # skipped
        "id": 3,
        "data": {"text": "parcel lost", "id": 2},
        "annotations": [annotation([], 10, "2026-03-09T22:17:00Z", cancelled=True)],
        "predictions": [],
    },
    {"id": 4, "data": {"text": "wrong invoice", "id": 3}, "annotations": [], "predictions": []},
]

OPTIONS = [{"id": team, "text": team.title()} for team in TEAMS]
PRODIGY = [
    {"text": "charged twice", "_input_hash": 1, "_task_hash": 2, "label": "billing", "score": 0.6,
     "answer": "accept", "_timestamp": 1690000000, "_annotator_id": "set-anna", "_session_id": "set-anna"},
    {"text": "cannot log in", "label": "delivery", "answer": "reject", "meta": {"n": 2}, "_session_id": "set-ben"},
    {"text": "parcel lost", "label": "login", "answer": "ignore"},
    {"text": "wrong invoice", "options": OPTIONS, "accept": ["billing"], "answer": "accept", "_view_id": "choice"},
    {"text": "locked out", "options": OPTIONS[:2], "accept": [], "answer": "accept", "_view_id": "choice"},
    {"text": "locked out", "options": OPTIONS, "accept": ["billing"], "answer": "reject", "_view_id": "choice"},
]  # fmt: skip

ARGILLA = [
    {
        "id": "0",
        "fields": {"text": "charged twice"},
        "metadata": {},
        "suggestions": {"team": {"value": "login", "score": 0.4, "agent": "a model"}},
        "responses": {"team": [{"value": "billing", "user_id": "7b1c", "status": "submitted"}]},
        "vectors": {},
        "status": "completed",
        "_server_id": "f9d3",
    },
    {
        "id": "1",
        "fields": {"text": "cannot log in"},
        "suggestions": {},
        "responses": {
            "team": [
                {"value": "login", "user_id": "7b1c", "status": "discarded"},
                {"value": "login", "user_id": "8c2d", "status": "draft"},
                {"value": ["login"], "user_id": "9e3f"},
            ]
        },
    },
    {
        "id": "2",
        "fields": {"text": "not in the table"},
        "responses": {"team": [{"value": "login", "user_id": "7b1c"}]},
    },
    {"id": "3", "fields": {"text": "parcel lost"}, "suggestions": {}, "responses": {}},
]


@pytest.fixture
def write(tmp_path):
    def written(content: list, *, lines: bool = False) -> str:
        path = tmp_path / "export.json"
        text = "\n".join(map(json.dumps, content)) if lines else json.dumps(content, indent=1)
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


def answer_body(*labels: str, label: str | None = None) -> AnswerBody:
    return AnswerBody(by="", labels=list(labels), label=label)


def short(answers) -> list[tuple]:
    return [(one.values["text"], tuple(one.body.labels), one.body.label, one.body.by) for one in answers]


def test_label_studio(write):
    answers = list(read_answers(write(LABEL_STUDIO), "label-studio"))
    assert short(answers) == [
        ("charged twice", ("billing",), "billing", "10"),
        ("cannot log in", ("delivery",), None, "ben@example.org"),
        ("cannot log in", ("delivery",), "login", "10"),
        ("parcel lost", (), None, "10"),
    ]
    assert answers[0].time == pytest.approx(1773094568.728353)
    assert answers[0].values == {"text": "charged twice", "id": 0}


def test_prodigy(write):
    answers = list(read_answers(write(PRODIGY, lines=True), "prodigy"))
    assert short(answers) == [
        ("charged twice", ("billing",), "billing", "set-anna"),
        ("cannot log in", ("delivery",), None, "set-ben"),
        ("parcel lost", (), None, ""),
        ("wrong invoice", ("billing", "login", "delivery"), "billing", ""),
        ("locked out", ("billing", "login"), None, ""),
        ("locked out", ("billing",), None, ""),
    ]
    assert answers[0].time == 1690000000
    assert answers[0].values == {"text": "charged twice"}


def test_argilla(write):
    assert short(read_answers(write(ARGILLA), "argilla")) == [
        ("charged twice", ("login",), "billing", "7b1c"),
        ("cannot log in", (), None, "7b1c"),
        ("cannot log in", (), None, "8c2d"),
        ("cannot log in", (), "login", "9e3f"),
        ("not in the table", (), "login", "7b1c"),
    ]


def test_answers_are_taken_over_and_teach(write):
    job = Labelling(ROWS, labels=TEAMS, target=1.0)
    counts = import_answers(job, read_answers(write(PRODIGY, lines=True), "prodigy"))
    assert (counts.answers, counts.empty, counts.unknown, counts.new_labels) == (5, 1, 0, ())
    results = {row["text"]: one for row, one in zip(ROWS, job.results(), strict=True)}
    assert results["charged twice"]["label"] == "billing"
    assert results["charged twice"]["by"] == "set-anna"
    assert results["locked out"]["label"] is None  # neither of the two others: delivery, or none fits
    assert results["cannot log in"]["label"] is None  # not delivery, and no more is known
    question = next(q for q in iter(job.ask, None) if q.row == 1 or job.skip(q))
    assert sorted(question.labels) == ["billing", "login"]
    assert results["parcel lost"]["clicks"] == 0


def test_what_is_new_unknown_or_empty_is_counted(write):
    job = Labelling(ROWS, labels=["billing", "delivery"], target=1.0)
    counts = import_answers(job, read_answers(write(ARGILLA), "argilla"))
    assert (counts.answers, counts.empty, counts.unknown, counts.new_labels) == (2, 2, 1, ("login",))
    assert str(counts) == (
        "2 answers taken over; 2 that say nothing; 1 about rows that are not in the table; new labels: login"
    )
    nothing = ImportedAnswer({"text": "parcel lost"}, answer_body("billing", "delivery", "login"))
    assert import_answers(job, [nothing]).empty == 1  # none of all labels says nothing
    assert job.results()[2]["clicks"] == 0


def test_rows_are_found_by_what_both_have_or_by_the_text_alone(tmp_path):
    job = Labelling([{"question": row["text"], "site": "Rome"} for row in ROWS], labels=TEAMS, target=1.0)
    here = [
        {"text": "charged twice"},
        {"question": " locked out "},
        {"question": "locked out", "site": "Oslo"},
    ]
    counts = import_answers(job, [ImportedAnswer(row, answer_body(label="login")) for row in here])
    assert (counts.answers, counts.unknown) == (2, 1)
    assert [one["label"] for one in job.results()] == ["login", None, None, None, "login"]
    folder = tmp_path / "photos"
    folder.mkdir()
    image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'superarm[label]'")
    for name, grey in (("cat.png", 10), ("dog.png", 200)):
        image.new("L", (8, 8), grey).save(folder / name)
    job = Labelling(folder, labels=["cat", "dog"], target=1.0)
    seen = [{"image": "/data/upload/7/3fa2c1d0-dog.png"}, {"image": "s3://bucket/cat.png"}]
    assert (
        import_answers(
            job,
            [
                ImportedAnswer(row, answer_body(label=name))
                for row, name in zip(seen, ("dog", "cat"), strict=True)
            ],
        ).answers
        == 2
    )
    assert [one["label"] for one in job.results()] == ["cat", "dog"]


def tasks_of(path) -> list[dict]:
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]


@every_tool
def test_what_is_written_is_what_they_read(format, tmp_path):
    job = Labelling(ROWS, labels=TEAMS, target=1.0, show=("text",))
    for label in ("billing", "login", "delivery"):
        job.answer(job.ask("anna"), label=label, by="anna")
    path = tmp_path / "labels.json"
    assert export_labels(job, path, format) == 3
    label_of = {row["text"]: result["label"] for row, result in zip(ROWS, job.results(), strict=True)}
    labelled, tasks = {text: label for text, label in label_of.items() if label}, tasks_of(path)
    if format == "prodigy":
        assert {task["text"]: task["label"] for task in tasks} == labelled
        assert {(task["answer"], task["_annotator_id"]) for task in tasks} == {("accept", "anna")}
    elif format == "label-studio":
        assert [task["data"] for task in tasks] == [{"text": row["text"]} for row in ROWS]
        for task in tasks:
            label = label_of[task["data"]["text"]]
            assert ("annotations" in task) == (label is not None)
            if label is not None:
                [result] = choices(label, name="label")
                result |= {"id": "superarm", "to_name": "row"}
                assert [one["result"] for one in task["annotations"]] == [[result]]
    else:
        assert [record["fields"] for record in tasks] == [{"text": row["text"]} for row in ROWS]
        for record in tasks:
            suggestion = record["suggestions"].get("label")
            assert (suggestion and suggestion["value"]) == label_of[record["fields"]["text"]]
            assert record.keys() == {"id", "fields", "metadata", "suggestions", "responses", "vectors"}
        return  # suggestions are no answers
    assert {one.values["text"]: one.body.label for one in read_answers(path, format)} == labelled


def labelled(rows: list[dict]) -> Labelling:
    """Two of the rows by anna, one by anna and ben, one by nobody whose name is known."""
    job = Labelling(rows, labels=TEAMS, target=1.0)
    answers = [(0, "anna", "billing"), (1, "anna", "login"), (2, "anna", "delivery"), (2, "ben", "delivery")]
    answers += [(3, "", "billing")]
    add_answers(job, [{"row": row, "by": by, "label": label} for row, by, label in answers])
    return job


@every_tool
def test_what_we_wrote_is_no_new_answer(format, tmp_path):
    rows = [row | {"by": "phone", "row": 7} for row in ROWS]  # columns that have the names of ours
    job, path = labelled(rows), tmp_path / "labels.json"
    before, people = job.results(), job.people()
    export_labels(job, path, format)
    counts = import_answers(job, read_answers(path, format))
    assert (counts.answers, counts.unchanged, counts.unknown, counts.empty, counts.new_labels) == (
        0,
        4,
        0,
        0,
        (),
    )
    assert str(counts).startswith(
        "0 answers taken over; 4 as superarm exported them, which are no new answers; to move all answers"
    )
    assert job.results() == before
    assert job.people() == people


def answer_as_cleo(task: dict, format: str, label: str) -> None:
    """Let cleo say in the other tool which label is right."""
    if format == "prodigy":
        answer = "accept" if label == task["label"] else "reject"
        task |= {"answer": answer, "_annotator_id": "cleo", "_session_id": "cleo", "_timestamp": 1790000000}
    elif format == "argilla":
        task["responses"] = {"label": [{"value": label, "user_id": "cleo", "status": "submitted"}]}
    elif label == task["meta"]["label"]:
        task["annotations"].append(annotation(choices(label, name="label"), "cleo", AT))
    else:
        ours = task["annotations"][0]
        ours |= {"updated_by": "cleo", "updated_at": AT}
        ours["result"][0]["value"] = {"choices": [label]}


@every_tool
def test_what_somebody_changed_there_is_theirs(format, tmp_path):
    job, path = labelled(ROWS), tmp_path / "labels.json"
    export_labels(job, path, format)
    tasks = tasks_of(path)
    for task in tasks:  # as Label Studio does with annotations that are imported
        for one in task.get("annotations", ()):
            one |= {"completed_by": 1, "updated_by": 1, "created_at": AT, "updated_at": AT}
    answer_as_cleo(tasks[0], format, "delivery")
    answer_as_cleo(tasks[1], format, "login")
    path.write_text(json.dumps(tasks), encoding="utf-8")
    turned = [{"id": 9, "text": "not seen before"}, *reversed(ROWS)]  # the rows have moved meanwhile
    for rows, first in ((ROWS, 0), (turned, 5)):
        job = labelled(ROWS) if rows is ROWS else Labelling(rows, labels=TEAMS, target=1.0)
        counts = import_answers(job, read_answers(path, format))
        assert (counts.answers, counts.unknown) == (2, 0)
        assert counts.unchanged == (3 if format == "label-studio" else 2)
        changed, confirmed = (
            [one.label for one in job.state.answers[row] if one.by == "cleo"]
            for row in (first, abs(first - 1))
        )
        delivery, login = (job.state.label_set.index_of[name] for name in ("delivery", "login"))
        assert (changed, confirmed) == ([-1 if format == "prodigy" else delivery], [login])
        assert set(job.people()) <= {"anna", "ben", "cleo", ""}
        assert import_answers(job, read_answers(path, format)).answers == 0  # the same file, once more


def test_spaces_around_a_label_and_columns_of_vectors_do_not_matter(write):
    rows = [row | {"vector": np.full(2, i)} for i, row in enumerate(ROWS)]
    job = Labelling(rows, labels=TEAMS, target=1.0)
    tasks = [
        {"text": row["text"], "label": label, "answer": "accept"}
        for row, label in zip(ROWS, (" login ", " praise"), strict=False)
    ]
    counts = import_answers(job, read_answers(write(tasks), "prodigy"))
    assert (counts.answers, counts.new_labels) == (2, ("praise",))


def test_accepted_labels_are_suggestions(tmp_path):
    job = Labelling("digits", labels=DIGITS, target=0.9)
    simulate_labeller(job, job.rows.truth)
    before = job.results()
    accepted = {one["row"] for one in before if one["how"] == "accepted"}
    assert accepted
    for format in ("label-studio", "prodigy", "argilla"):
        path = tmp_path / f"{format}.json"
        assert export_labels(job, path, format) == 1797
        tasks = tasks_of(path)
        if format == "label-studio":
            predicted = {
                task["meta"]["row"]: task["predictions"][0] for task in tasks if "predictions" in task
            }
            assert {task["meta"]["row"] for task in tasks if "annotations" not in task} == accepted
        elif format == "prodigy":
            predicted = {task["meta"]["row"]: task for task in tasks if "answer" not in task}
        else:
            predicted = {task["metadata"]["row"]: task["suggestions"]["label"] for task in tasks}
        assert set(predicted) == (set(range(1797)) if format == "argilla" else accepted)
        assert all(0.0 <= one["score"] <= 1.0 for one in predicted.values())
        counts = import_answers(job, read_answers(path, format))
        assert (counts.answers, counts.unchanged) == (0, 1797)
        assert job.results() == before


@every_tool
def test_rows_that_look_alike_are_told_apart_by_their_number(format, tmp_path):
    rows = [{"id": number, "text": "the same", "team": "login"} for number in range(4)]
    path = tmp_path / "labels.json"
    job = Labelling(rows, labels=["billing", *TEAMS[1:]], target=1.0, show=("text",))
    add_answers(job, [{"row": row, "label": "login"} for row in range(4)])
    export_labels(job, path, format)
    tasks = tasks_of(path)
    answer_as_cleo(tasks[2], format, "billing")
    path.write_text(json.dumps(tasks), encoding="utf-8")
    counts = import_answers(job, read_answers(path, format))
    assert (counts.answers, counts.unchanged) == (1, 3)
    by = [[one.by for one in job.state.answers[item]] for item in range(4)]
    assert by == [[""], [""], ["", "cleo"], [""]]
    moved = Labelling(rows[:2], labels=TEAMS, target=1.0, show=("text",))  # there is no row 2 any more
    assert import_answers(moved, read_answers(path, format)).answers == 1
    assert [one.by for one in moved.state.answers[0]] == ["cleo"]


def test_labels_of_the_table_are_nobodys_for_prodigy(tmp_path):
    rows = [row | {"team": team} for row, team in zip(ROWS, [*TEAMS, "", ""], strict=True)]
    job, path = Labelling(rows, labels="team", target=1.0), tmp_path / "labels.jsonl"
    assert export_labels(job, path, "prodigy") == 3
    assert all(task["answer"] == "accept" and "_annotator_id" not in task for task in tasks_of(path))
    counts = import_answers(job, read_answers(path, "prodigy"))
    assert (counts.answers, counts.unchanged) == (0, 3)
    assert export_labels(job, path, "answers") == 0


def prodigy(answer: str, **more: object) -> list[dict]:
    return [{"text": "x", "label": "a", "answer": answer} | more]


def label_studio(*results: dict) -> list[dict]:
    return [{"data": {}, "annotations": [{"result": list(results)}]}]


MOODS = choices("a") + choices("b", name="mood")


@pytest.mark.parametrize(
    ("content", "format", "wanted"),
    [
        (prodigy("perhaps"), "prodigy", "answer of .*row 1 must be accept, reject or ignore"),
        ([{"text": "x", "label": "a"}], "prodigy", "task of .*row 1 must be one that prodigy exports"),
        (prodigy("accept", options=OPTIONS, accept=["a", "b"]), "prodigy", "at most one label"),
        (
            prodigy("accept", _annotator_id="anna, ben"),
            "prodigy",
            "by of .*row 1 must be a person: .*anna, ben'",
        ),
        (label_studio(*choices("a", "b")), "label-studio", "at most one label"),
        (label_studio(*MOODS), "label-studio", "--question of .* must be one of team, mood"),
        (label_studio({"type": "choices"}), "label-studio", "that label-studio exports"),
        ([[1, 2]], "label-studio", "must be an object"),
        ([{"fields": {}, "responses": []}], "argilla", "that argilla exports"),
        ([], "doccano", "--format .* must be one of label-studio, prodigy, argilla, answers, got 'doccano'"),
    ],
)
def test_mistakes_are_told(write, content, format, wanted):
    with pytest.raises(InvalidInput, match=wanted):
        list(read_answers(write(content), format))


def test_files_that_are_none(tmp_path):
    with pytest.raises(InvalidInput, match="a UTF-8 text file"):
        list(read_answers(tmp_path / "missing.json", "argilla"))
    (tmp_path / "broken.json").write_text("[1, 2", encoding="utf-8")
    with pytest.raises(InvalidInput, match="a JSON list, or one JSON object a line"):
        list(read_answers(tmp_path / "broken.json", "argilla"))


def test_one_question_of_several(write):
    [one] = read_answers(write(label_studio(*MOODS)), "label-studio", question="mood")
    assert one.body.label == "b"


@pytest.mark.parametrize("yes_no", [False, True])
def test_work_that_is_done_is_done_after_its_answers_have_moved(yes_no, tmp_path):
    """Audits move with the answers: without them all would have to be audited again."""
    rows = digit_rows(400)
    old = Labelling(rows, labels=DIGITS, target=0.95, yes_no=yes_no)
    simulate_labeller(old, rows.truth)
    path = tmp_path / "answers.jsonl"
    count = export_labels(old, path, "answers")
    new = Labelling(rows, labels=DIGITS, target=0.95, yes_no=yes_no)
    assert import_answers(new, read_answers(path, "answers")).answers == count
    assert (new.progress().audits, new.progress().labelled) == (old.progress().audits, 400)
    assert new.progress().finished
    for job in (old, new):
        assert import_answers(job, read_answers(path, "answers")).answers == 0  # once more
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum(line.pop("audit") for line in lines) >= old.progress().audits > 0
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))  # as older files are
    third = Labelling(rows, labels=DIGITS, target=0.95, yes_no=yes_no)
    assert import_answers(third, read_answers(path, "answers")).answers == count
    assert third.progress().audits == 0


def test_an_audit_that_was_undone_and_asked_again_moves_with_its_answer(tmp_path):
    """The model was tried at the first answer; that the second was no audit does not matter."""
    old = small_job()
    old.add_answers([(0, AnswerBody(by="ann", labels=["a"], label="a", audit=True))])
    old.answer(old.undo("ann"), label="b", by="ann")
    export_labels(old, tmp_path / "a.jsonl", "answers")
    new = small_job()
    import_answers(new, read_answers(tmp_path / "a.jsonl", "answers"))
    assert new.progress().audits == old.progress().audits == 1


@pytest.mark.parametrize("yes_no", [False, True])
def test_answers_move_to_a_new_journal(yes_no, tmp_path):
    """With another seed, on a table with a new column and in another order: all that people said, in their names."""
    table = [{"text": f"note {i}", "size": i} for i in range(90)]
    old = Labelling(table, labels=list("abcdefg"), target=1.0, yes_no=yes_no)
    random = np.random.default_rng(0)
    for number in range(60):
        by = ("ann", "bob", "")[number % 3]
        question = old.ask(by)
        old.answer(question, by=by, **simulated_answer(question, "abcdefg"[question.row % 7], 0.2, random))
    old.set_final_label(5, "g", "ann")
    old.undo("bob")
    old.rename_label("a", "first")
    path = tmp_path / "answers.jsonl"
    count = export_labels(old, path, "answers")
    new_table = [row | {"new": "column"} for row in reversed(table)]
    new = Labelling(new_table, labels=list("bcdefg"), target=1.0, yes_no=yes_no, seed=7)
    counts = import_answers(new, read_answers(path, "answers"))
    assert (counts.answers, counts.unknown, counts.empty, counts.new_labels) == (count, 0, 0, ("first",))

    def answers_of(job):
        names, state = [*job.state.label_set.names, None], job.state
        return {
            job.rows.cells[int(job.rows.first_row[item])]["size"]: [
                (a.by, [names[i] for i in a.shown], a.hit, names[a.label], a.final)
                for a in state.valid_answers(item)
            ]
            for item in state.answers
            if state.valid_answers(item)
        }

    assert answers_of(new) == answers_of(old)
    assert {name: one["clicks"] for name, one in new.people().items()} == {
        name: one["clicks"] for name, one in old.people().items()
    }
    assert import_answers(new, read_answers(path, "answers")).answers == 0  # once more
    assert import_answers(old, read_answers(path, "answers")).answers == 0  # where they come from
    old.merge_labels("b", "c")
    assert export_labels(old, path, "answers") > 0
    assert import_answers(old, read_answers(path, "answers")).answers == 0
