"""The bed on which a change of SetLogit is judged:  python benchmarks/aims.py DATA_DIRECTORY [--quick]

One table: a row for each of 17 sets, and beside every figure that of the last release (aims.json). Real sets are
files of DATA_DIRECTORY (those that are missing are said, and left out), the others are made up here. m is 4, or
half of the labels where they are fewer than 8; all means over seeds.

  told          error of the same learner with every label told
  rank          error of the top label
  balanced      error of the top label
  show          shown sets that missed
  bit for bit   rank's error after T answers, over told's after as many labels as hold the same number of bits
  first tenth   rank's error over the first tenth of the rounds
  µs            processor time of a round, balanced

A figure that is more than 3 % worse than the last release's (µs: 30 %) is marked by *. rank has aims of its own on five
sets, told under the table. digits and mnist_cnn512 are kept out of all tuning: look at them when all is done.

  --quick       one seed in place of five
  --rounds N    of a run
  --processes N that work at once; 2
  --keep NAME   write aims.json from this run: after a release, with the release's name
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from statistics import mean
from time import process_time
from typing import Any

import numpy as np
from ceiling import cumulative_error, labels_in_a_bit

import superarm as sa
from superarm.simulation import Trace
from superarm.streams import Arrays, open_data

KEPT = Path(__file__).with_name("aims.json")
SPECS = {
    "told": "softmax-averaged",
    "rank": "set-logit:explore=rank",
    "balanced": "set-logit:explore=balanced",
    "show": "set-logit:explore=show",
}
FIGURES = ("told", "rank", "balanced", "show", "bit for bit", "first tenth", "µs")
RANK_AIMS = {
    "satimage": 0.041,
    "shuttle": 0.0040,
    "krkopt": 0.52,
    "letter": 0.098,
    "irrelevant columns": 0.28,
}
FILES = ("letter", "satimage", "shuttle", "krkopt", "usps", "mnist", "mnist_cnn512")
HELD_OUT = ("digits", "mnist_cnn512")
ROUNDS = 100_000  # for which the aims are
N = 20_000  # rows of a set that is made up


# ---------------------------------------------------------------- sets that are made up


def irrelevant() -> Arrays:
    """Six columns of a hundred matter."""
    from sklearn.datasets import make_classification

    sizes = {"n_features": 100, "n_informative": 6, "n_redundant": 0, "n_classes": 10}
    X, y = make_classification(N, **sizes, n_clusters_per_class=1, random_state=0, shuffle=False)
    return Arrays(X.astype(np.float32), y)


def steps(noise: str) -> Arrays:
    """A column of 0 to 5 tells the label; four columns are noise."""
    random = np.random.default_rng(0)
    telling = random.uniform(0, 5, N)
    others = random.standard_cauchy((N, 4)) if noise == "tails" else random.normal(size=(N, 4))
    X, y = np.column_stack([telling, others]), np.round(telling).astype(np.int64)
    if noise == "sentinels":
        X[random.random(X.shape) < 0.01] = -999.0
    return Arrays(X.astype(np.float32), y)


def clouds(k: int, d: int, n: int = N, *, wrong: float = 0.0, power: float = 0.0, seed: int = 0) -> Arrays:
    """Two normal clouds for each label; some labels wrong, or their shares in proportion to 1 / rank^power."""
    random = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, k + 1) ** power
    y = random.choice(k, n, p=shares / shares.sum())
    centres = random.normal(size=(k, 2, d)) * 2.2 / d**0.25
    X = centres[y, random.integers(0, 2, n)] + random.normal(size=(n, d))
    y = np.where(random.random(n) < wrong, random.integers(0, k, n), y)
    return Arrays(X.astype(np.float32), y)


def drift() -> Arrays:
    """Six clouds that walk once around the middle in 100,000 rows, in this order."""
    n, random = 100_000, np.random.default_rng(0)
    y, at = random.integers(0, 6, n), 2 * np.pi * np.arange(n) / n
    angle = at + 2 * np.pi * y / 6
    X = random.normal(size=(n, 10))
    X[:, 0] += 3 * np.cos(angle)
    X[:, 1] += 3 * np.sin(angle)
    return Arrays(X.astype(np.float32), y, shuffle=False)


def board() -> Arrays:
    """The fields of a board of 4 x 4 in the plane, two of them to a label."""
    random = np.random.default_rng(0)
    X = random.uniform(0, 4, (N, 2))
    fields = X.astype(np.int64) @ [4, 1]
    return Arrays(X.astype(np.float32), random.permutation(np.arange(16) % 8)[fields])


MADE_UP: dict[str, Callable[[], Arrays]] = {
    "irrelevant columns": irrelevant,
    "heavy tails": lambda: steps("tails"),
    "sentinels": lambda: steps("sentinels"),
    "drift": drift,
    "wrong labels": lambda: clouds(10, 16, wrong=0.2),
    "skewed labels": lambda: clouds(20, 16, power=1.5),
    "few rows": lambda: clouds(4, 12, 150),
    "d = 2": board,
    "many labels": lambda: clouds(100, 32),
}


# ---------------------------------------------------------------- runs


@lru_cache(maxsize=1)
def opened(name: str, directory: Path) -> Any:
    if name in MADE_UP:
        return MADE_UP[name]()
    return open_data(name if name == "digits" else str(directory / f"{name}.npz"))


def set_size(k: int) -> int:
    return 4 if k >= 8 else k // 2


def one(name: str, directory: Path, seed: int, rounds: int) -> tuple[dict[str, Trace], float, int]:
    """All runs of a set and a seed, the microseconds of a round, and the number of labels."""
    stream, runs, seconds = opened(name, directory), {}, 0.0
    m = set_size(stream.n_labels)
    for figure, spec in SPECS.items():
        learner = sa.make(spec, n_labels=stream.n_labels, n_features=stream.n_features, set_size=m, seed=seed)
        began = process_time()
        runs[figure] = sa.simulate(learner, stream, rounds)
        seconds = process_time() - began if figure == "balanced" else seconds
    return runs, 1e6 * seconds / rounds, stream.n_labels


def figures(results: list[tuple[dict[str, Trace], float, int]], rounds: int) -> dict[str, float]:
    """What the table shows of a set: means over its seeds."""
    runs, k = {figure: [traces[figure] for traces, _, _ in results] for figure in SPECS}, results[0][2]
    same_bits = cumulative_error(runs["told"], labels_in_a_bit(set_size(k), k) * rounds)
    return {
        **{name: mean(t.error_rate for t in runs[name]) for name in ("told", "rank", "balanced")},
        "show": mean(trace.shown_miss_rate for trace in runs["show"]),
        "bit for bit": cumulative_error(runs["rank"], rounds) / same_bits,
        "first tenth": mean(trace.window(0.0, 0.1)["error_rate"] for trace in runs["rank"]),
        "µs": mean(cost for _, cost, _ in results),
    }


# ---------------------------------------------------------------- the table


def cell(figure: str, now: float, then: float | None) -> str:
    digits = {"µs": 1, "bit for bit": 2}.get(figure, 4)
    text = f"{now:.{digits}f}"
    if then is None:
        return text
    worse = now > (1.3 if figure == "µs" else 1.03) * then and now - then > 0.5 * 10**-digits
    return f"{text} ({then:.{digits}f}){' *' if worse else ''}"


def show_table(results: dict[str, dict[str, float]], kept: dict[str, Any], aims: dict[str, float]) -> None:
    print(
        f"In brackets: {kept['name']}, seeds: {kept['seeds']}."
        if kept
        else "No figures of a release to compare with."
    )
    print("\n| " + " | ".join(["", *FIGURES]) + " |\n" + "|---" * (len(FIGURES) + 1) + "|")
    for name, row in results.items():
        before = kept.get("sets", {}).get(name, {})
        cells = [cell(figure, row[figure], before.get(figure)) for figure in FIGURES]
        print(f"| {name}{' (held out)' if name in HELD_OUT else ''} | {' | '.join(cells)} |")
    print()
    for name, aim in aims.items():
        if name in results:
            got = results[name]["rank"]
            print(f"aim of rank on {name}: {got:.4f} {'≤' if got <= aim else 'MISSES'} {aim}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    seeds, rounds, directory = 1 if arguments.quick else 5, arguments.rounds, arguments.directory
    names = [*MADE_UP, "digits", *(name for name in FILES if (directory / f"{name}.npz").is_file())]
    for name in FILES:
        if name not in names:
            print(f"{name}.npz is not in {directory}: left out")
    tasks = [(name, directory, seed, rounds) for name in names for seed in range(seeds)]
    with ProcessPoolExecutor(arguments.processes) as pool:
        runs = list(pool.map(one, *zip(*tasks, strict=True)))
    results = {
        name: figures([run for run, task in zip(runs, tasks, strict=True) if task[0] == name], rounds)
        for name in names
    }
    if arguments.keep:
        rounded = {name: {k: float(f"{v:.4g}") for k, v in row.items()} for name, row in results.items()}
        kept = {"name": arguments.keep, "rounds": rounds, "seeds": seeds, "sets": rounded}
        KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    print(f"\nSetLogit, {rounds:,} rounds, seeds: {seeds}. ", end="")
    show_table(results, kept if kept.get("rounds") == rounds else {}, RANK_AIMS if rounds == ROUNDS else {})


if __name__ == "__main__":
    main()
