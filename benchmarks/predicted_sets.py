"""What sets by a learner's own probabilities cover:  python benchmarks/predicted_sets.py digits satimage.npz

`predict_set(X, coverage=)` of a SetLogit that was made without a promise, on the third of the rows that it has not
learnt from; means over five seeds, m = 2 while it learnt.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import superarm as sa
from superarm.streams import open_data

LEVELS = (0.8, 0.9, 0.95, 0.99)


def measure(stream: Any, rounds: int, seed: int) -> list[tuple[float, float]]:
    """Return the coverage and the mean size of the sets at each level."""
    rows, y, random = stream.rows, stream.y, np.random.default_rng(seed)
    order = random.permutation(len(y))
    learnt, others = np.split(order, [len(order) * 2 // 3])
    learner = sa.SetLogit(n_labels=stream.n_labels, set_size=2, seed=seed)
    learner.run(rows, y, random.choice(learnt, rounds))
    results = []
    for level in LEVELS:
        sets = learner.predict_set(rows.take(others), coverage=level)
        covered = [label in labels for label, labels in zip(y[others], sets, strict=True)]
        results.append((float(np.mean(covered)), float(np.mean([len(labels) for labels in sets]))))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="+", help="a name, or a file")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print("| data | rounds |" + "".join(f" {level} |" for level in LEVELS))
    print("|---|---|" + "---|" * len(LEVELS))
    for name in options.data:
        for rounds in (2_000, 20_000):
            runs = [measure(open_data(name), rounds, seed) for seed in range(options.seeds)]
            cells = [f" {covered:.3f}, {size:.2f} |" for covered, size in np.mean(runs, axis=0)]
            print(f"| {name} | {rounds:,} |" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
