"""A running learner is changed: other parameters, or older weights. What it has learnt otherwise stays."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from superarm import storage
from superarm.decisions import Decision
from superarm.errors import InvalidInput
from superarm.learners.learner import Learner, load

__all__ = ["is_answered", "rolled_back", "with_params"]


def with_params(learner: Learner, params: dict[str, Any]) -> Learner:
    """The same learner with other parameters, by way of its model file: all that it has learnt stays."""
    unknown = sorted(params.keys() - learner.params.keys())
    if unknown:
        raise InvalidInput.must(unknown[0], type(learner).__name__, "left as it is: it has no such", params)
    type(learner)(**{**learner.params, **params})  # says what is wrong with them
    with tempfile.TemporaryDirectory(prefix="superarm-") as folder:
        path = Path(folder) / "model.npz"
        learner.save(path)
        header, arrays = storage.read(path)
        header["params"] |= params
        storage.write(path, header, arrays)
        return load(path)


def rolled_back(now: Learner, old: Learner) -> Learner:
    """The weights of ``old`` in the present of ``now``: rounds, answered decisions and labels go on."""
    missing = (now.labels or ())[old.n_labels :]
    if missing:
        old.add_labels(list(missing))
    if now.names is not None:  # names keep the places that later rows gave them
        old.use_names(now.names.to_dict())
    elif old.core is None and now.core is not None:  # it had seen no row: it takes today's kind
        old.inputs.fix(now.inputs.layout)
    old.inputs.growth = list(now.inputs.growth)
    if now.core is not None:
        core = old.have_core()
        core.round = now.core.round
        core.ledger.__init__(now.core.ledger.low, now.core.ledger.later)
    return old


def is_answered(learner: Learner, decision: Decision) -> bool:
    """Whether it has learnt from this decision of its own."""
    return decision.round is not None and decision.round in learner.answered
