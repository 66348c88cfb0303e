"""Speed as ratios within one run:  python benchmarks/speed.py [--growth] [--calls]

The reference work is k = 10, d = 512, m = 3, MC-DBF (ordered), one thread. Next to the fused loop
stand a naive NumPy loop (superarm/bench.py) and a plain C++ loop (plain.cpp, needs g++). The level of
processor is the best that there is, or SUPERARM_CPU.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from superarm import MCDBF, Learner, SetLogit, bench, native
from superarm.data.rows import as_rows

ROUNDS, REPEATS = 20_000, 9
BATCH, CALLS = 10_000, 2_000


def compile_plain(folder: str) -> ctypes.CDLL | None:
    """The C++ loop as a shared library; None without a compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    source, library = Path(__file__).parent / "plain.cpp", Path(folder) / "plain.so"
    flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.mcdbf.restype = ctypes.c_long
    return loaded


def against_plain() -> None:
    """Fused loop and C++ loop in turns, so that both see the same noise."""
    X, y = bench.reference_rows(ROUNDS)
    common = {"n_labels": 10, "n_features": 512, "set_size": 3, "intercept": False}
    with tempfile.TemporaryDirectory() as folder:
        library = compile_plain(folder)
        if library is None:
            print("plain C++ loop: skipped, there is no g++")
            return

        def plain() -> int:
            W = np.zeros((10, 512), np.float32)
            pointers = [ctypes.c_void_p(a.ctypes.data) for a in (W, X, y)]
            sizes = [ctypes.c_long(ROUNDS), 10, 512, 3, ctypes.c_double(0.1)]
            return int(library.mcdbf(*pointers, *sizes))

        def ours() -> int:
            return int(MCDBF(**common).run(X, y)[0])

        assert plain() == ours(), "the two loops must make the same mistakes"
        ratios, times = [], []
        for _ in range(REPEATS):
            a = perf_counter()
            plain()
            b = perf_counter()
            ours()
            c = perf_counter()
            ratios.append((b - a) / (c - b))
            times.append((c - b) / ROUNDS * 1e9)
        print(
            f"fused loop against plain C++ (same mistakes): {np.median(ratios):.2f} x its speed "
            f"(median of {REPEATS}; {np.median(times):.0f} ns a round)"
        )


def set_logit_against_mcdbf() -> None:
    """SetLogit's share of MC-DBF's speed, for several lengths of a row."""
    for d in (64, 256, 512, 1024, 2048):
        X, y = bench.reference_rows(ROUNDS // 2, d)
        common = {"n_labels": 10, "n_features": d, "set_size": 3}
        times = {}
        for cls in (MCDBF, SetLogit):
            learner = cls(**common)
            learner.run(X, y)
            spent = []
            for _ in range(REPEATS):
                began = perf_counter()
                learner.run(X, y)
                spent.append(perf_counter() - began)
            times[cls] = min(spent)
        share = times[MCDBF] / times[SetLogit]
        rounds = len(y) / times[SetLogit]
        print(f"SetLogit, k = 10, d = {d}: {share:.2f} x the speed of MC-DBF ({rounds:,.0f} rounds/s)")


def batches_against_fused() -> None:
    """decide_many and update_many, 10,000 rows at a time, as a share of the fused loop's speed."""
    linear = partial(SetLogit, curves=0)
    for name, make in (("MC-DBF", MCDBF), ("SetLogit without curves", linear), ("SetLogit", SetLogit)):
        for d in (16, 64, 512):
            _batches(f"{name}, k = 10, d = {d}", make, *bench.reference_rows(ROUNDS, d))
        _batches(f"{name}, k = 10, sparse, 30 of 2^18", make, *bench.sparse_rows(ROUNDS))


def _batches(name: str, make: Callable[..., Learner], X: Any, y: Any) -> None:
    """Both in turns; the best of each, because the machine may have other work."""
    fused, batched = (make(n_labels=10, n_features=X.shape[1], set_size=3) for _ in range(2))
    rows = as_rows(X, None, "speed")  # SciPy's own checks are nobody's speed
    parts = [(as_rows(X[i : i + BATCH], None, "speed"), y[i : i + BATCH]) for i in range(0, ROUNDS, BATCH)]
    spent = np.zeros((REPEATS, 3))
    for turn in range(REPEATS):
        began = process_time()
        fused.run(rows, y)
        spent[turn, 0] = process_time() - began
        for part, labels in parts:
            began = process_time()
            decisions = batched.decide_many(part)
            decided = process_time()
            hits = (decisions.labels == labels[:, None]).any(axis=1)
            known = process_time()
            batched.update_many(decisions, hits)
            spent[turn, 1:] += decided - began, process_time() - known
    loop, decide, update = spent.min(axis=0) / ROUNDS * 1e6
    print(
        f"batches, {name}: {loop / (decide + update):.2f} x the fused loop's speed "
        f"({loop:.2f} µs a round; decide_many {decide:.2f}, update_many {update:.2f})"
    )


def single_calls() -> None:
    """decide and update from Python, one row at a time."""
    for name, make in (("MC-DBF", MCDBF), ("SetLogit without curves", partial(SetLogit, curves=0))):
        for d in (16, 512):
            X, _ = bench.reference_rows(CALLS, d)
            learner, times = make(n_labels=10, n_features=d, set_size=3), []
            for _ in range(REPEATS):
                began = process_time()
                for x in X:
                    learner.update(learner.decide(x), hit=True)
                times.append(process_time() - began)
            print(f"decide + update, {name}, k = 10, d = {d}: {min(times) / CALLS * 1e6:.2f} µs")


def growth() -> None:
    """How a round grows with k (sparse, 2^14 features, 30 non-zeros, m = 3)."""
    for k in (10, 100, 1_000, 10_000, 100_000):
        n = max(200, 2_000_000 // k // 10)
        S, y = bench.sparse_rows(n, d=2**14, k=k)
        rows = as_rows(S, None, "bench")
        learner = MCDBF(n_labels=k, n_features=2**14, set_size=bench.M)
        learner.run(rows, y, np.arange(10))
        whole = bench.microseconds_per_round(partial(learner.run, rows, y), n, 3)
        scores = bench.microseconds_per_round(partial(learner.scores, rows), n, 3)
        print(f"k = {k:7,d}: {whole:9.2f} µs a round, of which scores {scores:9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--growth", action="store_true", help="also the growth with k, up to 100,000 (6 GB)")
    parser.add_argument("--calls", action="store_true", help="only batches and single calls, in CPU time")
    arguments = parser.parse_args()
    print(f"processor level {native.cpu_level()}")
    if not arguments.calls:
        for result in bench.measure():
            print(f"{result.what:55s} {result.microseconds:9.2f} µs a round {result.ratio:9.1f} x")
        against_plain()
        set_logit_against_mcdbf()
    batches_against_fused()
    single_calls()
    if arguments.growth:
        growth()


if __name__ == "__main__":
    main()
