"""Coverage by label, and by a column of the rows: how often the right label was shown in each part, and how many were.

A promise (docs/coverage.md) is about the average over all rows; this shows which rows fall short of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from superarm._intervals import wilson_interval
from superarm._types import Array
from superarm.data.cells import is_missing
from superarm.errors import InvalidInput

MAX_GROUPS = 1000
MISSING = "(missing)"


@dataclass(frozen=True, slots=True)
class GroupCoverage:
    """Coverage and mean set size of the rows of one label, or of one group.

    Attributes:
        name: the label, or the value of the column.
        rows: how many of them count.
        coverage: the share whose set had the right label.
        low, high: its 95 % interval.
        mean_size: how many labels were shown.
    """

    name: Any
    rows: int
    coverage: float
    low: float
    high: float
    mean_size: float


class Groups(NamedTuple):
    """The groups of the rows of a stream: their names, and for each row the index of its own."""

    names: tuple[str, ...]
    indices: Array

    @classmethod
    def from_values(cls, values: Iterable[Any]) -> Groups:
        """Return the groups of the rows by the ``values`` of a column."""
        names, indices = np.unique([group_name(value) for value in values], return_inverse=True)
        if len(names) > MAX_GROUPS:
            wanted = f"a column of at most {MAX_GROUPS:,} different values"
            raise InvalidInput.must("group", "Arrays", wanted, len(names))
        return cls(tuple(names.tolist()), indices.astype(np.intp))


def group_name(value: Any) -> str:
    """Return the group of a value of a column; missing values are a group, too."""
    return MISSING if is_missing(value) or value == "" else str(value)


def coverage_by(names: Sequence[Any], sums: Array) -> tuple[GroupCoverage, ...]:
    """Return the groups that have rows, in their order.

    Args:
        names: of all groups.
        sums: for each, how many rows it had, how many sets had the right label, and how many labels were shown.
    """
    return tuple(
        GroupCoverage(
            name, int(n), float(hits / n), *wilson_interval(float(hits / n), float(n)), float(shown / n)
        )
        for name, (n, hits, shown) in zip(names, sums, strict=True)
        if n > 0
    )


def pool_coverage(runs: Iterable[Sequence[GroupCoverage]]) -> tuple[GroupCoverage, ...]:
    """Return the coverage by group of several runs together."""
    sums: dict[Any, Array] = {}
    for part in (part for parts in runs for part in parts):
        counts = part.rows * np.array([1.0, part.coverage, part.mean_size])
        sums[part.name] = sums.get(part.name, 0.0) + counts
    return coverage_by(list(sums), np.array(list(sums.values())))


def worst_first(parts: Iterable[GroupCoverage], most: int) -> tuple[list[GroupCoverage], int]:
    """Return at most ``most`` parts with the least coverage, and the number of others; unknown ones come last."""
    ordered = sorted(parts, key=lambda part: (isnan(part.coverage), part.coverage))
    return ordered[:most], max(0, len(ordered) - most)
