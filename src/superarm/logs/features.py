"""Which columns of somebody's table are features, what they hold, and why the others are not taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from superarm.data.columns import NUMBERS, cell, layout, look
from superarm.data.named import Names

__all__ = ["Features", "choose_features"]


@dataclass(frozen=True, slots=True)
class Features:
    """What the rows of a table are made of.

    Attributes:
        kinds: for each column taken, what it holds: numbers, true or false, dates, words.
        described: the same with gaps counted, in words.
        left_out: for each other column, the reason.
        names: where what stands in the dense row; ``None`` if all are numbers, without a gap: then
            their list is the row.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    described: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    names: Names | None = None

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The row with names."""
        return {name: cell(values.get(name), kind) for name, kind in self.kinds.items()}


def choose_features(
    rows: Iterable[Mapping[str, Any]],
    *,
    taken: Mapping[str, str] | None = None,
    only: Iterable[str] | None = None,
    usual: Mapping[str, str] | None = None,
    named: bool | None = None,
) -> Features:
    """Read a table once.

    Args:
        rows: all rows.
        taken: columns that hold something else, and what; ``None`` takes all, ids and constants, too.
        only: the columns to take, whatever they hold.
        usual: columns that a model was trained with, and what they held then.
        named: whether to make rows with names; ``None`` does so if there are words, dates or gaps.
    """
    asked = list(usual) if usual is not None else None if only is None else list(only)
    columns, count = look(rows, asked)
    left_out, kinds, described = {}, {}, {}
    for name, column in columns.items():
        if asked is None and taken is not None and name in taken:
            if taken[name]:
                left_out[name] = taken[name]
        elif asked is None and (why := column.why_not(count)) and (taken is not None or column.lists):
            left_out[name] = why
        elif not (asked is not None and usual is None and column.lists):
            kinds[name] = column.kind if usual is None else usual[name]
            described[name] = column.in_words(count)
    plain = all(text == NUMBERS for text in described.values())
    if plain if named is None else not named:
        return Features(kinds, described, left_out)
    return Features(kinds, described, left_out, layout(kinds, columns))
