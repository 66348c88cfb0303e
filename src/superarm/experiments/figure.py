"""A figure that a spec asks for."""

from __future__ import annotations

from msgspec import Struct

from superarm.simulation import RATES

KINDS = ("rounds", "gamma", "set-size", "bound", "price")


class Figure(Struct, frozen=True, forbid_unknown_fields=True):
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

    def __post_init__(self) -> None:
        for name, value, choices in (("kind", self.kind, KINDS), ("y", self.y, RATES)):
            if value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}")
