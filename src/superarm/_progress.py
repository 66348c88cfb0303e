"""Progress of long work: a live bar in a terminal or a notebook, a line every ten seconds in a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from time import monotonic
from typing import TypeVar

T = TypeVar("T")
Tick = Callable[[int], object]
Progress = bool | Tick | None  # True: a bar; or whatever is to be called with the work done since
LOG_SECONDS = 10.0  # between two lines of a log
BAR_SECONDS = 0.1  # between two pictures of a bar


@contextmanager
def progress_bar(
    total: int | None,
    unit: str = "rounds",
    details: Callable[[], str] | None = None,
    *,
    progress: Progress = True,
) -> Iterator[Tick]:
    """Yield ``tick(n)``, to be called when n more rounds, bytes or images are done.

    It moves a bar, which is gone at the end, or prints lines: how much is done, how fast, the time left, and what
    ``details`` returns at that moment. With another ``progress`` than True it is the caller's own function, or nothing.
    """
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda n: None
    elif _can_redraw():
        with _live_bar(total) as show:
            status = _Status(total, unit, details, BAR_SECONDS, show)
            try:
                yield status.tick
            finally:
                status.update()
    else:
        yield _Status(
            total, unit, details, LOG_SECONDS, show=lambda _, line: print(line, file=sys.stderr, flush=True)
        ).tick


def with_progress(items: Iterable[T], progress: Progress, total: int | None, unit: str) -> Iterator[T]:
    """Yield the same items, with a tick after each."""
    with progress_bar(total, unit, progress=progress) as tick:
        for item in items:
            yield item
            tick(1)


def _can_redraw() -> bool:
    """Return whether Rich can draw a bar again in its place; a notebook, which sets FORCE_COLOR, needs ipywidgets."""
    if in_notebook():
        return find_spec("ipywidgets") is not None
    return sys.stderr.isatty() or bool(os.environ.get("FORCE_COLOR"))


@contextmanager
def _live_bar(total: int | None) -> Iterator[Callable[[int, str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    percentage, text = TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}", markup=False)
    with Progress(percentage, BarColumn(), text, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, line: bar.update(task, completed=done, description=line)


@dataclass
class _Status:
    """How much is done; ``show`` gets it as a number and as a line, at most once every ``interval`` seconds."""

    total: int | None
    unit: str
    details: Callable[[], str] | None
    interval: float
    show: Callable[[int, str], None]
    done: int = 0

    def __post_init__(self) -> None:
        self.began = self.shown_at = monotonic()

    def tick(self, n: int) -> None:
        self.done += n
        if monotonic() - self.shown_at > self.interval:
            self.update()

    def update(self) -> None:
        self.shown_at = monotonic()
        self.show(self.done, self.line(self.shown_at - self.began))

    def line(self, seconds: float) -> str:
        """Return what is done after so many seconds, the mean speed, and the time that is left at this speed."""
        parts = [f"{self.done:,}" + (f" of {self.total:,} {self.unit}" if self.total else f" {self.unit}")]
        if self.done and seconds > 0.0:
            speed = self.done / seconds
            parts.append(f"{speed:,.0f} a second" if speed >= 10.0 else f"{speed:.1f} a second")
            if self.total:
                left = max(0, self.total - self.done) / speed
                parts.append(f"{timedelta(seconds=round(left))} left")
        if self.details:
            parts.append(self.details())
        return ", ".join(parts)


def in_notebook() -> bool:
    """Return whether this is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")
