"""Answers from other tools, and labels for them: Label Studio, Prodigy and Argilla.

label-studio   JSON: tasks with data, annotations (choices) and predictions
prodigy        JSONL: tasks with text, and label or options and accept; answer is accept, reject or ignore
argilla        JSON: records with fields, suggestions and responses (submitted, discarded, draft)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm._files import write_atomically
from superarm.errors import InvalidInput, at_row
from superarm.label.rows import PICTURES

if TYPE_CHECKING:
    from superarm.label.job import Labelling

__all__ = ["FORMATS", "ImportedAnswer", "TakenOver", "export_labels", "import_answers", "take_over"]

# of a Prodigy task, what says nothing of the row itself
PRODIGY = {
    *(
        "label",
        "options",
        "accept",
        "answer",
        "score",
        "priority",
        "spans",
        "tokens",
        "meta",
        "config",
        "style",
    )
}
UPLOADED = re.compile(r"^[0-9a-f]{8}-")  # what Label Studio puts before the name of a file


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """What somebody said about one row in another tool.

    Attributes:
        row: what the tool shows of it, by name.
        shown: labels that were suggested or offered.
        label: the one that was chosen; None: none of those shown, or nothing at all if none were.
        by: who said so; empty if the tool does not tell.
        time: when, in seconds since 1970; 0 if the tool does not tell.
    """

    row: dict[str, Any]
    shown: tuple[str, ...]
    label: str | None
    by: str
    time: float


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What came of an import.

    Attributes:
        answers: that were taken over.
        empty: that say nothing: skipped, discarded, drafts; or none of all the labels that there are.
        unknown: about rows that are not in the table.
        added: labels that were not there before.
    """

    answers: int
    empty: int
    unknown: int
    added: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{self.answers:,} answers taken over"]
        if self.empty:
            parts.append(f"{self.empty:,} that say nothing")
        if self.unknown:
            parts.append(f"{self.unknown:,} about rows that are not in the table")
        if self.added:
            parts.append(f"new labels: {', '.join(self.added)}")
        return "; ".join(parts)


def import_answers(path: str | Path, format: str, question: str | None = None) -> Iterator[ImportedAnswer]:
    """The answers in an export of another tool, in the order of the file.

    Args:
        path: the file.
        format: label-studio, prodigy or argilla.
        question: which one, where the file has several (``from_name`` in Label Studio).
    """
    reader = _known(format)[0]
    owner = str(path)
    for number, task in enumerate(_tasks(Path(path))):
        if not isinstance(task, dict):
            raise InvalidInput.must("task", at_row(owner, number), "an object", task)
        try:
            yield from reader(task, question, at_row(owner, number))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput.must(
                "task", at_row(owner, number), f"one that {format} exports", task
            ) from error


def take_over(job: Labelling, answers: Iterable[ImportedAnswer]) -> TakenOver:
    """Put answers into a labelling, oldest first; labels that are new are added."""
    rows, taken, added, counts = _Rows(job), list[dict[str, Any]](), list[str](), {"empty": 0, "unknown": 0}
    names = set(job.label_names)
    for one in sorted(answers, key=lambda answer: answer.time):
        number = rows.find(one.row)
        if number is None:
            counts["unknown"] += 1
            continue
        if one.label is None and not one.shown:
            counts["empty"] += 1
            continue
        for label in (*one.shown, *(() if one.label is None else (one.label,))):
            if label not in names:
                names.add(label)
                added.append(label)
                job.add_label(label)
        if one.label is None and names <= set(one.shown):
            counts["empty"] += 1
            continue
        taken.append(
            {
                "row": number,
                "by": one.by,
                "label": one.label,
                "labels": list(one.shown),
                "hit": one.label in one.shown,
            }
        )
    return TakenOver(job.add_answers(taken), counts["empty"], counts["unknown"], tuple(added))


def export_labels(job: Labelling, path: str | Path, format: str) -> int:
    """Write the labels as another tool reads them; returns how many rows have one."""
    writer = _known(format)[1]
    results = job.results()
    text = writer([(_plain(job.rows.shown(one["row"], job.show)), one) for one in results])
    write_atomically(path, lambda file: file.write(text.encode()))
    return sum(one["label"] is not None for one in results)


