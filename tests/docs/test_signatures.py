"""`help(...)` and an editor say what every parameter of every public name means."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import superarm

PACKAGES = (
    "explore",
    "streams",
    "losses",
    "theory",
    "checks",
    "logs",
    "logs.nightly",
    "sklearn",
    "service.client.client",
)
# nobody makes these by hand: `decide`, `Decision.given` and `decide_many` do
MADE = {"Decision", "Decisions"}


def public() -> Iterator[tuple[str, Any]]:
    homes = [superarm, *(importlib.import_module(f"superarm.{package}") for package in PACKAGES)]
    seen = set()
    for home in homes:
        for name in home.__all__:
            one = getattr(home, name)
            if callable(one) and not isinstance(one, ModuleType) and id(one) not in seen:
                seen.add(id(one))
                yield name, one


def callables() -> Iterator[tuple[str, Any, str]]:
    """Functions, classes and their methods, each with all that `help` shows of it."""
    for name, one in public():
        if not inspect.isclass(one):
            yield name, one, inspect.getdoc(one) or ""
            continue
        if name not in MADE and not issubclass(one, BaseException):
            yield name, one, inspect.getdoc(one) or ""
        for method, value in vars(one).items():
            plain = inspect.isfunction(value) or isinstance(value, classmethod | staticmethod)
            if plain and not method.startswith("_"):
                yield f"{name}.{method}", getattr(one, method), inspect.getdoc(getattr(one, method)) or ""


def parameters(one: Any) -> list[str]:
    try:
        found = inspect.signature(one).parameters.values()
    except ValueError:  # of built-in classes
        return []
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in found if p.kind not in free and p.name not in ("self", "cls")]


ALL = {name: (one, doc) for name, one, doc in callables()}


@pytest.mark.parametrize("name", ALL)
def test_every_parameter_is_explained(name: str) -> None:
    one, doc = ALL[name]
    missing = [word for word in parameters(one) if not re.search(rf"\b{re.escape(word)}\b", doc)]
    assert missing == []


def test_learners_say_what_each_parameter_is_for() -> None:
    """A line for each, under Args."""
    learners = [one for _, one in public() if inspect.isclass(one) and issubclass(one, superarm.Learner)]
    assert len(learners) > 10
    for learner in learners:
        doc = inspect.getdoc(learner) or ""
        for word in parameters(learner):
            assert re.search(rf"^ {{4}}(\w+, )*{word}(, \w+)*: ", doc, re.M), (learner.__name__, word)
