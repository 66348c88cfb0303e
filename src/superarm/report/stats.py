"""Means, intervals, paired differences: from runs to what a figure or table shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from superarm.simulation import RATES

if TYPE_CHECKING:
    import polars

CONFIDENCE = 0.95


def half_width(spread: float | None, n: int) -> float | None:
    """Half of the 95 % interval (Student's t) of a mean of n runs with this standard deviation.

    >>> round(half_width(1.0, 10), 3)
    0.715
    """
    if spread is None or n < 2:
        return None
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2.0) * spread / n**0.5)


def with_interval(frame: polars.DataFrame, by: list[str], value: str) -> polars.DataFrame:
    """For each group: mean, low and high end of the 95 % interval, and the number of runs."""
    import polars as pl

    table = frame.group_by(by, maintain_order=True).agg(
        pl.col(value).mean().alias("mean"), pl.col(value).std().alias("sd"), pl.len().alias("n")
    )
    half = [half_width(sd, n) for sd, n in table.select("sd", "n").iter_rows()]
    table = table.with_columns(pl.Series("half", half, pl.Float64)).drop("sd")
    return table.with_columns(
        (pl.col("mean") - pl.col("half").fill_null(0.0)).clip(0.0).alias("low"),
        (pl.col("mean") + pl.col("half").fill_null(0.0))
        .clip(upper_bound=1.0 if value in RATES else None)
        .alias("high"),
    )


def with_series(
    frame: polars.DataFrame, *, over_gamma: bool = False, over_size: bool = False, together: bool = False
) -> polars.DataFrame:
    """Name each curve by what tells it from the others: learner, m, gamma, data.

    Args:
        frame: with columns data, learner, set_size and gamma.
        over_gamma: gamma is an axis, so no part of the name.
        over_size: m is an axis.
        together: all data in one chart.
    """
    import polars as pl

    sizes = pl.col("set_size").n_unique().over("learner") > 1
    gammas = pl.col("gamma").n_unique().over("data", "learner", "set_size") > 1
    name = (pl.col("data") + ", " if together else pl.lit("")) + pl.col("learner")
    if not over_size:
        name = name + pl.when(sizes).then(pl.format(", m = {}", "set_size")).otherwise(pl.lit(""))
    if not over_gamma:
        name = name + pl.when(gammas).then(pl.format(", γ = {}", "gamma")).otherwise(pl.lit(""))
    return frame.with_columns(name.alias("series"))


def summary(runs: polars.DataFrame) -> polars.DataFrame:
    """A row for each data set, learner, m and gamma."""
    import polars as pl

    by = ["data", "learner", "set_size", "gamma", "rounds"]
    tables = []
    for rate in RATES:
        one = with_interval(runs, by, rate).select(*by, "n", "mean", "half")
        tables.append(one.rename({"mean": rate, "half": f"{rate}_half_interval"}))
    speed = runs.group_by(by, maintain_order=True).agg(
        (pl.col("rounds").sum() / pl.col("seconds").sum()).round(0).alias("rounds_per_second")
    )
    table = tables[0]
    for other in (*(t.drop("n") for t in tables[1:]), speed):
        table = table.join(other, on=by, how="left", nulls_equal=True, maintain_order="left")
    return table.rename({"n": "runs"})


def differences(runs: polars.DataFrame, reference: str, rate: str = "error_rate") -> polars.DataFrame:
    """Each learner's rate minus the reference's, seed by seed, with the interval of the mean.

    The reference is taken with the same m and gamma where it has them, else with the only ones it has.
    """
    import polars as pl

    rows: list[dict[str, Any]] = []
    for (data,), part in runs.group_by(["data"], maintain_order=True):
        base = part.filter(pl.col("learner") == reference)
        others = part.filter(pl.col("learner") != reference)
        by = ["learner", "set_size", "gamma"]
        for (learner, m, gamma), one in others.group_by(by, maintain_order=True):
            against = base
            for same in (pl.col("set_size") == m, pl.col("gamma").eq_missing(gamma)):
                against = against.filter(same) if len(against.filter(same)) else against
            if against["seed"].n_unique() != len(against):
                continue  # several to compare with, and no telling which
            pairs = one.join(against.select("seed", pl.col(rate).alias("other")), on="seed")
            if not len(pairs):
                continue
            gap = pairs[rate] - pairs["other"]
            spread: Any = gap.std()
            mean: Any = gap.mean()
            rows.append(
                {
                    "data": data,
                    "learner": learner,
                    "set_size": m,
                    "gamma": gamma,
                    "minus": reference,
                    "difference": mean,
                    "half_interval": half_width(spread, len(gap)),
                    "pairs": len(gap),
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)
