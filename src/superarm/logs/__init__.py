"""Decision logs: their format, training on them, and what another policy would have done.

A row is a `superarm.decisions.LoggedDecision`: what was shown, how it was drawn, what came of it.

log.py          Log: reads Parquet, JSON lines, CSV, frames; which columns hold what, and which are features
                (columns.py), cells (parsing.py), the formats of other tools (other_formats.py)
writer.py       Writer: Parquet, JSON lines, CSV
summary.py      a first reading: labels, features, how much is known about the sets
training.py     several passes over a log
evaluation.py   evaluate: what other policies would have hit in the rows that are kept out of training
policies.py     Policy, and its sets for the rows of a log
batches.py      rows as arrays, with the probability of each logged set; a log's labels as a learner spells them
weights.py      importance weights: what a logged row says about a policy's set
hit_rates.py    weighted rows summed up: ips, snips, dr, pi, pi-dr, their intervals, and whether they can be trusted
calibration.py  the hits that a model expects, corrected by the answers so far
nested.py       more of the best labels never hit less often than fewer
diagnostics.py  were the sets drawn as the log claims?
results.py      Evaluation, with a PolicyResult for each policy, with an Estimate by each estimator; its figure
nightly.py      whole files: decide for all rows of one, learn later from a file of answers
"""

from superarm.decisions.logged_decision import COLUMNS, LoggedDecision
from superarm.logs.columns import LogColumns
from superarm.logs.evaluation import evaluate, is_held_out_row
from superarm.logs.log import Log
from superarm.logs.parsing import BadRow
from superarm.logs.policies import Policy
from superarm.logs.results import Estimate, Evaluation, PolicyResult, RequiredData
from superarm.logs.summary import LogSummary, summarize
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
    "LoggedDecision",
    "Policy",
    "PolicyResult",
    "RequiredData",
    "TrainingResult",
    "Writer",
    "evaluate",
    "is_held_out_row",
    "summarize",
    "train",
]
