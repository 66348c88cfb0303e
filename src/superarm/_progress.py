"""How far long work has come: a live line in a terminal, a bar in a notebook's cell, a line now and then in a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")
Tick = Callable[[int], object]
Progress = bool | Tick | None  # True: a bar; or whatever is to be called with the work done since
NOTEBOOK_SECONDS, LOG_SECONDS = 0.1, 10.0  # between two looks of a notebook's bar, two lines of a log


@contextmanager
def progress_ticker(progress: Progress, total: int | None, unit: str = "rounds") -> Iterator[Tick]:
    """What a long function calls as it goes: a bar, its caller's own function, or nothing."""
    if callable(progress):
        yield progress
    else:
        with progress_bar(total, unit, quiet=not progress) as tick:
            yield tick


def with_progress(items: Iterable[T], progress: Progress, total: int | None, unit: str) -> Iterator[T]:
    """The same items, with a tick after each."""
    with progress_ticker(progress, total, unit) as tick:
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
    elif sys.stderr.isatty() or os.environ.get("FORCE_COLOR"):
        with _terminal_bar(total, unit) as tick:
            yield tick
    else:
        yield _LogLines(total, unit).tick


@contextmanager
def _terminal_bar(total: int | None, unit: str) -> Iterator[Tick]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    amount = f" of {total:,} {unit}" if total else f" {unit}"
    bar = Progress(
        TextColumn("{task.percentage:>3.0f} %"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}" + amount),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda n: bar.advance(task, n)


class _Count:
    """Work that is done, and when it was last shown."""

    def __init__(self, total: int | None, unit: str) -> None:
        self.total, self.unit = total, unit
        self.done, self.shown = 0, monotonic()

    def add(self, n: int, seconds: float) -> bool:
        """Count; whether so many seconds have passed since it was shown."""
        self.done += n
        due = monotonic() - self.shown > seconds
        if due:
            self.shown = monotonic()
        return due

    def __repr__(self) -> str:
        return f"{self.done:,} of {self.total:,} {self.unit}" if self.total else f"{self.done:,} {self.unit}"


class _LogLines(_Count):
    """A line on standard error, now and then."""

    def tick(self, n: int) -> None:
        if self.add(n, LOG_SECONDS):
            print(self, file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel; a plain IPython has none."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


class _NotebookBar(_Count):
    """A bar in a notebook. Rich's own needs ipywidgets there, which few have beside their kernel."""

    def __init__(self, total: int | None, unit: str) -> None:
        from IPython.display import display

        super().__init__(total, unit)
        self._handle: Any = display(self, display_id=True)  # type: ignore[no-untyped-call]

    def tick(self, n: int) -> None:
        if self.add(n, NOTEBOOK_SECONDS):
            self._handle.update(self)

    def close(self) -> None:
        from IPython.display import HTML

        self._handle.update(HTML(""))  # type: ignore[no-untyped-call]

    def _repr_html_(self) -> str:
        from superarm._html import bar

        return f"<div>{bar(self.done / self.total, 240) if self.total else ''} {self!r}</div>"
