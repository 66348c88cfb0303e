"""Compile every learner before the tests begin: each once, on all cores, and not once in each worker.

`make test` runs it. After the first time it takes seconds, as what is compiled is kept.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

from superarm.learners.registry import make, names
from superarm.learners.warming import warm_up


def compile_one(task: tuple[str, bool]) -> None:
    spec, sparse = task
    warm_up(make(spec, n_labels=4, n_features=3), sparse=sparse)


if __name__ == "__main__":
    longest = ("set-logit", "softmax-averaged")
    specs = sorted(names(), key=lambda spec: spec not in longest)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, [(spec, sparse) for spec in specs for sparse in (False, True)]))
