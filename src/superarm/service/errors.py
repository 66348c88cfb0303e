"""Errors of requests, and the HTTP status and the body of every error.

SuperarmError
├── InvalidInput
│   └── InvalidRequest       a request that cannot be taken; `field` names what is at fault
│       ├── UnknownDecision   no decision has that id
│       ├── DecisionErased    its features and context were erased: the request cannot be repeated
│       ├── Conflict          the id, or the outcome, was used for something else
│       └── HttpError         refused for its HTTP: its head, its token, its path
└── Overloaded  (RuntimeError)  too many requests wait; nothing has been done
"""

from __future__ import annotations

from superarm.errors import InvalidInput, SuperarmError
from superarm.journal.errors import JournalError, JournalFull
from superarm.service.messages import Error, ErrorDetail


class InvalidRequest(InvalidInput):
    """A request that cannot be taken."""


class UnknownDecision(InvalidRequest):
    """No decision has that id."""


class DecisionErased(InvalidRequest):
    """The decision's features and context were erased."""


class Conflict(InvalidRequest):
    """The id, or the outcome, was used for something else."""


class Overloaded(SuperarmError, RuntimeError):
    """Too many requests wait."""


class HttpError(InvalidRequest):
    """A request that is refused for its HTTP: its head, its token, its path.

    Attributes:
        status: of the response.
        allowed: the methods of the path, for 405.
    """

    def __init__(self, message: str, *, status: int, field: str | None = None, allowed: str = "") -> None:
        super().__init__(message, field=field)
        self.status, self.allowed = status, allowed


STATUS: dict[type[Exception], int] = {
    UnknownDecision: 404,
    Conflict: 409,
    DecisionErased: 410,
    SuperarmError: 422,
    Exception: 500,
    JournalError: 503,
    Overloaded: 503,
    JournalFull: 507,
}

# what the server refuses before there is a request: the field, and what is wrong with it
SERVER_ERRORS = {
    400: ("request", "must be valid HTTP/1.1"),
    408: ("request", "was not complete in time"),
    429: ("requests", "on one connection must wait for their responses: too many are pipelined"),
    431: ("headers", "of request must be smaller"),
    503: ("connections", "of service must be fewer: try again later"),
}


def status_of(error: Exception) -> int:
    """Return the status of an error: its own, or that of the nearest class in the table."""
    if isinstance(error, HttpError):
        return error.status
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def error_body(error: Exception) -> Error:
    """Return the body of the response to an error."""
    status = status_of(error)
    if status == 500:  # no internals in a response
        return Error(ErrorDetail(500, None, "the service has a bug; its log has it under the request's id"))
    return Error(ErrorDetail(status, getattr(error, "field", None), str(error)))


def server_error_body(status: int, reason: str = "") -> Error:
    """Return the body of a refusal of the server itself; ``reason`` is what its parser says."""
    field, problem = SERVER_ERRORS[status]
    return Error(ErrorDetail(status, field, f"{field} {problem}" + (f": {reason}" if reason else "")))
