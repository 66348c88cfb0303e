"""A learner in words: its parameters, from the signatures of its classes."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from superarm.explore.base import Rule

if TYPE_CHECKING:
    from superarm.learners.learner import Learner

__all__ = ["chosen", "params", "text"]


def _signature(cls: type) -> dict[str, Any]:
    """Every keyword-only parameter with its default; a subclass's own win."""
    found: dict[str, Any] = {}
    for one in cls.__mro__:
        if "__init__" in vars(one) and one is not object:
            for name, parameter in inspect.signature(vars(one)["__init__"]).parameters.items():
                if parameter.kind is parameter.KEYWORD_ONLY:
                    found.setdefault(name, parameter.default)
    return found


def params(learner: Learner) -> dict[str, Any]:
    """The parameters that a learner was made with, as JSON-ready values."""
    values = {name: getattr(learner, name) for name in _signature(type(learner))}
    for name, value in values.items():
        if isinstance(value, tuple | Rule):
            values[name] = value.to_dict() if isinstance(value, Rule) else list(value)
    return values


def chosen(learner: Learner) -> dict[str, Any]:
    """The parameters that are not the usual ones."""
    found: dict[str, Any] = {}
    for cls in reversed(type(learner).__mro__):  # in the order in which signatures add them
        if "__init__" in vars(cls) and cls is not object:
            for name, one in inspect.signature(vars(cls)["__init__"]).parameters.items():
                if one.kind is one.KEYWORD_ONLY:
                    found[name] = one.default
    values = {name: getattr(learner, name) for name in found}
    own = {name: value for name, value in values.items() if value is not None and value != found[name]}
    if learner.labels is not None:
        own.pop("n_labels", None)
    return own


def text(learner: Learner) -> str:
    words = []
    for name, value in chosen(learner).items():
        many = name == "labels" and len(value) > 6
        inside = f"[{', '.join(map(repr, value[:3]))}, … {value[-1]!r}]" if many else repr(value)
        words.append(f"{name}={list(value)!r}" if name == "labels" and not many else f"{name}={inside}")
    return f"{type(learner).__name__}({', '.join(words)})"
