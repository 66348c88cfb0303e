"""Names of labels, as people give them."""

from __future__ import annotations

from collections.abc import Sequence

from superarm.errors import InvalidInput

__all__ = ["OWNER", "check_name", "check_names"]

OWNER = "Labelling"
LONGEST = 200  # characters


def check_name(text: str) -> str:
    """A label's name, without spaces around it."""
    name = str(text).strip()
    if not 0 < len(name) <= LONGEST or not name.isprintable():
        raise InvalidInput.must("label", OWNER, f"a name of at most {LONGEST} characters on one line", text)
    return name


def check_names(labels: Sequence[str]) -> list[str]:
    """The labels to begin with."""
    names = [str(label).strip() for label in labels]
    if len(set(names)) != len(names) or "" in names or len(names) < 2:
        raise InvalidInput.must("labels", OWNER, "at least two distinct names", names)
    return names
