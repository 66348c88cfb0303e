"""What a share of uniform sets costs a service, and what its log can answer then.

A default SetLogit serves some visitors with each share; its log is written as `superarm export` writes it,
and is asked about policies whose true hit rate is known from fresh visitors:

    served       the served model itself, as it stands after these visitors, judged by the whole log
    next model   trained on 80 % of that log, judged by the other 20 %
    own model    somebody's softmax regression, trained on 2,000 labelled rows, judged by the whole log
    fixed        always the same labels
    far          the labels that the own model ranks 4th and below

    python benchmarks/uniform_share.py [--runs 5] [--rows 8000] [--shares 0 0.02] [--worlds clusters]

For each share: the share of visitors whose shown set missed, and for each policy how often the log answers,
the width of the interval, and how often it holds the truth. docs/evaluation.md has the figures.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import superarm as sa
from superarm.logs import Log, Policy, Writer, evaluate, summarize, train
from superarm.streams import Arrays

FRESH, M = 20_000, 3
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1)


def clusters(random: np.random.Generator) -> tuple[int, Callable[[int], tuple[np.ndarray, np.ndarray]]]:
    """Ten kinds of visitors around ten centres."""
    centres = random.normal(size=(10, 12))

    def visitors(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = random.integers(10, size=n)
        return (centres[y] + 1.3 * random.normal(size=(n, 12))).astype(np.float32), y

    return 10, visitors


def shop(random: np.random.Generator) -> tuple[int, Callable[[int], tuple[np.ndarray, np.ndarray]]]:
    """The shop of the data scientist's tutorial with 20 sections, some of them rarely wanted."""
    wish, liked = random.normal(size=(8, 20)), np.linspace(1.5, -1.5, 20)

    def visitors(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = random.normal(size=(n, 8)).astype(np.float32)
        return x, np.argmax(x @ wish + liked + random.gumbel(size=(n, 20)), axis=1)

    return 20, visitors


def hit_rate(sets: np.ndarray, y: np.ndarray) -> float:
    return float((sets == y[:, None]).any(axis=1).mean())


def one_run(
    world: Callable, rows: int, share: float, seed: int, folder: Path
) -> dict[str, tuple[float, ...]]:
    """The miss rate of what was shown, and (answered, width, held) for each policy."""
    from sklearn.linear_model import LogisticRegression

    k, visitors = world(np.random.default_rng(seed))
    (old_X, old_y), (X, y), (fresh_X, fresh_y) = visitors(2000), visitors(rows), visitors(FRESH)
    own = LogisticRegression(max_iter=300).fit(old_X, np.r_[old_y[:-k], np.arange(k)])
    served = sa.SetLogit(n_labels=k, n_features=X.shape[1], set_size=M, seed=seed, uniform=share)
    path = folder / "log.parquet"
    with Writer(path) as writer:
        trace = sa.simulate(served, Arrays(X, y, shuffle=False), rows, log=writer)
    log = Log(path)
    summary = summarize(log, labels=k)
    model = sa.SetLogit(**summary.learner_params)
    train(log, model, summary)

    def far(x: np.ndarray) -> np.ndarray:
        s = own.decision_function(x)
        order = np.argsort(-s, axis=1)
        np.put_along_axis(s, order[:, :M], -np.inf, axis=1)
        return np.where(np.isfinite(s), s, s[np.isfinite(s)].min() - 1.0)

    truths = {
        "served": hit_rate(served.predict_set(fresh_X), fresh_y),
        "next model": hit_rate(model.predict_set(fresh_X), fresh_y),
        "own model": hit_rate(np.argsort(-own.decision_function(fresh_X), axis=1)[:, :M], fresh_y),
        "fixed": hit_rate(np.tile(np.arange(M), (FRESH, 1)), fresh_y),
        "far": hit_rate(np.argsort(-far(fresh_X), axis=1)[:, :M], fresh_y),
    }
    results = list(evaluate(log, [Policy("next model", learner=model)], summary).results)
    others = [
        Policy("served", learner=served),
        Policy("own model", scores=own.decision_function, set_size=M),
        Policy("fixed", fixed=list(range(M))),
        Policy("far", scores=far, set_size=M),
    ]
    results += evaluate(log, others, summary, holdout=None).results
    figures: dict[str, tuple[float, ...]] = {"shown miss": (trace.shown_miss_rate,)}
    for result in results:
        best, truth = result.best, truths[result.policy]
        if best is None:
            figures[result.policy] = (0.0, np.nan, np.nan)
        else:
            figures[result.policy] = (1.0, best.width, float(best.low <= truth <= best.high))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--shares", type=float, nargs="*", default=SHARES)
    parser.add_argument("--worlds", nargs="*", default=["clusters", "shop"])
    chosen = parser.parse_args()
    runs, rows = chosen.runs, chosen.rows
    names = ("served", "next model", "own model", "fixed", "far")
    for world in (globals()[name] for name in chosen.worlds):
        print(f"{world.__doc__ or ''} {rows:,} rows, m = {M}, {runs} runs; answered, width, held the truth")
        print("uniform  shown miss  " + "  ".join(f"{name:>18}" for name in names))
        for share in chosen.shares:
            with tempfile.TemporaryDirectory() as folder:
                repeated = [one_run(world, rows, share, seed, Path(folder)) for seed in range(runs)]
            cells = []
            for name in names:
                answered, width, held = np.array([run[name] for run in repeated]).T
                if answered.any():
                    cells.append(f"{answered.mean():4.0%} {np.nanmean(width):.3f} {np.nanmean(held):5.0%}")
                else:
                    cells.append("cannot say")
            miss = np.mean([run["shown miss"][0] for run in repeated])
            print(f"{share:7.2f}  {miss:10.4f}  " + "  ".join(f"{cell:>18}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
