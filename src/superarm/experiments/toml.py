"""A TOML file as msgspec structs; an error names the key and its line."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_type_hints

from msgspec import Struct, ValidationError, convert

from superarm.errors import InvalidInput, must

KeyPath = tuple[str | int, ...]  # from the file's top to a value: keys, and numbers in lists
T = TypeVar("T", bound=Struct)

TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A file and its text."""

    name: str
    text: str

    def read(self, kind: type[T]) -> T:
        """Its content, checked."""
        content: dict[str, Any] = {}
        try:
            content = tomllib.loads(self.text)
            return convert(content, kind)
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"{self.name}: {error}") from error
        except ValidationError as error:
            raise self._refusal(str(error), content, kind) from None

    def error(self, keys: KeyPath, message: object) -> InvalidInput:
        """An error about the value at the end of ``keys``."""
        return InvalidInput(f"{self.name}, line {line_of(self.text, keys)}: {message}")

    def must(self, keys: KeyPath, be: str, got: object, among: tuple[str, ...] = ()) -> InvalidInput:
        """An error about the value at the end of ``keys``: what it must be, and what it is."""
        # a number belongs to the key before
        at = max(i for i, key in enumerate(keys) if isinstance(key, str))
        owner = ", ".join([self.name, *filter(None, [_spell(keys[:at])])])
        return self.error(keys, must(_spell(keys[at:]), owner, be, got, among=among))

    def _refusal(self, complaint: str, content: dict[str, Any], kind: type[Struct]) -> InvalidInput:
        """msgspec's complaint, or that of a struct, which begins with the name of a key; in our words."""
        text, _, path = complaint.partition(" - at `$")
        keys: KeyPath = tuple(int(i) if i else key for key, i in re.findall(r"\.(\w+)|\[(\d+)\]", path))
        if named := re.match(r"Object (\w+) \w+ field `(.*)`", text):
            known, key = _struct_at(kind, keys).__struct_fields__, named[2]
            if named[1] == "missing":
                return self.error((*keys, key), f"{_spell((*keys, key))} is missing")
            return self.must((*keys, key), f"one of the keys {', '.join(sorted(known))}", key, known)
        value: Any = content
        for key in keys:
            value = value[key]
        if not text.startswith("Expected "):
            name, _, wanted = text.partition(" must be ")
            return self.must((*keys, name), wanted, value[name])
        types, _, _ = text.removeprefix("Expected ").partition(", got ")
        return self.must(keys, re.sub("`(.*?)`", lambda names: _types(names[1]), types), value)


def _types(names: str) -> str:
    """int | array | null, as people say it; TOML has no null."""
    return " or ".join(TYPES[name] for name in names.split(" | ") if name != "null")


def _spell(keys: KeyPath) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")


def _struct_at(kind: Any, keys: KeyPath) -> Any:
    """The struct of a table."""

    def structs(hint: Any) -> list[Any]:
        if isinstance(hint, type) and issubclass(hint, Struct):
            return [hint]
        return [struct for part in get_args(hint) for struct in structs(part)]

    for key in keys:
        if isinstance(key, str):
            kind = structs(get_type_hints(kind)[key])[0]
    return kind


def line_of(text: str, keys: KeyPath) -> int:
    """The line of a key: of its table's header, or of the key itself; the nearest one that can be told.

    >>> line_of('rounds = 5\\n[[data]]\\nsource = "x"\\n[[data]]\\nsource = "y"', ("data", 1, "source"))
    5
    """
    lines = text.splitlines()
    start, end, line = 0, len(lines), 1  # the search narrows from table to key
    for key, following in zip(keys, (*keys[1:], 0), strict=True):
        if isinstance(key, int):
            continue
        number, name = following if isinstance(following, int) else 0, re.escape(key)
        headers = [n for n in range(start, end) if re.match(rf"\s*\[+\s*{name}\s*\]+", lines[n])]
        values = [n for n in range(start, end) if re.match(rf"\s*[\"']?{name}[\"']?\s*=", lines[n])]
        if number < len(headers):
            start = line = headers[number] + 1
            end = next((n for n in range(start, end) if lines[n].lstrip().startswith("[")), end)
        elif values:
            start, line, end = values[0], values[0] + 1, values[0] + 1
    return line
