"""Answers of other tools and labellings, into one: which row each is about, and which are new."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from superarm.data.cells import is_missing
from superarm.label.formats import ImportedAnswer, shown_text, shown_values
from superarm.label.rows import PICTURES

if TYPE_CHECKING:
    from superarm.label.job import Labelling

UPLOADED = re.compile(r"^[0-9a-f]{8}-")  # what Label Studio puts before the name of a file


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What came of an import.

    Attributes:
        answers: that were taken over.
        empty: that say nothing: skipped, discarded, drafts; or none of all the labels that there are.
        unknown: about rows that are not in the table.
        unchanged: labels of our own export, as they were written.
        added: labels that were not there before.
    """

    answers: int
    empty: int
    unknown: int
    unchanged: int
    added: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{self.answers:,} answers taken over"]
        if self.empty:
            parts.append(f"{self.empty:,} that say nothing")
        if self.unknown:
            parts.append(f"{self.unknown:,} about rows that are not in the table")
        if self.unchanged:
            parts.append(f"{self.unchanged:,} as superarm exported them, which are no new answers")
        if self.added:
            parts.append(f"new labels: {', '.join(self.added)}")
        return "; ".join(parts)


def take_over(job: Labelling, answers: Iterable[ImportedAnswer]) -> TakenOver:
    """Put answers into a labelling, oldest first; labels that are new are added."""
    rows, names = _Rows(job), dict.fromkeys(job.label_names)
    taken: list[dict[str, Any]] = []
    empty = unknown = unchanged = 0
    for answer in sorted(answers, key=lambda answer: answer.time):
        label, shown = answer.label, list(answer.shown)
        number = rows.find(answer)
        if answer.unchanged:
            unchanged += 1
        elif number is None:
            unknown += 1
        elif label is None and not shown:
            empty += 1
        else:
            names |= dict.fromkeys(shown if label is None else [*shown, label])
            if label is None and answer.hit is None and names.keys() <= set(shown):
                empty += 1
                continue
            hit = label in shown if answer.hit is None else answer.hit
            content = {"label": label, "labels": shown, "hit": hit, "final": answer.final}
            taken.append({"row": number, "by": answer.by, **content})
    added = tuple(name for name in names if name not in job.label_names)
    for name in added:
        job.add_label(name)
    return TakenOver(job.add_answers(taken), empty, unknown, unchanged, added)


class _Rows:
    """Finds the rows of a table that another tool shows: by the columns that both have, or by the text alone."""

    def __init__(self, job: Labelling) -> None:
        numbers = range(len(job.rows))
        self._cells = [{name: _key(value) for name, value in row.items()} for row in job.rows.cells]
        self._whole = [_key(shown_text(shown_values(job, number))) for number in numbers]
        self._by_whole = {self._whole[number]: number for number in reversed(numbers)}
        self._by_columns: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {}

    def find(self, answer: ImportedAnswer) -> int | None:
        """The row that our export was about, if it is the same still; else the first that agrees; None if none does."""
        row, number = answer.row, answer.number
        columns = tuple(name for name in self._cells[0] if name in row)
        values = tuple(_key(row[name]) for name in columns)
        texts = [_key(value) for value in row.values() if isinstance(value, str) and value.strip()]
        if number is not None and 0 <= number < len(self._cells):
            cells = self._cells[number]
            if (columns and values == tuple(cells[name] for name in columns)) or self._whole[number] in texts:
                return number
        if columns and values in self._index(columns):
            return self._index(columns)[values]
        alone = () if columns else tuple(self._cells[0])
        hits = [self._by_whole.get(text) for text in texts]
        hits += [self._index((name,)).get((text,)) for name in alone for text in texts]
        return next((hit for hit in hits if hit is not None), None)

    def _index(self, columns: tuple[str, ...]) -> dict[tuple[str, ...], int]:
        """The first row with each combination of values."""
        if columns not in self._by_columns:
            numbers: dict[tuple[str, ...], int] = {}
            for number, row in enumerate(self._cells):
                numbers.setdefault(tuple(row[name] for name in columns), number)
            self._by_columns[columns] = numbers
        return self._by_columns[columns]


def _key(value: Any) -> str:
    """A value, as it is compared; of a picture's address, the file's name as it was before an upload."""
    if is_missing(value):
        return ""
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    if not text.lower().endswith(tuple(PICTURES)):
        return text
    return UPLOADED.sub("", text.rpartition("/")[2])
