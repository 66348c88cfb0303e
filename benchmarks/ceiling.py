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
from functools import lru_cache
from statistics import mean, median

from joblib import Parallel, delayed
from text import content, cumulative_error

import superarm as sa
from superarm.simulation import Trace

MODES = ("rank", "balanced", "show")
TOLD, OURS, LINEAR = "softmax-averaged", "set-logit:explore={}", "set-logit:explore={},curves=0"
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

open_data = lru_cache(maxsize=2)(sa.streams.open_data)


def one(data: str, spec: str, m: int, rounds: int, seed: int) -> Trace:
    stream = open_data(data)
    learner = sa.make(spec, n_labels=stream.n_labels, n_features=stream.n_features, set_size=m, seed=seed)
    return sa.simulate(learner, stream, rounds)


def runs(
    data: str, work: list[tuple[str, int]], rounds: int, seeds: int, jobs: int
) -> dict[tuple[str, int], list[Trace]]:
    """All traces of some (spec, m), over seeds."""
    tasks = [(spec, m, seed) for spec, m in work for seed in range(seeds)]
    done = Parallel(n_jobs=jobs, prefer="threads")(  # the compiled loops hold no lock
        delayed(one)(data, spec, m, rounds, seed) for spec, m, seed in tasks
    )
    found: dict[tuple[str, int], list[Trace]] = {}
    for (spec, m, _), trace in zip(tasks, done, strict=True):
        found.setdefault((spec, m), []).append(trace)
    return found


def average(traces: list[Trace], rate: str) -> float:
    return mean(getattr(trace, rate) for trace in traces)


def result(value: float, limit: float, digits: int = 4) -> str:
    return f"{value:.{digits}f} {'≤' if value <= limit else '**>**'} {limit:.{digits}f}"


def early(traces: list[Trace]) -> float:
    return mean(trace.window(0.0, 0.1)["error_rate"] for trace in traces)


def four(found: dict[tuple[str, int], list[Trace]], spec: str, m: int) -> list[float]:
    """rank's error, balanced's error and shown misses, show's shown misses."""
    rank, balanced, show = (found[spec.format(mode), m] for mode in MODES)
    return [
        average(rank, "error_rate"),
        average(balanced, "error_rate"),
        average(balanced, "shown_miss_rate"),
        average(show, "shown_miss_rate"),
    ]


def report(data: str, rounds: int, seeds: int, jobs: int) -> None:
    k = open_data(data).n_labels
    sizes = [m for m in (2, 4, 7) if m < k]
    specs = [TOLD, *(form.format(mode) for form in (OURS, LINEAR) for mode in MODES)]
    found = runs(data, [(spec, m) for spec in specs for m in sizes], rounds, seeds, jobs)
    print(f"\n### {open_data(data).name}: k = {k}, {rounds:,} rounds, {seeds} seeds\n")
    print("| " + " | ".join(HEADS) + " |")
    print("|---" * len(HEADS) + "|")
    for m in sizes:
        told = found[TOLD, m]
        error, miss = average(told, "error_rate"), average(told, "miss_rate")
        limits = [1.15 * error + 0.01, 1.3 * error + 0.01, miss + 0.03, 1.5 * miss + 0.005]
        curved, linear = four(found, OURS, m), four(found, LINEAR, m)
        rank = found[OURS.format("rank"), m]
        ratios = [
            cumulative_error(rank, T) / cumulative_error(told, content(m, k) * T)
            for T in (5_000, 20_000, rounds)
            if rounds >= T
        ]
        worst = 0.0
        for mode in MODES:
            errors = [trace.error_rate for trace in found[OURS.format(mode), m]]
            worst = max(worst, max(errors) / (1.5 * median(errors) + 0.005))
        cells = [
            str(m),
            f"{error:.4f} · {miss:.4f}",
            *map(result, curved, limits),
            " ".join(
                f"{b:.4f}{'' if a <= b + 0.003 else ' **<**'}" for a, b in zip(curved, linear, strict=True)
            ),
            result(early(rank) / early(found[LINEAR.format("rank"), m]), 1.05, 2),
            " ".join(f"{ratio:.2f}" if ratio <= 1.0 else f"**{ratio:.2f}**" for ratio in ratios),
            f"{worst:.2f}" if worst <= 1.0 else f"**{worst:.2f}**",
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
