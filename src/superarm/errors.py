"""The exceptions, and the one template of their messages.

SuperarmError
├── InvalidInput      (ValueError)       a parameter, row, label or file content is not what it must be
├── FeedbackError     (ValueError)       an answer that cannot be taken: second, foreign, of the wrong kind
├── ModelFileError    (ValueError)       a model file that is truncated, foreign, newer, or has no folder
│   └── MissingModel  (FileNotFoundError)    a model file that does not exist
├── MissingData       (OSError)          data that must be fetched first, or cannot be had from here
├── WeightsOverflow   (ArithmeticError)  an update was refused because weights would no longer be finite
└── MissingExtra      (ImportError)      an optional part is not installed
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

__all__ = [
    "FeedbackError",
    "InvalidInput",
    "MissingData",
    "MissingExtra",
    "MissingModel",
    "ModelFileError",
    "SuperarmError",
    "Unquoted",
    "WeightsOverflow",
    "at_row",
    "must",
]


class Unquoted(str):
    """What `must` got, in words: shown as it is, where a value would be quoted."""

    __slots__ = ()


class SuperarmError(Exception):
    """The root of all errors that superarm raises on purpose.

    Attributes:
        field: the parameter, column or field at fault, where one is.
    """

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field

    @classmethod
    def must(
        cls,
        parameter: str,
        owner: str,
        expected: str,
        got: object,
        *,
        choices: Iterable[str] = (),
        **details: Any,
    ) -> Self:
        """Return the error with the message of `must`, and with ``parameter`` as its field.

        >>> error = InvalidInput.must("gamma", "MCDBF", "in (0, 1]", 1.5)
        >>> error.field, str(error)
        ('gamma', 'gamma of MCDBF must be in (0, 1], got 1.5')
        """
        message = must(parameter, owner, expected, got, choices=choices)
        return cls(message, field=parameter, **details)


class InvalidInput(SuperarmError, ValueError):
    """A parameter, row, label or file content is not what it must be."""


class FeedbackError(SuperarmError, ValueError):
    """An answer that cannot be taken."""

    @classmethod
    def answered_before(cls, owner: str, round_: int | None) -> Self:
        """Return the error of a second answer to the decision of a round; ``None``: to a given set."""
        which = "a given set" if round_ is None else f"round {round_}"
        return cls(f"decision of {owner} was answered before: {which}", field="decision")


class ModelFileError(SuperarmError, ValueError):
    """A model file that cannot be read, or written where it should be."""


class MissingModel(ModelFileError, FileNotFoundError):
    """A model file that is not there."""


class MissingData(SuperarmError, OSError):
    """Data that must be fetched first, or cannot be had from here; the message says what to do."""


class WeightsOverflow(SuperarmError, ArithmeticError):
    """An update was refused: weights would no longer be finite. The learner is as it was before."""


class MissingExtra(SuperarmError, ImportError):
    """An optional part is not installed; the message has the command that installs it."""


def must(parameter: str, owner: str, expected: str, got: object, *, choices: Iterable[str] = ()) -> str:
    """Return a message: which parameter, of what, must be what, got what.

    Args:
        parameter: its name.
        owner: whose it is.
        expected: what it must be.
        got: the value; an error; or words about it, `Unquoted`.
        choices: words that may have been meant.

    >>> must("gamma", "MCDBF", "in (0, 1]", 1.5)
    'gamma of MCDBF must be in (0, 1], got 1.5'
    >>> must("learner", "superarm", "known", "mc-bdf", choices=["mc-slp", "mc-dbf"])
    "learner of superarm must be known, got 'mc-bdf'; did you mean 'mc-dbf'?"
    >>> must("X", "PA", "a matrix", Unquoted("shape (3,)"))
    'X of PA must be a matrix, got shape (3,)'
    """
    shown = str(got) if isinstance(got, Unquoted | Exception) else repr(got)
    if "\n" in shown:  # a frame, say
        shown = " ".join(shown.split())
    if len(shown) > 80:
        shown = shown[:77] + "..."
    return f"{parameter} of {owner} must be {expected}, got {shown}{_nearest(str(got), choices)}"


def _nearest(word: str, choices: Iterable[str]) -> str:
    from difflib import get_close_matches

    nearest = get_close_matches(word, choices, 1, cutoff=0.7)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def at_row(source: str, number: int) -> str:
    """Return a place in a file or frame: rows count from 1, headers and empty lines do not count.

    >>> at_row("log.csv", 0)
    'log.csv, row 1'
    """
    return f"{source}, row {number + 1}"
