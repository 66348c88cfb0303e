"""Errors of requests to a service; each knows the status of its response.

SuperarmError
├── InvalidInput           a request that cannot be taken; `field` names what is at fault
│   ├── UnknownDecision     no decision has that id
│   ├── DecisionErased      its features and context were erased: the request cannot be repeated
│   └── Conflict            the id, or the outcome, was used for something else
└── Overloaded  (RuntimeError)  too many requests wait; nothing has been done
"""

from __future__ import annotations

from superarm.errors import InvalidInput, SuperarmError


class UnknownDecision(InvalidInput):
    """No decision has that id."""

    http_status = 404


class DecisionErased(InvalidInput):
    """The decision's features and context were erased."""

    http_status = 410


class Conflict(InvalidInput):
    """The id, or the outcome, was used for something else."""

    http_status = 409


class Overloaded(SuperarmError, RuntimeError):
    """Too many requests wait."""

    http_status = 503
