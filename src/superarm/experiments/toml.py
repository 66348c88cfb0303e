"""A TOML file as msgspec structs; an error names the key and its line."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_type_hints

from msgspec import Struct, ValidationError, convert

from superarm._validation import TYPES, KeyPath, format_path, parse_fault
from superarm.errors import InvalidInput, must

T = TypeVar("T", bound=Struct)
TOML_TYPES = {name: words for name, words in TYPES.items() if name != "null"} | {"object": "a table"}


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A file and its text."""

    name: str
    text: str

    def read(self, kind: type[T]) -> T:
        """Return the checked content."""
        content: dict[str, Any] = {}
        try:
            content = tomllib.loads(self.text)
            return convert(content, kind)
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"{self.name}: {error}") from error
        except ValidationError as error:
            raise self._refusal(error, content, kind) from None

    def error(self, keys: KeyPath, message: object) -> InvalidInput:
        """Return an error about the value at the end of ``keys``."""
        return InvalidInput(f"{self.name}, line {line_of(self.text, keys)}: {message}")

    def must(self, keys: KeyPath, expected: str, got: object, choices: tuple[str, ...] = ()) -> InvalidInput:
        """Return an error about the value at the end of ``keys``: what it must be, and what it is."""
        # a number belongs to the key before
        last = max(i for i, key in enumerate(keys) if isinstance(key, str))
        owner = ", ".join([self.name, *filter(None, [format_path(keys[:last])])])
        return self.error(keys, must(format_path(keys[last:]), owner, expected, got, choices=choices))

    def _refusal(self, error: ValidationError, content: Any, kind: type[Struct]) -> InvalidInput:
        """Return the error of what msgspec refused, or what a struct refused by a message that begins with a key."""
        fault = parse_fault(error, TOML_TYPES)
        keys = fault.keys
        if fault.missing is not None:
            path = (*keys, fault.missing)
            return self.error(path, f"{format_path(path)} is missing")
        if fault.unknown is not None:
            fields = _struct_at(kind, keys).__struct_fields__
            wanted = f"one of the keys {', '.join(sorted(fields))}"
            return self.must((*keys, fault.unknown), wanted, fault.unknown, fields)
        for key in keys:
            content = content[key]
        if fault.wanted is not None:
            return self.must(keys, fault.wanted, content)
        name, _, wanted = fault.text.partition(" must be ")
        return self.must((*keys, name), wanted, content[name])


def _struct_at(kind: Any, keys: KeyPath) -> Any:
    """Return the struct of the table at ``keys``."""

    def structs(hint: Any) -> list[Any]:
        if isinstance(hint, type) and issubclass(hint, Struct):
            return [hint]
        return [struct for part in get_args(hint) for struct in structs(part)]

    for key in keys:
        if isinstance(key, str):
            kind = structs(get_type_hints(kind)[key])[0]
    return kind


def line_of(text: str, keys: KeyPath) -> int:
    """Return the line of a key: that of its table's header, or of the key itself; if it is not found, the nearest.

    >>> line_of('rounds = 5\\n[[data]]\\nsource = "x"\\n[[data]]\\nsource = "y"', ("data", 1, "source"))
    5
    """
    lines = text.splitlines()
    start, end = 0, len(lines)  # the search narrows from table to key
    line = 1
    for key, following in zip(keys, (*keys[1:], 0), strict=True):
        if isinstance(key, int):
            continue
        number = following if isinstance(following, int) else 0
        name = re.escape(key)
        headers = [n for n in range(start, end) if re.match(rf"\s*\[+\s*{name}\s*\]+", lines[n])]
        values = [n for n in range(start, end) if re.match(rf"\s*[\"']?{name}[\"']?\s*=", lines[n])]
        if number < len(headers):
            start = line = headers[number] + 1
            end = next((n for n in range(start, end) if lines[n].lstrip().startswith("[")), end)
        elif values:
            start, line, end = values[0], values[0] + 1, values[0] + 1
    return line
