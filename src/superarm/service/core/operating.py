"""What an operator may change while the service runs. (changes.py: what each change does)"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from superarm.errors import InvalidInput
from superarm.service.core.events import CHANGE
from superarm.service.core.faults import Refused

if TYPE_CHECKING:
    from superarm.service.core.session import Session

__all__ = ["Operated", "check", "distinct", "make", "note"]

LONGEST_LABEL = 1_000


class Operated:
    """What an operator may ask of a session, whatever its journal."""

    @abstractmethod
    def make(self, change: dict[str, Any]) -> object:
        """Make a change, or refuse it."""

    def add_labels(self, names: Sequence[str]) -> None:
        """New labels, that may be shown from now on; retired ones come back."""
        self.make({"what": "add_labels", "labels": distinct(names)})

    def retire_labels(self, names: Sequence[str]) -> None:
        """Never show these labels again; answers about them are still taken."""
        self.make({"what": "retire_labels", "labels": distinct(names)})

    def freeze(self) -> None:
        """Go on deciding and keeping answers, and learn nothing."""
        self.make({"what": "freeze"})

    def resume(self) -> None:
        """Learn again, from the answers that come from now on."""
        self.make({"what": "resume"})

    def set_explore(self, explore: str | float | None = None, uniform: float | None = None) -> None:
        """Explore more or less, as the learner's parameters of these names say."""
        params = {"explore": explore, "uniform": uniform}
        self.make({"what": "set_explore", "params": {k: v for k, v in params.items() if v is not None}})

    def go_back(self, seq: int) -> None:
        """The weights as they were in the snapshot after an event; nothing else is undone."""
        self.make({"what": "go_back", "to": seq})


def note(session: Session, change: dict[str, Any]) -> None:
    """Make a change, and write it down; one that cannot be made is refused, and nothing has moved."""
    session._writable()
    try:
        session.model.change(change)
    except InvalidInput as error:
        raise Refused(str(error), field=error.field) from error
    try:
        at = session.ages.now(session.journal.seq + 1)
        session._append(at, CHANGE, None, None, change, None)
        session._follow()
    except BaseException as error:
        session._take_back(error)
        raise


def check(change: dict[str, Any], of: Any) -> bool:
    """Refuse a change that cannot be made; whether there is anything to do.

    ``of`` has labels (known, retired), a learner that may be frozen, and snapshots.
    """
    what = change["what"]
    if what in ("add_labels", "retire_labels"):
        labels = distinct(change["labels"])
        for label in labels:
            if what == "add_labels" and label in of.known and label not in of.retired:
                raise Refused.must("labels", "change", "new, or retired", label)
            if what == "retire_labels" and (label not in of.known or label in of.retired):
                raise Refused.must("labels", "change", "known, and not retired yet", label)
        left, size = len(of.known) - len(of.retired) - len(labels), of.learner.set_size
        if what == "retire_labels" and left < size + 1:
            wanted = f"so few that more than {size} are left, as many as are shown"
            raise Refused.must("labels", "change", wanted, labels)
    elif what == "set_explore" and not change["params"]:
        raise Refused.must("explore", "change", "given, or uniform", None)
    elif what == "go_back" and change["to"] not in of.journal.snapshots():
        raise Refused.must("seq", "change", "the event of a kept snapshot", change["to"])
    return what not in ("freeze", "resume") or of.frozen != (what == "freeze")


def make(session: Session, change: dict[str, Any]) -> None:
    """Make a change that an operator asks for, in the journal that this process writes."""
    if not check(change, session):
        return
    if change["what"] == "go_back":
        with session.writing():
            session.journal.pin_snapshot(change["to"])
    note(session, change)
    if change["what"] == "go_back":
        session._entries.clear()  # what is in memory has rows in the layout of the model that was


def distinct(names: Sequence[str]) -> list[str]:
    """The names as a list, or a refusal: each must be a text, not too long, and there once."""
    labels = list(names) if not isinstance(names, str) else [names]
    good = all(isinstance(label, str) and 0 < len(label) <= LONGEST_LABEL for label in labels)
    if not labels or not good or len(set(labels)) != len(labels):
        raise Refused.must("labels", "change", "distinct names, at least one", names)
    return labels
