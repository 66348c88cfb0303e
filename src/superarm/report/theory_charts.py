"""Charts of what can be computed instead of simulated: Theorem 6's bound, and the second moment of one update."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from json import loads

import numpy as np
import polars as pl

from superarm.learners import MCDBF
from superarm.report.chart import DASHES, GREY, INK, PALETTE, Axis, Chart, LineStyle, line_chart
from superarm.report.stats import with_interval
from superarm.theory import second_moment, theorem6_bound
from superarm.theory.bounds import least_complexity
from superarm.theory.label_estimates import ESTIMATE_NAMES

SHARE_IN_TOP = 0.9
ALL_MISSES = "all rounds are misses"


def bound_floor(k: int, m: int, gamma: float, rounds: int) -> float:
    """Return the least that Theorem 6's bound can be on any data with |x| <= 1, over all W*.

    Each row loses at least 1 - |W*| / w, where w^2 is the least |W*|^2 that loses nothing (`least_complexity`). So
    from W* = 0 to a W* of length w the bound is at least what lies on a straight line between the bounds at its ends.
    """
    without_weights = (1.0 + gamma) * rounds
    if m == 1:  # no W* is without loss
        return without_weights
    return min(without_weights, theorem6_bound(k, m, gamma, rounds, complexity=least_complexity(k, m)))


def runs_of_theorem_6(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs that Theorem 6 is about: of MC-DBF with the paper's estimate, and without the gate."""
    runs = runs.drop_nulls("gamma")
    ours = [
        spec == MCDBF.name
        and (params := loads(written)).get("estimate", "ordered") == "ordered"
        and not params.get("gate")
        for spec, written in runs.select("learner_spec", "params").iter_rows()
    ]
    return runs.filter(pl.Series(ours, dtype=pl.Boolean))


def bound_chart(
    name: str, title: str, curves: pl.DataFrame, runs: pl.DataFrame, learners: Sequence[str]
) -> Chart:
    """Return a chart of the misses of the top set against rounds, with the least that the bound can be."""
    k = int(runs.filter(data=title)["k"][0])
    bounded = set(runs_of_theorem_6(runs)["learner"])
    curves = curves.with_columns((pl.col("miss_rate") * pl.col("round")).alias("misses"))
    pairs = list(curves.select("set_size", "gamma").unique(maintain_order=True).iter_rows())
    several_gammas = curves["gamma"].drop_nulls().n_unique() > 1
    tables = []
    styles = dict[str, LineStyle]()
    for (learner, m, gamma), part in curves.group_by(["learner", "set_size", "gamma"], maintain_order=True):
        misses = with_interval(part, ["round"], "misses").rename({"round": "x"})
        rounds = misses["x"].to_list()
        dash = DASHES[pairs.index((m, gamma)) % len(DASHES)]
        suffix = f", m = {m}" + (f", γ = {gamma:g}" if several_gammas and gamma is not None else "")
        tables.append(_as_series(f"{learner}{suffix}", misses))
        styles[f"{learner}{suffix}"] = LineStyle(PALETTE[learners.index(str(learner)) % len(PALETTE)], dash)
        if gamma is not None and learner in bounded and f"bound{suffix}" not in styles:
            floor = [bound_floor(k, int(m), float(gamma), r) for r in rounds]
            tables.append(_exact_series(f"bound{suffix}", rounds, floor))
            styles[f"bound{suffix}"] = LineStyle(INK, dash)
    tables.append(_exact_series(ALL_MISSES, rounds, list(map(float, rounds))))
    spec = line_chart(
        pl.concat(tables, how="diagonal_relaxed"),
        x=Axis("rounds", log=True),
        y=Axis("misses of the top set (rounds)", log=True),
        styles=styles | {ALL_MISSES: LineStyle(GREY, DASHES[0])},
    )
    spec["description"] = f"{title}: misses of the top set and the least that Theorem 6's bound can be."
    return Chart(name, title, spec)


def second_moment_charts(name: str, set_sizes: Sequence[int] = ()) -> list[Chart]:
    """Return charts of E|U~|^2 against gamma (k = 10), and against k (gamma = 0.1), for some ``set_sizes`` or ours."""
    gammas = np.geomspace(0.01, 1.0, 25).round(5).tolist()
    labels = [5, 6, 8, 10, 15, 20, 30, 50, 70, 100, 150, 200]
    over_gamma = {gamma: (10, gamma) for gamma in gammas}
    over_k = {float(k): (k, 0.1) for k in labels}
    title = "Against γ, for k = 10 labels"
    x = "γ, the share of exploration"
    return [
        _second_moment_chart(f"{name}-gamma", title, x, over_gamma, set_sizes or (2, 7)),
        _second_moment_chart(
            f"{name}-k",
            "Against the number of labels, γ = 0.1",
            "k, the number of labels",
            over_k,
            set_sizes or (2, 4),
        ),
    ]


def _mean_second_moment(k: int, m: int, gamma: float, estimate: str) -> float:
    """Return E|U~|^2 with y in the top set on nine rounds of ten, as the minimum-variance estimate assumes."""
    inside, outside = (second_moment(k, m, gamma, estimate, in_top=in_top) for in_top in (True, False))
    return float(SHARE_IN_TOP * inside + (1.0 - SHARE_IN_TOP) * outside)


def _second_moment_chart(
    name: str, title: str, x: str, problems: dict[float, tuple[int, float]], sizes: Sequence[int]
) -> Chart:
    """Draw the second moment against a number that stands for each (k, gamma).

    Each set size has a colour, each estimate a dash.
    """
    tables = []
    styles = dict[str, LineStyle]()
    for (i, estimate), (j, m) in product(enumerate(ESTIMATE_NAMES), enumerate(sizes)):
        series = f"{estimate}, m = {m}"
        moments = {
            at: _mean_second_moment(k, m, gamma, estimate) for at, (k, gamma) in problems.items() if m < k
        }
        styles[series] = LineStyle(PALETTE[j % len(PALETTE)], DASHES[i])
        tables.append(_exact_series(series, list(moments), list(moments.values())))
    y = Axis("E‖Ũ‖² (squared weight units)", log=True)
    spec = line_chart(pl.concat(tables), x=Axis(x, log=True), y=y, styles=styles)
    spec["description"] = f"{title}: the mean squared length of MC-DBF's update."
    return Chart(name, title, spec)


def _exact_series(series: str, x: Sequence[float], y: Sequence[float]) -> pl.DataFrame:
    """Return a curve without an interval."""
    return _as_series(series, pl.DataFrame({"x": x, "mean": y, "low": y, "high": y, "n": [1] * len(x)}))


def _as_series(series: str, table: pl.DataFrame) -> pl.DataFrame:
    return table.select(
        pl.lit(series).alias("series"), pl.col("x").cast(pl.Float64), "mean", "low", "high", "n"
    )
