"""The API reference, made from signatures and docstrings when the site is built."""

from __future__ import annotations

import importlib.util
import inspect
import re
from typing import Any

ROOMS = (
    "superarm",
    "superarm.streams",
    "superarm.logs",
    "superarm.sklearn",
    "superarm.sets",
    "superarm.theory",
)
HEADING = re.compile(r"^(Args|Attributes|Returns|Raises):$", re.M)
ITEM = re.compile(r"^    (\S[^:\n]*): (.*(?:\n     +\S.*)*)", re.M)


def markdown() -> str:
    """One section for each room, with its public names."""
    parts = ["# Library reference", "Made from the docstrings."]
    seen = set[int]()
    for room in ROOMS:
        if importlib.util.find_spec(room) is None:  # not part of this checkout
            continue
        module = importlib.import_module(room)
        parts.append(f"## {room}")
        for name in module.__all__:
            if name in ("checks", "errors", "streams", "theory"):
                continue  # a room of its own
            thing = getattr(module, name, None)
            documented = inspect.isclass(thing) or inspect.isfunction(thing)
            if documented and id(thing) not in seen and thing.__module__.startswith("superarm"):
                seen.add(id(thing))
                parts += _entry(f"{room}.{name}", thing, 3)
    return "\n\n".join(parts) + "\n"


def _entry(name: str, thing: Any, level: int) -> list[str]:
    parts = [f"{'#' * level} {name}", f"```python\n{name.rpartition('.')[2]}{_signature(thing)}\n```"]
    parts.append(_text(inspect.getdoc(thing) or ""))
    if inspect.isclass(thing):
        for key, member in vars(thing).items():
            method = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if not key.startswith("_") and inspect.isfunction(method) and method.__doc__:
                parts.append(f"**`.{key}{_signature(method)}`**")
                parts.append(_text(inspect.getdoc(method) or ""))
    return parts


def _signature(thing: Any) -> str:
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "(…)"
    text = re.sub(r"\(self(, )?", "(", text).replace("'", "")
    return re.sub(r"(superarm|numpy|collections\.abc|typing)(\.\w+)*\.(?=\w)", "", text)


def _text(doc: str) -> str:
    """Google's sections become lists, examples become code."""
    doc = re.sub(r"(?m)((?:^>>> .*\n?)(?:^(?!\s*$).*\n?)*)", r"```python\n\1\n```\n", doc)
    doc = HEADING.sub(r"\n**\1**\n", doc)
    doc = ITEM.sub(lambda m: f"- `{m[1]}`: " + re.sub(r"\s*\n\s+", " ", m[2]), doc)
    return re.sub(r"``([^`\n]+)``", r"`\1`", doc)
