"""The demonstration: every learner on embedded data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

__all__ = ["LEARNERS", "SET_SIZE", "Result", "figure", "run"]

SET_SIZE = 3
# what each learner is told, and whether it shows sets
LEARNERS = {
    "softmax:step=10": "the label",
    "pa": "the label",
    "perceptron": "the label",
    "mc-slp": "the label",
    "set-logit": "a bit on a set",
    "mc-dbf:estimate=minimum-variance": "a bit on a set",
    "mc-dbf:estimate=set": "a bit on a set",
    "mc-dbf": "a bit on a set",
    "soba-diag": "a bit on one label",
    "epabf": "a bit on one label",
    "newtron": "a bit on one label",
    "banditron": "a bit on one label",
}


@dataclass(frozen=True, slots=True)
class Result:
    """One learner on one data set: means and spreads over seeds, and the mean curve."""

    data: str
    learner: str
    told: str
    error: float
    error_spread: float
    missed: float
    missed_spread: float
    rounds: list[int]
    curve: list[float]


def run(
    datasets: Sequence[str], rounds: int, seeds: int, tick: Callable[[int], object] | None = None
) -> list[Result]:
    """Run every learner on every data set, in as many processes as there are cores."""
    from joblib import Parallel, delayed

    jobs = [(data, spec, seed) for data in datasets for spec in LEARNERS for seed in range(seeds)]
    done = []
    for trace in Parallel(n_jobs=-1, return_as="generator")(delayed(_one)(*job, rounds) for job in jobs):
        done.append(trace)
        if tick is not None:
            tick(rounds)
    results = []
    for at in range(0, len(jobs), seeds):
        data, spec, _ = jobs[at]
        traces = done[at : at + seeds]
        errors, missed = [t.error_rate for t in traces], [t.shown_miss_rate for t in traces]
        rates = [t.counts[:, 0] / t.rounds for t in traces]
        results.append(
            Result(
                data,
                spec,
                LEARNERS[spec],
                mean(errors),
                stdev(errors) if seeds > 1 else 0.0,
                mean(missed),
                stdev(missed) if seeds > 1 else 0.0,
                traces[0].rounds.tolist(),
                [float(v) for v in sum(rates) / seeds],
            )
        )
    return results


def _one(data: str, spec: str, seed: int, rounds: int) -> Any:
    from superarm.learners.registry import make
    from superarm.simulation import simulate
    from superarm.streams import open_data

    stream = open_data(data)
    size = SET_SIZE if LEARNERS[spec] != "a bit on one label" else 1
    learner = make(spec, n_labels=stream.n_labels, n_features=stream.n_features, set_size=size, seed=seed)
    return simulate(learner, stream, rounds)


def figure(results: list[Result], output: Path) -> Path:
    """Error against rounds, one panel a data set."""
    import altair

    rows = [
        {"data": r.data, "learner": r.learner, "told": r.told, "round": t, "error": e}
        for r in results
        for t, e in zip(r.rounds, r.curve, strict=True)
        if t >= 10
    ]
    names = list(LEARNERS)
    chart = (
        altair.Chart({"values": rows})
        .mark_line(strokeWidth=2)
        .encode(
            x=altair.X("round:Q", scale=altair.Scale(type="log"), title="round"),
            y=altair.Y(
                "error:Q",
                scale=altair.Scale(type="log", clamp=True, domainMin=1e-4),
                title="share of rounds with a wrong top label",
            ),
            color=altair.Color(
                "learner:N", sort=names, title="learner", scale=altair.Scale(scheme="tableau20")
            ),
            strokeDash=altair.StrokeDash("told:N", title="is told", sort=["the label", "a bit on a set"]),
        )
        .properties(width=420, height=320)
        .facet(altair.Facet("data:N", title=""), columns=2)
    )
    output.mkdir(parents=True, exist_ok=True)
    path = output / "error.svg"
    chart.save(path)
    chart.save(output / "error.png", scale_factor=2)
    return path
