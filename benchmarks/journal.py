"""Durable pairs a second without HTTP: turns of 32 decisions, then of 32 outcomes, each with one commit.

    python benchmarks/journal.py [--seconds 4] [--features 64] [--times 3]

To compare two checkouts, run it by turns with PYTHONPATH set to the one and the other; SUPERARM_BENCH_DIR
says where the journal is (a folder in memory leaves the disk out of it).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import tempfile
import time

import numpy as np

from superarm.service.handler import DecisionRequest, OutcomeRequest
from superarm.service.service import Service

TOGETHER = 32


def run(features: int, seconds: float) -> dict[str, float]:
    labels = [f"label-{i}" for i in range(10)]
    X = np.random.default_rng(0).normal(size=(1000, features)).astype(np.float32)
    with tempfile.TemporaryDirectory(dir=os.environ.get("SUPERARM_BENCH_DIR")) as folder:
        service = Service.open(folder + "/events.db", labels=labels, n_features=features, set_size=3)

        def turn(n: int) -> None:
            asked = [DecisionRequest(X[(n + i) % 1000]) for i in range(TOGETHER)]
            made = service.take([(service.decide_now, one, None) for one in asked])
            told = [OutcomeRequest(shown["id"], hit=i % 3 == 0) for i, (_, shown, _) in enumerate(made)]
            service.take([(service.outcome_now, one, None) for one in told])

        for n in range(20):  # fill the caches
            turn(n)
        pairs, began, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() < began + seconds:
            turn(pairs)
            pairs += TOGETHER
        took = time.perf_counter() - began
        used = time.process_time() - cpu
        service.store.close()
    return {"pairs_per_second": round(pairs / took), "cpu_us_per_pair": round(1e6 * used / pairs, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    for _ in range(asked.times):
        print(json.dumps(run(asked.features, asked.seconds)), flush=True)


if __name__ == "__main__":
    main()
