"""Decision logs: their format, training on them, and what another policy would have done.

A row is a `superarm.decisions.decision.Record`: what was shown, how it was drawn, what came of it.

log.py          Log: reads Parquet, JSON lines, CSV, frames; which columns hold what, and which are features
                (columns.py), cells (parsing.py), the formats of other tools (other_formats.py)
writer.py       Writer: Parquet, JSON lines, CSV
summary.py      a first reading: labels, features, how much is known about the sets; which rows are held out
training.py     several passes over a log
evaluation.py   policies (policies.py) evaluated by a log. For each batch of rows (batches.py): importance weights
                (weights.py), what was expected (calibration.py), all of it summed up to hit rates (hit_rates.py);
                whether the log is what it claims (diagnostics.py)
results.py      Evaluation, with a PolicyResult for each policy; its figure
batch_files.py  whole files: decide for all rows of one, learn later from a file of answers
"""

from superarm.decisions.record import COLUMNS, Record
from superarm.logs.columns import LogColumns
from superarm.logs.evaluation import evaluate
from superarm.logs.hit_rates import Estimate, RequiredData
from superarm.logs.log import Log
from superarm.logs.parsing import BadRow
from superarm.logs.policies import Policy
from superarm.logs.results import Evaluation, PolicyResult
from superarm.logs.summary import LogSummary, is_held_out_row, summarize
from superarm.logs.training import TrainingResult, train
from superarm.logs.writer import Writer

__all__ = [
    "COLUMNS",
    "BadRow",
    "Estimate",
    "Evaluation",
    "Log",
    "LogColumns",
    "LogSummary",
    "Policy",
    "PolicyResult",
    "Record",
    "RequiredData",
    "TrainingResult",
    "Writer",
    "evaluate",
    "is_held_out_row",
    "summarize",
    "train",
]
