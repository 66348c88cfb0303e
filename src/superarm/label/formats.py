"""Answers from other tools, and labels for them: Label Studio, Prodigy and Argilla; and answers for another journal.

label-studio   JSON: tasks with data, annotations (choices) and predictions
prodigy        JSONL: tasks with text, and label or options and accept; answer is accept, reject or ignore
argilla        JSON: records with fields, suggestions and responses (submitted, discarded, draft)
answers        JSONL, our own: row, by, labels (those shown), hit, label, final

What is written carries a mark, in meta or metadata: source is superarm, row and label are those of the export. So a
label that comes back as it was written is no new answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm._files import write_atomically
from superarm.errors import InvalidInput, at_row
from superarm.label.names import FILE, check_name, check_person

if TYPE_CHECKING:
    from superarm.label.job import Labelling

SOURCE, ANSWERS = "superarm", "answers"
ExportedRows = list[tuple[dict[str, Any], dict[str, Any]]]  # what people see of a row, and its result
# of a Prodigy task, what says nothing of the row itself
PRODIGY_KEYS = {
    "label", "options", "accept", "answer", "score", "priority", "spans", "tokens", "meta", "config", "style",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """What somebody said about one row in another tool.

    Attributes:
        row: what the tool shows of it, by name.
        shown: labels that were suggested or offered.
        label: the one that was chosen; None: none of those shown, or nothing at all if none were.
        by: who said so; empty if the tool does not tell.
        time: when, in seconds since 1970; 0 if the tool does not tell.
        unchanged: whether it is a label of our export, as it was written: nobody's answer.
        number: of the row in the table of that export; None in files that are none.
        hit: whether the right one is among those shown; None: it is if it was chosen of them.
        final: whether it settles the row.
    """

    row: dict[str, Any]
    shown: tuple[str, ...] = ()
    label: str | None = None
    by: str = ""
    time: float = 0.0
    unchanged: bool = False
    number: int | None = None
    hit: bool | None = None
    final: bool = False


def import_answers(path: str | Path, format: str, question: str | None = None) -> Iterator[ImportedAnswer]:
    """The answers in an export of another tool, in the order of the file.

    Args:
        path: the file.
        format: label-studio, prodigy, argilla or answers.
        question: which one, where the file has several (``from_name`` in Label Studio).
    """
    reader = _known(format)[0]
    owner = str(path)
    for number, task in enumerate(_tasks(Path(path))):
        if not isinstance(task, dict):
            raise InvalidInput.must("task", at_row(owner, number), "an object", task)
        try:
            row = _ours(task).get("row")
            for answer in reader(task, question, at_row(owner, number)):
                shown = tuple(dict.fromkeys(map(check_name, answer.shown)))
                label = None if answer.label is None else check_name(answer.label)
                by = answer.by if answer.unchanged else check_person(answer.by.strip(), at_row(owner, number))
                yield replace(
                    answer, shown=shown, label=label, by=by, number=row if isinstance(row, int) else None
                )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput.must(
                "task", at_row(owner, number), f"one that {format} exports", task
            ) from error


def export_labels(job: Labelling, path: str | Path, format: str) -> int:
    """Write the labels as another tool reads them, or the answers; returns how many rows have one, or how many."""
    if format == ANSWERS:
        lines = [json.dumps(answer, ensure_ascii=False) + "\n" for answer in _answers(job)]
        write_atomically(path, lambda file: file.write("".join(lines).encode()))
        return len(lines)
    writer, results = _known(format)[1], job.results()
    assert writer is not None
    text = writer([(shown_values(job, result["row"]), result) for result in results])
    write_atomically(path, lambda file: file.write(text.encode()))
    return sum(result["label"] is not None for result in results)


# ---------------------------------------------------------------- Label Studio


def _read_label_studio(task: dict[str, Any], question: str | None, owner: str) -> Iterator[ImportedAnswer]:
    annotations, ours = task.get("annotations", ()), _ours(task)
    if "label" in ours and not annotations:
        yield ImportedAnswer(task["data"], unchanged=True)
    for annotation in annotations:
        by, time = _person(annotation), _seconds(annotation)
        if annotation.get("was_cancelled"):
            yield ImportedAnswer(task["data"], by=by, time=time)
            continue
        predictions = (
            [annotation["prediction"]] if annotation.get("prediction") else task.get("predictions", ())
        )
        shown = [choice for given in predictions for choice in _choices(given, question, owner)]
        label = _single(_choices(annotation, question, owner), "choices", owner)
        written = any(part.get("id") == SOURCE for part in annotation.get("result", ()))
        unchanged = written and label == ours.get("label")
        yield ImportedAnswer(task["data"], tuple(shown), label, by, time, unchanged)


def _choices(given: dict[str, Any], question: str | None, owner: str) -> list[str]:
    choices_by: dict[str, list[str]] = {}
    for part in given.get("result", ()):
        if part["type"] == "choices" and question in (None, part["from_name"]):
            choices_by.setdefault(part["from_name"], []).extend(map(str, part["value"]["choices"]))
    return _of_single_question(choices_by, owner)


def _person(annotation: dict[str, Any]) -> str:
    """Who changed it last, or else gave it."""
    by, editor = annotation.get("completed_by"), annotation.get("updated_by")
    if editor is not None and editor != (by["id"] if isinstance(by, dict) else by):
        by = editor
    return str(by.get("email") or by["id"]) if isinstance(by, dict) else "" if by is None else str(by)


def _seconds(annotation: dict[str, Any]) -> float:
    text = annotation.get("updated_at") or annotation.get("created_at")
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _write_label_studio(rows: ExportedRows) -> str:
    tasks = []
    for data, result in rows:
        task: dict[str, Any] = {"data": data, "meta": _mark(result)}
        if result["label"] is not None:
            value = {"choices": [result["label"]]}
            choice = {"from_name": "label", "to_name": "row", "type": "choices", "value": value}
            if result["how"] == "accepted":
                prediction = {"model_version": SOURCE, "score": result["belief"], "result": [choice]}
                task["predictions"] = [prediction]
            else:
                task["annotations"] = [{"result": [choice | {"id": SOURCE}]}]
        tasks.append(task)
    return json.dumps(tasks, ensure_ascii=False)


# ---------------------------------------------------------------- Prodigy


def _read_prodigy(task: dict[str, Any], question: str | None, owner: str) -> Iterator[ImportedAnswer]:
    row = {name: task[name] for name in task if name not in PRODIGY_KEYS and not name.startswith("_")}
    ours = _ours(task)
    row |= {} if ours else task.get("meta", {})
    answer, chosen = task["answer"], [str(label) for label in task.get("accept", ())]
    if answer not in ("accept", "reject", "ignore"):
        raise InvalidInput.must("answer", owner, "accept, reject or ignore", answer)
    shown: list[str] = []
    if answer != "ignore":
        if "options" in task:
            options = [str(option["id"]) for option in task["options"]]
            shown = chosen if answer == "reject" and chosen else options
        else:
            shown = chosen = [_single(_list(task["label"]), "label", owner) or ""]
    label = _single(chosen, "accept", owner) if answer == "accept" else None
    by = str(task.get("_annotator_id") or task.get("_session_id") or "")
    time = float(task.get("_timestamp") or 0)
    unchanged = bool(ours) and not time and label == ours["label"] and by in ("", ours["by"])
    yield ImportedAnswer(row, tuple(shown), label, by, time, unchanged)


def _write_prodigy(rows: ExportedRows) -> str:
    lines = []
    for data, result in rows:
        if result["label"] is not None:
            task: dict[str, Any] = {"text": shown_text(data), "label": result["label"], "answer": "accept"}
            task["meta"] = _mark(result)
            if result["by"] and "," not in result["by"]:  # one person
                task["_annotator_id"] = result["by"]
            lines.append(json.dumps(task, ensure_ascii=False))
    return "".join(line + "\n" for line in lines)


# ---------------------------------------------------------------- Argilla


def _read_argilla(record: dict[str, Any], question: str | None, owner: str) -> Iterator[ImportedAnswer]:
    ours = _ours(record)
    row = {**({} if ours else record.get("metadata", {})), **record["fields"]}
    given = {name: many for name, many in record.get("responses", {}).items() if question in (None, name)}
    suggestions = record.get("suggestions", {})
    shown = _of_single_question(
        {name: _list(suggestions[name]["value"]) for name in suggestions if name in given}, owner
    )
    responses = _of_single_question(given, owner)
    if "label" in ours and not responses:
        yield ImportedAnswer(row, unchanged=True)
    for response in responses:
        by, status = str(response.get("user_id") or ""), response.get("status") or "submitted"
        if status == "submitted":
            yield ImportedAnswer(row, tuple(shown), _single(_list(response["value"]), "value", owner), by)
        else:
            yield ImportedAnswer(row, by=by)


def _write_argilla(rows: ExportedRows) -> str:
    records = []
    for data, result in rows:
        suggestion = {"value": result["label"], "score": result["belief"], "agent": SOURCE}
        records.append(
            {
                "id": str(result["row"]),
                "fields": {name: str(value) for name, value in data.items()},
                "metadata": _mark(result),
                "suggestions": {} if result["label"] is None else {"label": suggestion},
                "responses": {},
                "vectors": {},
            }
        )
    return json.dumps(records, ensure_ascii=False)


# ---------------------------------------------------------------- our own


def _read_answer(task: dict[str, Any], question: str | None, owner: str) -> Iterator[ImportedAnswer]:
    shown, hit, final = _list(task["labels"]), bool(task["hit"]), bool(task.get("final"))
    yield ImportedAnswer(task["row"], tuple(shown), task["label"], task["by"], hit=hit, final=final)


def _answers(job: Labelling) -> Iterator[dict[str, Any]]:
    """People's answers that count, oldest first, in the names that labels have today."""
    names = job.state.names
    every = [(answer, row) for row in job.state.answers for answer in job.state.valid_answers(row)]
    for answer, row in sorted(every, key=lambda pair: pair[0].seq):
        if answer.by == FILE:
            continue  # the table has it
        number = int(job.rows.first[row])
        yield {
            "row": {name: _plain(value) for name, value in job.rows.shown(number, ()).items()},
            "by": answer.by,
            "labels": [names[label] for label in answer.shown],
            "hit": answer.hit,
            "label": names[answer.label] if answer.label >= 0 else None,
            "final": answer.final,
            "meta": {"source": SOURCE, "row": number},
        }


