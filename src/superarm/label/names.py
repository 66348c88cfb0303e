"""Names of labels, of people, and of the columns that an export adds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from unicodedata import category

from superarm.errors import InvalidInput

OWNER = "Labelling"
FILE = "file"  # who gave the labels that the table had
EXPORT_COLUMNS = (
    "row",
    "label",
    "belief",
    "clicks",
    "how",
    "by",
)  # the columns that superarm labels export adds
PREFIX = "superarm_"  # before such a name, where the table has a column of that name itself
MAX_NAME = 1_000  # characters; the page has the same limit
LINE_BREAKERS = ("Cc", "Cs", "Zl", "Zp")  # categories of Unicode: control, surrogates, ends of lines


def check_label(text: str) -> str:
    """A label's name, without spaces around it."""
    name = str(text).strip()
    if not name or not _is_single_line(name):
        raise InvalidInput.must(
            "label", OWNER, f"a name of at most {MAX_NAME:,} characters on one line", text
        )
    return name


def _is_single_line(name: str) -> bool:
    return len(name) <= MAX_NAME and not any(category(letter) in LINE_BREAKERS for letter in name)


def check_labels(labels: Sequence[str]) -> list[str]:
    """The labels to begin with."""
    names = [check_label(label) for label in labels]
    if len(set(names)) != len(names) or len(names) < 2:
        raise InvalidInput.must("labels", OWNER, "at least two distinct names", names)
    return names


def check_person(name: str, owner: str = OWNER) -> str:
    """The name of somebody who answers, empty without one. Exports list names between commas, and the table as file."""
    if "," in name or name != name.strip() or name == FILE or not _is_single_line(name):
        wanted = f"a person: a name of at most {MAX_NAME:,} characters on one line, without commas, and not {FILE!r}"
        raise InvalidInput.must("by", owner, wanted, name)
    return name


def check_known_person(
    name: str,
    known: Collection[str],
    option: str,
    owner: str,
    nobody: str = "nobody has answered under a name yet",
) -> None:
    """Refuse a name that nobody has, and say who there is."""
    if name not in known:
        people = ", ".join(person or "'' (whoever gave no name)" for person in sorted(known))
        wanted = f"one of {people}" if people else f"the name of a person, but {nobody}"
        raise InvalidInput.must(option, owner, wanted, name, choices=known)


def export_names(columns: Collection[str]) -> dict[str, str]:
    """What the columns that an export adds are called beside those of the table, which keep their names."""
    names = {}
    for name in EXPORT_COLUMNS:
        names[name] = name
        while names[name] in columns:
            names[name] = PREFIX + names[name]
    return names


def exported_columns(columns: Collection[str]) -> tuple[str, ...]:
    """The columns that an export has added to a table; none of a table that is no such export."""
    added = tuple(PREFIX + name if PREFIX + name in columns else name for name in EXPORT_COLUMNS)
    return added if all(name in columns or name.endswith("label") for name in added) else ()
