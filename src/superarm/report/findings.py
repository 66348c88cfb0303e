"""The results of a figure in words: sentences for each data set, of the kind that its spec names or its default."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import polars as pl

from superarm.experiments.spec import Figure
from superarm.report.figures import select_runs
from superarm.report.stats import differences, paired_difference, with_interval, with_series
from superarm.report.theory_charts import bound_floor, runs_of_theorem_6

RATE_NAMES = {
    "error_rate": "error",
    "miss_rate": "miss rate of the top set",
    "shown_miss_rate": "miss rate of the shown set",
}


DEFAULT_FINDINGS = {"rounds": "final", "gamma": "best-gamma", "set-size": "monotone", "bound": "bound"}
CLOSED_GAP = 0.01
NO_DIFFERENCE = "no difference beyond the 95 % interval"


def figure_findings(figure: Figure, runs: pl.DataFrame, reference: str | None) -> list[str]:
    """Return the results of a figure's runs in words, for the rate that it shows: sentences for each data set."""
    writers = {
        "best-gamma": _best_gamma,
        "final": _final,
        "gap": _gap,
        "monotone": _monotone,
        "ratio": _ratio,
        "bound": _bound,
    }
    finding = figure.finding or DEFAULT_FINDINGS.get(figure.kind)
    if finding is None or not len(runs):
        return []
    parts = select_runs(figure, runs).group_by("data", maintain_order=True)
    sentences = [(data, writers[finding](part, figure.y, reference)) for (data,), part in parts]
    if finding != "bound" and runs["seed"].n_unique() == 1:
        sentences.append(("all data", iter(["one seed, so no interval: differences may be chance"])))
    return [f"{data}: {sentence}." for data, several in sentences for sentence in several]


def _number(value: float) -> str:
    return f"{value:.2g}" if abs(value) < 0.01 else f"{value:.3f}"


def _signed(value: float) -> str:
    return ("+" if value > 0.0 else "") + _number(value)


def _at_the_end(runs: pl.DataFrame) -> str:
    rounds = runs["rounds"].unique().to_list()
    return f"after {rounds[0]:,} rounds" if len(rounds) == 1 else "after the last round"


def _best_gamma(runs: pl.DataFrame, rate: str, reference: str | None) -> Iterator[str]:
    """Name the gamma of least mean rate of each learner and m, and the rates of learners without a gamma."""
    by = ["learner", "set_size"]
    means = with_interval(runs, [*by, "gamma"], rate).sort("mean", "gamma")
    best = means.unique(by, keep="first", maintain_order=True).sort(by, maintain_order=True)
    with_gamma, without_gamma = [], []
    for learner, m, gamma, mean in best.select(*by, "gamma", "mean").iter_rows():
        name = learner if m == 1 else f"{learner} with m = {m}"
        if gamma is None:
            without_gamma.append(f"{name} has {RATE_NAMES[rate]} {_number(mean)}")
            continue
        own = runs.filter(learner=learner, set_size=m)
        of_best = own.filter(gamma=gamma)
        ties = [
            f"{other:g}"
            for (other,), group in own.drop_nulls("gamma").group_by("gamma", maintain_order=True)
            if other != gamma and not paired_difference(group, of_best, rate).sign
        ]
        tied = f"; {NO_DIFFERENCE} from {', '.join(ties)}" if ties else ""
        with_gamma.append(f"{gamma:g} for {name} ({RATE_NAMES[rate]} {_number(mean)}{tied})")
    if with_gamma:
        tried = sorted(runs["gamma"].drop_nulls().unique().to_list())
        yield f"of {len(tried)} values of γ from {tried[0]:g} to {tried[-1]:g} the best is {'; '.join(with_gamma)}"
        ends = {tried[0], tried[-1]} - {1.0}
        if len(tried) > 1 and ends & set(best["gamma"]):
            yield "a best γ at an end of the range that was tried may lie beyond it"
    if without_gamma:
        yield f"without a γ, {'; '.join(without_gamma)}"


def _final(runs: pl.DataFrame, rate: str, reference: str | None) -> Iterator[str]:
    """Rank the curves by their means at the end, and name neighbours without a significant difference."""
    named = with_series(runs)
    table = with_interval(named, ["series"], rate).sort("mean")
    ranked = "; ".join(
        f"{series}: {_number(mean)}" for series, mean in table.select("series", "mean").iter_rows()
    )
    yield f"{RATE_NAMES[rate]} {_at_the_end(runs)}, least first: {ranked}"
    curves = {name: named.filter(series=name) for name in table["series"]}
    ties = [
        f"{better} and {worse}"
        for better, worse in pairwise(curves)
        if not paired_difference(curves[worse], curves[better], rate).sign
    ]
    if ties:
        yield f"{RATE_NAMES[rate]}: {NO_DIFFERENCE} between {'; '.join(ties)}"


