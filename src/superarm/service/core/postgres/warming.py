"""Compile, before a process stands for the office, all that it may be asked for.

Numba compiles with the first call of each kind, for seconds: who does so in office is silent for longer than
the lease, and is deposed; who does so in a turn lets everybody wait. Before the first row has come nobody
knows what kind rows are of: then it is done for all kinds. (Numba keeps it for later starts.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from orjson import dumps

from superarm.decision import Decision
from superarm.errors import InvalidInput
from superarm.learners import Learner
from superarm.rows import SparseRow
from superarm.service.core.events import DECISION, decision_body, pack_row
from superarm.service.core.postgres.answers import FEW, Known, Usual, learn_together
from superarm.service.core.postgres.tables import Row
from superarm.service.core.shadows import Shadow, make_shadows
from superarm.service.core.snapshots import learner_from, model_bytes, some_row

__all__ = ["warm_up"]


def warm_up(learner: Learner, specs: Sequence[str]) -> None:
    """Ask copies, that nobody sees, for a decision, for answers one by one and together, and the shadows.

    It also finds what is wrong with the names of the shadows, ``specs``.
    """
    make_shadows(specs, learner)
    for x in _rows(learner):
        copy = learner_from(model_bytes(learner))
        try:
            decision = copy.decide(x)
        except InvalidInput:  # it takes no rows of that kind
            continue
        _answer(copy, decision, make_shadows(specs, copy))


def _rows(learner: Learner) -> list[Any]:
    """A row of each kind that may come."""
    if learner.state is not None:
        return [some_row(learner)]
    d = learner.n_features or 1
    return [np.zeros(d, np.float32), SparseRow(np.zeros(0, np.int32), np.zeros(0, np.float32), d), {}]


def _answer(learner: Learner, decision: Decision, shadows: dict[str, Shadow]) -> None:
    label = learner.known.public([0])[0]
    named = "hit" not in learner.feedback
    learner.update(decision, **({"label": label} if named else {"hit": False}))
    for shadow in shadows.values():
        told = {"hit": False, "label": None, "late": False, "default": None}
        shadow.outcome(decision, told, timeout=False)
    text = dumps(decision_body(decision, None, None))
    row = Row(0, 0.0, DECISION, "", pack_row(decision.x), None, text, b"")
    known = Known(row)
    if known.is_plain(learner):
        answer = Usual(row, known, {"hit": False, "label": label}, named, decision.set_size)
        learn_together(learner, {str(one): i for i, one in enumerate(learner.labels or ())}, [answer] * FEW)
