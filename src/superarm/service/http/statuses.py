"""The status of every fault, in one table; the faults that only HTTP knows; what the server turns down."""

from __future__ import annotations

from superarm.errors import SuperarmError
from superarm.journal.errors import (
    Conflict,
    Erased,
    JournalError,
    JournalFull,
    Overloaded,
    Refused,
    UnknownDecision,
)
from superarm.service.http.messages import Error, Fault

__all__ = [
    "MEANINGS",
    "BodyUnwanted",
    "MethodNotAllowed",
    "NotJson",
    "RoleMissing",
    "TokenWrong",
    "TooLarge",
    "TooMany",
    "UnknownPath",
    "WrongHost",
    "WrongName",
    "WrongType",
    "error_of",
    "refusal",
    "status_of",
]


class NotJson(Refused):
    """The body is not JSON."""


class TokenWrong(Refused):
    """No such token."""


class RoleMissing(Refused):
    """The token's role does not allow it."""


class BodyUnwanted(Refused):
    """The route takes no body."""


class TooLarge(Refused):
    """The body is too large."""


class WrongHost(Refused):
    """Not exactly one Host."""


class WrongName(Refused):
    """Without a token, only loopback names are answered."""


class UnknownPath(Refused):
    """There is no such route."""


class MethodNotAllowed(Refused):
    """The route has other methods."""

    allowed = ""


class WrongType(Refused):
    """The body is not application/json."""


class TooMany(Refused):
    """Too many requests."""


STATUS: dict[type[Exception], int] = {
    NotJson: 400,
    BodyUnwanted: 400,
    WrongHost: 400,
    TokenWrong: 401,
    RoleMissing: 403,
    WrongName: 403,
    UnknownPath: 404,
    UnknownDecision: 404,
    MethodNotAllowed: 405,
    Conflict: 409,
    Erased: 410,
    TooLarge: 413,
    WrongType: 415,
    TooMany: 429,
    Overloaded: 503,
    JournalError: 503,
    JournalFull: 507,
    SuperarmError: 422,
    Exception: 500,
}

# what the server turns down before there is a request to raise a fault about: the field, and what is wrong
SERVER = {
    400: ("request", "must be HTTP/1.1, got something else"),
    408: ("request", "must arrive in time, and did not"),
    429: ("requests", "that wait on one connection must be fewer"),
    431: ("headers", "of request must be smaller"),
    503: ("connections", "of service must be fewer: try again later"),
}

# for the document; 404 and 409 are told by the route
MEANINGS = {
    400: "The request is not HTTP/1.1 with one Host, or its body is not JSON, or not wanted.",
    401: "The token is missing or wrong.",
    403: "The token's role does not allow it; or there is no token, and it is not for this host name.",
    408: "The request did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "A field is not what it must be; `field` names it.",
    429: "Too many requests.",
    431: "The head of the request is too large.",
    500: "A bug; the log has it under the request's id.",
    503: "Not at the moment: the journal cannot be written, or there are too many connections.",
    507: "The journal is full.",
}


def status_of(error: Exception) -> int:
    """The status of the nearest class in the table."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def error_of(error: Exception) -> Error:
    """What the caller is told."""
    status = status_of(error)
    if status == 500:  # nothing of our inside goes out
        return Error(Fault(500, None, "the service has a bug; its log has it under the request's id"))
    return Error(Fault(status, getattr(error, "field", None), str(error)))


def refusal(status: int) -> Error:
    """What the server tells a caller that it turns down."""
    field, wrong = SERVER[status]
    return Error(Fault(status, field, f"{field} {wrong}"))
