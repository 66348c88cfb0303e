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
from superarm.service import DecisionRequest, OutcomeRequest
from superarm.service.commit_queue import Call
from superarm.service.service import Service

BATCH = 32  # decisions, or outcomes, of one commit
LABELS = [f"label-{i}" for i in range(10)]


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


def decide_and_answer(service: Service, rows: list[Any], start: int, size: int = BATCH) -> None:
    """Decide for some rows in one commit, and answer all of them in another."""
    requests = [Call(DecisionRequest(rows[(start + i) % len(rows)])) for i in range(size)]
    ids = [call.result.id for call in service.commit(requests)]
    service.commit([Call(OutcomeRequest(id_, hit=i % 3 == 0)) for i, id_ in enumerate(ids)])


def tune_garbage_collector() -> None:
    """Do what `superarm serve` does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def run(kind: str, features: int, seconds: float) -> dict[str, float]:
    width, rows = rows_of(kind, features)
    with tempfile.TemporaryDirectory(dir=os.environ.get("SUPERARM_BENCH_DIR")) as folder:
        service = Service.open(folder + "/events.db", labels=LABELS, n_features=width, set_size=3)
        for start in range(20):  # fill the caches
            decide_and_answer(service, rows, start)
        tune_garbage_collector()
        pairs, began, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() < began + seconds:
            decide_and_answer(service, rows, pairs)
            pairs += BATCH
        took, used = time.perf_counter() - began, time.process_time() - cpu
        projector = Projector(service.store, service.store.snapshot(0))
        cpu = time.process_time()
        projector.catch_up()
        learnt = (time.process_time() - cpu) / projector.totals.stats.learnt
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
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    for _ in range(arguments.times):
        print(json.dumps(run(arguments.rows, arguments.features, arguments.seconds)), flush=True)


if __name__ == "__main__":
    main()
