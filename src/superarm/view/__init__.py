"""What a notebook shows: our objects (objects.py) as small tables, bars and curves (parts.py)."""

from superarm.view.objects import (
    comparison_html,
    decision_html,
    decisions_html,
    evaluation_html,
    learner_html,
    log_html,
    survey_html,
    trace_html,
    verdict_html,
)

__all__ = [
    "comparison_html",
    "decision_html",
    "decisions_html",
    "evaluation_html",
    "learner_html",
    "log_html",
    "survey_html",
    "trace_html",
    "verdict_html",
]
