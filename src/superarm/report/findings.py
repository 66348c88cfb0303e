"""What came out, in plain words."""

from __future__ import annotations

import polars as pl

from superarm.experiments.spec import Figure
from superarm.experiments.store import Experiment
from superarm.report.figures import select_runs
from superarm.report.stats import differences, summary, with_interval, with_series
from superarm.report.theory_charts import bound_floor

NOUNS = {
    "error_rate": "error",
    "miss_rate": "miss rate of the top set",
    "shown_miss_rate": "miss rate of the shown set",
}


def findings(experiment: Experiment, figure: Figure, runs: pl.DataFrame) -> list[str]:
    """A sentence for each data set, of the kind the figure asks for, about the rate that it shows."""
    kinds = {
        "best-gamma": _best_gamma,
        "final": _final,
        "gap": _gap,
        "monotone": _monotone,
        "ratio": _ratio,
        "bound": _bound,
    }
    kind = figure.finding or ("final" if figure.kind == "rounds" else None)
    if kind not in kinds or not len(runs):
        return []
    runs = select_runs(figure, runs)
    names = dict.fromkeys(runs["data"].to_list())
    by_data = {name: runs.filter(pl.col("data") == name) for name in names}
    sentences = [kinds[kind](name, part, figure.y, experiment.reference) for name, part in by_data.items()]
    return [sentence for sentence in sentences if sentence]


def _number(value: float) -> str:
    return f"{value:.2g}" if abs(value) < 0.01 else f"{value:.3f}"


def _means(runs: pl.DataFrame, rate: str) -> dict[str, float]:
    """The mean of each curve, least first."""
    by = ["series", "learner", "set_size", "gamma"]
    table = with_interval(with_series(runs), by, rate).sort("mean")
    return dict(table.select("series", "mean").iter_rows())


def _best_gamma(name: str, runs: pl.DataFrame, rate: str, reference: str | None) -> str:
    gammas = sorted(runs["gamma"].drop_nulls().unique().to_list())
    by = ["learner", "set_size"]
    table = summary(runs).sort(rate, "gamma").unique(by, keep="first", maintain_order=True).sort(*by)
    with_gamma, without_gamma, edge = [], [], False
    for learner, m, gamma, mean in table.select(*by, "gamma", rate).iter_rows():
        name_and_size = f"{learner} with m = {m}" if m > 1 else learner
        if gamma is None:
            without_gamma.append(f"{name_and_size}: {NOUNS[rate]} {_number(mean)}")
        else:
            edge = edge or gamma == gammas[0] or gamma == gammas[-1] < 1.0
            with_gamma.append(f"{name_and_size}: γ = {gamma:g} ({NOUNS[rate]} {_number(mean)})")
    also = f" Without a γ: {'; '.join(without_gamma)}." if without_gamma else ""
    tail = " A best γ at the end of the range tried may lie beyond it." if edge else ""
    return f"{name}: the best of {len(gammas)} values, {'; '.join(with_gamma)}.{also}{tail}"


def _final(name: str, runs: pl.DataFrame, rate: str, reference: str | None) -> str:
    rounds = int(runs["rounds"].max())  # type: ignore[arg-type]
    ranked = "; ".join(f"{series}: {_number(mean)}" for series, mean in _means(runs, rate).items())
    return f"{name}: {NOUNS[rate]} after {rounds:,} rounds, least first. {ranked}."


def _gap(name: str, runs: pl.DataFrame, rate: str, reference: str | None) -> str:
    table = differences(runs, reference, rate) if reference is not None else None
    if table is None or not len(table):
        return ""
    gaps, worst = [], 0.0
    for row in table.iter_rows(named=True):
        half = f" ± {_number(row['half_interval'])}" if row["half_interval"] is not None else ""
        sign = "+" if row["difference"] > 0.0 else ""
        gaps.append(f"{row['learner']}, m = {row['set_size']}: {sign}{_number(row['difference'])}{half}")
        worst = max(worst, row["difference"])
    rounds = int(runs["rounds"].max())  # type: ignore[arg-type]
    closed = "All gaps are below 0.01." if worst < 0.01 else "Not all gaps have closed."
    minus = f"{NOUNS[rate]} minus that of {reference} after {rounds:,} rounds"
    return f"{name}: {minus}. {'; '.join(gaps)}. {closed}"


def _monotone(name: str, runs: pl.DataFrame, rate: str, reference: str | None) -> str:
    table = with_interval(runs, ["set_size"], rate).sort("set_size")
    means, sizes = table["mean"].to_list(), table["set_size"].to_list()
    falls = [m for m, a, b in zip(sizes[1:], means, means[1:], strict=False) if b < a]
    ends = f"from {_number(means[0])} with m = {sizes[0]} to {_number(means[-1])} with m = {sizes[-1]}"
    if not falls:
        return f"{name}: yes, the {NOUNS[rate]} grows with every step of m, {ends}."
    sizes_of_falls = ", ".join(map(str, falls))
    return f"{name}: {NOUNS[rate]} {ends}; it does not grow at m = {sizes_of_falls}."


def _ratio(name: str, runs: pl.DataFrame, rate: str, reference: str | None) -> str:
    means = _means(runs, rate)
    base = means.pop(reference or "", 0.0)
    if not base:
        return ""
    ratios = [f"{series}: {mean / base:.2g} times that" for series, mean in means.items()]
    return f"{name}: {reference} has {NOUNS[rate]} {_number(base)}; {'; '.join(ratios)}."


def _bound(name: str, runs: pl.DataFrame, rate: str, reference: str | None) -> str:
    sentences = []
    by = ["set_size", "gamma", "k", "rounds"]
    for m, gamma, k, rounds, mean in (
        with_interval(runs, by, "miss_rate").sort("set_size").select(*by, "mean").iter_rows()
    ):
        floor = bound_floor(k, m, gamma, rounds)
        comparison = (
            "which says nothing" if floor >= rounds else f"{floor / (mean * rounds):,.0f} times as many"
        )
        misses = f"{mean * rounds:,.0f} misses in {rounds:,} rounds"
        sentences.append(f"with m = {m}, {misses}; the bound is at least {floor:,.0f}, {comparison}")
    return f"{name}: {'; '.join(sentences)}."
