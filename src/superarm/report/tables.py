"""The tables of an experiment, and how they are written as CSV, Markdown and HTML."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from superarm.report.stats import differences, summary

if TYPE_CHECKING:
    import polars

    from superarm.experiments import Experiment

# Table 1 of the paper: the best gamma of SOBA, and of MC-DBF with low, medium and high m
PAPER_COLUMNS = ("paper: SOBA", "paper: low m", "paper: medium m", "paper: high m")
PAPER_GAMMAS = {
    "mnist": (0.02, 0.12, 0.12, 0.25),
    "fashion-mnist": (0.1, 0.12, 0.2, 0.3),
    "cifar10": (0.3, 0.28, 0.25, 0.3),
    "svhn": (0.25, 0.31, 0.3, 0.5),
}
SHORT = {
    "set_size": "m",
    "gamma": "γ",
    "error_rate": "error",
    "miss_rate": "miss",
    "shown_miss_rate": "shown miss",
    "rounds_per_second": "rounds/s",
    "half_interval": "±",
}


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with the name of its files."""

    name: str
    title: str
    frame: polars.DataFrame


def tables(experiment: Experiment, runs: polars.DataFrame) -> list[TableView]:
    """Best gammas where they are searched, differences where there is a reference, and all rates."""
    views = []
    name = experiment.name
    if not len(runs):
        return []
    if any(figure.finding == "best-gamma" for figure in experiment.figures):
        title = "The best γ of each learner, by its error (the paper's Table 1)"
        views.append(TableView(f"{name}-best-gammas", title, _best_gammas(runs)))
    reference = experiment.reference
    if reference is not None:
        frame = differences(runs, reference)
        if len(frame):
            title = f"Error minus that of {reference}, seed by seed, with 95 % intervals"
            views.append(TableView(f"{name}-differences", title, frame))
    title = "All rates: mean and half of the 95 % interval"
    views.append(TableView(f"{name}-rates", title, summary(runs)))
    return views


def _best_gammas(runs: polars.DataFrame) -> polars.DataFrame:
    """A row for each data set; beside ours the paper's, where the learners are the paper's."""
    import polars as pl

    means = summary(runs).filter(pl.col("gamma").is_not_null())
    best = means.sort("error_rate", "gamma").unique(
        ["data", "learner", "set_size"], keep="first", maintain_order=True
    )
    best = best.sort("learner", "set_size", descending=[True, False], maintain_order=True)
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


def cells(frame: polars.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Heads and cells for reading: short names, intervals beside their means."""
    halves = {c for c in frame.columns if c.endswith("half_interval")}
    heads = [SHORT.get(c, c.replace("_", " ")) for c in frame.columns if c not in halves]
    rows = []
    for row in frame.iter_rows(named=True):
        texts = []
        for column, value in row.items():
            if column in halves:
                continue
            half = row.get(
                f"{column}_half_interval", row.get("half_interval") if column == "difference" else None
            )
            texts.append(_cell(column, value, half) + ("" if half is None else f" ± {_rate(half, value)}"))
        rows.append(texts)
    return heads, rows


def _cell(column: str, value: Any, half: float | None) -> str:
    if value is None:
        return ""
    if column.endswith("rate"):
        return _rate(value, half)
    if column == "difference":
        return ("+" if value > 0.0 else "") + _rate(value, half)
    if isinstance(value, float):
        return f"{value:,.0f}" if column == "rounds_per_second" else f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _rate(value: float, beside: float | None) -> str:
    """Four digits after the point, more where value and interval are both tiny."""
    size = max(abs(value), abs(beside or 0.0))
    return f"{value:.4f}" if size >= 0.002 or size == 0.0 else f"{value:.6f}"


def to_markdown(frame: polars.DataFrame) -> str:
    heads, rows = cells(frame)
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(c.replace('|', chr(92) + '|') for c in line)} |\n" for line in lines)


def to_html(frame: polars.DataFrame) -> str:
    heads, rows = cells(frame)
    numbers = [dtype.is_numeric() for dtype in frame.select(_shown_columns(frame)).dtypes]
    tag = [' class="n"' if number else "" for number in numbers]
    head = "".join(f"<th{t}>{html.escape(h)}</th>" for h, t in zip(heads, tag, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{t}>{html.escape(c)}</td>" for c, t in zip(row, tag, strict=True)) + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide" tabindex="0">{table}</div>'


def _shown_columns(frame: polars.DataFrame) -> list[str]:
    return [c for c in frame.columns if not c.endswith("half_interval")]
