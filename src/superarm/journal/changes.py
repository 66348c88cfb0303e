"""Changes by an operator while a service runs: each change is an event, and a replay makes it again.

add_labels      {"labels": [...]}                 new labels; a disabled one comes back
disable_labels  {"labels": [...]}                 never shown again; outcomes about them are still taken
freeze, unfreeze                                  outcomes are kept, and not learnt
set_explore     {"params": {"explore", "uniform"}}
rollback        {"to": 1234}                      the weights as after that event
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct

from superarm._types import JsonObject
from superarm.errors import InvalidInput
from superarm.journal.snapshots import learner_from_bytes
from superarm.journal.store import Store
from superarm.learners import Learner

MAX_LABEL_LENGTH = 1_000


class OperatorSettings(Struct):
    """Settings by changes, beside the learner: disabled labels, and when learning was frozen."""

    disabled: tuple[str, ...] = ()
    freeze_toggles: list[int] = []  # the events at which learning was frozen, unfrozen, frozen, …

    @property
    def frozen(self) -> bool:
        return len(self.freeze_toggles) % 2 == 1

    def was_frozen_at(self, seq: int) -> bool:
        return bisect_right(self.freeze_toggles, seq) % 2 == 1

    def apply(self, change: JsonObject, learner: Learner, seq: int, store: Store) -> Learner | None:
        """Make a change, event ``seq``; the learner that goes on from here, or None if there was nothing to do.

        What cannot be made is refused (InvalidInput), before anything has changed.
        """
        what, current = change["what"], set(learner.labels or ())
        if what == "add_labels":
            labels = check_labels(change["labels"])
            for label in labels:
                if label in current and label not in self.disabled:
                    raise InvalidInput.must("labels", "change", "new, or disabled", label)
            if new := [label for label in labels if label not in self.disabled]:
                learner.add_labels(new)
            self.disabled = tuple(label for label in self.disabled if label not in labels)
        elif what == "disable_labels":
            labels = check_labels(change["labels"])
            for label in labels:
                if label not in current or label in self.disabled:
                    raise InvalidInput.must("labels", "change", "known, and not disabled yet", label)
            size = learner.set_size
            if len(current) - len(self.disabled) - len(labels) <= size:
                wanted = f"so few that more than {size} are left, as many as are shown"
                raise InvalidInput.must("labels", "change", wanted, labels)
            self.disabled = (*self.disabled, *labels)
        elif what in ("freeze", "unfreeze"):
            if self.frozen == (what == "freeze"):
                return None
            self.freeze_toggles.append(seq)
        elif what == "set_explore":
            if not change["params"]:
                raise InvalidInput.must("explore", "change", "given, or uniform", None)
            return learner.with_params(**change["params"])
        elif what == "rollback":
            if change["to"] not in [info.seq for info in store.snapshots()]:
                raise InvalidInput.must("to", "change", "the event of a kept snapshot", change["to"])
            return learner.resume_from_snapshot(
                learner_from_bytes(store.snapshot(change["to"]).parts["model"])
            )
        return learner


def check_labels(names: Sequence[str]) -> list[str]:
    """The names as a list, or a refusal: each must be a text, not too long, and there once."""
    labels = list(names) if not isinstance(names, str) else [names]
    good = all(isinstance(label, str) and 0 < len(label) <= MAX_LABEL_LENGTH for label in labels)
    if not labels or not good or len(set(labels)) != len(labels):
        raise InvalidInput.must("labels", "change", "distinct names, at least one", names)
    return labels
