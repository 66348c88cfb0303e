"""The command reference, docs/cli.md, made from the commands themselves:  python docs/cli_reference.py"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main


def markdown() -> str:
    """The reference of all commands as Markdown."""
    from superarm.cli.app import app

    root: Any = typer.main.get_command(app)
    parts = [
        "# Command reference",
        "",
        "Made from the commands by `python docs/cli_reference.py`; a test keeps it current.",
        "",
    ]
    for name, command in root.commands.items():
        if hasattr(command, "commands"):
            arguments = "".join(
                f" {p.name.upper()}" for p in command.params if p.param_type_name == "argument"
            )
            for sub, inner in command.commands.items():
                parts += _section(f"superarm {name}{arguments} {sub}", inner)
        else:
            parts += _section(f"superarm {name}", command)
    return "\n".join(parts)


def _section(title: str, command: Any) -> list[str]:
    lines = [f"## {title}", "", (command.help or "").strip(), ""]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    if arguments or options:
        lines += ["| parameter | what it is | default |", "|---|---|---|"]
    for p in arguments:
        need = "needed" if p.required else _shown(p.default)
        lines.append(f"| `{p.name.upper()}` | {_cell(p.help)} | {need} |")
    for p in options:
        names = ", ".join(f"`{name}`" for name in (*p.opts, *p.secondary_opts))
        need = "needed" if p.required else _shown(p.default)
        lines.append(f"| {names} | {_cell(p.help)} | {need} |")
    return [*lines, ""]


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")


def _shown(default: Any) -> str:
    if default is None or default is False or default == [] or callable(default):
        return ""
    return f"`{default}`"


if __name__ == "__main__":
    Path("docs/cli.md").write_text(markdown(), encoding="utf-8")
