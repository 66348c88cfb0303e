"""Options from a file: `--config serve.toml`, by the names of the options."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import typer

from superarm.errors import InvalidInput


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
