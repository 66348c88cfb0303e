"""Errors of a journal and of a service; http/errors.py has their status codes.

SuperarmError
├── Refused             (ValueError)   a request that cannot be taken; `field` names what is at fault
│   ├── UnknownDecision                 no decision has that id
│   ├── Erased                          its features and context were erased: it cannot be asked for again
│   └── Conflict                        the id, or the outcome, was used for something else
├── Overloaded          (RuntimeError)  too many requests wait; nothing has been done
└── JournalError        (OSError)       the journal cannot be used
    ├── JournalHeld                      another process has it
    ├── JournalForeign                   not a journal, of another format, or made for something else
    ├── JournalDamaged                   what it holds is not what was written: `event`, where it is one
    └── JournalDown                      it cannot be written at the moment; try again later
        └── JournalFull                  ... because its disk, or its size limit, is full
"""

from __future__ import annotations

from superarm.errors import SuperarmError


class Refused(SuperarmError, ValueError):
    """A request that cannot be taken."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class UnknownDecision(Refused):
    """No decision has that id."""


class Erased(Refused):
    """The decision's features and context were erased."""


class Conflict(Refused):
    """The id, or the outcome, was used for something else."""


class Overloaded(SuperarmError, RuntimeError):
    """Too many requests wait."""


class JournalError(SuperarmError, OSError):
    """The journal cannot be used."""


class JournalHeld(JournalError):
    """Another process has the journal."""


class JournalForeign(JournalError):
    """The file is not a journal, is of another format, or was made for something else."""


class JournalDamaged(JournalError):
    """The journal is damaged: its content is not what was written.

    Attributes:
        event: the number of the damaged event, where it is one.
    """

    def __init__(self, message: str, *, event: int | None = None) -> None:
        super().__init__(message)
        self.event = event


class JournalDown(JournalError):
    """The journal cannot be written at the moment."""


class JournalFull(JournalDown):
    """The disk, or the journal's size limit, is full."""
