"""Learners that people know, with every label told, beside SetLogit on bits:

    pip install river            # not needed by superarm, and in none of its extras
    python benchmarks/against_river.py DATA … [--rounds N] [--seeds N] [--set-size M]

River's adaptive random forest (10 trees, its default) and nearest neighbours (5, over a window of 1,000;
on standardised columns) see the true label after every row. SetLogit sees whether it was among the m labels
that were shown. All predict a row before they learn from it; the figures are shares of wrong top labels over
one pass, or --rounds rows. DATA are names or files with dense rows.
"""

from __future__ import annotations

import argparse
import sys
from statistics import mean
from time import perf_counter
from typing import Any

import numpy as np

import superarm as sa

try:
    from river import forest, neighbors, preprocessing
except ImportError:
    sys.exit("this benchmark compares with River: pip install river")


def theirs(model: Any, X: Any, y: Any) -> float:
    wrong = 0
    for x, label in zip(X, y, strict=True):
        row = dict(enumerate(x.tolist()))
        wrong += model.predict_one(row) != label
        model.learn_one(row, label)
    return wrong / len(y)


def ours(spec: str, X: Any, y: Any, k: int, m: int, seed: int) -> float:
    learner = sa.make(spec, n_labels=k, n_features=X.shape[1], set_size=m, seed=seed)
    return float(learner.run(X, y)[0] / len(y))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--set-size", type=int, default=4)
    arguments = parser.parse_args()
    print("| data | learner | is told | error | seconds |\n|---|---|---|---|---|")
    for data in arguments.data:
        stream = sa.streams.open_data(data)
        k, m = stream.n_labels, arguments.set_size
        results: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for seed in range(arguments.seeds):
            order = np.random.default_rng(seed).permutation(len(stream.y))[: arguments.rounds]
            X, y = stream.rows.dense[order], stream.y[order]
            forest_ = forest.ARFClassifier(seed=seed)
            nearest = preprocessing.StandardScaler() | neighbors.KNNClassifier()
            work = {
                ("River: adaptive random forest", "every label"): lambda: theirs(forest_, X, y),  # noqa: B023
                ("River: nearest neighbours", "every label"): lambda: theirs(nearest, X, y),  # noqa: B023
            }
            for spec in ("softmax-averaged", "set-logit:explore=rank", "set-logit:explore=rank,curves=0"):
                feedback = "every label" if spec == "softmax-averaged" else f"a bit about {m} of {k}"
                work[spec, feedback] = lambda spec=spec: ours(spec, X, y, k, m, seed)  # type: ignore[misc]  # noqa: B023
            for name, run in work.items():
                began = perf_counter()
                error = run()
                results.setdefault(name, []).append((error, perf_counter() - began))
        for (name, feedback), runs in results.items():
            error, seconds = (mean(run[i] for run in runs) for i in (0, 1))
            print(f"| {stream.name} | {name} | {feedback} | {error:.4f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