Reader = Callable[[dict[str, Any], str | None, str], Iterator[ImportedAnswer]]
Writer = Callable[[ExportedRows], str]

FORMATS: dict[str, tuple[Reader, Writer | None]] = {
    "label-studio": (_read_label_studio, _write_label_studio),
    "prodigy": (_read_prodigy, _write_prodigy),
    "argilla": (_read_argilla, _write_argilla),
    ANSWERS: (_read_answer, None),  # written from the answers, not from the labels
}

# ---------------------------------------------------------------- what they have in common


def _known(format: str) -> tuple[Reader, Writer | None]:
    if format not in FORMATS:
        raise InvalidInput.must(
            "--format", "superarm labels", f"one of {', '.join(FORMATS)}", format, choices=FORMATS
        )
    return FORMATS[format]


def _tasks(path: Path) -> list[Any]:
    """All of a JSON list, or one of each line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput.must("file", "superarm labels import", "a UTF-8 text file", str(path)) from error
    try:
        if text.lstrip().startswith("["):
            return list(json.loads(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        wanted = "a JSON list, or one JSON object a line"
        raise InvalidInput.must("content", str(path), wanted, str(error)) from error


def _single(chosen: list[str], what: str, owner: str) -> str | None:
    if len(chosen) > 1:
        wanted = "at most one label: several right ones at once are not for this tool"
        raise InvalidInput.must(what, owner, wanted, chosen)
    return chosen[0] if chosen else None


def _of_single_question(by_question: dict[str, list[Any]], owner: str) -> list[Any]:
    """Of the only question that there is."""
    if len(by_question) > 1:
        raise InvalidInput.must("--question", owner, f"one of {', '.join(by_question)}", None)
    return next(iter(by_question.values()), [])


def _list(value: Any) -> list[str]:
    return [str(part) for part in (value if isinstance(value, list) else [value])]


def shown_values(job: Labelling, number: int) -> dict[str, Any]:
    """What people see of a row, as JSON has words for it."""
    return {name: _plain(value) for name, value in job.rows.shown(number, job.show).items()}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else str(value)


def shown_text(row: dict[str, Any]) -> str:
    """The only value, or names and values."""
    if len(row) == 1:
        return str(next(iter(row.values())))
    return "\n".join(f"{name}: {value}" for name, value in row.items())


def _mark(result: dict[str, Any]) -> dict[str, Any]:
    """What tells a task of ours from others; without a label if the row has none."""
    return {"source": SOURCE} | {name: value for name, value in result.items() if value is not None}


def _ours(task: dict[str, Any]) -> dict[str, Any]:
    """The mark of a task that we have written; empty in all others."""
    mark = task.get("meta") or task.get("metadata") or {}
    return mark if mark.get("source") == SOURCE else {}
