"""Statuses: what the faults of core/, and requests that never reach it, are in HTTP."""

from __future__ import annotations

from superarm.service.core.faults import (
    Conflict,
    Erased,
    JournalError,
    JournalFull,
    Overloaded,
    Refused,
    UnknownDecision,
)

__all__ = ["HttpRefused", "status_of"]

STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (UnknownDecision, 404),
    (Conflict, 409),
    (Erased, 410),
    (JournalFull, 507),
    (JournalError, 503),
    (Overloaded, 503),
)


class HttpRefused(Refused):
    """A request that is refused before it reaches the session."""

    def __init__(self, message: str, *, status: int, field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.status = status


def status_of(error: Exception) -> int:
    if isinstance(error, HttpRefused):
        return error.status
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 422)
