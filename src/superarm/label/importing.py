"""Answers of other tools and journals into a labelling: which row each is about, and which are new."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from superarm._types import Cell
from superarm.journal.events import AnswerBody, encode
from superarm.label.answers import is_hit, mentioned_labels
from superarm.label.formats import ImportedAnswer, plain_values, values_text
from superarm.label.item_keys import comparable_text
from superarm.label.names import list_labels
from superarm.label.pictures import MEDIA_TYPES

if TYPE_CHECKING:
    from superarm.label.labelling import Labelling

UPLOAD_PREFIX = re.compile(r"^[0-9a-f]{8}-")  # what Label Studio puts before the name of a file


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """What came of an import.

    Attributes:
        answers: how many were taken over.
        empty: how many say nothing: skipped, discarded, drafts; or none of all the labels that there are.
        unknown: how many are about rows that are not in the table.
        unchanged: how many are labels of our own export, as they were written.
        repeated: how many say what another one in the file does: the same person, about the same or an equal row.
        known: how many the labelling had before.
        new_labels: labels that were not there before.
    """

    answers: int
    empty: int
    unknown: int
    unchanged: int
    repeated: int
    known: int
    new_labels: tuple[str, ...]

    def __str__(self) -> str:
        not_taken = {
            "that say nothing": self.empty,
            "about rows that are not in the table": self.unknown,
            "as superarm exported them, which are no new answers": self.unchanged,
            "that say the same as another about the same or an equal row": self.repeated,
            "that were known before": self.known,
        }
        parts = [f"{self.answers:,} answers taken over"]
        parts += [f"{count:,} {reason}" for reason, count in not_taken.items() if count]
        if self.unchanged and not self.answers:
            parts.append(
                "to move all answers to another journal, export and import them with --format answers"
            )
        parts += [f"new labels: {list_labels(self.new_labels)}"] if self.new_labels else []
        return "; ".join(parts)


def import_answers(job: Labelling, answers: Iterable[ImportedAnswer]) -> ImportCounts:
    """Put answers into a labelling, oldest first; labels that are new are added, old names mean what they are now."""
    finder = RowFinder(job)
    names = dict.fromkeys(job.label_names)
    accepted = list[tuple[int, AnswerBody]]()
    seen = set[tuple[int, bytes]]()  # by item and content
    empty = unknown = unchanged = repeated = 0
    may_repeat = False
    for answer in sorted(answers, key=lambda answer: answer.time):
        row = finder.find(answer.values, answer.row)
        body = _in_current_names(job, answer.body)
        mentioned = mentioned_labels(body)
        may_repeat |= answer.repeats
        if answer.unchanged:
            unchanged += 1
        elif row is None:
            unknown += 1
        else:
            names |= dict.fromkeys(mentioned)
            is_none = body.label is None and body.hit is None
            key = int(job.rows.item_of_row[row]), encode(body)
            if not mentioned or (is_none and names.keys() <= set(mentioned)):
                empty += 1  # nothing, or none of all labels
            elif key in seen and not answer.repeats:
                repeated += 1
            else:
                seen.add(key)
                accepted.append((row, body))
    new_labels = tuple(name for name in names if name not in job.label_names)
    for name in new_labels:
        job.add_label(name)
    n_new = job.add_answers(accepted, may_repeat=may_repeat)
    known = len(accepted) - n_new
    return ImportCounts(n_new, empty, unknown, unchanged, repeated, known, new_labels)


def _in_current_names(job: Labelling, body: AnswerBody) -> AnswerBody:
    """Return an answer in the names that labels have now: some were renamed or merged."""
    label_set = job.state.label_set
    label = None if body.label is None else label_set.current_names([body.label], denied=False)[0]
    shown = label_set.current_names(body.labels or (), denied=not is_hit(body))
    return replace(body, labels=shown, label=label)


class RowFinder:
    """Finds the rows of a table that another tool shows: by the columns that both have, or by the text alone."""

    def __init__(self, job: Labelling) -> None:
        rows = range(len(job.rows))
        self._cells = [{name: _comparable(cell) for name, cell in row.items()} for row in job.rows.cells]
        self._texts = [_comparable(values_text(plain_values(job, row, job.settings.show))) for row in rows]
        self._row_of_text = {self._texts[row]: row for row in reversed(rows)}
        self._rows_by_columns: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {}

    def find(self, shown: dict[str, Cell], exported_row: int | None = None) -> int | None:
        """Return the row that agrees with what another tool shows: the exported one, else the first; or None."""
        columns = tuple(name for name in self._cells[0] if name in shown)
        values = tuple(_comparable(shown[name]) for name in columns)
        texts = [text for v in shown.values() if isinstance(v, str) and (text := _comparable(v))]
        if exported_row is not None and 0 <= exported_row < len(self._cells):
            cells = self._cells[exported_row]
            same = columns and values == tuple(cells[name] for name in columns)
            if same or self._texts[exported_row] in texts:
                return exported_row
        if columns and values in self._rows_by(columns):
            return self._rows_by(columns)[values]
        other_names = () if columns else tuple(self._cells[0])
        candidates = [self._row_of_text.get(text) for text in texts]
        candidates += [self._rows_by((name,)).get((text,)) for name in other_names for text in texts]
        return next((row for row in candidates if row is not None), None)

    def _rows_by(self, columns: tuple[str, ...]) -> dict[tuple[str, ...], int]:
        """Return the first row with each combination of values of these columns."""
        if columns not in self._rows_by_columns:
            first_row: dict[tuple[str, ...], int] = {}
            for row, cells in enumerate(self._cells):
                first_row.setdefault(tuple(cells[name] for name in columns), row)
            self._rows_by_columns[columns] = first_row
        return self._rows_by_columns[columns]


def _comparable(value: Cell) -> str:
    """Return a value as it is compared; of a picture's address, the file's name as it was before an upload."""
    text = (comparable_text(value) or "").strip()
    if not text.lower().endswith(tuple(MEDIA_TYPES)):
        return text
    return UPLOAD_PREFIX.sub("", text.rpartition("/")[2])
