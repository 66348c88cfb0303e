"""An older superarm beside this one:  python benchmarks/against.py --old PYTHON [--only WORD …]

PYTHON is an interpreter that has the older version installed. Both versions do the same work by turns, each
in a process of its own, of which one waits while the other works; times are CPU time, so that others on the
machine disturb less. A ratio of 2 means that the new one takes half the time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time
from typing import Any

import numpy as np

K, M, D_CALLS, CALLS, BATCH = 10, 3, 64, 2_000, 10_000
REPEATS, STARTS = 9, 3
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "MC-DBF": ("MCDBF", {}),
    "SetLogit": ("SetLogit", {}),
    "SetLogit, curves=0": ("SetLogit", {"curves": 0}),
}
BOTH = ("MC-DBF", "SetLogit")  # sparse rows have no curves
# (features, labels, rounds): dense rows, and sparse rows with 30 non-zeros
DENSE = ((16, K, 20_000), (64, K, 20_000), (512, K, 20_000))
SPARSE = ((2**18, K, 20_000), (2**14, 1_000, 2_000))
SECOND_DECISION = """
import superarm as sa
learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3)
row = [0.5] * 64
learner.update(learner.decide(row), hit=True)
learner.decide(row)
"""

Work = Callable[[], float]  # does it once, and says how many microseconds of CPU a round took

# ---------------------------------------------------------------- the work, by either version


def dense_rows(d: int, k: int, n: int) -> tuple[Any, Any]:
    """Random rows of length 1 and the labels of a random linear rule."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X @ random.standard_normal((d, k), dtype=np.float32)).argmax(axis=1)


def sparse_rows(d: int, k: int, n: int) -> tuple[Any, Any]:
    """Random sparse rows with random labels."""
    from scipy.sparse import csr_matrix

    random = np.random.default_rng(0)
    indices = np.sort(random.integers(0, d, (n, 30)), axis=1)
    values = random.standard_normal(n * 30).astype(np.float32)
    X = csr_matrix((values, indices.ravel(), np.arange(n + 1) * 30), shape=(n, d))
    X.sum_duplicates()
    return X, random.integers(0, k, n)


def make_learner(name: str, d: int, k: int) -> Any:
    import superarm

    of, params = LEARNERS[name]
    return getattr(superarm, of)(n_labels=k, n_features=d, set_size=M, **params)


