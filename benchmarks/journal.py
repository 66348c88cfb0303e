"""Durable pairs a second through the core alone: a session, 32 decisions a commit, 32 outcomes a commit.

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

from superarm.service.core.session import Ask, Reply, Session

TOGETHER = 32


def run(features: int, seconds: float) -> dict[str, float]:
    labels = [f"label-{i}" for i in range(10)]
    X = np.random.default_rng(0).normal(size=(1000, features)).astype(np.float32)
    with tempfile.TemporaryDirectory(dir=os.environ.get("SUPERARM_BENCH_DIR")) as folder:
        session = Session.open(folder + "/events.db", labels=labels, n_features=features, set_size=3)

        def turn(n: int) -> None:
            ids = [session.decide(Ask(X[(n + i) % 1000])).place.id for i in range(TOGETHER)]
            session.commit()
            for i, id_ in enumerate(ids):
                session.outcome(Reply(id_, hit=i % 3 == 0))
            session.commit()

        for n in range(20):  # compile, and fill the caches
            turn(n)
        pairs, began, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() < began + seconds:
            turn(pairs)
            pairs += TOGETHER
        took = time.perf_counter() - began
        used = time.process_time() - cpu
        session.journal.close()
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
