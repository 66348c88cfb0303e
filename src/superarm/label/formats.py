"""Answers from other tools, and labels for them: Label Studio, Prodigy and Argilla; and answers for another journal.

label-studio   JSON: tasks with data, annotations (choices) and predictions
prodigy        JSONL: tasks with text, and label or options and accept; answer is accept, reject or ignore
argilla        JSON: records with fields, suggestions and responses (submitted, discarded, draft)
answers        JSONL, our own: row, by, labels (those shown), hit, label, final, audit (not in older files)

What people have said is written as such, what was only accepted as a suggestion. Each task carries its provenance, in
meta or metadata: source is superarm, and row, label and by are those of the export. So a label that comes back as it
was written is no new answer; what a person accepts, changes or rejects there is theirs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from superarm._files import write_atomically
from superarm._types import Cell, JsonObject
from superarm.errors import InvalidInput, at_row
from superarm.journal.events import AnswerBody
from superarm.label.names import TABLE_AS_PERSON, check_label, check_person
from superarm.learners.locking import takes_turns

if TYPE_CHECKING:
    from superarm.label.labelling import Labelling

SOURCE, ANSWERS = "superarm", "answers"
# of a Prodigy task, those that are not about the row itself
PRODIGY_KEYS = {
    "label", "options", "accept", "answer", "score", "priority", "spans", "tokens", "meta", "config", "style",
}  # fmt: skip
TABLE_HINT = "labels that a table has in a column: superarm label TABLE --labels COLUMN"


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """An answer about one row in another tool, or another journal.

    Attributes:
        values: what the tool shows of the row, by name.
        body: the answer: labels that were suggested or offered, and the one that was chosen; None: none of those
            offered, or nothing at all if none were.
        time: when, in seconds since 1970; 0 if the tool does not tell.
        unchanged: whether it is a label of our export, as it was written: nobody's answer.
        row: its number in the table of that export; None in files of others.
        repeats: whether it counts beside one that says the same: of our journals, where a person is asked again.
    """

    values: dict[str, Cell]
    body: AnswerBody
    time: float = 0.0
    unchanged: bool = False
    row: int | None = None
    repeats: bool = False


def read_answers(path: str | Path, format: str, question: str | None = None) -> Iterator[ImportedAnswer]:
    """Read the answers in an export of another tool, in the order of the file.

    Args:
        path: the file.
        format: label-studio, prodigy, argilla or answers.
        question: which one, where the file has several (``from_name`` in Label Studio).
    """
    read_task = find_format(format).read
    for number, task in enumerate(_read_tasks(Path(path))):
        owner = at_row(str(path), number)
        if not isinstance(task, dict):
            raise InvalidInput.must("task", owner, "an object", task)
        provenance = _find_provenance(task)
        try:
            answers = list(read_task(TaskReader(question, owner, provenance), task))
            if "label" in provenance and not answers:  # nobody has said anything there
                answers = [ImportedAnswer({}, AnswerBody(by=""), unchanged=True)]
            yield from (replace(answer, row=provenance.get("row")) for answer in answers)
        except InvalidInput:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InvalidInput.must("task", owner, f"one that {format} exports", task) from error


def export_labels(job: Labelling, path: str | Path, format: str) -> int:
    """Write the labels as another tool reads them, or people's answers, and return how many there are."""
    _, write_task, is_list = find_format(format)
    exported, columns = (
        (_people_answers(job), ()) if format == ANSWERS else (job.results(), job.settings.show)
    )
    written = (write_task(plain_values(job, one["row"], columns), one) for one in exported)
    tasks = [json.dumps(task, ensure_ascii=False) for task in written if task is not None]
    text = f"[{', '.join(tasks)}]" if is_list else "".join(f"{task}\n" for task in tasks)
    write_atomically(path, lambda file: file.write(text.encode()))
    return sum(format == ANSWERS or one["label"] is not None for one in exported)


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class TaskReader:
    """Reads the answers in one task of a file.

    Attributes:
        question: which one, where there are several.
        owner: the task, for messages.
        provenance: what our export says of the row; empty in files of others.
    """

    question: str | None
    owner: str
    provenance: JsonObject

    def label_studio(self, task: JsonObject) -> Iterator[ImportedAnswer]:
        for annotation in task.get("annotations", ()):
            by, time = _annotator(annotation), _annotation_time(annotation)
            if annotation.get("was_cancelled"):
                yield ImportedAnswer(task["data"], self._answer(by), time)
                continue
            prediction = annotation.get("prediction")
            predictions = [prediction] if prediction else task.get("predictions", ())
            shown = [choice for result in predictions for choice in self._choices(result)]
            label = self._at_most_one(self._choices(annotation), "choices")
            is_ours = any(part.get("id") == SOURCE for part in annotation.get("result", ()))
            unchanged = is_ours and label == self.provenance.get("label")
            yield ImportedAnswer(task["data"], self._answer(by, shown, label), time, unchanged)

    def _choices(self, annotation: JsonObject) -> list[str]:
        """Return the labels in an annotation or a prediction of Label Studio."""
        choices_by: dict[str, list[str]] = {}
        for part in annotation.get("result", ()):
            if part["type"] == "choices" and self.question in (None, part["from_name"]):
                choices_by.setdefault(part["from_name"], []).extend(map(str, part["value"]["choices"]))
        return self._of_question(choices_by)

    def prodigy(self, task: JsonObject) -> Iterator[ImportedAnswer]:
        values = {name: task[name] for name in task if name not in PRODIGY_KEYS and not name.startswith("_")}
        values |= {} if self.provenance else task.get("meta", {})
        if self.provenance and "answer" not in task:
            return
        answer = task["answer"]
        chosen = [str(label) for label in task.get("accept", ())]
        if answer not in ("accept", "reject", "ignore"):
            raise InvalidInput.must("answer", self.owner, "accept, reject or ignore", answer)
        shown: list[str] = []
        if answer != "ignore" and "options" in task:
            options = [str(option["id"]) for option in task["options"]]
            shown = chosen if answer == "reject" and chosen else options
        elif answer != "ignore":
            shown = chosen = [self._at_most_one(_as_list(task["label"]), "label") or ""]
        label = self._at_most_one(chosen, "accept") if answer == "accept" else None
        by = str(task.get("_annotator_id") or task.get("_session_id") or "")
        time = float(task.get("_timestamp") or 0)
        same_person = by in ("", _single_person(self.provenance))
        unchanged = bool(self.provenance) and not time and same_person and label == self.provenance["label"]
        yield ImportedAnswer(values, self._answer(by, shown, label), time, unchanged)

    def argilla(self, record: JsonObject) -> Iterator[ImportedAnswer]:
        values = {**({} if self.provenance else record.get("metadata", {})), **record["fields"]}
        responses = {
            name: many for name, many in record.get("responses", {}).items() if self.question in (None, name)
        }
        suggestions = record.get("suggestions", {})
        shown = self._of_question(
            {name: _as_list(suggestions[name]["value"]) for name in responses if name in suggestions}
        )
        given = self._of_question(responses)
        for response in given:
            by = str(response.get("user_id") or "")
            if (response.get("status") or "submitted") == "submitted":
                label = self._at_most_one(_as_list(response["value"]), "value")
                yield ImportedAnswer(values, self._answer(by, shown, label))
            else:
                yield ImportedAnswer(values, self._answer(by))

    def answers(self, answer: JsonObject) -> Iterator[ImportedAnswer]:
        body = self._answer(answer["by"], _as_list(answer["labels"]), answer["label"])
        body.hit, body.final = bool(answer["hit"]), bool(answer["final"])
        body.audit = bool(answer.get("audit", False))
        yield ImportedAnswer(answer["row"], body, repeats=True)

    def _answer(self, by: str = "", labels: Sequence[str] = (), label: str | None = None) -> AnswerBody:
        """Return an answer, its names checked; without labels it says nothing."""
        return AnswerBody(
            by=check_person(by.strip(), self.owner),
            labels=list(dict.fromkeys(map(check_label, labels))),
            label=None if label is None else check_label(label),
        )

    def _at_most_one(self, chosen: list[str], field: str) -> str | None:
        if len(chosen) > 1:
            wanted = "at most one label: several right ones at once are not for this tool"
            raise InvalidInput.must(field, self.owner, wanted, chosen)
        return chosen[0] if chosen else None

    def _of_question(self, by_name: dict[str, list[Any]]) -> list[Any]:
        """Return the responses or suggestions for the only question of a task."""
        if len(by_name) > 1:
            raise InvalidInput.must("--question", self.owner, f"one of {', '.join(by_name)}", None)
        return next(iter(by_name.values()), [])


