"""What is refused for its HTTP, and the status and the body of the response to any error.

An error says its status by an attribute ``http_status``; else it is 422 where the request is at fault, or 500.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from superarm.errors import InvalidInput, SuperarmError


class HttpError(InvalidInput):
    """A request that is refused for its HTTP: its head, its token, its path, a field of its body.

    Attributes:
        http_status: of the response.
        allowed: the methods of the path, for 405.
    """

    def __init__(
        self, message: str, *, status: int = 422, field: str | None = None, allowed: str = ""
    ) -> None:
        super().__init__(message, field=field)
        self.http_status, self.allowed = status, allowed


class ErrorDetail(Struct):
    status: int
    field: Annotated[str | None, Meta(description="The field at fault.")]
    message: str


class Error(Struct):
    error: ErrorDetail


# what the server refuses before there is a request: the field, and what is wrong with it
SERVER_ERRORS = {
    400: ("request", "must be valid HTTP/1.1"),
    408: ("request", "was not complete in time"),
    429: ("requests", "on one connection must wait for their responses: too many are pipelined"),
    431: ("headers", "of request must be smaller"),
    503: ("connections", "of service must be fewer: try again later"),
}


def status_of(error: Exception) -> int:
    """Return the status of an error."""
    return int(getattr(error, "http_status", 422 if isinstance(error, SuperarmError) else 500))


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
