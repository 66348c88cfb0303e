"""What can go wrong in a service, each with the HTTP status that says so.

SuperarmError
├── Refused             (ValueError)    a request that cannot be taken: `status`, and the `field` at fault
│   ├── UnknownDecision  404             no decision has that id
│   └── Conflict         409             the id, or the answer, is taken by something else
└── JournalError        (OSError)       the journal cannot be used
    ├── JournalHeld                      another process has it
    ├── JournalForeign                   not a journal, or one made for something else
    └── JournalDown                      it cannot be written at the moment: `status` 507 (full) or 503
"""

from __future__ import annotations

from superarm.errors import SuperarmError

__all__ = [
    "Conflict",
    "JournalDown",
    "JournalError",
    "JournalForeign",
    "JournalHeld",
    "Refused",
    "UnknownDecision",
]


class Refused(SuperarmError, ValueError):
    """A request that cannot be taken."""

    status = 422

    def __init__(self, message: str, *, field: str | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.field = field
        if status is not None:
            self.status = status


class UnknownDecision(Refused):
    """No decision has that id."""

    status = 404


class Conflict(Refused):
    """The id, or the answer, is taken by something else."""

    status = 409


class JournalError(SuperarmError, OSError):
    """The journal cannot be used."""


class JournalHeld(JournalError):
    """Another process has the journal."""


class JournalForeign(JournalError):
    """The file is not a journal, or was made for something else."""


class JournalDown(JournalError):
    """The journal cannot be written at the moment."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
