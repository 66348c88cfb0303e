"""Decisions: what was shown, with what probability; one, many, and the record of logs."""

from superarm.decisions.decision import COLUMNS, FORMAT, LOG_FORMAT, Decision, Record
from superarm.decisions.decisions import Decisions

__all__ = ["COLUMNS", "FORMAT", "LOG_FORMAT", "Decision", "Decisions", "Record"]
