"""The API reference, docs/api.md, made from signatures and docstrings:  python docs/make_api.py"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

# the most wanted first; all others of `superarm` follow
FIRST = ("SetLogit", "MCDBF", "Learner", "Decision", "load", "make", "simulate", "Trace")
# made by other calls than their own
NOT_MADE = ("Decision", "Decisions", "Evaluation", "Session", "Summary", "Survey", "Trace", "Training", "Verdict")

# module -> the names to document; None: its __all__
ROOMS: dict[str, tuple[str, ...] | None] = {
    "superarm": None,
    "superarm.explore": None,
    "superarm.kernels": None,
    "superarm.streams": None,
    "superarm.losses": None,
    "superarm.theory": None,
    "superarm.checks": None,
    "superarm.logs": None,
    "superarm.sklearn": None,
    "superarm.service": None,
    "superarm.service.client.client": ("Shown", "Outcome", "ServiceError"),
    "superarm.experiments": None,
    "superarm.report": None,
    "superarm.errors": None,
}
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):$")


def markdown() -> str:
    """The whole reference."""
    parts = [
        "# API reference",
        "",
        "Made from the docstrings by `python docs/make_api.py`; a test keeps it current. All parameters",
        "after a `*` are given by name; `**common` stands for the parameters of `Learner`. Commands are in",
        "the [command reference](cli.md).",
        "",
    ]
    done: set[int] = set()
    for room, chosen in ROOMS.items():
        module = importlib.import_module(room)
        names = [name for name in (chosen or module.__all__) if not inspect.ismodule(getattr(module, name))]
        if room == "superarm":
            names = [*FIRST, *(name for name in names if name not in FIRST)]
        parts += [f"## {room}", ""]
        if chosen is None:
            parts += [*_text(_first(module.__doc__)), ""]
        for name in names:
            thing = getattr(module, name)
            if id(thing) in done:
                continue
            if inspect.isclass(thing) or inspect.isroutine(thing):
                done.add(id(thing))
                parts += _class(thing, name) if inspect.isclass(thing) else _function(thing, name)
    return "\n".join(parts).rstrip() + "\n"


def _class(cls: type, name: str) -> list[str]:
    bases = [base.__name__ for base in cls.__bases__ if base.__module__.startswith("superarm")]
    made = _signature(cls) if _has_own_init(cls) and name not in NOT_MADE else ""
    lines = [f"### {name}", "", f"`{name}{made}`" + (f" · a `{bases[0]}`" if bases else ""), ""]
    lines += [*_text(_own_doc(cls)), ""]
    for member, value in vars(cls).items():
        plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if member.startswith("_") or not (inspect.isfunction(plain) or isinstance(plain, property)):
            continue
        text = _text(inspect.getdoc(plain) or "")
        if text:
            lines += [
                f"#### `.{member}{'' if isinstance(plain, property) else _signature(plain)}`",
                "",
                *text,
                "",
            ]
    return lines


def _function(function: Any, name: str) -> list[str]:
    return [
        f"### {name}",
        "",
        f"`{name}{_signature(function)}`",
        "",
        *_text(inspect.getdoc(function) or ""),
        "",
    ]


def _has_own_init(cls: type) -> bool:
    return "__init__" in vars(cls) and not issubclass(cls, Exception)


def _own_doc(cls: type) -> str:
    """Its docstring, but not the signature that a dataclass has in place of one."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    return "" if dataclasses.is_dataclass(cls) and doc.startswith(f"{cls.__name__}(") else doc


def _signature(function: Any) -> str:
    parts, star = [], False
    for p in inspect.signature(function).parameters.values():
        if p.name in ("self", "cls"):
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        star = star or p.kind is p.VAR_POSITIONAL
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        text = mark + p.name
        if p.default is not p.empty:
            text += f"={p.default!r}" if not inspect.isroutine(p.default) else f"={p.default.__name__}"
        parts.append(text)
    return f"({', '.join(parts)})"


def _first(doc: str | None) -> str:
    """The first paragraph."""
    return inspect.cleandoc(doc or "").partition("\n\n")[0]


def _text(doc: str) -> list[str]:
    """A docstring as Markdown: sections as lists, examples as code."""
    lines: list[str] = []
    example = section = False
    for line in doc.splitlines():
        if line.startswith(">>>") and not example:
            lines += ["```pycon"]
            example = True
        elif example and not line.strip():
            lines += ["```"]
            example = False
        found = SECTION.match(line)
        if example:
            lines.append(line)
        elif found:
            lines += [f"**{found[1]}**", ""]
            section = True
        elif section and line.startswith("        "):
            lines[-1] += " " + _literals(line.strip())
        elif section and line.startswith("    "):
            name, colon, what = line.strip().partition(":")
            item = (
                f"`{name}`: {_literals(what.strip())}" if colon and " " not in name.replace(", ", "") else ""
            )
            lines.append(f"- {item or _literals(line.strip())}")
        else:
            section = section and not line.strip()
            lines.append(_literals(line))
    return [*lines, "```"] if example else lines


def _literals(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", text).replace("<", "&lt;")


if __name__ == "__main__":
    (Path(__file__).parent / "api.md").write_text(markdown(), encoding="utf-8")
