"""Labels: how cells of files and frames spell them, and their indices in compiled code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import category

import numpy as np

from superarm._types import Array, Cell
from superarm.data.cells import MISSING_WORDS, to_python
from superarm.errors import InvalidInput, Unquoted
from superarm.parameters import check_int

Label = Any  # an int, or a name if there are names
MAX_NAME = 1_000  # characters of a label or a person; the page of `superarm label` has the same limit
LINE_BREAKERS = ("Cc", "Cs", "Zl", "Zp")  # categories of Unicode: control, surrogates, ends of lines


def to_label(value: Cell) -> Label | None:
    """Return a value of any library as a label, an int or a str; ``None`` if it is missing.

    >>> to_label(np.float64(3)), to_label(0.5), to_label("3"), to_label(float("nan"))
    (3, '0.5', '3', None)
    """
    value = _whole_or_as_is(value)
    return value if value is None or type(value) is int else str(value)


def parse_label(cell: Cell) -> Label | None:
    """Return the label in a cell of a table, where a text may be a whole number; ``None`` if it is missing.

    A text is a number only as Python would write it: "007" and "1e3" are names.

    >>> [parse_label(cell) for cell in ("3", 3.0, " ant ", "007", "1_000", "1e3", "")]
    [3, 3, 'ant', '007', '1_000', '1e3', None]
    """
    label = to_label(cell)
    if not isinstance(label, str):
        return label
    text = label.strip()
    # longer ones Python refuses to convert
    is_number = len(text) <= 4000 and text.removeprefix("-").isdecimal() and str(int(text)) == text
    return int(text) if is_number else text or None


WHOLE_FLOAT = re.compile(r"-?\d{1,4000}\.0")


def has_float_labels(labels: Iterable[Label | None]) -> bool:
    """Return whether whole numbers are written as floats, as pandas does in a column with empty cells.

    So it is if all labels are whole numbers, or if one is written both ways.

    >>> has_float_labels([1, "3.0"]), has_float_labels(["2.5", "3.0"]), has_float_labels(["new", 3, "3.0"])
    (True, False, True)
    """
    distinct = {label for label in labels if label is not None}
    floats = {label for label in distinct if isinstance(label, str) and WHOLE_FLOAT.fullmatch(label)}
    others = distinct - floats
    return bool(floats) and (
        all(isinstance(label, int) for label in others) or not others.isdisjoint(map(whole_label, floats))
    )


def whole_label(label: Label) -> Label:
    """Return the int that a label written as a whole float means, "3.0" 3; any other label as it is."""
    if isinstance(label, str) and WHOLE_FLOAT.fullmatch(label):
        return int(label.removesuffix(".0"))
    return label


def parse_label_column(cells: Iterable[Cell]) -> list[Label | None]:
    """Return the labels of a column, all of them ints or all of them strs; among ints, NA and its like are missing.

    >>> parse_label_column(["1", "NA", "2"]), parse_label_column(["1", "2", "nano"]), parse_label_column(["1.0", ""])
    ([1, None, 2], ['1', '2', 'nano'], [1, None])
    """
    labels = [parse_label(cell) for cell in cells]
    if has_float_labels(label for label in labels if str(label).lower() not in MISSING_WORDS):
        labels = [whole_label(label) for label in labels]
    names = {label for label in labels if isinstance(label, str)}
    if any(isinstance(label, int) for label in labels):
        if all(name.lower() in MISSING_WORDS for name in names):
            return [label if isinstance(label, int) else None for label in labels]
        return [label if label is None else str(label) for label in labels]
    return labels


class LabelVocabulary:
    """The k labels of a problem, and their indices 0..k-1 in compiled code.

    Args:
        names: strings or whole numbers, all different; or how many there are, if they have no names.

    >>> labels = LabelVocabulary(["ant", "bee", "cat"])
    >>> labels.encode(["cat", "ant"], "labels", "this").tolist(), labels.decode([1])
    ([2, 0], ['bee'])
    """

    __slots__ = ("_index", "_text", "count", "names")

    def __init__(self, names: int | Sequence[Label], owner: str = "LabelVocabulary") -> None:
        self._text: dict[str, int] | None = None
        if isinstance(names, int):
            self.names: tuple[Label, ...] | None = None
            self.count = names
            self._index: dict[Label, int] = {}
            return
        check_ordered(names, owner)
        known = tuple(_whole_or_as_is(name) for name in names)
        if not all(type(n) in (str, int) for n in known) or len(set(known)) != len(known):
            raise InvalidInput.must("labels", owner, "distinct strings or whole numbers", names)
        if len({str(name) for name in known}) != len(known):  # a file cannot tell 1 from "1"
            raise InvalidInput.must("labels", owner, "distinct when written as text", names)
        self.names, self.count = known, len(known)
        self._index = {name: i for i, name in enumerate(known)}

    def __repr__(self) -> str:
        shown = str(self.count if self.names is None else list(self.names))
        if self.names is not None and self.count > 7:
            shown = f"{', '.join(map(repr, self.names[:6]))}, … {self.names[-1]!r}: {self.count}"
        return f"LabelVocabulary({shown})"

    @classmethod
    def from_params(cls, n_labels: Any, labels: Sequence[Label] | None, owner: str) -> LabelVocabulary:
        """Return the labels that the parameter ``n_labels`` or ``labels`` gives; one of the two must be given."""
        if labels is None:
            return cls(check_int("n_labels", owner, n_labels, 2), owner)
        check_ordered(labels, owner)
        named = cls(as_list(labels, "labels", owner, "a list of names"), owner)
        if n_labels not in (None, named.count):
            raise InvalidInput.must("n_labels", owner, f"left out or {named.count}, as labels has", n_labels)
        if named.count < 2:
            raise InvalidInput.must("labels", owner, "at least two", labels)
        return named

    def __len__(self) -> int:
        return self.count

    def index(self, label: Label) -> int | None:
        """Return the index of a label; ``None`` if there is no such label."""
        if type(label) is str:  # the most frequent case; without names there are none
            return self._index.get(label)
        label = _whole_or_as_is(label)
        if self.names is None:
            return label if type(label) is int and 0 <= label < self.count else None
        return self._index.get(label) if type(label) in (str, int) else None

    def indices(self, labels: Iterable[Label], parameter: str, owner: str) -> list[int]:
        """Return the indices of distinct labels; anything else is refused."""
        given = as_list(labels, parameter, owner, "a list of labels")
        known, index = self._index, self.index
        indices: list[Any] = [known.get(label) if type(label) is str else index(label) for label in given]
        if None in indices:
            raise InvalidInput.must(parameter, owner, "known labels", given[indices.index(None)])
        if len(set(indices)) != len(indices):
            raise InvalidInput.must(parameter, owner, "distinct labels", given)
        return indices

    def encode(self, labels: Iterable[Label], parameter: str, owner: str) -> Array:
        """Return the indices of distinct labels as an array, as `indices` does in a list."""
        return np.array(self.indices(labels, parameter, owner), np.int64)

    def index_of_text(self, label: Label) -> int | None:
        """Return the index of the label with this spelling: 3 and "3" are the same; ``None`` if there is none."""
        if self._text is None:
            self._text = {str(name): i for i, name in enumerate(self.all())}
        return self._text.get(str(label))

    def all(self) -> list[Label]:
        return list(range(self.count)) if self.names is None else list(self.names)

    def decode(self, indices: Any) -> list[Label]:
        """Return the labels with these indices: their names, or the indices themselves."""
        names = self.names
        indices = indices.tolist() if isinstance(indices, np.ndarray) else [int(i) for i in indices]
        return indices if names is None else [names[i] for i in indices]

    def decode_array(self, indices: Array) -> Array:
        """Return the labels with these indices, in an array of the same shape: of objects, if their types are mixed."""
        return (
            indices
            if self.names is None
            else np.array(self.names, object if self.is_mixed else None)[indices]
        )

    @property
    def is_mixed(self) -> bool:
        """Whether some names are strings and some are whole numbers."""
        return len({type(name) for name in self.names or ()}) > 1

    def of_one_type(self) -> LabelVocabulary:
        """Return these labels as a column of a table has them: mixed ones as strings."""
        return LabelVocabulary([str(name) for name in self.all()]) if self.is_mixed else self

    def extended(self, labels: Any, owner: str) -> LabelVocabulary:
        """Return these labels and more: ``labels`` has their names, or how many if these have no names."""
        if self.names is None:
            return LabelVocabulary(self.count + check_int("labels", owner, labels, 1), owner)
        check_ordered(labels, owner)
        return LabelVocabulary([*self.names, *as_list(labels, "labels", owner, "a list of names")], owner)


def _whole_or_as_is(value: Any) -> Any:
    """Return a value as Python's own; a whole float, as pandas has it in columns with gaps, as an int."""
    value = to_python(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_single_line(name: str) -> bool:
    """Return whether a name is short enough, and on one line."""
    return len(name) <= MAX_NAME and not any(category(letter) in LINE_BREAKERS for letter in name)


def check_single_lines(names: Iterable[str], owner: str) -> None:
    """Refuse new labels that would break the lines of files and pages; there may be such from before."""
    for name in names:
        if not is_single_line(name):
            wanted = f"names of at most {MAX_NAME:,} characters on one line"
            raise InvalidInput.must("labels", owner, wanted, name)


def check_ordered(labels: object, owner: str) -> None:
    """Refuse a text, which has letters, and a Python set, whose order and so every draw differs in the next process."""
    if isinstance(labels, str):
        raise InvalidInput.must("labels", owner, "a list of names", labels)
    if isinstance(labels, set | frozenset):
        got = Unquoted(f"a {type(labels).__name__}, which has none")
        raise InvalidInput.must("labels", owner, "in an order, as in a list (sorted(labels) gives one)", got)


def as_list(labels: Any, parameter: str, owner: str, wanted: str) -> list[Label]:
    """Return labels as a list; a text, which has letters, or a single label is refused."""
    if type(labels) is not tuple and (isinstance(labels, str) or not isinstance(labels, Iterable)):
        raise InvalidInput.must(parameter, owner, wanted, labels)
    return list(labels)
