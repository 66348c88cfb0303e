"""Checks of parameters, each with its one clear sentence; for learners and rules, ours or your own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from superarm.errors import InvalidInput

__all__ = ["as_bit", "choice", "existing_file", "number", "share", "whole"]


def as_bit(value: Any) -> bool | None:
    """True or False, also as a 1 or a 0 of any kind of number; ``None`` for anything else."""
    if isinstance(value, bool | np.bool_ | int | float | np.number) and value in (0, 1):
        return bool(value)
    return None


def whole(parameter: str, owner: str, value: Any, least: int) -> int:
    """A whole number from ``least`` to 2**62."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInput.must(parameter, owner, f"a whole number of at least {least}", value)
    if value >= 2**62:
        raise InvalidInput.must(parameter, owner, "below 2**62", value)
    return int(value)


def number(parameter: str, owner: str, value: Any, above: float, most: float = np.inf) -> float:
    """A number above ``above``, up to ``most``."""
    ok = isinstance(value, int | float | np.number) and above < value <= most and value < np.inf
    if isinstance(value, bool) or not ok:
        limits = f"in ({above:g}, {most:g}]" if most < np.inf else f"a number above {above:g}"
        raise InvalidInput.must(parameter, owner, limits, value)
    return float(value)


def share(parameter: str, owner: str, value: Any, most: float = 1.0) -> float:
    """A number from 0 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 <= value <= most:
        raise InvalidInput.must(parameter, owner, f"in [0, {most:g}]", value)
    return float(value)


def choice(parameter: str, owner: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in choices:
        raise InvalidInput.must(parameter, owner, " or ".join(map(repr, choices)), value)
    return str(value)


def existing_file(path: Path) -> Path:
    """The path of a file that is there."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder, not a file")
    if not path.is_file():
        raise InvalidInput(f"no such file: {path}")
    return path
