"""Errors of a journal.

SuperarmError
└── JournalError        (OSError)       the journal cannot be used
    ├── JournalLocked                    another process has it, or this one already
    ├── JournalMismatch                  not a journal, of another format, or made for something else
    ├── JournalDamaged                   its content is not what was written; `event`, where it is one
    └── JournalUnavailable               it cannot be written at the moment; try again later
        ├── JournalFull                  ... because its disk, or its size limit, is full
        └── JournalReplaced              ... because its file is another one now: nothing can be read either

OtherEventsFirst, inside a service: events that must follow a certain one were not written; it decides them again
"""

from __future__ import annotations

from superarm.errors import SuperarmError


class JournalError(SuperarmError, OSError):
    """The journal cannot be used."""

    http_status = 503  # of a response, where a service meets it


class JournalLocked(JournalError):
    """Another process has the journal, or this one has it open already."""


class JournalMismatch(JournalError):
    """The file is not a journal, is of another format, or was made for something else."""


class JournalDamaged(JournalError):
    """The journal is damaged: its content is not what was written.

    Attributes:
        event: the number of the damaged event, where it is one.
    """

    def __init__(self, message: str, *, event: int | None = None, field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.event = event


class JournalUnavailable(JournalError):
    """The journal cannot be written at the moment."""


class JournalFull(JournalUnavailable):
    """The disk, or the journal's size limit, is full."""

    http_status = 507


class JournalReplaced(JournalUnavailable):
    """The file is another one, or was written by another process: what it says may be a mixture."""


class OtherEventsFirst(Exception):
    """The events were not written: another process has written some since that event."""
