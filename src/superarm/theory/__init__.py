"""Bounds and moments (bounds.py), estimates of the label from a bit (label_estimates.py), Platt scaling (platt.py)."""

from superarm.theory.bounds import (
    TheorySummary,
    best_gamma,
    lemma5_bound,
    second_moment,
    summary,
    theorem6_bound,
)

__all__ = ["TheorySummary", "best_gamma", "lemma5_bound", "second_moment", "summary", "theorem6_bound"]
