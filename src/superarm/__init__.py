"""superarm learns a classifier from yes/no answers about sets of labels.

>>> import superarm as sa
>>> learner = sa.SetLogit(n_labels=10, n_features=4, set_size=3, seed=0)
>>> decision = learner.decide([0.1, 0.0, 0.7, 0.2])
>>> learner.update(decision, hit=True)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm import checks as checks
    from superarm import errors as errors
    from superarm import explore as explore
    from superarm import logs as logs
    from superarm import losses as losses
    from superarm import service as service
    from superarm import streams as streams
    from superarm import theory as theory
    from superarm.comparison import Comparison as Comparison
    from superarm.comparison import compare as compare
    from superarm.data.column import Column as Column
    from superarm.data.columns import Columns as Columns
    from superarm.data.columns import ColumnWarning as ColumnWarning
    from superarm.data.rows import Row as Row
    from superarm.decisions import Decision as Decision
    from superarm.decisions import Decisions as Decisions
    from superarm.decisions import LoggedDecision as LoggedDecision
    from superarm.label import Labelling as Labelling
    from superarm.learners import *  # noqa: F403
    from superarm.learners.registry import make as make
    from superarm.native.cursor import Cursor as Cursor
    from superarm.simulation import Trace as Trace
    from superarm.simulation import simulate as simulate

__version__ = "0.3.0"

# Where public names live. Nothing is imported before it is used.
_HOMES = {
    "superarm.comparison": ("Comparison", "compare"),
    "superarm.data.column": ("Column",),
    "superarm.data.columns": ("ColumnWarning", "Columns"),
    "superarm.data.rows": ("Row",),
    "superarm.decisions": ("Decision", "Decisions", "LoggedDecision"),
    "superarm.label": ("Labelling",),
    "superarm.learners": (
        *("AveragedSoftmax", "Banditron", "EPABF", "MCDBF", "MCSLP", "Newtron", "PA", "Perceptron"),
        *("SOBA", "SetLogit", "Softmax", "Learner", "PlainLearner", "Scores", "load"),
    ),
    "superarm.learners.registry": ("make",),
    "superarm.native.cursor": ("Cursor",),
    "superarm.simulation": ("Trace", "simulate"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = ("checks", "errors", "explore", "logs", "losses", "service", "streams", "theory")


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"superarm.{name}")
    elif name == "__all__":
        return __dir__()
    else:
        raise AttributeError(f"module 'superarm' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_HOME_OF, *_MODULES])
