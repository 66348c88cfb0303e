"""Errors of msgspec about invalid values, parsed, in the words of our messages."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import ValidationError

KeyPath = tuple[str | int, ...]  # from the top to a value: keys, and numbers in lists
ANY_KEY = "..."  # in a key path: some key of an object with free keys; msgspec does not name it

AT = re.compile(r" - at `(?:key in )?\$(?P<path>.*)`$")
STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+)\]|\[(?P<any>\.\.\.)\]")
FIELD = re.compile(r"Object (?P<fault>missing required|contains unknown) field `(?P<name>.*)`$")
EXPECTED = re.compile(r"Expected `(?P<types>[^`]+)`(?P<bound>.*?)(, got `(?P<got>[^`]+)`)?$")
BOUND = re.compile(r" (?P<length>of length )?(?P<sign>[<>]=?) (?P<limit>\S+)$")
TYPES = {
    "float": "a number",
    "int": "a whole number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
SIGNS = {">": "above", "<": "below", ">=": "of at least", "<=": "of at most"}


class ValidationFault(NamedTuple):
    """What is wrong with a value.

    Attributes:
        keys: where it is.
        text: the message of msgspec, or of a struct's own check.
        missing, unknown: the name of a field that is missing, or should not be there.
        wanted: what the value must be.
        pattern: whether it must match a pattern.
        sized: whether ``wanted`` is about its length.
        got: of which type it is, if that is the fault.
    """

    keys: KeyPath
    text: str
    missing: str | None = None
    unknown: str | None = None
    wanted: str | None = None
    pattern: bool = False
    sized: bool = False
    got: str | None = None


def parse_fault(error: ValidationError, types: dict[str, str] = TYPES) -> ValidationFault:
    """Return the fault of an error of msgspec; ``types`` are words for its types, types without one are left out.

    >>> from msgspec import convert
    >>> try:
    ...     convert({"sizes": [2, "x"]}, dict[str, list[int]])
    ... except ValidationError as error:
    ...     parse_fault(error).wanted
    'a whole number'
    """
    text = str(error)
    keys = KeyPath()
    if at := AT.search(text):
        text = text[: at.start()]
        keys = tuple(
            int(step["index"]) if step["index"] else step["name"] or ANY_KEY
            for step in STEP.finditer(at["path"])
        )
    if field := FIELD.match(text):
        if field["fault"].startswith("missing"):
            return ValidationFault(keys, text, missing=field["name"])
        return ValidationFault(keys, text, unknown=field["name"])
    expected = EXPECTED.match(text)
    if expected is None:
        return ValidationFault(keys, text)
    wanted = " or ".join(types[name] for name in expected["types"].split(" | ") if name in types)
    bound = BOUND.match(expected["bound"])
    sized = bound is not None and bound["length"] is not None
    if bound is not None:
        wanted += f"{' with a length' if sized else ''} {SIGNS[bound['sign']]} {float(bound['limit']):.9g}"
    got = expected["got"] and types.get(expected["got"], expected["got"])
    return ValidationFault(
        keys, text, wanted=wanted, pattern="matching regex" in expected["bound"], sized=sized, got=got
    )


def format_path(keys: KeyPath) -> str:
    """Return a key path as text.

    >>> format_path(("learners", 0, "use"))
    'learners[0].use'
    """
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")
