"""How long `evaluate` takes for a row and a policy:  python benchmarks/evaluation_speed.py [--labels 10,100,1000]

The log is a service's own: SetLogit decides and learns (m = 3, 5 % of uniform sets), so that early rows have ties.
One line for each number of labels and each kind of policy: microseconds for a row, beyond those of reading it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import superarm as sa
from superarm.explore import Cover, Dilute, RunnerUp
from superarm.logs import Log, Policy, Writer, evaluate, summarize

D, SET_SIZE, POLICIES = 8, 3, 2


def write_log(path: Path, k: int, n: int) -> sa.SetLogit:
    """Write a log of n rows with k labels; return the model that decided."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((k, D)).astype(np.float32)
    served = sa.SetLogit(n_labels=k, n_features=D, set_size=SET_SIZE, uniform=0.05, seed=0)
    with Writer(path) as writer:
        for label in random.integers(k, size=n):
            x = centres[label] + 0.5 * random.standard_normal(D).astype(np.float32)
            decision = served.decide(x)
            hit = bool(label in decision.labels)
            writer.add(decision, hit=hit)
            served.update(decision, hit=hit)
    return served


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--labels", default="10,100,1000")
    parser.add_argument("--rows", type=int, default=2_000)
    arguments = parser.parse_args()
    rules: dict[str, dict[str, Any]] = {
        "top set": {"set_size": SET_SIZE},
        "dilute": {"set_size": SET_SIZE, "rule": Dilute(gamma=0.2)},
        "runner-up": {"set_size": SET_SIZE, "rule": RunnerUp(seed=0)},
        "cover": {"set_size": 9, "rule": Cover(coverage=0.5, seed=0)},
    }
    print("| labels | policy | µs for a row |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for k in map(int, arguments.labels.split(",")):
            path = Path(folder) / f"{k}.parquet"
            served = write_log(path, k, arguments.rows)
            log = Log(path)
            summary = summarize(log, labels=k)
            seconds: dict[str, float] = {}
            for name, options in ({"warm-up": rules["top set"], "reading": {}} | rules).items():
                n = POLICIES if options else 0
                policies = [Policy(f"{name} {i}", learner=served, **options) for i in range(n)]
                began = perf_counter()
                evaluate(log, policies, summary, holdout=None)
                seconds[name] = perf_counter() - began
            for name in rules:
                each = (seconds[name] - seconds["reading"]) / POLICIES / arguments.rows
                print(f"| {k:,} | {name} | {1e6 * each:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
