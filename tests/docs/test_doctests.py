"""Every example in a docstring runs, with its numbers."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import superarm
from superarm.errors import MissingExtra

MODULES = sorted(
    m.name for m in pkgutil.walk_packages(superarm.__path__, "superarm.") if "__main__" not in m.name
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except MissingExtra as error:
        pytest.skip(str(error))
    failed, _ = doctest.testmod(module)
    assert failed == 0


def test_there_are_examples() -> None:
    """The learners that people start with show how they are used."""
    for name in ("setlogit", "mcdbf", "perceptron"):
        module = importlib.import_module(f"superarm.learners.{name}")
        assert any(test.examples for test in doctest.DocTestFinder().find(module))
