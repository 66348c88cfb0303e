"""Decisions: what was shown, with what probability; one, many, and the record of logs."""

from superarm.decisions.decision import FORMAT, Decision
from superarm.decisions.decisions import Decisions
from superarm.decisions.logged_decision import COLUMNS, LOG_FORMAT, LoggedDecision

__all__ = ["COLUMNS", "FORMAT", "LOG_FORMAT", "Decision", "Decisions", "LoggedDecision"]
