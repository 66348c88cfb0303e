"""SetLogit against its ceiling, aim by aim:  python benchmarks/ceiling.py DATA … [--rounds N] [--seeds N]

DATA are names (digits, synsep, synnonsep) or .npz files; for text see text.py. Defaults only. For every
data set and m = 2, 4, 7:

  ceiling       the same learner with every label told: error, top-m misses
  rank          error              aim: at most 1.15 x the ceiling's + 0.01
  balanced      error              aim: at most 1.3 x the ceiling's + 0.01, and at the same time
                shown misses       aim: at most the ceiling's top-m misses + 0.03
  show          shown misses       aim: at most 1.5 x the ceiling's top-m misses + 0.005
  linear        what each of the four is without curves   aim: curves are at most 0.003 above it
  first 10 %    rank's error over the first tenth, over the linear learner's    aim: at most 1.05
  bit for bit   rank's error after T answers, over the ceiling's after as many labels as hold the same
                number of bits, c T with c = h(m/k) / log2 k, at T = 5,000, 20,000 and all rounds.
                aim: at most 1
  worst         the largest error of any seed and mode, over 1.5 x the median + 0.005    aim: at most 1

Figures are means over seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import product
from statistics import mean, median

import numpy as np
from joblib import Parallel, delayed

import superarm as sa
from superarm.simulation import Trace
from superarm.streams import Stream

MODES = ("rank", "balanced", "show")
CEILING, CURVED, LINEAR = "softmax-averaged", "set-logit:explore={}", "set-logit:explore={},curves=0"
SIZES = (2, 4, 7)
HEADS = (
    "m",
    "ceiling: error · miss",
    "rank: error",
    "balanced: error",
    "balanced: shown",
    "show: shown",
    "without curves: the same four",
    "first 10 %",
    "bit for bit",
    "worst",
)

Traces = dict[tuple[str, int], list[Trace]]  # by spec and set size: one for each seed


def simulate_all(
    stream: Stream, specs: Iterable[str], sizes: Iterable[int], rounds: int, seeds: int, jobs: int = 2
) -> Traces:
    """Return the traces of all specs with all set sizes and seeds."""

    def simulate(spec: str, m: int, seed: int) -> Trace:
        learner = sa.make(spec, n_labels=stream.n_labels, n_features=stream.n_features, set_size=m, seed=seed)
        return sa.simulate(learner, stream, rounds)

    tasks = list(product(specs, sizes, range(seeds)))
    # threads: the compiled loops hold no lock
    runs = Parallel(n_jobs=jobs, prefer="threads")(delayed(simulate)(*task) for task in tasks)
    traces: Traces = {}
    for (spec, m, _), trace in zip(tasks, runs, strict=True):
        traces.setdefault((spec, m), []).append(trace)
    return traces


def average(traces: list[Trace], rate: str) -> float:
    return mean(getattr(trace, rate) for trace in traces)


def cumulative_error(traces: list[Trace], rounds: float) -> float:
    """Return the error over the first rounds, between checkpoints along a line."""
    return mean(float(np.interp(rounds, t.rounds, t.counts[:, 0])) for t in traces) / rounds


def labels_in_a_bit(m: int, k: int) -> float:
    """Return how many labels hold the bits of one answer about m of k labels."""
    q = m / k
    return float(-(q * np.log2(q) + (1 - q) * np.log2(1 - q)) / np.log2(k))


def bit_for_bit(rank: list[Trace], ceiling: list[Trace], m: int, k: int, rounds: int) -> list[float]:
    """Return the ratios of errors after 5,000, 20,000 and all answers and after as many labels."""
    return [
        cumulative_error(rank, answers) / cumulative_error(ceiling, labels_in_a_bit(m, k) * answers)
        for answers in (5_000, 20_000, rounds)
        if rounds >= answers
    ]


def with_limit(value: float, limit: float, digits: int = 4) -> str:
    return f"{value:.{digits}f} {'≤' if value <= limit else '**>**'} {limit:.{digits}f}"


def bold_above_one(value: float) -> str:
    return f"{value:.2f}" if value <= 1.0 else f"**{value:.2f}**"


def early_error(traces: list[Trace]) -> float:
    return mean(trace.window(0.0, 0.1)["error_rate"] for trace in traces)


def four_rates(traces: Traces, spec: str, m: int) -> list[float]:
    """Return rank's error, balanced's error and shown misses, show's shown misses."""
    rank, balanced, show = (traces[spec.format(mode), m] for mode in MODES)
    return [
        average(rank, "error_rate"),
        average(balanced, "error_rate"),
        average(balanced, "shown_miss_rate"),
        average(show, "shown_miss_rate"),
    ]


def worst_seed(traces: Traces, m: int) -> float:
    """Return the largest error of any seed and mode, over 1.5 x the median + 0.005."""
    errors = [[trace.error_rate for trace in traces[CURVED.format(mode), m]] for mode in MODES]
    return max(max(seeds) / (1.5 * median(seeds) + 0.005) for seeds in errors)


def print_head(title: str, heads: Iterable[str]) -> None:
    heads = list(heads)
    print(f"\n### {title}\n\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|")


def report(data: str, rounds: int, seeds: int, jobs: int) -> None:
    stream = sa.streams.open_data(data)
    k = stream.n_labels
    sizes = [m for m in SIZES if m < k]
    specs = [CEILING, *(form.format(mode) for form in (CURVED, LINEAR) for mode in MODES)]
    traces = simulate_all(stream, specs, sizes, rounds, seeds, jobs)
    print_head(f"{stream.name}: k = {k}, {rounds:,} rounds, {seeds} seeds", HEADS)
    for m in sizes:
        ceiling, rank = traces[CEILING, m], traces[CURVED.format("rank"), m]
        error, miss = average(ceiling, "error_rate"), average(ceiling, "miss_rate")
        limits = [1.15 * error + 0.01, 1.3 * error + 0.01, miss + 0.03, 1.5 * miss + 0.005]
        curved, linear = four_rates(traces, CURVED, m), four_rates(traces, LINEAR, m)
        cells = [
            str(m),
            f"{error:.4f} · {miss:.4f}",
            *map(with_limit, curved, limits),
            " ".join(
                f"{b:.4f}{'' if a <= b + 0.003 else ' **<**'}" for a, b in zip(curved, linear, strict=True)
            ),
            with_limit(early_error(rank) / early_error(traces[LINEAR.format("rank"), m]), 1.05, 2),
            " ".join(map(bold_above_one, bit_for_bit(rank, ceiling, m, k, rounds))),
            bold_above_one(worst_seed(traces, m)),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    for data in arguments.data:
        report(data, arguments.rounds, arguments.seeds, arguments.jobs)


if __name__ == "__main__":
    main()
