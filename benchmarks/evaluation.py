"""How far `evaluate` is off, over many simulated logs:  python benchmarks/evaluation.py [--logs 200] [--only WORD]

Each log is a service's own: SetLogit decides row by row and learns (m = 3), with 2 % of uniform sets or with none.
`train` learns from four fifths of its rows, and `evaluate` judges that model by the rest; the model that served is
judged by all rows. The truth is the hit rate on 20,000 fresh rows with their labels.
One line for each kind: how often there was a number, its mean error, its largest error, the mean of its bias, and how
often the interval had the truth in it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import superarm as sa
from superarm.logs import Log, Policy, Writer, evaluate, survey, train

FRESH = 20_000
SIZES = (3, 4, 5)


class World(NamedTuple):
    """Rows with their labels: k classes around centres, noisy ones, and columns that say nothing."""

    k: int
    d: int
    noise: float

    def draw(self, seed: int) -> Callable[[int], tuple[Any, Any]]:
        random = np.random.default_rng(seed)
        centres = random.standard_normal((self.k, self.d)).astype(np.float32)
        often = random.dirichlet(np.full(self.k, 3.0))

        def rows(n: int) -> tuple[Any, Any]:
            y = random.choice(self.k, n, p=often)
            return centres[y] + self.noise * random.standard_normal((n, self.d)).astype(np.float32), y

        return rows


WORLDS = {"easy": World(12, 8, 0.3), "middling": World(12, 8, 0.6), "hard": World(6, 4, 1.0)}


def one_log(world: World, n: int, uniform: float, seed: int, path: Path) -> list[tuple[str, int, float, Any]]:
    """(policy, m, truth, verdict) of each policy."""
    rows = world.draw(seed)
    X, y = rows(n)
    served = sa.SetLogit(n_labels=world.k, n_features=world.d, set_size=3, uniform=uniform, seed=seed)
    with Writer(str(path)) as log:
        for x, label in zip(X, y, strict=True):
            decision = served.decide(x)
            hit = bool(label in decision.labels)
            log.add(decision, hit=hit)
            served.update(decision, hit=hit)
    written = Log(str(path))
    facts = survey(written)
    trained = sa.SetLogit(n_labels=world.k, n_features=world.d, set_size=3, seed=seed)
    train(written, trained, facts)
    found = []
    X, y = rows(FRESH)
    ask = [("served", served, None), ("trained", trained, 0.2)]
    for name, learner, holdout in ask:
        best = np.argsort(-learner.scores(X), axis=1, kind="stable")
        policies = [Policy(f"{name} {m}", learner=learner, set_size=m) for m in SIZES]
        answer = evaluate(written, policies, facts, holdout=holdout)
        for m, verdict in zip(SIZES, answer.verdicts, strict=True):
            found.append((name, m, float((best[:, :m] == y[:, None]).any(axis=1).mean()), verdict))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--estimator", default="", help="one of them instead of the best")
    arguments = parser.parse_args()
    print(f"{arguments.logs} logs of {arguments.rows:,} rows each")
    head = "| world | uniform | policy | m | answered | truth | error | largest | bias | covered | width | nested |"
    print(head + "\n" + "|---" * head.count(" | ") + "|---|")
    for name, world in WORLDS.items():
        for uniform in (0.02, 0.0):
            if arguments.only not in f"{name} {uniform}":
                continue
            found: dict[tuple[str, int], list[Any]] = {}
            with tempfile.TemporaryDirectory() as folder:
                for seed in range(arguments.logs):
                    path = Path(folder) / f"{seed}.parquet"
                    for policy, m, truth, verdict in one_log(world, arguments.rows, uniform, seed, path):
                        estimate = verdict.best
                        if arguments.estimator:
                            estimate = {e.name: e for e in verdict.estimates}[arguments.estimator]
                            estimate = None if estimate.problem else estimate
                        found.setdefault((policy, m), []).append((truth, estimate))
                    path.unlink()
            for (policy, m), pairs in found.items():
                truths = np.array([t for t, e in pairs if e is not None])
                some = [e for _, e in pairs if e is not None]
                told = f"| {name} | {uniform:g} | {policy} | {m} | {len(some) / len(pairs):.2f} "
                if not some:
                    print(told + "| – " * 7 + "|", flush=True)
                    continue
                error = np.array([e.rate for e in some]) - truths
                inside = np.mean([e.low <= t <= e.high for t, e in zip(truths, some, strict=True)])
                smaller = found.get((policy, m - 1), [(0, None)] * len(pairs))
                both = [(a.rate, b.rate) for (_, a), (_, b) in zip(smaller, pairs, strict=True) if a and b]
                worse = sum(a > b + 1e-9 for a, b in both)
                width = np.mean([e.high - e.low for e in some])
                print(
                    f"{told}| {truths.mean():.3f} | {np.abs(error).mean():.3f} | {np.abs(error).max():.3f} "
                    f"| {error.mean():+.3f} | {inside:.2f} | {width:.3f} | {worse} of {len(both)} worse |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