# ---------------------------------------------------------------- Label Studio


def _read_label_studio(task: dict[str, Any], question: str | None, owner: str) -> Iterator[ImportedAnswer]:
    for annotation in task.get("annotations", ()):
        chosen = _choices(annotation, question, owner)
        predictions = (
            [annotation["prediction"]] if annotation.get("prediction") else task.get("predictions", ())
        )
        shown = [choice for one in predictions for choice in _choices(one, question, owner)]
        if annotation.get("was_cancelled"):
            yield ImportedAnswer(task["data"], (), None, _person(annotation), _seconds(annotation))
            continue
        label = _one(chosen, "choices", owner)
        yield ImportedAnswer(task["data"], _distinct(shown), label, _person(annotation), _seconds(annotation))


def _choices(given: dict[str, Any], question: str | None, owner: str) -> list[str]:
    choices_by: dict[str, list[str]] = {}
    for part in given.get("result", ()):
        if part["type"] == "choices" and question in (None, part["from_name"]):
            choices_by.setdefault(part["from_name"], []).extend(map(str, part["value"]["choices"]))
    return _only(choices_by, owner)


def _person(annotation: dict[str, Any]) -> str:
    by = annotation.get("completed_by")
    return str(by.get("email") or by["id"]) if isinstance(by, dict) else "" if by is None else str(by)


