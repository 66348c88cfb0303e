"""A figure that a spec asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from superarm.experiments.toml import Table
from superarm.simulation import RATES

__all__ = ["Figure"]

KINDS = ("rounds", "gamma", "set-size", "bound", "price")


@dataclass(frozen=True, slots=True)
class Figure:
    """What is drawn against what, of which runs, and which words go with it."""

    kind: str
    y: str = "error_rate"
    title: str | None = None
    paper: str | None = None  # what the paper says
    note: str | None = None
    log: tuple[str, ...] = ()  # axes that are logarithmic
    together: bool = False  # all data in one chart
    learners: tuple[str, ...] = ()  # only these; none: all
    set_sizes: tuple[int, ...] = ()
    finding: str | None = None

    @classmethod
    def read(cls, table: Table) -> Self:
        """Read a figure from the table of a spec."""
        figure = cls(
            kind=table.choice("kind", KINDS),
            y=table.choice("y", RATES, "error_rate"),
            title=table.get("title", str, None),
            paper=table.get("paper", str, None),
            note=table.get("note", str, None),
            log=tuple(table.get("log", list, ())),
            together=table.get("together", bool, False),
            learners=tuple(table.get("learners", list, ())),
            set_sizes=tuple(table.get("set_sizes", list, ())),
            finding=table.get("finding", str, None),
        )
        table.finish()
        return figure
