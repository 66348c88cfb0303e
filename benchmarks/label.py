"""How many clicks a label takes:  python benchmarks/label.py DATA [--names …] [--seeds 5] [--wrong 0.03] [--runs 40]
Whether the interval holds:     python benchmarks/label.py --names noisy [--seeds 20]

DATA is a folder with banking77.csv, letter.npz, satimage.npz and mnist.npz. A labeller who knows the truth answers:

  target 1          which of 5, or none; every row is looked at
  target 0.985      the same; rows that are sure enough are accepted, audits count as clicks
  yes/no            target 1, only yes or no
  wrong clicks      the first two, with a share --wrong of wrong clicks, whose rate is not known

The table has clicks a row and the share of wrong labels, means over --seeds orders of the rows, beside the aims; and
how often the interval held the truth, at target 0.985. With --runs the intervals alone, over so many orders.

The name noisy stands for made-up tables of 300, 1,000 and 5,000 rows in which 0, 1, 3 and 10 % of the rows look like
those of another label: a model is sure of them, and wrong. Target 0.985, without and with wrong clicks.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from superarm.label import Labelling
from superarm.label.rows_to_label import RowsToLabel
from superarm.label.simulated_labeller import simulate_labeller
from superarm.streams.data_files import read_data

ROWS = 20_000
COLUMN = {"banking77.csv": "intent"}
# clicks a row at target 1, at 0.985, and yes/no
AIMS = {
    "banking77.csv": (1.2, 0.85, 1.65),
    "letter.npz": (1.12, 0.6, 1.35),
    "satimage.npz": (1.03, 0.75, 1.15),
    "mnist.npz": (1.03, 0.4, 1.08),
}
TARGET = 0.985
NOISY = "noisy"
NOISY_ROWS, NOISE = (300, 1_000, 5_000), (0.0, 0.01, 0.03, 0.1)


def sampled(path: Path, seed: int) -> RowsToLabel:
    """At most ROWS of the rows, drawn at random."""
    rows = RowsToLabel.read(path, answers=COLUMN.get(path.name))
    if len(rows) <= ROWS:
        return rows
    drawn = np.random.default_rng(seed).permutation(len(rows))[:ROWS]
    content = read_data(path)
    return read_arrays(content["X"][drawn], content["y"][drawn])


def noisy_table(n: int, noise: float, seed: int, k: int = 6, n_features: int = 16) -> RowsToLabel:
    """n rows of k labels that can be told apart; a share of the rows has the label of another."""
    random = np.random.default_rng((seed, n))
    centres, looks = random.normal(0.0, 1.5, (k, n_features)), random.integers(0, k, n)
    features = (centres[looks] + random.normal(size=(n, n_features))).astype(np.float32)
    is_noisy = random.random(n) < noise
    return read_arrays(features, np.where(is_noisy, (looks + random.integers(1, k, n)) % k, looks))


def read_arrays(features: np.ndarray, labels: np.ndarray) -> RowsToLabel:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, X=features, y=labels)
        return RowsToLabel.read(path)


def run(
    rows: RowsToLabel, seed: int, target: float, *, yes_no: bool = False, wrong: float = 0.0
) -> dict[str, Any]:
    labels = sorted({str(label) for label in rows.truth})
    job = Labelling(rows, labels=labels, target=target, yes_no=yes_no, seed=seed)
    outcome = simulate_labeller(job, rows.truth, wrong=wrong)
    low, high = outcome["interval"]
    return outcome | {"inside": low <= outcome["wrong_rate"] <= high}


def line(name: str, what: str, aim: float | None, outcomes: list[dict[str, Any]]) -> None:
    clicks, wrong = (
        mean(outcome["clicks_per_row"] for outcome in outcomes),
        mean(outcome["wrong_rate"] for outcome in outcomes),
    )
    inside = sum(outcome["inside"] for outcome in outcomes)
    aimed, runs = "" if aim is None else f"{aim:.2f}", len(outcomes)
    audits = mean(outcome["audits"] for outcome in outcomes)
    print(
        f"{name:15} {what:22} {clicks:7.3f} {aimed:>6} {100 * wrong:7.2f} % {audits:8.0f}   {inside} of {runs}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="?", default=Path())
    parser.add_argument("--names", nargs="*", default=list(AIMS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--wrong", type=float, default=0.03)
    parser.add_argument("--runs", type=int, default=0)
    given = parser.parse_args()
    print(
        f"{'data':15} {'':22} {'clicks':>7} {'aim':>6} {'wrong':>9} {'audits':>8}   in the interval",
        flush=True,
    )
    for name in given.names:
        if name == NOISY:
            measure_noisy_tables(given.seeds, given.wrong)
        else:
            measure(given.data / name, given)


def measure_noisy_tables(seeds: int, wrong_clicks: float) -> None:
    for n, noise, wrong in product(NOISY_ROWS, NOISE, (0.0, wrong_clicks)):
        outcomes = [run(noisy_table(n, noise, seed), seed, TARGET, wrong=wrong) for seed in range(seeds)]
        line(f"{n:,} rows, {noise:.0%}", f"target {TARGET}, wrong {wrong:g}", None, outcomes)


def measure(path: Path, given: argparse.Namespace) -> None:
    name, aims = path.name, AIMS.get(path.name, (None, None, None))

    def outcomes(seeds: int, target: float, **options: Any) -> list[dict[str, Any]]:
        return [run(sampled(path, seed), seed, target, **options) for seed in range(seeds)]

    if given.runs:
        for wrong in (0.0, given.wrong):
            line(
                name, f"target {TARGET}, wrong {wrong:g}", aims[1], outcomes(given.runs, TARGET, wrong=wrong)
            )
        return
    line(name, "target 1", aims[0], outcomes(given.seeds, 1.0))
    line(name, f"target {TARGET}", aims[1], outcomes(given.seeds, TARGET))
    line(name, "target 1, yes/no", aims[2], outcomes(given.seeds, 1.0, yes_no=True))
    for target in (1.0, TARGET):
        what = f"target {target:g}, wrong {given.wrong:g}"
        line(name, what, None, outcomes(given.seeds, target, wrong=given.wrong))


if __name__ == "__main__":
    main()
