"""Decision logs: their format, training on them, and what another policy would have done.

A row is a `superarm.decisions.decision.Record`: what was shown, how it was drawn, what came of it.

log.py          Log: reads Parquet, JSON lines, CSV, frames; whose columns are called otherwise (log_columns.py); their
                cells (cells.py), their features (features.py), the formats of other tools (foreign.py)
writer.py       Writer: Parquet, JSON lines, CSV
survey.py       a first reading: labels, features, what is known about the sets; which rows are kept out of training
training.py     several passes over a log
evaluation.py   policies (policies.py) judged by a log. For each batch of rows (batches.py): importance weights
                (weights.py), what was expected (calibration.py), all of it summed up to estimates (estimates.py);
                whether the log is what it claims (diagnostics.py)
verdicts.py     Evaluation, with a Verdict for each policy; its figure (charts.py)
nightly.py      whole files: sets for all rows of one tonight, the answers to them tomorrow
"""

from superarm.decisions.decision import COLUMNS, Record
from superarm.logs.cells import BadRow
from superarm.logs.estimates import Estimate, Wanted
from superarm.logs.evaluation import evaluate
from superarm.logs.log import Log
from superarm.logs.log_columns import LogColumns
from superarm.logs.policies import Policy
from superarm.logs.survey import Survey, held_out, survey
from superarm.logs.training import Training, train
from superarm.logs.verdicts import Evaluation, Verdict
from superarm.logs.writer import Writer

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
