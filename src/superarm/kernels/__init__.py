"""Compiled code, and nothing else: it imports nothing of ours but rows (their types) and sources.

What a learner or a rule of your own needs is exported here; docs/extend.md shows how.
"""

from superarm.kernels.compiling import by_row, kernel
from superarm.kernels.linear import (
    Features,
    add_outer,
    centre,
    constant,
    coordinate,
    length,
    reach,
    safe_to_add,
    scores,
    squared_norm,
    value,
    weights,
)
from superarm.kernels.loop import Answer, Kernels, Moment, Odds, Round, Tables, linear_score, reads_none
from superarm.kernels.randomness import uniform
from superarm.kernels.ranking import best_first, contains, position, softmax, top_positions
from superarm.kernels.scaling import Standard, StandardScratch, Unit, absorb, standardise, unit

__all__ = [
    "Answer",
    "Features",
    "Kernels",
    "Moment",
    "Odds",
    "Round",
    "Standard",
    "StandardScratch",
    "Tables",
    "Unit",
    "absorb",
    "add_outer",
    "best_first",
    "by_row",
    "centre",
    "constant",
    "contains",
    "coordinate",
    "kernel",
    "length",
    "linear_score",
    "position",
    "reach",
    "reads_none",
    "safe_to_add",
    "scores",
    "softmax",
    "squared_norm",
    "standardise",
    "top_positions",
    "uniform",
    "unit",
    "value",
    "weights",
]
