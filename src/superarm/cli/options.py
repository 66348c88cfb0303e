"""Options and arguments that several commands have, and what their texts mean."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from superarm.errors import InvalidInput

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]
JournalArgument = Annotated[
    str, typer.Argument(help="The journal of a service, a file or postgresql://…; it may be running.")
]
OwnLearner = Annotated[
    str | None, typer.Option(help="file.py:Class, if the journal's learner is in a file of yours.")
]
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def split_commas(text: str | None) -> tuple[str, ...]:
    """Words between commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def seconds_of(text: str, option: str, owner: str) -> float:
    """The seconds in 90d, 12h, 30m, 45s or 45.

    >>> seconds_of("90d", "--retain", "superarm serve")
    7776000.0
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = -1.0
    if not 0.0 < seconds < float("inf"):
        raise InvalidInput.must(option, owner, "a time such as 90d, 12h, 30m or 45s", text)
    return seconds


def read_labels(path: Path) -> list[str]:
    """One label a line; empty lines, and the mark that some editors put first, do not count."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        wanted = "a UTF-8 text file with one label a line"
        raise InvalidInput.must("--labels", "superarm", wanted, str(path)) from error
    line_of: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        label = line.strip()
        if label in line_of:
            wanted = f"another label than that of line {line_of[label]}"
            raise InvalidInput.must(f"line {number}", str(path), wanted, label)
        if label:
            line_of[label] = number
    if len(line_of) < 2:
        raise InvalidInput.must("labels", str(path), "at least two, one a line", len(line_of))
    return list(line_of)


def read_config(context: typer.Context, parameter: typer.CallbackParam, path: Path | None) -> Path | None:
    """Let a TOML file give the defaults of all other options of a command."""
    if path is None or context.resilient_parsing:
        return path
    command = f"superarm {context.info_name}"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput.must("--config", command, "a TOML file", f"{path}: {error}") from error
    known = {option.name: option for option in context.command.params if option.name != parameter.name}
    defaults: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in known:
            wanted = (
                "left out: there is no such option" if not isinstance(value, dict) else "an option, no table"
            )
            raise InvalidInput.must(key, str(path), wanted, value)
        defaults[name] = value
    context.default_map = {**defaults, **(context.default_map or {})}
    return path