def _find_provenance(task: JsonObject) -> JsonObject:
    """Return the provenance of a task that we have written; empty of all others."""
    for name in ("meta", "metadata"):
        meta = task.get(name)
        if isinstance(meta, dict) and meta.get("source") == SOURCE and isinstance(meta.get("row"), int):
            return meta
    return {}


def _annotator(annotation: JsonObject) -> str:
    """Return who changed an annotation of Label Studio last, or else gave it."""
    by, editor = annotation.get("completed_by"), annotation.get("updated_by")
    if editor is not None and editor != (by["id"] if isinstance(by, dict) else by):
        by = editor
    return str(by.get("email") or by["id"]) if isinstance(by, dict) else "" if by is None else str(by)


def _annotation_time(annotation: JsonObject) -> float:
    text = annotation.get("updated_at") or annotation.get("created_at")
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _as_list(value: object) -> list[str]:
    return [str(part) for part in (value if isinstance(value, list) else [value])]


def _read_tasks(path: Path) -> list[object]:
    """Return all objects of a JSON list, or one of each line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        wanted = f"a UTF-8 text file ({TABLE_HINT})"
        raise InvalidInput.must("file", "superarm labels import", wanted, str(path)) from error
    try:
        if text.lstrip().startswith("["):
            return list(json.loads(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        wanted = f"a JSON list, or one JSON object a line ({TABLE_HINT})"
        raise InvalidInput.must("content", str(path), wanted, error) from error


# ---------------------------------------------------------------- writing


def _label_studio_task(values: JsonObject, result: JsonObject) -> JsonObject:
    task: JsonObject = {"data": values, "meta": _provenance(result)}
    value = {"choices": [result["label"]]}
    choice = {"from_name": "label", "to_name": "row", "type": "choices", "value": value}
    if result["how"] == "accepted":
        task["predictions"] = [{"model_version": SOURCE, "score": result["belief"], "result": [choice]}]
    elif result["label"] is not None:
        task["annotations"] = [{"result": [choice | {"id": SOURCE}]}]
    return task


def _prodigy_task(values: JsonObject, result: JsonObject) -> JsonObject | None:
    task = {"text": values_text(values), "label": result["label"], "meta": _provenance(result)}
    if result["label"] is None:
        return None
    if result["how"] == "accepted":
        return task | {"score": result["belief"]}
    person = _single_person(result)
    return task | {"answer": "accept"} | ({"_annotator_id": person} if person else {})


def _argilla_record(values: JsonObject, result: JsonObject) -> JsonObject:
    suggestion = {"value": result["label"], "score": result["belief"], "agent": SOURCE}
    return {
        "id": str(result["row"]),
        "fields": {name: str(value) for name, value in values.items()},
        "metadata": _provenance(result),
        "responses": {},
        "vectors": {},
        "suggestions": {} if result["label"] is None else {"label": suggestion},
    }


def _answer_task(values: JsonObject, answer: JsonObject) -> JsonObject:
    return answer | {"row": values, "meta": {"source": SOURCE, "row": answer["row"]}}


@takes_turns
def _people_answers(job: Labelling) -> list[JsonObject]:
    """Return people's answers that count, oldest first, in the names that labels have now."""
    state, names = job.state, job.state.label_set.names
    answers = [(answer, item) for item in state.answers for answer in state.valid_answers(item)]
    return [
        {"row": int(job.rows.first_row[item]), **answer.to_dict(names), "audit": state.trials.is_audit(item)}
        for answer, item in sorted(answers, key=lambda pair: pair[0].seq)
        if answer.by != TABLE_AS_PERSON
    ]


