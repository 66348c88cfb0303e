"""What an operator may change while the service runs. (changes.py: what each change does)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from superarm.errors import InvalidInput
from superarm.service.core.events import CHANGE
from superarm.service.core.faults import Refused

if TYPE_CHECKING:
    from superarm.service.core.session import Session

__all__ = [
    "add_labels",
    "check",
    "distinct",
    "freeze",
    "go_back",
    "make",
    "note",
    "retire_labels",
    "set_explore",
]

LONGEST_LABEL = 1_000


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


def check(change: dict[str, Any], of: Any) -> None:
    """Refuse a change that cannot be made: ``of`` has labels (known, retired), a learner and snapshots."""
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


def add_labels(session: Session, names: Sequence[str]) -> None:
    make(session, {"what": "add_labels", "labels": distinct(names)})


def retire_labels(session: Session, names: Sequence[str]) -> None:
    make(session, {"what": "retire_labels", "labels": distinct(names)})


def freeze(session: Session, frozen: bool) -> None:
    if session.frozen != frozen:
        make(session, {"what": "freeze" if frozen else "resume"})


def set_explore(session: Session, explore: str | float | None, uniform: float | None) -> None:
    params = {"explore": explore, "uniform": uniform}
    make(session, {"what": "set_explore", "params": {k: v for k, v in params.items() if v is not None}})


def go_back(session: Session, seq: int) -> None:
    make(session, {"what": "go_back", "to": seq})


def make(session: Session, change: dict[str, Any]) -> None:
    """Make a change that an operator asks for, in the journal that this process writes."""
    check(change, session)
    if change["what"] == "go_back":
        with session.writing():
            session.journal.pin_snapshot(change["to"])
    note(session, change)
    if change["what"] == "go_back":
        session._entries.clear()  # what is in memory has rows in the layout of the model that was


def distinct(names: Sequence[str]) -> list[str]:
    """The names, as a list."""
    labels = list(names) if not isinstance(names, str) else [names]
    good = all(isinstance(label, str) and 0 < len(label) <= LONGEST_LABEL for label in labels)
    if not labels or not good or len(set(labels)) != len(labels):
        raise Refused.must("labels", "change", "distinct names, at least one", names)
    return labels
