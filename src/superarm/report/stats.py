"""Means, intervals, paired differences: from runs to what a figure or table shows."""

from __future__ import annotations

from math import nan
from typing import Any, NamedTuple

import polars as pl

from superarm._intervals import student_margin
from superarm.simulation import PROMISE_COLUMNS, RATES


def half_width(spread: float | None, n: int) -> float | None:
    """Return half of the 95 % interval of a mean of n runs with this standard deviation."""
    return None if spread is None or n < 2 else student_margin(spread / n**0.5, n - 1)


def with_interval(frame: pl.DataFrame, by: list[str], value: str) -> pl.DataFrame:
    """Return for each group the mean, both ends of its 95 % interval, and the number of runs."""
    table = frame.group_by(by, maintain_order=True).agg(
        pl.col(value).mean().alias("mean"), pl.col(value).std().alias("sd"), pl.len().alias("n")
    )
    half = [half_width(sd, n) for sd, n in table.select("sd", "n").iter_rows()]
    table = table.with_columns(pl.Series("half", half, pl.Float64)).drop("sd")
    margin = pl.col("half").fill_null(0.0)
    return table.with_columns(
        (pl.col("mean") - margin).clip(0.0).alias("low"),
        (pl.col("mean") + margin).clip(upper_bound=1.0 if value in RATES else None).alias("high"),
    )


def with_series(frame: pl.DataFrame, *, axis: str = "round", one_chart: bool = False) -> pl.DataFrame:
    """Name each curve by the values that differ between curves: learner, m, gamma, data.

    Args:
        frame: with columns data, learner, set_size and gamma.
        axis: the column that curves run over, which is no part of their names.
        one_chart: whether all data are in one chart.
    """
    varies = {
        "set_size": pl.col("set_size").n_unique().over("learner") > 1,
        "gamma": pl.col("gamma").n_unique().over("data", "learner", "set_size") > 1,
    }
    name = (pl.col("data") + ", " if one_chart else pl.lit("")) + pl.col("learner")
    for column, symbol in (("set_size", "m"), ("gamma", "γ")):
        if column != axis:
            part = pl.format(f", {symbol} = {{}}", column)
            name = name + pl.when(varies[column]).then(part).otherwise(pl.lit(""))
    return frame.with_columns(name.alias("series"))


def summary(runs: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each data set, learner, m, scaling and gamma; with the kept coverage where one was promised."""
    names = ("data", "learner", "set_size", "scaling", "gamma", "rounds")
    by = [name for name in names if name in runs.columns]  # a comparison's runs have no gamma
    groups = runs.group_by(by, maintain_order=True)
    table = groups.agg(pl.len().alias("runs"))
    for value in (*RATES, *(name for name in PROMISE_COLUMNS if name in runs.columns)):
        means = with_interval(runs, by, value)
        table = table.with_columns(means["mean"].alias(value), means["half"].alias(f"{value}_half_interval"))
    speed = (pl.col("rounds").sum() / pl.col("seconds").sum()).round(0).alias("rounds_per_second")
    return table.with_columns(groups.agg(speed)["rounds_per_second"])


class Differences(NamedTuple):
    """Differences of learners' rates from a reference's; and which learners were not compared, with the reason."""

    table: pl.DataFrame
    omitted: dict[str, str]


def differences(runs: pl.DataFrame, reference: str, rate: str = "error_rate") -> Differences:
    """Return each learner's rate minus the reference's, seed by seed, with the interval of the mean.

    The reference is taken with the same m and gamma where it has them, else with the only ones it has.
    """
    rows: list[dict[str, Any]] = []
    omitted: dict[str, str] = {}
    for (data,), part in runs.group_by(["data"], maintain_order=True):
        references = part.filter(learner=reference)
        others = part.filter(pl.col("learner") != reference)
        by = ["learner", "set_size", "gamma"]
        for (learner, m, gamma), group in others.group_by(by, maintain_order=True):
            baseline = references
            for condition in (pl.col("set_size") == m, pl.col("gamma").eq_missing(gamma)):
                baseline = baseline.filter(condition) if len(baseline.filter(condition)) else baseline
            reason = ""
            if not len(references):
                reason = f"no run of {reference}"
            elif baseline["seed"].n_unique() != len(baseline):
                reason = f"{reference} has several m or γ, none of them the same"
            elif not set(group["seed"]) & set(baseline["seed"]):
                reason = f"no seed in common with {reference}"
            if reason:
                which = f"{data}, {learner}, m = {m}" + ("" if gamma is None else f", γ = {gamma:g}")
                omitted[which] = reason
                continue
            gap = paired_difference(group, baseline, rate)
            row = {"data": data, "learner": learner, "set_size": m, "gamma": gamma, "minus": reference}
            rows.append(
                row | {"difference": gap.mean, "half_interval": gap.half_interval, "pairs": gap.pairs}
            )
    return Differences(pl.DataFrame(rows, infer_schema_length=None), omitted)


class PairedDifference(NamedTuple):
    """The mean difference of two groups of runs, seed by seed, and half of its 95 % interval."""

    mean: float
    half_interval: float | None  # of less than two pairs there is none
    pairs: int

    @property
    def sign(self) -> int:
        """-1 or 1 where the difference is beyond its interval, 0 where it is not; of one pair, its sign."""
        margin = self.half_interval or 0.0
        return int(self.mean > margin) - int(self.mean < -margin)


def paired_difference(runs: pl.DataFrame, others: pl.DataFrame, rate: str) -> PairedDifference:
    """Return the rate of some runs minus that of others with the same seeds."""
    pairs = runs.join(others.select("seed", pl.col(rate).alias("other")), on="seed")
    gap = pairs[rate] - pairs["other"]
    mean: Any = gap.mean()
    spread: Any = gap.std()
    return PairedDifference(nan if mean is None else mean, half_width(spread, len(gap)), len(gap))
