"""Names of labels and of people."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from superarm.errors import InvalidInput

__all__ = ["FILE", "OWNER", "check_known_person", "check_name", "check_names", "check_person"]

OWNER = "Labelling"
FILE = "file"  # who gave the labels that the table had
LONGEST = 200  # characters


def check_name(text: str) -> str:
    """A label's name, without spaces around it."""
    name = str(text).strip()
    if not 0 < len(name) <= LONGEST or not name.isprintable():
        raise InvalidInput.must("label", OWNER, f"a name of at most {LONGEST} characters on one line", text)
    return name


def check_names(labels: Sequence[str]) -> list[str]:
    """The labels to begin with."""
    names = [check_name(label) for label in labels]
    if len(set(names)) != len(names) or len(names) < 2:
        raise InvalidInput.must("labels", OWNER, "at least two distinct names", names)
    return names


def check_person(name: str, owner: str = OWNER) -> str:
    """The name of somebody who answers, empty without one. Exports list names between commas, and the table as file."""
    if "," in name or name != name.strip() or name == FILE or len(name) > LONGEST or not name.isprintable():
        wanted = f"a person: a name of at most {LONGEST} characters, without commas, and not {FILE!r}"
        raise InvalidInput.must("by", owner, wanted, name)
    return name


def check_known_person(name: str, known: Collection[str], option: str, owner: str) -> None:
    """Refuse a name that nobody has, and say who there is."""
    if name not in known:
        people = ", ".join(person or "'' (whoever gave no name)" for person in sorted(known))
        raise InvalidInput.must(option, owner, f"one of {people or '(nobody)'}", name, among=known)
