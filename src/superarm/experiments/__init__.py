"""Experiments: a spec file -> cells -> an engine -> a store of results."""

from superarm.experiments.run import DEMO, RunProgress, RunSummary, best_gammas, paper_specs, run
from superarm.experiments.spec import Spec, read_spec
from superarm.experiments.store import Experiment, Store

__all__ = [
    "DEMO",
    "Experiment",
    "RunProgress",
    "RunSummary",
    "Spec",
    "Store",
    "best_gammas",
    "paper_specs",
    "read_spec",
    "run",
]
