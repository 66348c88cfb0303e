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
from statistics import mean

import numpy as np
from joblib import Parallel, delayed

import superarm as sa
from superarm.simulation import Trace
from superarm.streams import Arrays

MODES, RATES = ("rank", "balanced", "show"), ("error", "miss", "shown_miss")
TOLD = "softmax-averaged"


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


def cumulative_error(traces: list[Trace], rounds: float) -> float:
    """The error over the first rounds, between checkpoints along a line."""
    return mean(float(np.interp(rounds, t.rounds, t.counts[:, 0])) for t in traces) / rounds


def content(m: int, k: int) -> float:
    """How many labels hold the bits of one answer about m of k labels."""
    q = m / k
    return float(-(q * np.log2(q) + (1 - q) * np.log2(1 - q)) / np.log2(k))


def report(stream: Arrays, rounds: int, seeds: int) -> None:
    k, n = stream.n_labels, len(stream.y)
    sizes = [m for m in (2, 4, 7) if m < k]
    specs = [TOLD, *(f"set-logit:explore={mode}" for mode in MODES)]
    jobs = [(spec, m, seed) for spec in specs for m in sizes for seed in range(seeds)]

    def one(spec: str, m: int, seed: int) -> Trace:
        learner = sa.make(spec, n_labels=k, n_features=stream.n_features, set_size=m, seed=seed)
        return sa.simulate(learner, stream, rounds)

    done = Parallel(n_jobs=2, prefer="threads")(delayed(one)(*job) for job in jobs)
    found: dict[tuple[str, int], list[Trace]] = {}
    for (spec, m, _), trace in zip(jobs, done, strict=True):
        found.setdefault((spec, m), []).append(trace)

    print(f"\n### {stream.name}: {n:,} rows, k = {k}, {rounds:,} rounds, {seeds} seeds\n")
    heads = ["m", "ceiling", "rank: error", "balanced", "show", "first pass", "bit for bit"]
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for m in sizes:
        told = found[TOLD, m]
        rates = {
            spec: [mean(getattr(t, f"{rate}_rate") for t in found[spec, m]) for rate in RATES]
            for spec in specs
        }
        ours = [rates[f"set-logit:explore={mode}"] for mode in MODES]
        rank, limit = found["set-logit:explore=rank", m], 2 * rates[TOLD][0] + 0.02
        bits = [
            cumulative_error(rank, T) / cumulative_error(told, content(m, k) * T)
            for T in (5_000, 20_000, rounds)
            if rounds >= T
        ]
        sign = "≤" if ours[0][0] <= limit else "**>**"
        print(
            f"| {m} | {rates[TOLD][0]:.4f} · {rates[TOLD][1]:.4f} | {ours[0][0]:.4f} {sign} {limit:.4f} "
            f"| {ours[1][0]:.4f} · {ours[1][2]:.4f} | {ours[2][0]:.4f} · {ours[2][2]:.4f} "
            f"| {cumulative_error(rank, n):.3f} · {cumulative_error(told, n):.3f} "
            f"| {' '.join(f'{b:.2f}' for b in bits)} |",
            flush=True,
        )


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
