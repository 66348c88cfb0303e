"""The parameters of learners: those that all have are in one place, and every class shows all of its own.

A learner's `__init__` names what it adds and passes the rest on as ``**common``. `complete` gives its class the
whole signature and the whole docstring, so that ``help``, notebooks and `parameters` know of no ``**common``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any, TypedDict

from superarm.data.labels import Label
from superarm.errors import InvalidInput

__all__ = ["CommonParams", "check_params", "complete", "parameters"]

ARGS = re.compile(r"^Args:\n((?: {4}.*(?:\n|$))+)", re.M)


class CommonParams(TypedDict, total=False):
    """What every learner passes on to `Learner`, which says what it means."""

    n_labels: int | None
    labels: Sequence[Label] | None
    n_features: int | tuple[int, int] | None
    set_size: int | None
    seed: int
    intercept: bool | float
    scaling: str | None


def complete(cls: type) -> None:
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
    cls._explained = _explained(doc)  # type: ignore[attr-defined]
    entries: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        entries |= vars(base).get("_explained", {})
    lines = dict.fromkeys(entries[name] for name in own if name in entries)
    if doc and lines:
        args = "Args:\n" + "\n".join(lines) + "\n"
        if not ARGS.search(doc):  # after the first paragraph
            head, _, rest = doc.partition("\n\n")
            doc = f"{head}\n\n{args}\n{rest}".rstrip()
        cls.__doc__ = ARGS.sub(lambda _: args, doc)


def _explained(doc: str) -> dict[str, str]:
    """What a docstring has under Args, by parameter."""
    section = ARGS.search(doc)
    entries = re.split(r"\n(?= {4}\w)", section[1].rstrip()) if section else []
    return {name: entry for entry in entries for name in entry.partition(":")[0].strip().split(", ")}


def parameters(cls: type) -> dict[str, Any]:
    """The parameters of a learner class, with their defaults."""
    given_by_name = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.signature(cls)
    return {name: p.default for name, p in signature.parameters.items() if p.kind in given_by_name}


def check_params(cls: type, args: Sequence[Any], given: dict[str, Any]) -> None:
    """Refuse parameters that a learner class does not have, in a sentence that names the class."""
    signature, owner = inspect.signature(cls), cls.__name__
    if args and all(p.kind is p.KEYWORD_ONLY for p in signature.parameters.values()):
        raise InvalidInput(f"{owner} takes parameters by name, as in {owner}(n_labels=10), got {args[0]!r}")
    known = parameters(cls)
    for name, value in given.items():
        if name in known:
            continue
        if name in ("coverage", "explore"):
            reason = "its update needs the way in which it chooses its sets, so it promises none"
            if "explore" in known and "gamma" not in known:
                reason = "in Python, explore=Cover(coverage=...) is its promise"
            raise InvalidInput.must(name, owner, f"left out: {reason}", value)
        wanted = f"one of its parameters {', '.join(known)}"
        raise InvalidInput.must(name, owner, wanted, name, among=known)
