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
from typing import Any

from msgspec import Struct

from superarm.errors import InvalidInput
from superarm.journal.errors import Refused
from superarm.journal.snapshots import learner_from
from superarm.journal.store import Store
from superarm.learners import Learner

LONGEST_LABEL = 1_000


class LabelSettings(Struct):
    """Settings by changes, beside the learner: disabled labels, and when learning was frozen."""

    disabled: tuple[str, ...] = ()
    switches: list[int] = []  # the events at which learning was frozen, unfrozen, frozen, …

    @property
    def frozen(self) -> bool:
        return len(self.switches) % 2 == 1

    def frozen_at(self, seq: int) -> bool:
        return bisect_right(self.switches, seq) % 2 == 1

    def apply(self, learner: Learner, change: dict[str, Any], seq: int, store: Store) -> Learner:
        """Make a change that was checked; the learner that goes on from here."""
        what = change["what"]
        if what == "add_labels":
            new = [label for label in change["labels"] if label not in self.disabled]
            if new:
                learner.add_labels(new)
            self.disabled = tuple(label for label in self.disabled if label not in change["labels"])
        elif what == "disable_labels":
            self.disabled = (*self.disabled, *change["labels"])
        elif what in ("freeze", "unfreeze"):
            if self.frozen != (what == "freeze"):
                self.switches.append(seq)
        elif what == "set_explore":
            return learner.with_params(**change["params"])
        elif what == "rollback":
            return learner.rolled_back_to(learner_from(store.snapshot(change["to"]).parts["model"]))
        return learner


def check_change(change: dict[str, Any], learner: Learner, settings: LabelSettings, store: Store) -> bool:
    """Refuse a change that cannot be made; whether there is anything to do."""
    what, disabled = change["what"], set(settings.disabled)
    known = set(learner.labels or ())
    if what in ("add_labels", "disable_labels"):
        labels = distinct(change["labels"])
        for label in labels:
            if what == "add_labels" and label in known and label not in disabled:
                raise Refused.must("labels", "change", "new, or disabled", label)
            if what == "disable_labels" and (label not in known or label in disabled):
                raise Refused.must("labels", "change", "known, and not disabled yet", label)
        left, size = len(known) - len(disabled) - len(labels), learner.set_size
        if what == "disable_labels" and left < size + 1:
            wanted = f"so few that more than {size} are left, as many as are shown"
            raise Refused.must("labels", "change", wanted, labels)
    elif what == "set_explore":
        if not change["params"]:
            raise Refused.must("explore", "change", "given, or uniform", None)
        try:
            learner.with_params(**change["params"])
        except InvalidInput as error:
            raise Refused(str(error), field=error.field) from error
    elif what == "rollback" and change["to"] not in [note.seq for note in store.snapshots()]:
        raise Refused.must("to", "change", "the event of a kept snapshot", change["to"])
    return what not in ("freeze", "unfreeze") or settings.frozen != (what == "freeze")


def distinct(names: Sequence[str]) -> list[str]:
    """The names as a list, or a refusal: each must be a text, not too long, and there once."""
    labels = list(names) if not isinstance(names, str) else [names]
    good = all(isinstance(label, str) and 0 < len(label) <= LONGEST_LABEL for label in labels)
    if not labels or not good or len(set(labels)) != len(labels):
        raise Refused.must("labels", "change", "distinct names, at least one", names)
    return labels
