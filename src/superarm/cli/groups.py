"""Coverage by label and by a column of the rows, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from superarm.groups import GroupCoverage

MOST = 20  # lines of a table


def show_parts(
    title: str, by_label: Sequence[GroupCoverage], by_group: Sequence[GroupCoverage], column: str | None
) -> None:
    """A table for each that is there, the least coverage first."""
    from superarm.cli.show import table
    from superarm.groups import worst_first

    for what, parts in (("label", by_label), (column, by_group)):
        if not parts:
            continue
        worst, others = worst_first(parts, MOST)
        rows = [
            [
                str(part.name),
                f"{part.rows:,}",
                "cannot say" if isnan(part.coverage) else f"{part.coverage:.4f}",
                "" if isnan(part.coverage) else f"[{part.low:.3f}, {part.high:.3f}]",
                f"{part.mean_size:.2f}",
            ]
            for part in worst
        ]
        print(f"\n{title}, the least first")
        table(
            f"coverage by {what}",
            [str(what), "rows", "coverage", "95 % interval", "mean size"],
            rows,
        )
        if others:
            print(f"and {others:,} others with more")
