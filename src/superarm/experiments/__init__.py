"""Experiments: a spec file -> runs -> an engine -> a store of results.

toml.py, spec.py    the spec file, checked
runs.py             one run: its key, and its result
code_digest.py      the hash of the code behind a run, a part of its key
runner.py           the runs that are missing, in processes or on a cluster
store.py            results on disk, and as tables
"""

from superarm._extras import require_extra

require_extra("logs")  # before the modules below import Polars

from superarm.experiments.runner import DEMO_SPEC, RunSummary, best_gammas, paper_specs, run  # noqa: E402
from superarm.experiments.spec import Spec, read_spec  # noqa: E402
from superarm.experiments.store import Experiment, Store  # noqa: E402

__all__ = [
    "DEMO_SPEC",
    "Experiment",
    "RunSummary",
    "Spec",
    "Store",
    "best_gammas",
    "paper_specs",
    "read_spec",
    "run",
]
