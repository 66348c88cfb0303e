"""SetLogit on text with skewed labels:  python benchmarks/text.py FILE [--rounds N] [--seeds N]

FILE is an .npz with sparse rows (20 newsgroups). It is taken as it is, and with the frequencies of its
labels made proportional to 1/rank and to 1/rank^1.5, the ranks being drawn at random. For m = 2, 4, 7:

  ceiling       the same update with every label told: error, top-m misses
  rank          error         aim: at most 2 x the ceiling's + 0.02
  balanced      error · shown misses
  show          error · shown misses
  first pass    error of rank, and of the ceiling, over the first visit of every row
  bit for bit   rank's error after T answers, over the ceiling's after as many labels as hold the same
                number of bits, c T with c = h(m/k) / log2 k, at T = 5,000, 20,000 and all rounds.
                aim: at most 1

Figures are means over seeds.
"""

from __future__ import annotations

import argparse

import numpy as np
from ceiling import (
    CEILING,
    CURVED,
    MODES,
    SIZES,
    average,
    bit_for_bit,
    cumulative_error,
    print_head,
    simulate_all,
    with_limit,
)

import superarm as sa
from superarm.streams import Arrays

HEADS = ("m", "ceiling", "rank: error", "balanced", "show", "first pass", "bit for bit")


def skewed(stream: Arrays, power: float) -> Arrays:
    """Fewer rows, so that the i-th of the labels has its share times 1 / i^power; at least 3 of each."""
    if power == 0.0:
        return stream
    random, kept = np.random.default_rng(0), []
    for i, label in enumerate(random.permutation(stream.n_labels)):
        rows = random.permutation(np.flatnonzero(stream.y == label))
        kept.append(rows[: max(3, round(len(rows) / (i + 1) ** power))])
    at = np.sort(np.concatenate(kept))
    rows = stream.rows.take(at)
    return Arrays(rows, stream.y[at], name=f"{stream.name}, 1/rank^{power:g}")


def report(stream: Arrays, rounds: int, seeds: int) -> None:
    k, n = stream.n_labels, len(stream.y)
    sizes = [m for m in SIZES if m < k]
    traces = simulate_all(stream, [CEILING, *map(CURVED.format, MODES)], sizes, rounds, seeds)
    print_head(f"{stream.name}: {n:,} rows, k = {k}, {rounds:,} rounds, {seeds} seeds", HEADS)
    for m in sizes:
        ceiling = traces[CEILING, m]
        rank, balanced, show = (traces[CURVED.format(mode), m] for mode in MODES)
        error = average(ceiling, "error_rate")
        cells = [
            str(m),
            f"{error:.4f} · {average(ceiling, 'miss_rate'):.4f}",
            with_limit(average(rank, "error_rate"), 2 * error + 0.02),
            *(
                f"{average(t, 'error_rate'):.4f} · {average(t, 'shown_miss_rate'):.4f}"
                for t in (balanced, show)
            ),
            f"{cumulative_error(rank, n):.3f} · {cumulative_error(ceiling, n):.3f}",
            " ".join(f"{ratio:.2f}" for ratio in bit_for_bit(rank, ceiling, m, k, rounds)),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    stream = sa.streams.open_data(arguments.data)
    for power in (0.0, 1.0, 1.5):
        report(skewed(stream, power), arguments.rounds, arguments.seeds)


if __name__ == "__main__":
    main()
