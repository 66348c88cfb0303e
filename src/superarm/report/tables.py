"""The tables of an experiment, and how they are written as CSV, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from superarm._html import plain_table
from superarm.experiments.spec import Figure
from superarm.experiments.store import Experiment, best_gamma_frame
from superarm.report.stats import differences, summary

# Table 1 of the paper: the best gamma of SOBA, and of MC-DBF with low, medium and high m
PAPER_COLUMNS = ("paper: SOBA", "paper: low m", "paper: medium m", "paper: high m")
PAPER_GAMMAS = {
    "mnist": (0.02, 0.12, 0.12, 0.25),
    "fashion-mnist": (0.1, 0.12, 0.2, 0.3),
    "cifar10": (0.3, 0.28, 0.25, 0.3),
    "svhn": (0.25, 0.31, 0.3, 0.5),
}
SHORT_NAMES = {
    "set_size": "m",
    "gamma": "γ",
    "error_rate": "error",
    "miss_rate": "miss",
    "shown_miss_rate": "shown miss",
    "rounds_per_second": "rounds/s",
}


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with the name of its files, and notes below it."""

    name: str
    title: str
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


def experiment_tables(
    experiment: Experiment, figures: Sequence[Figure], runs: pl.DataFrame
) -> list[TableView]:
    """Return the best gammas where a figure is about them, differences from the reference, and all rates."""
    if not len(runs):
        return []
    name = experiment.name
    tables = []
    if any(figure.kind == "gamma" for figure in figures):
        title = "The best γ of each learner, by its error (the paper's Table 1)"
        tables.append(TableView(f"{name}-best-gammas", title, _best_gammas(runs)))
    reference = experiment.spec_file.reference
    if reference is not None:
        title = f"Error minus that of {reference}, seed by seed, with 95 % intervals"
        frame, omitted = differences(runs, reference)
        notes = tuple(f"Not compared: {which}: {reason}." for which, reason in omitted.items())
        tables.append(TableView(f"{name}-differences", title, frame, notes))
    tables.append(TableView(f"{name}-rates", "All rates: mean ± half of the 95 % interval", summary(runs)))
    return [table for table in tables if len(table.frame) or table.notes]


def _best_gammas(runs: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each data set; with the paper's gammas beside ours if the learners are the paper's."""
    best = best_gamma_frame(runs).sort("learner", "set_size", descending=[True, False], maintain_order=True)
    rows: dict[str, dict[str, Any]] = {name: {} for name in dict.fromkeys(runs["data"].to_list())}
    for name, learner, m, gamma in best.select("data", "learner", "set_size", "gamma").iter_rows():
        rows[name][learner if m == 1 else f"{learner}, m = {m}"] = gamma
    titles = list(dict.fromkeys(title for row in rows.values() for title in row))
    columns = titles
    if [title.partition(",")[0] for title in titles] == ["SOBA", *["MC-DBF"] * 3]:
        columns = [title for pair in zip(titles, PAPER_COLUMNS, strict=True) for title in pair]
        ours = {name.removesuffix("-vgg16"): name for name in rows}
        for name, gammas in PAPER_GAMMAS.items():
            rows.setdefault(ours.get(name, name), {}).update(zip(PAPER_COLUMNS, gammas, strict=True))
    return pl.DataFrame(
        [{"data": name} | {title: row.get(title) for title in columns} for name, row in rows.items()],
        infer_schema_length=None,
    )


def text_cells(frame: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return heads and cells as text: short names, and intervals beside their means."""
    columns = _shown_columns(frame)
    heads = [SHORT_NAMES.get(column, column.replace("_", " ")) for column in columns]
    rows = []
    for row in frame.iter_rows(named=True):
        halves = {column: row.get(f"{column}_half_interval") for column in columns}
        halves["difference"] = row.get("half_interval")
        rows.append([_cell(column, row[column], halves[column]) for column in columns])
    return heads, rows


def _cell(column: str, value: Any, half: float | None) -> str:
    if value is None:
        return ""
    if column == "mean_size":
        return f"{value:.2f}" + ("" if half is None else f" ± {half:.2f}")
    if column.endswith("rate") or column in ("difference", "coverage"):
        sign = "+" if column == "difference" and value > 0.0 else ""
        return f"{sign}{_rate(value, half)}" + ("" if half is None else f" ± {_rate(half, value)}")
    if isinstance(value, float):
        return f"{value:,.0f}" if column == "rounds_per_second" else f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _rate(value: float, other: float | None) -> str:
    """Return four digits after the point, more where value and interval are both tiny."""
    size = max(abs(value), abs(other or 0.0))
    return f"{value:.4f}" if size >= 0.002 or size == 0.0 else f"{value:.6f}"


def to_markdown(frame: pl.DataFrame) -> str:
    heads, rows = text_cells(frame)
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(c.replace('|', chr(92) + '|') for c in line)} |\n" for line in lines)


def to_html(frame: pl.DataFrame) -> str:
    """Return a table of the page, with numbers aligned right."""
    numbers = [dtype.is_numeric() for dtype in frame.select(_shown_columns(frame)).dtypes]
    html = plain_table(*text_cells(frame), lambda column, cell: ' class="n"' if numbers[column] else "")
    return f'<div class="wide" tabindex="0">{html}</div>'


def _shown_columns(frame: pl.DataFrame) -> list[str]:
    return [c for c in frame.columns if not c.endswith("half_interval")]
