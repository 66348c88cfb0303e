"""Parameters of learners and rules, ours or your own: checks, each with its one clear sentence, and signatures.

A class whose `__init__` names what it adds, and passes the rest on as ``**common``, gets its whole signature and its
whole docstring from `complete_signature`: ``help``, notebooks and `parameters` show no ``**common``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from superarm.errors import InvalidInput

SECONDS_IN = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
ARGS = re.compile(r"^Args:\n((?: {4}.*(?:\n|$))+)", re.M)


def as_bit(value: Any) -> bool | None:
    """Return True or False for a bool, or a 1 or 0 of any kind of number; ``None`` for anything else."""
    if isinstance(value, bool | np.bool_ | int | float | np.number) and value in (0, 1):
        return bool(value)
    return None


def check_int(parameter: str, owner: str, value: Any, minimum: int) -> int:
    """Return a whole number from ``minimum`` to 2**62, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise InvalidInput.must(parameter, owner, f"a whole number of at least {minimum}", value)
    if value >= 2**62:
        raise InvalidInput.must(parameter, owner, "below 2**62", value)
    return int(value)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def check_number(parameter: str, owner: str, value: Any, above: float, maximum: float = np.inf) -> float:
    """Return a number above ``above``, up to ``maximum``, or refuse it."""
    if not is_number(value) or not above < value <= maximum or value == np.inf:
        limits = f"in ({above:g}, {maximum:g}]" if maximum < np.inf else f"a number above {above:g}"
        raise InvalidInput.must(parameter, owner, limits, value)
    return float(value)


def check_share(parameter: str, owner: str, value: Any, maximum: float = 1.0) -> float:
    """Return a number from 0 to ``maximum``, or refuse it."""
    if not is_number(value) or not 0.0 <= value <= maximum:
        raise InvalidInput.must(parameter, owner, f"in [0, {maximum:g}]", value)
    return float(value)


def check_choice(parameter: str, owner: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return one of a few words, or refuse it."""
    if value not in choices:
        raise InvalidInput.must(parameter, owner, " or ".join(map(repr, choices)), value)
    return str(value)


def parse_duration(text: str, option: str, owner: str) -> float:
    """Return the seconds in 90d, 12h, 30m, 45s or 45.

    >>> parse_duration("90d", "--retain", "superarm serve")
    7776000.0
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in SECONDS_IN else (text, "s")
    try:
        seconds = float(number) * SECONDS_IN[unit]
    except ValueError:
        seconds = -1.0
    if not 0.0 < seconds < float("inf"):
        raise InvalidInput.must(option, owner, "a time such as 90d, 12h, 30m or 45s", text)
    return seconds


def existing_file(path: Path) -> Path:
    """Return the path of a file, or refuse one that does not exist."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder, not a file")
    if not path.is_file():
        raise InvalidInput(f"no such file: {path}")
    return path


# ---------------------------------------------------------------- signatures


class Parametrised:
    """A class whose parameters are those of its ``__init__``, kept as attributes of the same names."""

    _hidden_from_tab: ClassVar[frozenset[str]] = frozenset({"invalid", "owner"})

    def __dir__(self) -> list[str]:
        """Return the names that users need, for Tab: all but what is for subclasses."""
        return [name for name in super().__dir__() if name not in self._hidden_from_tab]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        complete_signature(cls)

    @property
    def owner(self) -> str:
        """The name of its class, for error messages."""
        return type(self).__name__

    def invalid(self, parameter: str, expected: str, got: object) -> InvalidInput:
        """Return the error of a parameter that is not as expected."""
        return InvalidInput.must(parameter, self.owner, expected, got)


def complete_signature(cls: type) -> None:
    """Give a class the signature and the docstring that it has with what its base classes add."""
    own: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__[:-1]:
        if "__init__" in vars(base):
            _, *added = inspect.signature(vars(base)["__init__"]).parameters.values()
            own = {p.name: p for p in added if p.kind is not p.VAR_KEYWORD} | own
            if all(p.kind is not p.VAR_KEYWORD for p in added):
                break
    signature = inspect.Signature(sorted(own.values(), key=lambda p: p.kind))
    cls.__signature__ = signature  # type: ignore[attr-defined]
    doc = inspect.cleandoc(cls.__doc__ or "")
    cls._own_parameter_docs = _documented_parameters(doc)  # type: ignore[attr-defined]
    entries: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        # a docstring that was completed has what other classes explain
        raw = vars(base).get("_own_parameter_docs")
        entries |= _documented_parameters(inspect.cleandoc(base.__doc__ or "")) if raw is None else raw
    lines = dict.fromkeys(entries[name] for name in own if name in entries)
    if doc and lines:
        args = "Args:\n" + "\n".join(lines) + "\n"
        if not ARGS.search(doc):  # after the first paragraph
            head, _, rest = doc.partition("\n\n")
            doc = f"{head}\n\n{args}\n{rest}".rstrip()
        cls.__doc__ = ARGS.sub(lambda _: args, doc)


def _documented_parameters(doc: str) -> dict[str, str]:
    """Return the entries under Args of a docstring, by parameter."""
    section = ARGS.search(doc)
    entries = re.split(r"\n(?= {4}\w)", section[1].rstrip()) if section else []
    return {name: entry for entry in entries for name in entry.partition(":")[0].strip().split(", ")}


def parameters(cls: type) -> dict[str, Any]:
    """Return the parameters of a class that can be given by name, with their defaults."""
    given_by_name = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.signature(cls)
    return {name: p.default for name, p in signature.parameters.items() if p.kind in given_by_name}


def check_parameters(cls: type, args: Sequence[Any], given: dict[str, Any]) -> None:
    """Refuse parameters that a learner class does not have, in a sentence that names the class."""
    signature, owner = inspect.signature(cls), cls.__name__
    if args and all(p.kind is p.KEYWORD_ONLY for p in signature.parameters.values()):
        raise InvalidInput(f"{owner} takes parameters by name, as in {owner}(n_labels=10), got {args[0]!r}")
    own = parameters(cls)
    for name in (name for name in given if name not in own):
        if name in ("coverage", "explore"):
            reason = (
                "its update needs its own top set of set_size labels, or the way in which its sets are drawn"
            )
            raise InvalidInput.must(name, owner, f"left out: {reason}", given[name])
        wanted = f"one of its parameters {', '.join(own)}"
        raise InvalidInput.must(name, owner, wanted, name, choices=own)
