"""Durable pairs a second without HTTP: turns of 32 decisions, then of 32 outcomes, each with one commit.

    python benchmarks/journal.py [--seconds 4] [--features 64] [--times 3] [--rows dense|sparse|mixed|names]

Then the same events are read, checked and learnt again, as after a restart (catch_up). To compare two checkouts, run it
by turns with PYTHONPATH set to the one and the other; SUPERARM_BENCH_DIR says where the journal is (a folder in
memory leaves the disk out of it). On a busy machine processor time is dearer, too: only ratios within one run count.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import tempfile
import time
from typing import Any

import numpy as np

from superarm.data.rows import Row
from superarm.journal.projector import Projector
from superarm.service.commit_queue import Call
from superarm.service.requests import DecisionRequest, OutcomeRequest
from superarm.service.service import Service

TOGETHER = 32


def rows_of(kind: str, features: int) -> tuple[Any, list[Any]]:
    """The width of such rows, and a thousand of them."""
    dice = np.random.default_rng(0)
    X = dice.normal(size=(1000, features)).astype(np.float32)
    if kind == "dense":
        return features, list(X)
    if kind == "names":
        return None, [
            {"town": f"t{i % 50}", **{f"n{j}": float(x[j]) for j in range(4)}} for i, x in enumerate(X)
        ]
    width = 10_000
    sparse = [(np.sort(dice.choice(width, features, replace=False)), x) for x in X]
    if kind == "sparse":
        return width, [Row(None, one, width) for one in sparse]
    return (features, width), [Row(x, one, width) for x, one in zip(X, sparse, strict=True)]


def run(kind: str, features: int, seconds: float) -> dict[str, float]:
    labels = [f"label-{i}" for i in range(10)]
    width, X = rows_of(kind, features)
    with tempfile.TemporaryDirectory(dir=os.environ.get("SUPERARM_BENCH_DIR")) as folder:
        service = Service.open(folder + "/events.db", labels=labels, n_features=width, set_size=3)

        def turn(n: int) -> None:
            asked = [DecisionRequest(X[(n + i) % 1000]) for i in range(TOGETHER)]
            made = service.commit([Call(one) for one in asked])
            told = [OutcomeRequest(done.result.id, hit=i % 3 == 0) for i, done in enumerate(made)]
            service.commit([Call(one) for one in told])

        for n in range(20):  # fill the caches
            turn(n)
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)  # as `superarm serve` does
        pairs, began, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() < began + seconds:
            turn(pairs)
            pairs += TOGETHER
        took, used = time.perf_counter() - began, time.process_time() - cpu
        again = Projector(service.store, service.store.snapshot(0))
        cpu = time.process_time()
        again.catch_up()
        learnt = (time.process_time() - cpu) / again.totals.stats.learnt
        service.store.close()
    return {
        "pairs_per_second": round(pairs / took),
        "cpu_us_per_pair": round(1e6 * used / pairs, 1),
        "catch_up_cpu_us_per_pair": round(1e6 * learnt, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--rows", choices=["dense", "sparse", "mixed", "names"], default="dense")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    for _ in range(asked.times):
        print(json.dumps(run(asked.rows, asked.features, asked.seconds)), flush=True)


if __name__ == "__main__":
    main()