def _provenance(result: JsonObject) -> JsonObject:
    """Return what tells a task of ours from others; without a label if the row has none."""
    return {"source": SOURCE} | {name: value for name, value in result.items() if value is not None}


def _single_person(result: JsonObject) -> str:
    """Return the person behind a result, if it was one alone; else empty."""
    by = str(result.get("by", ""))
    return "" if "," in by or by == TABLE_AS_PERSON else by


def plain_values(job: Labelling, row: int, columns: Sequence[str]) -> JsonObject:
    """Return what a row holds in some columns (none: in all), in the types of JSON."""
    values = job.rows.values(row, columns)
    return {
        name: value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in values.items()
    }


def values_text(values: JsonObject) -> str:
    """Return what people see of a row in lines of text: the only value, or names and values."""
    if len(values) == 1:
        return str(next(iter(values.values())))
    return "\n".join(f"{name}: {value}" for name, value in values.items())


class Format(NamedTuple):
    """How the tasks of a format are read and written.

    Attributes:
        read: yields the answers in a task.
        write: makes a task of what people see of a row, and its result or an answer about it; None: it has none.
        is_list: whether a file is a JSON list, and not a task a line.
    """

    read: Callable[[TaskReader, JsonObject], Iterator[ImportedAnswer]]
    write: Callable[[JsonObject, JsonObject], JsonObject | None]
    is_list: bool


FORMATS = {
    "label-studio": Format(TaskReader.label_studio, _label_studio_task, is_list=True),
    "prodigy": Format(TaskReader.prodigy, _prodigy_task, is_list=False),
    "argilla": Format(TaskReader.argilla, _argilla_record, is_list=True),
    ANSWERS: Format(TaskReader.answers, _answer_task, is_list=False),
}


def find_format(name: str) -> Format:
    """Return the format of a name; an error if there is none."""
    if name not in FORMATS:
        wanted = f"one of {', '.join(FORMATS)}"
        raise InvalidInput.must("--format", "superarm labels", wanted, name, choices=FORMATS)
    return FORMATS[name]
