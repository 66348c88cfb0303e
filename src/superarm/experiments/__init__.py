"""Experiments: a spec file -> cells -> an engine -> a store of results."""

from superarm.experiments.run import DEMO, Progress, Summary, best_gammas, paper_specs, run
from superarm.experiments.spec import Spec, read_spec
from superarm.experiments.store import Store

__all__ = ["DEMO", "Progress", "Spec", "Store", "Summary", "best_gammas", "paper_specs", "read_spec", "run"]
