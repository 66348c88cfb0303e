"""What an operator may change while the service runs: each change is an event, and a replay makes it again.

add_labels    {"labels": [...]}                 new labels; a retired one comes back
retire_labels {"labels": [...]}                 never shown again; answers about them are still taken
freeze, resume                                  answers are kept, and not learnt
set_explore   {"params": {"explore", "uniform"}}
go_back       {"to": 1234}                      the weights as after that event
erase         {"ids": n, "before": time, "erased": n}   a note (erasing.py); PostgreSQL has the ids themselves
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from superarm import storage
from superarm.errors import InvalidInput
from superarm.learners import Learner, load
from superarm.service.core.journal import Snapshot
from superarm.service.core.snapshots import learner_from, some_row

__all__ = ["Settings", "gone_back", "with_params"]


class Settings:
    """What changes have set, beside the learner."""

    def __init__(self, frozen: bool = False, retired: tuple[str, ...] = ()) -> None:
        self.frozen, self.retired = frozen, retired

    def to_dict(self) -> dict[str, Any]:
        return {"frozen": self.frozen, "retired": list(self.retired)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Settings:
        return cls(data["frozen"], tuple(data["retired"]))

    def apply(self, learner: Learner, change: dict[str, Any], snapshot: Callable[[int], Snapshot]) -> Learner:
        """Make a change; the learner that goes on from here."""
        what = change["what"]
        if what == "add_labels":
            new = [label for label in change["labels"] if label not in self.retired]
            if new:
                learner.add_labels(new)
            self.retired = tuple(label for label in self.retired if label not in change["labels"])
        elif what == "retire_labels":
            self.retired = (*self.retired, *change["labels"])
        elif what in ("freeze", "resume"):
            self.frozen = what == "freeze"
        elif what == "set_explore":
            return with_params(learner, change["params"])
        elif what == "go_back":
            return gone_back(learner, learner_from(snapshot(change["to"]).parts["model"]))
        return learner


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


def gone_back(now: Learner, old: Learner) -> Learner:
    """The old weights, in the present: rounds, answered decisions and labels go on."""
    missing = (now.labels or ())[old.n_labels :]
    if missing:
        old.add_labels(list(missing))
    if now.names is not None:  # names keep the places that later rows gave them
        old.use_names(now.names.to_dict())
    elif (
        old.state is None and now.state is not None
    ):  # it had seen no row: it takes the kind of rows of today
        old.rank(some_row(now))
    old.round, old.growth = now.round, list(now.growth)
    old.answered = copy.deepcopy(now.answered)
    return old
