"""How far long work has come: a live bar in a terminal or a notebook, a line every ten seconds in a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from time import monotonic
from typing import TypeVar

T = TypeVar("T")
Tick = Callable[[int], object]
Progress = bool | Tick | None  # True: a bar; or whatever is to be called with the work done since
LOG_SECONDS = 10.0  # between two lines


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
    """A bar of rounds, bytes or images, which is gone at the end, or lines; ``tick(n)`` moves it by n."""
    if quiet:
        yield lambda n: None
    elif _can_redraw():
        with _live_bar(total, unit) as tick:
            yield tick
    else:
        yield _LogLines(total, unit).tick


def _can_redraw() -> bool:
    """Whether Rich can draw a bar again in its place; a notebook, which sets FORCE_COLOR, needs ipywidgets."""
    if in_notebook():
        return find_spec("ipywidgets") is not None
    return sys.stderr.isatty() or bool(os.environ.get("FORCE_COLOR"))


def _amount(total: int | None, unit: str) -> str:
    return f" of {total:,} {unit}" if total else f" {unit}"


@contextmanager
def _live_bar(total: int | None, unit: str) -> Iterator[Tick]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.percentage:>3.0f} %"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}" + _amount(total, unit)),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda n: bar.advance(task, n)


class _LogLines:
    """A line on standard error, every `LOG_SECONDS`."""

    def __init__(self, total: int | None, unit: str) -> None:
        self.amount = _amount(total, unit)
        self.done, self.printed_at = 0, monotonic()

    def tick(self, n: int) -> None:
        self.done += n
        if monotonic() - self.printed_at > LOG_SECONDS:
            self.printed_at = monotonic()
            print(f"{self.done:,}{self.amount}", file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")
