"""How far `evaluate` is off, over many simulated logs:  python benchmarks/evaluation.py [--logs 200] [--only WORD]

Each log is a service's own: SetLogit decides row by row and learns (m = 3), with 2 % of uniform sets or with none.
`train` learns from four fifths of its rows, and `evaluate` judges that model by the rest; the model that served is
judged by all rows. The truth is the hit rate on 20,000 fresh rows with their labels.
One line for each kind: how often there was a number, the mean truth, the mean and the largest error, the bias, how
often the interval had the truth in it, its mean width, and how often one label more was read as worse.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import numpy as np

import superarm as sa
from superarm._types import Array
from superarm.logs import Estimate, Log, Policy, PolicyResult, Writer, evaluate, summarize, train

FRESH = 20_000
SIZES = (3, 4, 5)
HEAD = (
    "| world | uniform | policy | m | answered | truth | error | largest | bias | covered | width | worse |"
)

Rows = Callable[[int], tuple[Array, Array]]


class World(NamedTuple):
    """Rows with their labels: k classes around centres, noisy ones, and columns that say nothing."""

    k: int
    d: int
    noise: float

    def sampler(self, seed: int) -> Rows:
        random = np.random.default_rng(seed)
        centres = random.standard_normal((self.k, self.d)).astype(np.float32)
        frequencies = random.dirichlet(np.full(self.k, 3.0))

        def rows(n: int) -> tuple[Array, Array]:
            y = random.choice(self.k, n, p=frequencies)
            return centres[y] + self.noise * random.standard_normal((n, self.d)).astype(np.float32), y

        return rows


WORLDS = {
    "easy": World(12, 8, 0.3),
    "middling": World(12, 8, 0.6),
    "hard": World(6, 4, 1.0),
    "noisy": World(6, 4, 2.0),
}


def results(
    world: World, n: int, uniform: float, seed: int, path: Path
) -> Iterator[tuple[str, int, float, PolicyResult]]:
    """(policy, m, truth, result) of each policy, by one log."""
    rows = world.sampler(seed)
    X, y = rows(n)
    served = sa.SetLogit(n_labels=world.k, n_features=world.d, set_size=3, uniform=uniform, seed=seed)
    with Writer(str(path)) as writer:
        for x, label in zip(X, y, strict=True):
            decision = served.decide(x)
            hit = bool(label in decision.labels)
            writer.add(decision, hit=hit)
            served.update(decision, hit=hit)
    log = Log(str(path))
    summary = summarize(log)
    trained = sa.SetLogit(n_labels=world.k, n_features=world.d, set_size=3, seed=seed)
    train(log, trained, summary)
    X, y = rows(FRESH)
    for name, learner, holdout in (("served", served, None), ("trained", trained, 0.2)):
        ranking = np.argsort(-learner.scores(X), axis=1, kind="stable")
        policies = [Policy(f"{name} {m}", learner=learner, set_size=m) for m in SIZES]
        answer = evaluate(log, policies, summary, holdout=holdout)
        for m, result in zip(SIZES, answer.results, strict=True):
            yield name, m, float((ranking[:, :m] == y[:, None]).any(axis=1).mean()), result


def line(pairs: list[tuple[float, Estimate | None]], smaller: list[tuple[float, Estimate | None]]) -> str:
    """The figures of one kind, and of the same logs with a label less."""
    answered = [(truth, e) for truth, e in pairs if e is not None]
    share = f"{len(answered)} of {len(pairs)}"
    if not answered:
        return f"{share} " + "| – " * 7 + "|"
    truths = np.array([truth for truth, _ in answered])
    error = np.array([e.value for _, e in answered]) - truths
    covered = sum(e.low <= truth <= e.high for truth, e in answered)
    width = np.mean([e.high - e.low for _, e in answered])
    both = [(a.value, b.value) for (_, a), (_, b) in zip(smaller, pairs, strict=False) if a and b]
    worse = sum(a > b + 1e-9 for a, b in both)
    return (
        f"{share} | {truths.mean():.3f} | {np.abs(error).mean():.3f} | {np.abs(error).max():.3f} "
        f"| {error.mean():+.3f} | {covered} of {len(answered)} | {width:.3f} | {worse} of {len(both)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after these, with fewer logs")
    parser.add_argument("--only", default="", help="kinds whose name holds this: easy, hard 0.02")
    parser.add_argument("--estimator", default="", help="one of them instead of the best")
    arguments = parser.parse_args()
    end = monotonic() + 60 * arguments.minutes
    kinds = [(name, u) for name in WORLDS for u in (0.02, 0.0) if arguments.only in f"{name} {u}"]
    estimates: dict[tuple[str, float, str, int], list[tuple[float, Estimate | None]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.logs):
            for name, uniform in kinds if monotonic() < end else ():
                path = Path(folder) / "log.parquet"
                for policy, m, truth, result in results(WORLDS[name], arguments.rows, uniform, seed, path):
                    estimate = result.best
                    if arguments.estimator:
                        estimate = {e.name: e for e in result.estimates}[arguments.estimator]
                        estimate = None if estimate.problem else estimate
                    estimates[name, uniform, policy, m].append((truth, estimate))
    print(f"logs of {arguments.rows:,} rows each\n\n{HEAD}\n{'|---' * (HEAD.count('|') - 1)}|")
    for (name, uniform, policy, m), pairs in estimates.items():
        smaller = estimates.get((name, uniform, policy, m - 1), [])
        print(f"| {name} | {uniform:g} | {policy} | {m} | {line(pairs, smaller)}")


if __name__ == "__main__":
    main()