def _gap(runs: pl.DataFrame, rate: str, reference: str | None) -> Iterator[str]:
    """Give each learner's difference from the reference, and whether it is almost closed."""
    if reference is None:
        return
    table, omitted = differences(runs, reference, rate)
    gaps = []
    for row in table.iter_rows(named=True):
        margin = "" if row["half_interval"] is None else f" ± {_number(row['half_interval'])}"
        gaps.append(f"{row['learner']}, m = {row['set_size']}: {_signed(row['difference'])}{margin}")
    if gaps:
        half = table["half_interval"].fill_null(0.0)
        closed = "it is open whether all gaps are"
        if (table["difference"] + half < CLOSED_GAP).all():
            closed = "all gaps are"
        elif (table["difference"] - half >= CLOSED_GAP).any():
            closed = "not all gaps are"
        minus = f"{RATE_NAMES[rate]} minus that of {reference} {_at_the_end(runs)}"
        yield f"{minus}: {'; '.join(gaps)}; {closed} below {CLOSED_GAP}"
    if omitted:
        yield f"{RATE_NAMES[rate]}: {len(omitted)} cannot be compared with {reference} (below the table of differences)"


def _monotone(runs: pl.DataFrame, rate: str, reference: str | None) -> Iterator[str]:
    """Say of each curve over m at which steps it grows or falls by more than the interval."""
    curves = with_series(runs, axis="set_size").group_by("series", maintain_order=True)
    for (name,), curve in curves:
        table = with_interval(curve, ["set_size"], rate).sort("set_size")
        means, sizes = table["mean"].to_list(), table["set_size"].to_list()
        if len(sizes) == 1:
            continue
        groups = [curve.filter(set_size=m) for m in sizes]
        signs = [paired_difference(more, fewer, rate).sign for fewer, more in pairwise(groups)]
        steps = {
            verb: [str(m) for m, sign in zip(sizes[1:], signs, strict=True) if sign == wanted]
            for verb, wanted in {"grows at": 1, "falls at": -1, f"has {NO_DIFFERENCE} at": 0}.items()
        }
        trend = ", ".join(f"{verb} m = {', '.join(where)}" for verb, where in steps.items() if where)
        if len(set(signs)) == 1:
            every = {1: "grows with every step of m", -1: "falls with every step of m"}
            trend = every.get(signs[0], f"has {NO_DIFFERENCE} at any step of m")
        ends = f"from {_number(means[0])} with m = {sizes[0]} to {_number(means[-1])} with m = {sizes[-1]}"
        whole = paired_difference(groups[-1], groups[0], rate)
        margin = "" if whole.half_interval is None else f" ± {_number(whole.half_interval)}"
        yield f"the {RATE_NAMES[rate]} of {name} {trend}: {ends}, {_signed(whole.mean)}{margin}"


def _ratio(runs: pl.DataFrame, rate: str, reference: str | None) -> Iterator[str]:
    """Compare each curve's mean with that of the reference."""
    named = with_series(runs)
    table = with_interval(named, ["series"], rate).sort("mean")
    means = dict(table.select("series", "mean").iter_rows())
    base = means.pop(reference or "", 0.0)
    if base:
        of_reference = named.filter(series=reference)
        ratios = []
        for series, mean in means.items():
            sign = paired_difference(named.filter(series=series), of_reference, rate).sign
            ratios.append(f"{series}: {mean / base:.2g} times that{'' if sign else f' ({NO_DIFFERENCE})'}")
        yield f"{reference} has {RATE_NAMES[rate]} {_number(base)}; {'; '.join(ratios)}"


def _bound(runs: pl.DataFrame, rate: str, reference: str | None) -> Iterator[str]:
    """Compare the misses of each learner that Theorem 6 is about with the least that its bound can be."""
    by = ["learner", "set_size", "gamma", "k", "rounds"]
    table = with_interval(runs_of_theorem_6(runs), by, "miss_rate").sort("learner", "set_size", "gamma")
    for learner, m, gamma, k, rounds, mean in table.select(*by, "mean").iter_rows():
        floor = bound_floor(k, m, gamma, rounds)
        misses = mean * rounds
        if floor >= rounds:
            comparison = "more than there are rounds, and so says nothing"
        elif not misses:
            comparison = "and there is no miss"
        elif floor < misses:
            comparison = "fewer than the misses: it is broken, unless that of these data is higher"
        else:
            ratio = floor / misses
            comparison = f"{ratio:,.0f} times as many" if ratio >= 10.0 else f"{ratio:.2f} times as many"
        count = f"{misses:,.0f}" if misses >= 10.0 else f"{misses:.2g}"  # a mean over seeds
        yield (
            f"{learner} with m = {m}, γ = {gamma:g} has {count} misses in {rounds:,} rounds; "
            f"the bound is at least {floor:,.0f}, {comparison}"
        )
