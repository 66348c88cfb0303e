"""What an operator may change while the service runs. (changes.py: what each change does)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from superarm.errors import InvalidInput
from superarm.service.core.events import CHANGE
from superarm.service.core.faults import Refused

if TYPE_CHECKING:
    from superarm.service.core.session import Session

__all__ = ["add_labels", "freeze", "go_back", "note", "retire_labels", "set_explore"]

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


def add_labels(session: Session, names: Sequence[str]) -> None:
    labels = _distinct(names)
    for label in labels:
        if label in session.known and label not in session.retired:
            raise Refused.must("labels", "change", "new, or retired", label)
    note(session, {"what": "add_labels", "labels": labels})


def retire_labels(session: Session, names: Sequence[str]) -> None:
    labels = _distinct(names)
    for label in labels:
        if label not in session.known or label in session.retired:
            raise Refused.must("labels", "change", "known, and not retired yet", label)
    left, size = len(session.known) - len(session.retired) - len(labels), session.learner.set_size
    if left < size + 1:
        wanted = f"so few that more than {size} are left, as many as are shown"
        raise Refused.must("labels", "change", wanted, labels)
    note(session, {"what": "retire_labels", "labels": labels})


def freeze(session: Session, frozen: bool) -> None:
    if session.frozen != frozen:
        note(session, {"what": "freeze" if frozen else "resume"})


def set_explore(session: Session, explore: str | float | None, uniform: float | None) -> None:
    params = {"explore": explore, "uniform": uniform}
    params = {name: value for name, value in params.items() if value is not None}
    if not params:
        raise Refused.must("explore", "change", "given, or uniform", None)
    note(session, {"what": "set_explore", "params": params})


def go_back(session: Session, seq: int) -> None:
    if seq not in session.journal.snapshots():
        raise Refused.must("seq", "change", "the event of a kept snapshot", seq)
    with session.writing():
        session.journal.pin_snapshot(seq)
    note(session, {"what": "go_back", "to": seq})
    session._entries.clear()  # what is in memory has rows in the layout of the model that was


def _distinct(names: Sequence[str]) -> list[str]:
    labels = list(names) if not isinstance(names, str) else [names]
    good = all(isinstance(label, str) and 0 < len(label) <= LONGEST_LABEL for label in labels)
    if not labels or not good or len(set(labels)) != len(labels):
        raise Refused.must("labels", "change", "distinct names, at least one", names)
    return labels
