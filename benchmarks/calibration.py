"""Expected calibration error of SetLogit's probabilities:  python benchmarks/calibration.py DATA …

Top label, 15 bins, over the second half of the rounds (m = 4), each block of 500 rows judged before it
is learnt from. DATA are names or .npz files.
"""

from __future__ import annotations

import argparse
from statistics import mean

import numpy as np

import superarm as sa

BLOCK, BINS = 500, 15


def calibration_error(data: str, explore: str, rounds: int, seed: int) -> float:
    stream = sa.streams.open_data(data)
    learner = sa.SetLogit(
        n_labels=stream.n_labels, n_features=stream.n_features, set_size=4, explore=explore, seed=seed
    )
    sure, right, done = [], [], 0
    for rows, y, visit in stream.chunks(seed):
        for start in range(0, len(visit), BLOCK):
            at = visit[start : start + BLOCK]
            if done >= rounds:
                break
            if done >= rounds // 2:
                p = learner.predict_proba(rows.take(at))
                sure.append(p.max(axis=1))
                right.append(p.argmax(axis=1) == y[at])
            learner.run(rows, y, at)
            done += len(at)
        if done >= rounds:
            break
    confidence, hit = np.concatenate(sure), np.concatenate(right)
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [abs(confidence[bins == b].sum() - hit[bins == b].sum()) for b in range(BINS)]
    return float(sum(gaps) / len(hit))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print("| data | rank | balanced | show |\n|---|---|---|---|")
    for data in arguments.data:
        cells = [
            mean(calibration_error(data, e, arguments.rounds, s) for s in range(arguments.seeds))
            for e in ("rank", "balanced", "show")
        ]
        name = sa.streams.open_data(data).name
        print(f"| {name} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
