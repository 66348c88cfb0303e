"""What came out, in plain words: one sentence for each data set and curve, where a figure asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from superarm.experiments.spec import Figure
from superarm.report.figures import select_runs
from superarm.report.stats import with_interval, with_series
from superarm.report.theory_charts import bound_floor

NOUNS = {
    "error_rate": "error",
    "miss_rate": "miss rate of the top set",
    "shown_miss_rate": "miss rate of the shown set",
}


def findings(figure: Figure, runs: pl.DataFrame, reference: str | None) -> list[str]:
    """Return the sentences of the kind the figure asks for, about the rate that it shows, for each data set."""
    writers = {"monotone": _monotone, "ratio": _ratio, "bound": _bound}
    if figure.finding is None or not len(runs):
        return []
    parts = select_runs(figure, runs).group_by("data", maintain_order=True)
    sentences = [(data, writers[figure.finding](part, figure.y, reference)) for (data,), part in parts]
    return [f"{data}: {sentence}." for data, several in sentences for sentence in several]


def _number(value: float) -> str:
    return f"{value:.2g}" if abs(value) < 0.01 else f"{value:.3f}"


def _monotone(runs: pl.DataFrame, rate: str, reference: str | None) -> Iterator[str]:
    """Say of each curve over m whether it grows with every step."""
    curves = with_series(runs, axis="set_size").group_by("series", maintain_order=True)
    for (name,), curve in curves:
        table = with_interval(curve, ["set_size"], rate).sort("set_size")
        means, sizes = table["mean"].to_list(), table["set_size"].to_list()
        falls = [str(m) for m, a, b in zip(sizes[1:], means, means[1:], strict=False) if b < a]
        grows = f"does not grow at m = {', '.join(falls)}" if falls else "grows with every step of m"
        ends = f"from {_number(means[0])} with m = {sizes[0]} to {_number(means[-1])} with m = {sizes[-1]}"
        yield f"the {NOUNS[rate]} of {name} {grows}: {ends}"


def _ratio(runs: pl.DataFrame, rate: str, reference: str | None) -> Iterator[str]:
    """Compare each curve's mean with that of the reference."""
    table = with_interval(with_series(runs), ["series"], rate).sort("mean")
    means = dict(table.select("series", "mean").iter_rows())
    base = means.pop(reference or "", 0.0)
    if base:
        ratios = "; ".join(f"{series}: {mean / base:.2g} times that" for series, mean in means.items())
        yield f"{reference} has {NOUNS[rate]} {_number(base)}; {ratios}"


def _bound(runs: pl.DataFrame, rate: str, reference: str | None) -> Iterator[str]:
    """Compare the misses of each learner that has a gamma with Theorem 6's bound."""
    by = ["learner", "set_size", "gamma", "k", "rounds"]
    table = with_interval(runs.drop_nulls("gamma"), by, "miss_rate").sort("learner", "set_size")
    for learner, m, gamma, k, rounds, mean in table.select(*by, "mean").iter_rows():
        floor, misses = bound_floor(k, m, gamma, rounds), mean * rounds
        comparison = "more than there are rounds"
        if floor < rounds:
            comparison = f"{floor / misses:,.0f} times as many" if misses else "and there is no miss"
        yield (
            f"{learner} with m = {m} has {misses:,.0f} misses in {rounds:,} rounds; "
            f"the bound is at least {floor:,.0f}, {comparison}"
        )