def fused(name: str, rows: Callable[..., Any], d: int, k: int, n: int) -> Work:
    """The fused loop, over rows in random order."""
    X, y = rows(d, k, n)
    learner, visit = make_learner(name, d, k), np.random.default_rng(1).permutation(n)
    learner.run(X, y, visit[: n // 10])

    def work() -> float:
        began = process_time()
        learner.run(X, y, visit)
        return (process_time() - began) / n * 1e6

    return work


def calls(name: str) -> Work:
    """`decide` and `update`, one row at a time."""
    X, _ = dense_rows(D_CALLS, K, CALLS)
    learner, rounds = make_learner(name, D_CALLS, K), [(x, i % 2 == 0) for i, x in enumerate(X)]

    def work() -> float:
        began = process_time()
        for x, hit in rounds:
            learner.update(learner.decide(x), hit=hit)
        return (process_time() - began) / CALLS * 1e6

    work()
    return work


def batches(name: str, rows: Callable[..., Any], d: int, k: int, n: int) -> Work:
    """`decide_many` and `update_many`."""
    X, y = rows(d, k, n)
    learner = make_learner(name, d, k)
    parts = [(X[i : i + BATCH], y[i : i + BATCH]) for i in range(0, n, BATCH)]

    def work() -> float:
        spent = 0.0
        for part, labels in parts:
            began = process_time()
            decisions = learner.decide_many(part)
            spent += process_time() - began
            hits = (decisions.labels == labels[:, None]).any(axis=1)
            began = process_time()
            learner.update_many(decisions, hits)
            spent += process_time() - began
        return spent / n * 1e6

    work()
    return work


def tasks() -> dict[str, Callable[[], Work]]:
    """What there is to measure: by name, how to get ready for it."""
    works: dict[str, Callable[[], Work]] = {}
    for size in DENSE:
        for name in LEARNERS:
            works[f"fused, {name}, d = {size[0]}"] = partial(fused, name, dense_rows, *size)
    for size in SPARSE:
        for name in BOTH:
            about = f"sparse 30 of 2^{size[0].bit_length() - 1}, k = {size[1]}"
            works[f"fused, {name}, {about}"] = partial(fused, name, sparse_rows, *size)
    for name in BOTH:
        works[f"decide + update, {name}, d = {D_CALLS}"] = partial(calls, name)
    for size in DENSE:
        for name in LEARNERS:
            works[f"batches, {name}, d = {size[0]}"] = partial(batches, name, dense_rows, *size)
    for name in BOTH:
        about = f"sparse 30 of 2^{SPARSE[0][0].bit_length() - 1}, k = {K}"
        works[f"batches, {name}, {about}"] = partial(batches, name, sparse_rows, *SPARSE[0])
    return works


def serve() -> None:
    """A worker: reads the names of tasks, answers each with the time that it took."""
    import superarm

    print(json.dumps(superarm.__version__), flush=True)
    known, ready = tasks(), dict[str, Work]()
    for line in sys.stdin:
        name = json.loads(line)
        if name not in ready:
            ready.clear()  # the last one's rows are not needed any more
            ready[name] = known[name]()
        print(json.dumps(ready[name]()), flush=True)


# ---------------------------------------------------------------- by turns


class Worker:
    """A process that does the work with the superarm of one interpreter."""

    def __init__(self, python: str) -> None:
        self.python = python
        self.process = subprocess.Popen(
            [python, "-P", __file__, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"against.py: the worker of {self.python} ended early")
        return json.loads(line)

    def ask(self, name: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(name) + "\n")
        self.process.stdin.flush()
        return float(self._answer())

    def start(self) -> float:
        """Microseconds of CPU from the start of Python to SetLogit's second decision."""
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run([self.python, "-c", SECOND_DECISION], check=True)
        after = getrusage(RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e6


def show(name: str, times: Any) -> tuple[float, float]:
    """A line of the table; ``times`` has a row for each turn: old, new. Returns the best of each."""
    (old, new), medians = times.min(axis=0), np.median(times, axis=0)
    print(f"{name:48s} {old:11.2f} {new:11.2f} {old / new:8.2f} {medians[0] / medians[1]:8.2f}", flush=True)
    return float(old), float(new)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", help="an interpreter that has the older version")
    parser.add_argument(
        "--new", default=sys.executable, help="the same for the newer one; by default this one"
    )
    parser.add_argument("--only", nargs="*", default=[], help="tasks with one of these words in their names")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        serve()
        return
    if arguments.old is None:
        parser.error("--old is needed")
    pair = [Worker(arguments.old), Worker(arguments.new)]
    print(f"CPU time in µs a round, the best of {arguments.repeats}; k = {K}, m = {M} unless said")
    what = [f"{worker.version} {word}" for worker, word in zip(pair, ("old", "new"), strict=True)]
    print(f"{'':48s} {what[0]:>11s} {what[1]:>11s} {'old/new':>8s} {'medians':>8s}")
    best: dict[str, tuple[float, float]] = {}
    wanted = [n for n in tasks() if not arguments.only or any(word in n for word in arguments.only)]
    for name in wanted:
        for worker in pair:
            worker.ask(name)  # once, off the clock
        times = [[worker.ask(name) for worker in pair] for _ in range(arguments.repeats)]
        best[name] = show(name, np.array(times))
    if not arguments.only or "start" in arguments.only:
        for worker in pair:
            worker.start()
        show(
            "start to SetLogit's second decision",
            np.array([[w.start() for w in pair] for _ in range(STARTS)]),
        )
    shares = [(n, n.replace("batches", "fused")) for n in best if n.startswith("batches")]
    if any(loop in best for _, loop in shares):
        print("\nbatches, as a share of the fused loop's speed")
    for name, loop in shares:
        if loop in best:
            old, new = (best[loop][i] / best[name][i] for i in (0, 1))
            print(f"{name:48s} {old:11.2f} {new:11.2f}")


if __name__ == "__main__":
    main()
