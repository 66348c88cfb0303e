"""A promised coverage against the least fixed size that covers as much:  python benchmarks/coverage.py

The aims of docs/coverage.md: rows of real tables in random order, answered from their labels. After the
warm-up: coverage, its worst window of 2,500 rounds; over the second half: mean size, error of the top label.
Beside it the least fixed m (explore="show", same rounds and seeds) that covers as much in the second half.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import superarm as sa

Array = np.ndarray[Any, Any]
WINDOW = 2500
LEVELS = (0.9, 0.95, 0.99)
HEADS = ("promised", "kept", "worst window", "mean size", "error", "least fixed m", "its error", "ratio")


def visits(n: int, rounds: int, seed: int) -> Array:
    """Row numbers: all rows in random order, again and again."""
    random = np.random.default_rng(seed)
    return np.concatenate([random.permutation(n) for _ in range(rounds // n + 1)])[:rounds]


def windows(learner: sa.SetLogit, X: Array, y: Array, order: Array) -> Array:
    """Errors, misses, shown misses and labels shown, a round, in each window."""
    parts = range(0, len(order), WINDOW)
    return np.array([learner.run(X, y, order[start : start + WINDOW]) for start in parts]) / WINDOW


def measure(X: Array, y: Array, rounds: int, seeds: int) -> list[list[str]]:
    k, half = int(y.max()) + 1, rounds // WINDOW // 2
    orders = [visits(len(X), rounds, seed) for seed in range(seeds)]
    fixed: dict[int, Array] = {}
    lines = []
    for level in LEVELS:
        learners = [sa.SetLogit(n_labels=k, coverage=level, seed=seed) for seed in range(seeds)]
        rates = np.array([windows(one, X, y, order) for one, order in zip(learners, orders, strict=True)])
        start = -(-learners[0].coverage.warm_up // WINDOW)  # type: ignore[union-attr]
        covered, late = 1.0 - rates[:, start:, 2], rates[:, half:].mean(axis=(0, 1))
        m, reached = 0, 0.0
        while reached < min(level, 1.0 - late[2]) and m < k - 1:
            m += 1
            if m not in fixed:
                shown = [sa.SetLogit(n_labels=k, set_size=m, explore="show", seed=s) for s in range(seeds)]
                runs = [windows(one, X, y, order) for one, order in zip(shown, orders, strict=True)]
                fixed[m] = np.array(runs)[:, half:].mean(axis=(0, 1))
            reached = 1.0 - fixed[m][2]
        size, error = late[3], late[0]
        kept = [f"{level}", f"{covered.mean():.4f}", f"{covered.min():.3f}", f"{size:.2f}", f"{error:.3f}"]
        least = [f"{m} (.{round(10000.0 * reached):04})", f"{fixed[m][0]:.3f}", f"{size / m:.2f}"]
        lines.append([*kept, *least])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="a folder of .npz files")
    parser.add_argument("--names", nargs="+", default=["letter", "krkopt", "mnist_cnn512"])
    parser.add_argument("--rounds", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print(f"| data | {' | '.join(HEADS)} |\n|{'---|' * (1 + len(HEADS))}", flush=True)
    for name in options.names:
        with np.load(options.data / f"{name}.npz") as file:
            X, y = file["X"].astype(np.float32), file["y"].astype(np.int64)
        for line in measure(X, y, options.rounds, options.seeds):
            print("| " + " | ".join([name, *line]) + " |", flush=True)


if __name__ == "__main__":
    main()