def _seconds(annotation: dict[str, Any]) -> float:
    text = annotation.get("updated_at") or annotation.get("created_at")
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _write_label_studio(rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    tasks = []
    for data, one in rows:
        task: dict[str, Any] = {"data": data, "meta": _about(one)}
        if one["label"] is not None:
            value = {"choices": [one["label"]]}
            result = [{"from_name": "label", "to_name": "row", "type": "choices", "value": value}]
            if one["how"] == "accepted":
                task["predictions"] = [
                    {"model_version": "superarm", "score": one["belief"], "result": result}
                ]
            else:
                task["annotations"] = [{"result": result}]
        tasks.append(task)
    return json.dumps(tasks, ensure_ascii=False)


# ---------------------------------------------------------------- Prodigy


def _read_prodigy(task: dict[str, Any], question: str | None, owner: str) -> Iterator[ImportedAnswer]:
    row = {name: value for name, value in task.items() if name not in PRODIGY and not name.startswith("_")}
    row |= task.get("meta", {})
    answer, chosen = task["answer"], [str(one) for one in task.get("accept", ())]
    if answer not in ("accept", "reject", "ignore"):
        raise InvalidInput.must("answer", owner, "accept, reject or ignore", answer)
    shown: list[str] = []
    if answer != "ignore":
        if "options" in task:
            options = [str(option["id"]) for option in task["options"]]
            shown = chosen if answer == "reject" and chosen else options
        else:
            shown = chosen = [_one(_list(task["label"]), "label", owner) or ""]
    label = _one(chosen, "accept", owner) if answer == "accept" else None
    by = str(task.get("_annotator_id") or task.get("_session_id") or "")
    yield ImportedAnswer(row, _distinct(shown), label, by, float(task.get("_timestamp") or 0))


def _write_prodigy(rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    lines = []
    for data, one in rows:
        if one["label"] is not None:
            task = {"text": _as_text(data), "label": one["label"], "answer": "accept", "meta": _about(one)}
            lines.append(json.dumps(task | {"_annotator_id": one["by"] or "superarm"}, ensure_ascii=False))
    return "".join(line + "\n" for line in lines)


# ---------------------------------------------------------------- Argilla


def _read_argilla(record: dict[str, Any], question: str | None, owner: str) -> Iterator[ImportedAnswer]:
    row = {**record.get("metadata", {}), **record["fields"]}
    given = {name: many for name, many in record.get("responses", {}).items() if question in (None, name)}
    suggested = {name: one["value"] for name, one in record.get("suggestions", {}).items() if name in given}
    shown = _only({name: _list(value) for name, value in suggested.items()}, owner)
    for response in _only(given, owner):
        by, status = str(response.get("user_id") or ""), response.get("status") or "submitted"
        if status == "submitted":
            yield ImportedAnswer(
                row, _distinct(shown), _one(_list(response["value"]), "value", owner), by, 0.0
            )
        else:
            yield ImportedAnswer(row, (), None, by, 0.0)


def _write_argilla(rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    records = []
    for data, one in rows:
        suggestion = {"value": one["label"], "score": one["belief"], "agent": "superarm"}
        records.append(
            {
                "id": str(one["row"]),
                "fields": {name: str(value) for name, value in data.items()},
                "metadata": _about(one),
                "suggestions": {} if one["label"] is None else {"label": suggestion},
                "responses": {},
                "vectors": {},
            }
        )
    return json.dumps(records, ensure_ascii=False)


Reader = Callable[[dict[str, Any], str | None, str], Iterator[ImportedAnswer]]
Writer = Callable[[list[tuple[dict[str, Any], dict[str, Any]]]], str]

FORMATS: dict[str, tuple[Reader, Writer]] = {
    "label-studio": (_read_label_studio, _write_label_studio),
    "prodigy": (_read_prodigy, _write_prodigy),
    "argilla": (_read_argilla, _write_argilla),
}

# ---------------------------------------------------------------- what they have in common


def _known(format: str) -> tuple[Reader, Writer]:
    if format not in FORMATS:
        raise InvalidInput.must(
            "--format", "superarm labels", f"one of {', '.join(FORMATS)}", format, among=FORMATS
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


def _one(chosen: list[str], what: str, owner: str) -> str | None:
    if len(chosen) > 1:
        wanted = "at most one label: several right ones at once are not for this tool"
        raise InvalidInput.must(what, owner, wanted, chosen)
    return chosen[0] if chosen else None


def _only(by_question: dict[str, list[Any]], owner: str) -> list[Any]:
    """Of the only question that there is."""
    if len(by_question) > 1:
        raise InvalidInput.must("--question", owner, f"one of {', '.join(by_question)}", None)
    return next(iter(by_question.values()), [])


def _list(value: Any) -> list[str]:
    return [str(one) for one in (value if isinstance(value, list) else [value])]


def _distinct(labels: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(labels))


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """What JSON has a word for."""
    return {name: v if isinstance(v, str | int | float | bool) else str(v) for name, v in row.items()}


def _as_text(row: dict[str, Any]) -> str:
    """The only value, or names and values."""
    if len(row) == 1:
        return str(next(iter(row.values())))
    return "\n".join(f"{name}: {value}" for name, value in row.items())


def _about(one: dict[str, Any]) -> dict[str, Any]:
    return {name: one[name] for name in ("row", "belief", "clicks", "how", "by")}


class _Rows:
    """Finds the rows of a table that another tool shows: by the columns that both have, or by the text alone."""

    def __init__(self, job: Labelling) -> None:
        self._cells = [{name: _key(value) for name, value in row.items()} for row in job.rows.cells]
        self._by: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {}

    def find(self, row: dict[str, Any]) -> int | None:
        """The first row that agrees; None if none does."""
        columns = tuple(name for name in self._cells[0] if name in row)
        if columns:
            return self._index(columns).get(tuple(_key(row[name]) for name in columns))
        texts = [_key(value) for value in row.values() if isinstance(value, str)]
        for name in self._cells[0]:
            for text in texts:
                number = self._index((name,)).get((text,))
                if number is not None:
                    return number
        return None

    def _index(self, columns: tuple[str, ...]) -> dict[tuple[str, ...], int]:
        if columns not in self._by:
            numbers: dict[tuple[str, ...], int] = {}
            for number, row in enumerate(self._cells):
                numbers.setdefault(tuple(row[name] for name in columns), number)
            self._by[columns] = numbers
        return self._by[columns]


def _key(value: Any) -> str:
    """A value, as it is compared; of a picture's address, the file's name as it was before an upload."""
    if value is None or value != value:
        return ""
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    if not text.lower().endswith(tuple(PICTURES)):
        return text
    return UPLOADED.sub("", text.rpartition("/")[2])
