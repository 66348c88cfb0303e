"""How far long work has come: a live line in a terminal, a bar in a notebook's cell, nothing in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")
Tick = Callable[[int], object]
Progress = bool | Tick | None  # True: a bar; or whatever is to be called with the work done since
EVERY = 0.1  # seconds between two looks of a notebook's bar


@contextmanager
def ticking(progress: Progress, total: int | None, unit: str = "rounds") -> Iterator[Tick]:
    """What a long function calls as it goes: a bar, its caller's own function, or nothing."""
    if callable(progress):
        yield progress
    else:
        with progress_bar(total, unit, quiet=not progress) as tick:
            yield tick


def ticked(items: Iterable[T], progress: Progress, total: int | None, unit: str) -> Iterator[T]:
    """The same items, with a tick after each."""
    with ticking(progress, total, unit) as tick:
        for item in items:
            yield item
            tick(1)


@contextmanager
def progress_bar(total: int | None, unit: str = "rounds", *, quiet: bool = False) -> Iterator[Tick]:
    """A bar of rounds, bytes or images; ``tick(n)`` moves it by n. It is gone at the end."""
    if quiet:
        yield lambda n: None
    elif in_notebook():
        bar = _NotebookBar(total, unit)
        try:
            yield bar.tick
        finally:
            bar.close()
    else:
        with _rich(total, unit) as tick:
            yield tick


@contextmanager
def _rich(total: int | None, unit: str) -> Iterator[Tick]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    of = f" of {total:,} {unit}" if total else f" {unit}"
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.percentage:>3.0f} %"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}" + of),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,  # a log would get an empty line
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda n: bar.advance(task, n)


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel; a plain IPython has none."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


class _NotebookBar:
    """A bar in a notebook. Rich's own needs ipywidgets there, which few have beside their kernel."""

    def __init__(self, total: int | None, unit: str) -> None:
        from IPython.display import display

        self.total, self.unit = total, unit
        self.done, self.shown = 0, monotonic()
        self._handle: Any = display(self, display_id=True)  # type: ignore[no-untyped-call]

    def tick(self, n: int) -> None:
        self.done += n
        if monotonic() - self.shown > EVERY:
            self.shown = monotonic()
            self._handle.update(self)

    def close(self) -> None:
        from IPython.display import HTML

        self._handle.update(HTML(""))  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        return f"{self.done:,} of {self.total:,} {self.unit}" if self.total else f"{self.done:,} {self.unit}"

    def _repr_html_(self) -> str:
        from superarm._html import bar

        return f"<div>{bar(self.done / self.total, 240) if self.total else ''} {self!r}</div>"
