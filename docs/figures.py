"""The figures of docs/concepts.md and docs/coverage.md, as SVG in docs/img/:  python docs/figures.py  (about a minute)

Everything is computed here: exact probabilities from superarm.explore and superarm.theory, and runs on
digits with fixed seeds. Another kind of CPU may change the last digits of the runs.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl

import superarm as sa
from superarm.explore.dilute_probabilities import dilute_moments
from superarm.report.chart import DASHES, GREY, LIGHT, PALETTE
from superarm.theory import second_moment, summary

FOLDER = Path(__file__).parent / "img"
SEEDS = range(5)
# a learner has one colour in all figures (tests/docs/test_figures.py); its curves differ by dashes
COLOURS = dict(zip(("SetLogit", "MC-DBF", "Perceptron", "AveragedSoftmax"), PALETTE, strict=False))
# one entry below the other: the figure stays as wide as its axes
CONFIG = LIGHT | {"legend": LIGHT["legend"] | {"direction": "vertical", "columns": 1}}


def diluted_bit() -> alt.Chart:
    """How much one answer says about the label, in bits, against how much the learner knows already."""
    rows = []
    k = 10
    for top in np.linspace(0.1, 0.99, 90):
        p = np.array([top, *[(1 - top) / (k - 1)] * (k - 1)])
        for m in (1, 3, 5, 9):
            share = p[:m].sum()
            rows.append({"top": top, "bits": _entropy(share), "answer": f"yes/no about {m} of {k} labels"})
        rows.append({"top": top, "bits": float(-(p * np.log2(p)).sum()), "answer": "the label itself"})
    order = ["the label itself", *(f"yes/no about {m} of {k} labels" for m in (5, 3, 1, 9))]
    return _lines(
        pl.DataFrame(rows),
        x=alt.X("top:Q", title="probability of the best label, as the learner sees it"),
        y=alt.Y("bits:Q", title="what the answer tells, in bits"),
        series="answer",
        order=order,
        title="A yes or no tells at most one bit",
    )


def _entropy(share: float) -> float:
    parts = np.array([share, 1.0 - share])
    parts = parts[parts > 1e-12]
    return float(-(parts * np.log2(parts)).sum())


def price() -> alt.Chart:
    """The exact second moment of one update of MC-DBF, by estimate, against m."""
    names = {
        "ordered": "MC-DBF as in the paper",
        "minimum-variance": "MC-DBF, least variance",
    }
    rows = [
        {"m": m, "size": second_moment(10, m, 0.1, estimate, in_top=True), "estimate": name}
        for m in range(1, 10)
        for estimate, name in names.items()
    ]
    rows += [{"m": m, "size": 2.0, "estimate": "SetLogit: never more than 2"} for m in range(1, 10)]
    return _lines(
        pl.DataFrame(rows),
        x=alt.X("m:Q", title="labels shown, m, out of 10", axis=alt.Axis(tickCount=9)),
        y=alt.Y(
            "size:Q",
            title="mean squared length of one step",
            scale=alt.Scale(type="log", domain=[0.05, 50_000]),
            axis=alt.Axis(values=[0.1, 1, 10, 100, 1000, 10000], format="~r"),
        ),
        series="estimate",
        order=[*names.values(), "SetLogit: never more than 2"],
        title="Squared length of one step, before its step size (γ = 0.1, |x| = 1)",
    )


def learners() -> alt.Chart:
    """Error against rounds on digits, m = 4."""
    specs = {
        "set-logit": "SetLogit (yes/no)",
        "set-logit:curves=0": "SetLogit without curves (yes/no)",
        "mc-dbf": "MC-DBF as in the paper (yes/no)",
        "mc-dbf:estimate=minimum-variance": "MC-DBF, least variance (yes/no)",
        "perceptron": "Perceptron (every label)",
    }
    curves = []
    for spec, name in specs.items():
        for seed in SEEDS:
            curve = _trace(spec, "digits", 4, 100_000, seed).to_frame()
            curves.append(curve.select("round", "error_rate", pl.lit(name).alias("learner")))
    frame = pl.concat(curves).group_by("round", "learner").mean().filter(pl.col("round") >= 10).sort("round")
    return _lines(
        frame,
        x=alt.X(
            "round:Q", title="round", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", tickCount=5)
        ),
        y=alt.Y(
            "error_rate:Q",
            title="share of wrong top labels so far",
            scale=alt.Scale(type="log", domain=[0.002, 1]),
            axis=alt.Axis(values=[0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], format="~%"),
        ),
        series="learner",
        order=list(specs.values()),
        title="Digits, 4 of 10 labels shown",
    )


def bit_for_bit() -> alt.Chart:
    """Error against the bits of feedback at most received: answers and labels on one axis."""
    k, m, rounds = 10, 4, 100_000
    specs = {
        "softmax-averaged": ("AveragedSoftmax, from labels", np.log2(k)),
        "softmax-averaged:curves=0": ("AveragedSoftmax, from labels, without curves", np.log2(k)),
        "set-logit:explore=rank": ("SetLogit, from answers about 4 of 10", _entropy(m / k)),
        "set-logit:explore=rank,curves=0": (
            "SetLogit, from answers about 4 of 10, without curves",
            _entropy(m / k),
        ),
    }
    curves = []
    for spec, (name, bits) in specs.items():
        for seed in SEEDS:
            curve = _trace(spec, "digits", m, rounds, seed).to_frame()
            told = (pl.col("round") * bits).alias("bits")
            curves.append(curve.select("round", told, "error_rate", pl.lit(name).alias("feedback")))
    frame = pl.concat(curves).group_by("round", "bits", "feedback").mean().sort("bits")
    return _lines(
        frame.filter(pl.col("bits").is_between(100, rounds)),
        x=alt.X(
            "bits:Q",
            title="bits of feedback: 3.32 a label, 0.97 an answer",
            scale=alt.Scale(type="log", domain=[100, rounds]),
            axis=alt.Axis(format="~s", tickCount=4),
        ),
        y=alt.Y(
            "error_rate:Q",
            title="share of wrong top labels so far",
            scale=alt.Scale(type="log", domain=[0.002, 1]),
            axis=alt.Axis(values=[0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], format="~%"),
        ),
        series="feedback",
        order=[name for name, _ in specs.values()],
        title="Digits: answers against labels, bit for bit",
    )


def gamma_exact() -> alt.Chart:
    """What gamma does to what is shown, exactly."""
    rows = []
    for gamma in np.geomspace(0.01, 1.0, 60):
        facts = summary(10, 4, float(gamma), 1000)
        rows += [
            {"gamma": gamma, "share": facts.other_set, "what": "the shown set is not the top set"},
            {
                "gamma": gamma,
                "share": 1.0 - dilute_moments(10, 4, float(gamma)).inclusion[0],
                "what": "a label of the top set is not shown",
            },
            {"gamma": gamma, "share": gamma, "what": "γ itself"},
        ]
    return _lines(
        pl.DataFrame(rows),
        x=alt.X(
            "gamma:Q", title="γ", scale=alt.Scale(type="log", domain=[0.01, 1], nice=False), axis=_gammas()
        ),
        y=alt.Y("share:Q", title="probability", axis=alt.Axis(format="~%")),
        series="what",
        order=["the shown set is not the top set", "a label of the top set is not shown", "γ itself"],
        title="What γ changes (k = 10, m = 4)",
    )


def gamma_runs() -> alt.Chart:
    """The two sides of gamma: what the learner knows, and what people see."""
    rows = []
    for gamma in (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0):
        traces = [
            _trace("mc-dbf:estimate=minimum-variance", "digits", 4, 50_000, seed, gamma=gamma)
            for seed in SEEDS
        ]
        for rate, what in (("error_rate", "wrong top label"), ("shown_miss_rate", "right label not shown")):
            share = float(np.mean([getattr(trace, rate) for trace in traces]))
            rows.append({"gamma": gamma, "share": share, "what": f"MC-DBF, least variance: {what}"})
    traces = [_trace("set-logit", "digits", 4, 50_000, seed) for seed in SEEDS]
    for rate, what in (("error_rate", "wrong top label"), ("shown_miss_rate", "right label not shown")):
        share = float(np.mean([getattr(trace, rate) for trace in traces]))
        rows += [{"gamma": g, "share": share, "what": f"SetLogit (no γ): {what}"} for g in (0.01, 1.0)]
    return _lines(
        pl.DataFrame(rows),
        x=alt.X(
            "gamma:Q", title="γ", scale=alt.Scale(type="log", domain=[0.01, 1], nice=False), axis=_gammas()
        ),
        y=alt.Y("share:Q", title="share of 50,000 rounds", axis=alt.Axis(format="~%")),
        series="what",
        order=list(dict.fromkeys(row["what"] for row in rows)),
        title="What γ costs (digits, m = 4)",
    )


def which_sets() -> alt.Chart:
    """What a set costs, and what its answer tells, for every set of 2 out of 5 labels."""
    p = {"A": 0.42, "B": 0.34, "C": 0.14, "D": 0.07, "E": 0.03}
    rows = []
    for pair in combinations(p, 2):
        share = sum(p[label] for label in pair)
        # what the answer says about the question that is open: is it A or B?
        tells = _between(p, pair, "A", "B")
        rows.append({"set": "".join(pair), "miss": 1.0 - share, "tells": tells})
    frame = pl.DataFrame(rows).sort("miss").with_row_index("place")
    x = alt.X("miss:Q", title="chance that the set misses", axis=alt.Axis(format="~%"))
    y = alt.Y(
        "tells:Q", title="what the answer tells about “A or B?”, in bits", scale=alt.Scale(domain=[0, 1])
    )
    dots = (
        alt.Chart(frame)
        .mark_point(filled=True, size=90, opacity=1, color=PALETTE[0], clip=False)
        .encode(x=x, y=y)
    )
    names = [
        alt.Chart(frame.filter(pl.col("place") % 2 == odd))
        .mark_text(dy=dy, fontSize=12, color="#1b1b1b")
        .encode(x=x, y=y, text="set:N")
        for odd, dy in ((0, -14), (1, -28))
    ]
    return _sized(alt.layer(dots, *names), "Every set of 2 out of 5 labels (42, 34, 14, 7 and 3 %)")


def promise() -> alt.Chart:
    """How often the right label was shown, in windows of 1,000 answers, before and after all labels are swapped."""
    stream = sa.streams.open_data("digits")
    X, y, _ = next(iter(stream.chunks(0)))
    k = stream.n_labels
    learners = {
        "SetLogit, coverage = 0.95": sa.SetLogit(n_labels=k, coverage=0.95, seed=0),
        "SetLogit, set_size = 2": sa.SetLogit(n_labels=k, set_size=2, explore="show", seed=0),
    }
    rows, window, random = [], 1000, np.random.default_rng(0)
    for start in range(0, 24_000, window):
        visit = random.integers(0, len(y), window)
        truth = y if start < 14_000 else (y + 1) % k
        for name, learner in learners.items():
            missed = learner.run(X, truth, visit)[2]
            rows.append({"round": start + window / 2, "share": 1 - missed / window, "sets": name})
        rows.append({"round": start + window / 2, "share": 0.95, "sets": "what was asked for"})
    return _lines(
        pl.DataFrame(rows),
        x=alt.X("round:Q", title="round"),
        y=alt.Y("share:Q", title="share of hits in 1,000 rounds", scale=alt.Scale(domain=[0, 1])),
        series="sets",
        order=[*learners, "what was asked for"],
        title="Digits: all labels are swapped after 14,000 rounds",
    )


def _between(p: dict[str, float], shown: tuple[str, ...], first: str, second: str) -> float:
    """Mutual information of the bit and which of two labels is right, given that one of them is."""
    total = p[first] + p[second]
    if (first in shown) == (second in shown):
        return 0.0
    return _entropy(p[first] / total) * total


def _trace(spec: str, data: str, m: int, rounds: int, seed: int, **more: Any) -> sa.Trace:
    stream = sa.streams.open_data(data)
    common = {"n_labels": stream.n_labels, "n_features": stream.n_features, "set_size": m, "seed": seed}
    return sa.simulate(sa.make(spec, **common, **more), stream, rounds)


def _gammas() -> alt.Axis:
    return alt.Axis(values=[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], format="~g")


def _lines(frame: pl.DataFrame, *, x: Any, y: Any, series: str, order: list[str], title: str) -> alt.Chart:
    styles = _styles(order)
    colour = alt.Color(
        f"{series}:N",
        sort=order,
        scale=alt.Scale(domain=order, range=[colour for colour, _ in styles]),
        title=None,
    )
    dash = alt.StrokeDash(
        f"{series}:N",
        sort=order,
        scale=alt.Scale(domain=order, range=[dash for _, dash in styles]),
        title=None,
    )
    lines = (
        alt.Chart(frame).mark_line(strokeWidth=2.5, clip=True).encode(x=x, y=y, color=colour, strokeDash=dash)
    )
    return _sized(lines, title)


def _styles(names: list[str]) -> list[tuple[str, list[int]]]:
    """The colour and the dashes of each curve: by its learner, if it is one's."""
    learners = [next((learner for learner in COLOURS if learner in name), None) for name in names]
    if not any(learners):
        return list(zip(PALETTE, [*DASHES, [4, 4]], strict=False))[: len(names)]
    return [
        (COLOURS[learner], DASHES[learners[:i].count(learner)]) if learner else (GREY, DASHES[2])
        for i, learner in enumerate(learners)
    ]


def _sized(chart: Any, title: str) -> Any:
    return chart.properties(width=460, height=270, title=title)


FIGURES = {
    "diluted-bit": diluted_bit,
    "which-sets": which_sets,
    "price": price,
    "learners": learners,
    "bit-for-bit": bit_for_bit,
    "gamma-exact": gamma_exact,
    "gamma-runs": gamma_runs,
    "promise": promise,
}


def main() -> None:
    import vl_convert

    FOLDER.mkdir(exist_ok=True)
    for name, make in FIGURES.items():
        spec = make().to_dict() | {"config": CONFIG}
        svg = vl_convert.vegalite_to_svg(spec)
        (FOLDER / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")
        print(f"{FOLDER / name}.svg, {len(svg):,} bytes")


if __name__ == "__main__":
    main()
