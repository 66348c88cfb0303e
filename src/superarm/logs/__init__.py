"""Decision logs: their format, training on them, and what another policy would have done.

entry.py       one row: what was shown, how it was drawn, what came of it
writing.py     Writer: Parquet, JSON lines, CSV
reading.py     Log: the same formats, and other people's columns
survey.py      a first look through a log; which rows are kept out of training
training.py    several passes over a log
evaluation.py  policies judged by a log: weights.py, estimates.py
"""

from superarm.logs.entry import FIELDS, Entry
from superarm.logs.evaluation import Evaluation, Policy, Verdict, evaluate
from superarm.logs.reading import BadRow, Columns, Log
from superarm.logs.survey import Survey, held_out, survey
from superarm.logs.training import Training, train
from superarm.logs.writing import Writer

__all__ = [
    "FIELDS",
    "BadRow",
    "Columns",
    "Entry",
    "Evaluation",
    "Log",
    "Policy",
    "Survey",
    "Training",
    "Verdict",
    "Writer",
    "evaluate",
    "held_out",
    "survey",
    "train",
]
