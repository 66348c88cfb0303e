"""What came out, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from superarm.report.stats import differences, summary, with_interval, with_series

if TYPE_CHECKING:
    import polars

__all__ = ["findings"]


def findings(experiment: dict[str, Any], figure: dict[str, Any], runs: polars.DataFrame) -> list[str]:
    """A sentence for each data set, of the kind the figure asks for."""
    import polars as pl

    for column in ("learners", "set_sizes"):
        if figure[column]:
            runs = runs.filter(pl.col(column[:-1]).is_in(figure[column]))
    kinds = {
        "best-gamma": _best_gamma,
        "final": _final,
        "gap": _gap,
        "monotone": _monotone,
        "ratio": _ratio,
        "bound": _bound,
    }
    wanted = figure["finding"] or ("final" if figure["kind"] == "rounds" else None)
    if wanted not in kinds or not len(runs):
        return []
    names = dict.fromkeys(runs["data"].to_list())
    said = [kinds[wanted](experiment, name, runs.filter(pl.col("data") == name)) for name in names]
    return [one for one in said if one]


def _number(value: float) -> str:
    return f"{value:.2g}" if abs(value) < 0.01 else f"{value:.3f}"


def _means(runs: polars.DataFrame) -> polars.DataFrame:
    return with_interval(with_series(runs), ["series", "learner", "set_size", "gamma"], "error_rate").sort(
        "mean"
    )


def _best_gamma(experiment: dict[str, Any], name: str, runs: polars.DataFrame) -> str:
    parts, gammas = [], sorted(runs["gamma"].drop_nulls().unique().to_list())
    table = (
        summary(runs)
        .sort("error_rate", "gamma")
        .unique(["learner", "set_size"], keep="first", maintain_order=True)
    )
    edge = False
    for learner, m, gamma, error in (
        table.sort("learner", "set_size").select("learner", "set_size", "gamma", "error_rate").iter_rows()
    ):
        if gamma is not None:
            edge = edge or gamma == gammas[0] or gamma == gammas[-1] < 1.0
            size = f" with m = {m}" if m > 1 else ""
            parts.append(f"{learner}{size}: γ = {gamma:g} (error {_number(error)})")
    tail = " A best γ at the end of the range tried may lie beyond it." if edge else ""
    return f"{name}: the best of {len(gammas)} values, {'; '.join(parts)}.{tail}"


def _final(experiment: dict[str, Any], name: str, runs: polars.DataFrame) -> str:
    table = _means(runs)
    rounds = int(runs["rounds"].max())  # type: ignore[arg-type]
    ranked = "; ".join(f"{s}: {_number(mean)}" for s, mean in table.select("series", "mean").iter_rows())
    return f"{name}: error after {rounds:,} rounds, least first. {ranked}."


def _gap(experiment: dict[str, Any], name: str, runs: polars.DataFrame) -> str:
    table = differences(runs, experiment["reference"])
    parts = []
    for row in table.iter_rows(named=True):
        half = f" ± {_number(row['half_interval'])}" if row["half_interval"] is not None else ""
        sign = "+" if row["difference"] > 0.0 else ""
        parts.append(f"{sign}{_number(row['difference'])}{half} with m = {row['set_size']}")
    rounds = int(runs["rounds"].max())  # type: ignore[arg-type]
    worst = float(table["difference"].max() or 0.0)  # type: ignore[arg-type]
    closed = "All gaps are below 0.01." if worst < 0.01 else "Not all gaps have closed."
    names = f"{table['learner'][0]} minus {experiment['reference']}"
    return f"{name}: {names} after {rounds:,} rounds: {', '.join(parts)}. {closed}"


def _monotone(experiment: dict[str, Any], name: str, runs: polars.DataFrame) -> str:
    table = with_interval(runs, ["set_size"], "error_rate").sort("set_size")
    errors = table["mean"].to_list()
    sizes = table["set_size"].to_list()
    falls = [m for m, a, b in zip(sizes[1:], errors, errors[1:], strict=False) if b < a]
    ends = f"from {_number(errors[0])} with m = {sizes[0]} to {_number(errors[-1])} with m = {sizes[-1]}"
    if not falls:
        return f"{name}: yes, the error grows with every step of m, {ends}."
    at = ", ".join(map(str, falls))
    return f"{name}: {ends}; it does not grow at m = {at}."


def _ratio(experiment: dict[str, Any], name: str, runs: polars.DataFrame) -> str:
    table = _means(runs)
    base: dict[str, float] = dict(table.select("series", "mean").iter_rows())
    reference = experiment["reference"]
    if not base.get(reference):
        return ""
    parts = [f"{s}: {mean / base[reference]:.2g} times that" for s, mean in base.items() if s != reference]
    return f"{name}: {reference} has error {_number(base[reference])}; {'; '.join(parts)}."


def _bound(experiment: dict[str, Any], name: str, runs: polars.DataFrame) -> str:
    from superarm.report.theory import bound_floor

    parts = []
    by = ["set_size", "gamma", "k", "rounds"]
    for m, gamma, k, rounds, mean in (
        with_interval(runs, by, "miss_rate").sort("set_size").select(*by, "mean").iter_rows()
    ):
        floor = bound_floor(k, m, gamma, rounds)
        says = "which says nothing" if floor >= rounds else f"{floor / (mean * rounds):,.0f} times as many"
        seen = f"{mean * rounds:,.0f} misses in {rounds:,} rounds"
        parts.append(f"with m = {m}, {seen}; the bound is at least {floor:,.0f}, {says}")
    return f"{name}: {'; '.join(parts)}."
