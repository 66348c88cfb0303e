"""What can be computed without data: bounds and moments (bounds.py), estimates of the label (label_estimates.py)."""

from superarm.theory.bounds import (
    TheorySummary,
    best_gamma,
    lemma5_bound,
    second_moment,
    summary,
    theorem6_bound,
)

__all__ = ["TheorySummary", "best_gamma", "lemma5_bound", "second_moment", "summary", "theorem6_bound"]
