"""Charts of what can be computed instead of simulated: Theorem 6's bound, and the price of one update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from superarm.report.chart import Axis, Chart, line_chart
from superarm.report.stats import with_interval
from superarm.report.theme import DASHES, GREY, INK, PALETTE, style
from superarm.theory.estimates import ESTIMATES

if TYPE_CHECKING:
    import polars

IN_TOP = 0.9
TRIVIAL = "all rounds are misses"


def bound_floor(k: int, m: int, gamma: float, rounds: int) -> float:
    """The least that Theorem 6's bound can be on any data: no loss, and the smallest W* with margin 1.

    With |x| <= 1, a margin of 1 between y and the mean of m labels needs |W*|^2 >= 1/(1 + 1/m).
    """
    from superarm.theory import theorem6_bound

    return float(theorem6_bound(k, m, gamma, rounds, complexity=2.0 * m / (m + 1.0), loss=0.0))


def bound_chart(
    name: str, title: str, curves: polars.DataFrame, runs: polars.DataFrame, learners: Sequence[str]
) -> Chart:
    """Misses of the top set against rounds, with the least that the bound can be."""
    import polars as pl

    k = int(runs.filter(pl.col("data") == title)["k"][0])
    curves = curves.with_columns((pl.col("miss_rate") * pl.col("round")).alias("misses"))
    tables, order, colours, dashes = [], [], [], []
    sizes = sorted(set(curves["set_size"].to_list()))
    for (learner, m, gamma), part in curves.group_by(["learner", "set_size", "gamma"], maintain_order=True):
        seen = with_interval(part, ["round"], "misses").rename({"round": "x"})
        rounds = seen["x"].to_list()
        floor = [bound_floor(k, int(m), float(gamma), r) for r in rounds]
        own = PALETTE[learners.index(str(learner)) % len(PALETTE)]
        for label, colour, table in (
            (f"{learner}, m = {m}", own, seen),
            (f"bound, m = {m}", INK, _exact(rounds, floor)),
        ):
            tables.append(_named(table, label))
            order.append(label)
            colours.append(colour)
            dashes.append(DASHES[sizes.index(m) % len(DASHES)])
    line = list(map(float, rounds))
    tables.append(_named(_exact(rounds, line), TRIVIAL))
    spec = line_chart(
        pl.concat(tables, how="diagonal_relaxed"),
        x=Axis("rounds", log=True),
        y=Axis("misses of the top set (rounds)", log=True),
        order=[*order, TRIVIAL],
        look=([*colours, GREY], [*dashes, DASHES[0]]),
    )
    spec["description"] = f"{title}: misses of the top set and the least that Theorem 6's bound can be."
    return Chart(name, title, spec)


def price_charts(name: str) -> list[Chart]:
    """E|U~|^2 against gamma (k = 10), and against k (m = 4)."""
    import numpy as np

    over_gamma = [
        (
            f"{estimate}, m = {m}",
            f"m = {m}",
            estimate,
            float(g),
            _price_of(10, m, float(g), estimate),
        )
        for estimate in ESTIMATES
        for m in (2, 7)
        for g in np.geomspace(0.01, 1.0, 25).round(5)
    ]
    over_k = [
        (f"{estimate}, m = {m}", f"m = {m}", estimate, k, _price_of(k, m, 0.1, estimate))
        for estimate in ESTIMATES
        for m in (2, 4)
        for k in (5, 6, 8, 10, 15, 20, 30, 50, 70, 100, 150, 200)
    ]
    return [
        _price(
            f"{name}-gamma",
            "Against γ, for k = 10 labels",
            "γ, the share of exploration",
            over_gamma,
        ),
        _price(
            f"{name}-k",
            "Against the number of labels, γ = 0.1",
            "k, the number of labels",
            over_k,
        ),
    ]


def _price_of(k: int, m: int, gamma: float, estimate: str) -> float:
    """E|U~|^2 with y in the top set on nine rounds of ten, the belief of the minimum-variance estimate."""
    from superarm.theory import second_moment

    inside, outside = (second_moment(k, m, gamma, estimate, in_top=where) for where in (True, False))
    return float(IN_TOP * inside + (1.0 - IN_TOP) * outside)


def _price(name: str, title: str, x: str, rows: Sequence[tuple[str, str, str, float, float]]) -> Chart:
    import polars as pl

    groups = dict.fromkeys((series, colour, dash) for series, colour, dash, _, _ in rows)
    tables = [
        _named(_exact([r[3] for r in rows if r[0] == series], [r[4] for r in rows if r[0] == series]), series)
        for series, _, _ in groups
    ]
    spec = line_chart(
        pl.concat(tables),
        x=Axis(x, log=True),
        y=Axis("E‖Ũ‖² (squared weight units)", log=True),
        order=[series for series, _, _ in groups],
        look=style([(colour, dash) for _, colour, dash in groups]),
    )
    spec["description"] = f"{title}: the mean squared length of MC-DBF's update."
    return Chart(name, title, spec)


def _exact(x: list[Any], y: list[float]) -> polars.DataFrame:
    import polars as pl

    return pl.DataFrame({"x": x, "mean": y, "low": y, "high": y, "n": [1] * len(x)})


def _named(table: polars.DataFrame, series: str) -> polars.DataFrame:
    import polars as pl

    return table.select(
        pl.lit(series).alias("series"), pl.col("x").cast(pl.Float64), "mean", "low", "high", "n"
    )
