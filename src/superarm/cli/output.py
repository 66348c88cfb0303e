"""What commands print and write: tables, notes, JSON, and files, none of which is overwritten by accident."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from math import isnan
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from superarm.errors import InvalidInput

if TYPE_CHECKING:
    from superarm.data.columns import Columns
    from superarm.groups import GroupCoverage
    from superarm.label.labelling_journal import LabellingJournal
    from superarm.learners import Learner


OnAddress = Callable[[str], None]  # gets the address of a page that is served

MAX_GROUP_LINES = 20  # lines of a table
MAX_COLUMN_NAMES = 20  # columns with the same remark that are listed
MANY_EVENTS = 1_000  # of a labelling: reading them takes seconds


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    view = Table(header_style="bold", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        view.add_column(column, justify="left" if i == 0 else "right", no_wrap=i > 0, overflow="fold")
    for row in rows:
        view.add_row(*row)
    # a file or a pipe has no width of its own, and a table that is cut off helps nobody
    width = None if sys.stdout.isatty() else 120
    console = Console(width=width, markup=False, emoji=False)  # a label may be called [b] or :x:
    if title:  # a line of its own: it may be wider than the table
        console.print(title, style="italic", highlight=False, soft_wrap=True)
    console.print(view)


def print_group_coverage(
    title: str,
    *,
    by_label: Sequence[GroupCoverage] = (),
    by_group: Sequence[GroupCoverage] = (),
    group: str | None,
) -> None:
    """Print the coverage by label and by group, where there is any, the least first."""
    from superarm.groups import worst_first

    for by, parts in (("label", by_label), (group, by_group)):
        if not parts:
            continue
        worst, others = worst_first(parts, MAX_GROUP_LINES)
        rows = [
            [
                str(part.name),
                f"{part.rows:,}",
                "not estimable" if isnan(part.coverage) else f"{part.coverage:.4f}",
                "" if isnan(part.coverage) else f"[{part.low:.3f}, {part.high:.3f}]",
                f"{part.mean_size:.2f}",
            ]
            for part in worst
        ]
        print(f"\n{title}, the least first")
        print_table(f"coverage by {by}", [str(by), "rows", "coverage", "95 % interval", "mean size"], rows)
        if others:
            print(f"and {others:,} others with more")


def column_lines(columns: Columns, n_labels: int, declared_in: Path | None = None) -> Iterator[str]:
    """Yield lines about what each column is, and why; without reasons, if a file declares them."""
    if declared_in is None:
        source = f" (by the first {columns.n_rows_seen:,} rows)" if columns.n_rows_seen else ""
        yield f"features: {_group_by_remark(columns.descriptions)}{source}"
    else:
        yield f"features: {_group_by_remark(columns.kinds)} (as {declared_in} says)"
    if columns.text_width:
        size = columns.text_width * n_labels * 8 / 1e6
        yield f"text: hashed to {columns.text_width:,} features for {n_labels:,} labels, {size:,.0f} MB"
    if declared_in is None and columns.left_out:
        yield f"left out: {_group_by_remark(columns.left_out)}"
    yield from (f"WARNING: {warning}" for warning in columns.warnings)


def _group_by_remark(columns: dict[str, str]) -> str:
    """Return each remark once, with all columns that it is about."""
    groups: dict[str, list[str]] = {}
    for name, remark in columns.items():
        groups.setdefault(remark, []).append(name)
    parts = []
    for remark, names in groups.items():
        more = f" and {len(names) - MAX_COLUMN_NAMES:,} more" if len(names) > MAX_COLUMN_NAMES else ""
        parts.append(f"{', '.join(names[:MAX_COLUMN_NAMES])}{more} ({remark})")
    return "; ".join(parts)


def print_reading(journal: LabellingJournal) -> None:
    """Say that a labelling is opened, if that takes seconds."""
    n_events = 0 if journal.store is None else journal.store.head().seq
    if n_events >= MANY_EVENTS:
        print_note(f"reading {n_events:,} events of {journal.where}")


def print_counts(*counts: tuple[int, str]) -> None:
    """Print a line for each count that is not 0."""
    for count, what in counts:
        if count:
            print(f"{count:,} {what}")


def print_note(text: str) -> None:
    """Print a line on standard error: standard output holds results only."""
    print(text, file=sys.stderr)


def open_page(address: str) -> None:
    """Open a page in the browser, where there is a terminal and a screen."""
    import webbrowser

    screen = (
        sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if sys.stdout.isatty() and screen:
        webbrowser.open(address)


def serve_page(
    serve: Callable[[OnAddress], Coroutine[Any, Any, None]], remark: str, *, browser: bool
) -> None:
    """Serve a page until Ctrl-C, the usual way to end it; print its address, and open it if that is wanted."""
    import asyncio

    def on_address(address: str) -> None:
        print(address, flush=True)
        print_note(remark)
        if browser:  # some browsers do not return before they are closed
            Thread(target=open_page, args=(address,), daemon=True).start()

    with suppress(KeyboardInterrupt):
        asyncio.run(serve(on_address))


def check_output(
    path: Path | None,
    command: str,
    *,
    force: bool,
    option: str = "--output",
    endings: Collection[str] = (),
    inputs: Iterable[Path | str] = (),
) -> None:
    """Refuse, before the work, to write into no folder, a journal, an input, a wrong ending, or a file that exists."""
    from superarm._files import JOURNAL_SIDECARS, check_place, is_sqlite_file

    if path is None:
        return
    owner = f"superarm {command}"
    check_place(path, option, owner)
    endings_beside = (*JOURNAL_SIDECARS, ".lock")
    journal = next((str(path).removesuffix(end) for end in endings_beside if str(path).endswith(end)), None)
    if is_sqlite_file(path) or (journal is not None and is_sqlite_file(Path(journal))):
        wanted = "a file that is no journal or database, nor part of one (nothing overwrites these)"
        raise InvalidInput.must(option, owner, wanted, str(path))
    if any(Path(read).exists() and path.resolve() == Path(read).resolve() for read in inputs):
        raise InvalidInput.must(option, owner, "another file than those that are read", str(path))
    if path.exists() and not force:
        raise InvalidInput.must(option, owner, "a new file, or given with --force", str(path))
    if endings and path.suffix.lower() not in endings:
        wanted = f"a file that ends in one of {', '.join(endings)}"
        raise InvalidInput.must(option, owner, wanted, str(path))


def columns_file(model: Path) -> Path:
    """Return the file of columns beside a model file."""
    return model.parent / f"{model.stem}.columns.json"


def save_model(learner: Learner, path: Path) -> str:
    """Save a model, and its columns beside it for **serve --columns**; return both files as text."""
    learner.save(path)
    if learner.columns is None:
        return str(path)
    learner.columns.write(columns_file(path))
    return f"{path} (its columns: {columns_file(path)})"


def print_json(report: object) -> None:
    """Print one JSON object on standard output; NaN, which JSON does not have, becomes null."""
    import msgspec

    print(msgspec.json.encode(report, enc_hook=_plain_value).decode())


def _plain_value(value: Any) -> Any:
    """Turn NumPy's numbers and paths into what JSON has."""
    return value.item() if hasattr(value, "item") else str(value)
