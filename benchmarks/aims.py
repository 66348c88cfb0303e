"""SetLogit against its ceilings, aim by aim:  python benchmarks/aims.py DATA … [--rounds N] [--seeds N]

DATA are names (digits, synsep, synnonsep) or .npz files. For every data set and m = 2, 4, 7:

  ceiling   the same update with every label told, at its best step: error, top-m misses
  rank      error              aim: at most 1.15 x the ceiling's + 0.01
  show      shown misses       aim: at most 1.5 x the ceiling's top-m misses + 0.005
  balanced  error              aim: at most 1.3 x the ceiling's + 0.01, and at the same time
            shown misses       aim: at most the ceiling's top-m misses + 0.03
  always    every mode's error aim: at most the Perceptron's + 0.01, and below MC-DBF and Banditron at
            their best gamma, in error and in shown misses
  early     error over rounds 10–20 %, balanced: below the final error of MC-DBF and Banditron

Figures are means over seeds; "worst" is the largest error of any seed over the median (aim 6: 1.5 x + 0.005).
"""

from __future__ import annotations

import argparse
from functools import lru_cache
from statistics import mean, median

from joblib import Parallel, delayed

import superarm as sa
from superarm.simulation import Trace

STEPS = (1, 2, 4, 8, 16, 32)
GAMMAS = (0.01, 0.03, 0.1, 0.3, 1.0)
MODES = ("rank", "balanced", "show")

open_data = lru_cache(maxsize=2)(sa.streams.open_data)


def one(data: str, spec: str, m: int, rounds: int, seed: int) -> Trace:
    stream = open_data(data)
    learner = sa.make(spec, n_labels=stream.n_labels, n_features=stream.n_features, set_size=m, seed=seed)
    return sa.simulate(learner, stream, rounds)


def runs(
    data: str, jobs: list[tuple[str, int]], rounds: int, seeds: int
) -> dict[tuple[str, int], list[Trace]]:
    """All traces of some (spec, m), over seeds."""
    tasks = [(spec, m, seed) for spec, m in jobs for seed in range(seeds)]
    done = Parallel(n_jobs=2, prefer="threads")(  # the compiled loops hold no lock
        delayed(one)(data, spec, m, rounds, seed) for spec, m, seed in tasks
    )
    found: dict[tuple[str, int], list[Trace]] = {}
    for (spec, m, _), trace in zip(tasks, done, strict=True):
        found.setdefault((spec, m), []).append(trace)
    return found


def average(traces: list[Trace], rate: str) -> float:
    return mean(getattr(trace, rate) for trace in traces)


def verdict(value: float, limit: float) -> str:
    return f"{value:.4f} {'≤' if value <= limit else '**>**'} {limit:.4f}"


def report(data: str, rounds: int, seeds: int) -> None:
    k = open_data(data).n_labels
    sizes = [m for m in (2, 4, 7) if m < k]
    told = [(f"softmax-averaged:step={step}", m) for step in STEPS for m in sizes]
    bandit = [(f"banditron:gamma={gamma}", 1) for gamma in GAMMAS]
    ours = [(f"set-logit:explore={mode}", m) for mode in MODES for m in sizes]
    dilute = [(f"mc-dbf:gamma={gamma}", m) for gamma in GAMMAS for m in sizes]
    found = runs(data, [*told, *bandit, *ours, *dilute, ("perceptron", 1)], rounds, seeds)
    perceptron = average(found["perceptron", 1], "error_rate")
    banditron = min(average(found[job], "error_rate") for job in bandit)
    print(f"\n### {open_data(data).name}: k = {k}, {rounds:,} rounds, {seeds} seeds\n")
    print(f"Perceptron {perceptron:.4f}, Banditron at its best γ {banditron:.4f} (error).\n")
    heads = ["m", "ceiling: error · miss", "rank: error", "show: shown", "balanced: error", "balanced: shown"]
    print("| " + " | ".join([*heads, "early", "worst"]) + " |")
    print("|---" * 8 + "|")
    notes = []
    for m in sizes:
        best = min(STEPS, key=lambda step: average(found[f"softmax-averaged:step={step}", m], "error_rate"))
        ceiling = found[f"softmax-averaged:step={best}", m]
        error, miss = average(ceiling, "error_rate"), average(ceiling, "miss_rate")
        mine = {mode: found[f"set-logit:explore={mode}", m] for mode in MODES}
        early = mean(trace.window(0.1, 0.2)["error_rate"] for trace in mine["balanced"])
        worst = []
        for mode in MODES:
            errors = [trace.error_rate for trace in mine[mode]]
            worst.append(max(errors) / (1.5 * median(errors) + 0.005))
        print(
            f"| {m} | {error:.4f} · {miss:.4f} (step {best}) "
            f"| {verdict(average(mine['rank'], 'error_rate'), 1.15 * error + 0.01)} "
            f"| {verdict(average(mine['show'], 'shown_miss_rate'), 1.5 * miss + 0.005)} "
            f"| {verdict(average(mine['balanced'], 'error_rate'), 1.3 * error + 0.01)} "
            f"| {verdict(average(mine['balanced'], 'shown_miss_rate'), miss + 0.03)} "
            f"| {early:.4f} | {max(worst):.2f} |"
        )
        mcdbf = min(average(found[f"mc-dbf:gamma={g}", m], "error_rate") for g in GAMMAS)
        shown = min(average(found[f"mc-dbf:gamma={g}", m], "shown_miss_rate") for g in GAMMAS)
        for mode in MODES:
            own, own_shown = (average(mine[mode], rate) for rate in ("error_rate", "shown_miss_rate"))
            if own > perceptron + 0.01:
                notes.append(f"m = {m}, {mode}: error {own:.4f} above the Perceptron's + 0.01")
            if own > min(mcdbf, banditron) or own_shown > shown:
                notes.append(f"m = {m}, {mode}: not below MC-DBF ({mcdbf:.4f} · {shown:.4f}) and Banditron")
        if early > min(mcdbf, banditron):
            notes.append(f"m = {m}: early error {early:.4f} not below {min(mcdbf, banditron):.4f}")
    print("\n" + ("; ".join(notes) if notes else "Always and early: held everywhere.") + ".")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    for data in arguments.data:
        report(data, arguments.rounds, arguments.seeds)


if __name__ == "__main__":
    main()
