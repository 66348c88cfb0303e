"""Tables of a TOML file with checked values, and errors that know their line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from superarm.errors import InvalidInput, must

__all__ = ["KeyPath", "Table"]

NOTHING = object()
KeyPath = tuple[str | int, ...]  # from the file's top to a value: keys, and numbers in lists


@dataclass(slots=True)
class Table:
    """A table of a file, at the end of ``keys``."""

    content: dict[str, Any]
    keys: KeyPath
    file: str
    text: str
    asked: set[str] = field(default_factory=set)

    @property
    def owner(self) -> str:
        """The table's name in errors."""
        return f"{self.file}, {_spell(self.keys)}" if self.keys else self.file

    def get(self, key: str, kind: Any, default: Any = NOTHING) -> Any:
        """The value of a key; it must be of a kind (or one of several)."""
        self.asked.add(key)
        value = self.content.get(key, NOTHING)
        if value is NOTHING:
            if default is NOTHING:
                raise self.wrong((), must(key, self.owner, "given", "nothing"))
            return default
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if type(value) not in kinds:
            words = {
                int: "a whole number",
                str: "a string",
                list: "a list",
                dict: "a table",
                bool: "true or false",
            }
            raise self.wrong((key,), must(key, self.owner, " or ".join(words[k] for k in kinds), value))
        return value

    def choice(self, key: str, choices: tuple[str, ...], default: Any = NOTHING) -> str:
        value = self.get(key, str, default)
        if value not in choices:
            raise self.wrong((key,), must(key, self.owner, f"one of {', '.join(choices)}", value))
        return str(value)

    def numbers(
        self, key: str, values: list[Any], kind: type, *, above: float, most: float = 2**62
    ) -> list[Any]:
        """Checked numbers: distinct, above one limit and up to another."""
        allowed = (int,) if kind is int else (int, float)
        limits = f"above {above:g}" + (f" and at most {most:g}" if most < 2**62 else "")
        name = "whole numbers" if kind is int else "numbers"
        if not values or len(set(map(repr, values))) != len(values):
            raise self.wrong((key,), must(key, self.owner, f"distinct {name}, at least one", values))
        for value in values:
            if type(value) not in allowed or not above < value <= most:
                raise self.wrong((key,), must(key, self.owner, f"{name} {limits}", value))
        return [kind(value) for value in values]

    def table(self, key: str) -> Table | None:
        """The table under a key."""
        content = self.get(key, dict, None)
        return None if content is None else Table(content, (*self.keys, key), self.file, self.text)

    def entries(self, key: str, short: str | None = None) -> list[Table]:
        """A list of tables; with ``short``, a string stands for a table with that one key."""
        tables = []
        for i, value in enumerate(self.get(key, list, [])):
            if short is not None and isinstance(value, str):
                value = {short: value}
            if not isinstance(value, dict):
                raise self.wrong(
                    (key, i),
                    must(f"{key}[{i}]", self.owner, "a table" + (" or a string" if short else ""), value),
                )
            tables.append(Table(value, (*self.keys, key, i), self.file, self.text))
        return tables

    def finish(self) -> None:
        """Refuse keys that nobody asked for."""
        for key in self.content:
            if key not in self.asked:
                raise self.wrong(
                    (key,), must(key, self.owner, f"one of the keys {', '.join(sorted(self.asked))}", key)
                )

    def wrong(self, keys: KeyPath, error: object) -> InvalidInput:
        """An error about a value below this table, with its line."""
        line = line_of(self.text, (*self.keys, *keys))
        return InvalidInput(f"{self.file}, line {line}: {error}")


def _spell(keys: KeyPath) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in keys).lstrip(".")


def line_of(text: str, keys: KeyPath) -> int:
    """The line of a key: of its table's header, or of the key itself; the nearest one that can be told.

    >>> line_of('rounds = 5\\n[[data]]\\nsource = "x"\\n[[data]]\\nsource = "y"', ("data", 1, "source"))
    5
    """
    lines = text.splitlines()
    at, end = 0, len(lines)  # the search narrows from table to key
    best = 1
    i = 0
    while i < len(keys):
        name, number = keys[i], 0
        if i + 1 < len(keys) and isinstance(keys[i + 1], int):
            number = int(keys[i + 1])
            i += 1
        headers = [n for n in range(at, end) if re.match(rf"\s*\[+\s*{re.escape(str(name))}\s*\]+", lines[n])]
        lines_of_key = [
            n for n in range(at, end) if re.match(rf"\s*[\"']?{re.escape(str(name))}[\"']?\s*=", lines[n])
        ]
        if number < len(headers):
            at = headers[number]
            best = at + 1
            at += 1
            end = next((n for n in range(at, end) if re.match(r"\s*\[", lines[n])), end)
        elif lines_of_key:
            at = lines_of_key[0]
            best, end = at + 1, min(end, at + 1)
        i += 1
    return best
