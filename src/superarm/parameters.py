"""Parameters of learners and rules, ours or your own: checks, each with its one clear sentence, and signatures."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from superarm.errors import InvalidInput

Class = TypeVar("Class")
SECONDS_IN = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


BIT_TYPES = (bool, np.bool_, int, float, np.number)


def as_bit(value: Any) -> bool | None:
    """Return True or False for a bool, or a 1 or 0 of any kind of number; ``None`` for anything else."""
    if isinstance(value, BIT_TYPES) and value in (0, 1):
        return bool(value)
    return None


def check_bool(parameter: str, owner: str, value: Any) -> bool:
    """Return what is true or false as `as_bit` has it, or refuse it."""
    bit = as_bit(value)
    if bit is None:
        raise InvalidInput.must(parameter, owner, "true or false", value)
    return bit


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
    """A class whose parameters are those of its ``__init__``, kept as attributes of the same names.

    An ``__init__`` that passes ``**common`` on to its base class takes what that takes, too: the signature and the
    docstring of the class get those parameters.
    """

    _hidden_from_tab: ClassVar[frozenset[str]] = frozenset({"invalid", "owner", "parameter_value"})
    _explanations: ClassVar[dict[str, str]] = {}  # entries under Args, by parameter, with the inherited ones

    def __dir__(self) -> list[str]:
        """Return the names that users need, for Tab: all but what is for subclasses."""
        return [name for name in super().__dir__() if name not in self._hidden_from_tab]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__signature__ = full_signature(cls)  # type: ignore[attr-defined]
        head, own, rest = _split_args(inspect.cleandoc(cls.__doc__ or ""))
        cls._explanations = cls._explanations | own
        known = dict.fromkeys(
            cls._explanations[name] for name in parameters(cls) if name in cls._explanations
        )
        if head and known:
            cls.__doc__ = "\n\n".join(filter(None, (head, "\n".join(["Args:", *known]), rest)))

    @property
    def owner(self) -> str:
        """The name of its class, for error messages."""
        return type(self).__name__

    def invalid(self, parameter: str, expected: str, got: object) -> InvalidInput:
        """Return the error of a parameter that is not as expected."""
        return InvalidInput.must(parameter, self.owner, expected, got)

    def parameter_value(self, name: str) -> Any:
        """Return a parameter as it was given."""
        if not hasattr(self, name):
            raise TypeError(f"__init__ of {self.owner} must keep its parameter {name} as self.{name}")
        return getattr(self, name)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters it was made with, as JSON-ready values."""
        values = {name: self.parameter_value(name) for name in parameters(type(self))}
        for name, value in values.items():
            if isinstance(value, tuple):
                values[name] = list(value)
            elif hasattr(value, "to_dict"):  # a rule
                values[name] = value.to_dict()
        return values


def full_signature(cls: type) -> inspect.Signature:
    """Return what a class takes: in place of ``**common`` what its base class takes, which has its full signature."""
    inherited = getattr(cls, "__signature__", inspect.Signature())
    if "__init__" not in vars(cls):
        return inherited
    _, *own = inspect.signature(vars(cls)["__init__"]).parameters.values()
    named = {p.name: p for p in own if p.kind is not p.VAR_KEYWORD}
    if len(named) < len(own):
        named = {**inherited.parameters, **named}
    return inspect.Signature(sorted(named.values(), key=lambda p: p.kind))


def _split_args(doc: str) -> tuple[str, dict[str, str], str]:
    """Return a docstring before its Args, the entries there by parameter, and what follows.

    Without Args it is split after its first paragraph.
    """
    if "Args:\n" not in doc:
        head, _, rest = doc.partition("\n\n")
        return head, {}, rest
    head, _, rest = doc.partition("Args:\n")
    section, _, rest = rest.partition("\n\n")
    entries: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if not line.startswith(" " * 5):  # not the continuation of an entry
            names = line.partition(":")[0].strip().split(", ")
        for name in names:
            entries[name] = f"{entries[name]}\n{line}" if name in entries else line
    return head.rstrip(), entries, rest


def parameters(cls: type) -> dict[str, Any]:
    """Return the parameters of a class that can be given by name, with their defaults."""
    given_by_name = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.signature(cls)
    return {name: p.default for name, p in signature.parameters.items() if p.kind in given_by_name}


def subclasses(cls: type[Class]) -> Iterator[type[Class]]:
    """Yield all classes that are derived from a class, however far; those of one base in the order of definition."""
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


def check_parameters(
    cls: type, args: Sequence[Any], given: dict[str, Any], left_out: Mapping[str, str]
) -> None:
    """Refuse parameters that a class does not have, in a sentence that names the class.

    ``args`` and ``given`` are what its ``__init__`` gets; ``left_out``: why it leaves out some that others have.
    """
    signature, owner = inspect.signature(cls), cls.__name__
    if args and all(p.kind is p.KEYWORD_ONLY for p in signature.parameters.values()):
        raise InvalidInput(f"{owner} takes parameters by name, as in {owner}(n_labels=10), got {args[0]!r}")
    own = parameters(cls)
    for name in (name for name in given if name not in own):
        if name in left_out:
            raise InvalidInput.must(name, owner, f"left out: {left_out[name]}", given[name])
        wanted = f"one of its parameters {', '.join(own)}"
        raise InvalidInput.must(name, owner, wanted, name, choices=own)
