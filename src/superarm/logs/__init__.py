"""Decision logs: their format, training on them, and what another policy would have done.

A row is a `superarm.decisions.decision.Record`: what was shown, how it was drawn, what came of it.

writing.py     Writer: Parquet, JSON lines, CSV
reading.py     Log: the same formats, frames, and other people's columns (log_columns.py): sources.py, fields.py,
               features.py, foreign.py (Vowpal Wabbit, Open Bandit Pipeline)
survey.py      a first look through a log; which rows are kept out of training
training.py    several passes over a log
nightly.py     whole files: sets for all rows of one tonight, the answers to them tomorrow
evaluation.py  policies (policies.py) judged by a log: weights.py (designs.py), estimates.py, summed in tallies.py;
               log_check.py asks whether the log is what it claims, verdicts.py is what comes of it
"""

from superarm.decisions.decision import COLUMNS, Record
from superarm.logs.cells import BadRow
from superarm.logs.estimates import Estimate, Wanted
from superarm.logs.evaluation import evaluate
from superarm.logs.log_columns import LogColumns
from superarm.logs.policies import Policy
from superarm.logs.reading import Log
from superarm.logs.survey import Survey, held_out, survey
from superarm.logs.training import Training, train
from superarm.logs.verdicts import Evaluation, Verdict
from superarm.logs.writing import Writer

__all__ = [
    "COLUMNS",
    "BadRow",
    "Estimate",
    "Evaluation",
    "Log",
    "LogColumns",
    "Policy",
    "Record",
    "Survey",
    "Training",
    "Verdict",
    "Wanted",
    "Writer",
    "evaluate",
    "held_out",
    "survey",
    "train",
]
