"""Names of people and of labels: which are allowed, and how they are listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from superarm.data.cells import MISSING_WORDS
from superarm.data.labels import MAX_NAME, check_ordered, is_single_line, parse_label
from superarm.errors import InvalidInput, Unquoted

OWNER = "Labelling"  # whose parameters are at fault, in messages
TABLE_AS_PERSON = "file"  # stands for a person in answers that are labels of the table
MAX_LISTED = 10  # labels or files in a sentence

# ---------------------------------------------------------------- people


def check_person(name: str, owner: str = OWNER) -> str:
    """Return the name of a person, which may be empty. Exports list names between commas, and the table as one."""
    is_name = isinstance(name, str) and "," not in name and name == name.strip() and is_single_line(name)
    if not is_name or name == TABLE_AS_PERSON:
        limit = f"a name of at most {MAX_NAME:,} characters on one line, without commas, and not {TABLE_AS_PERSON!r}"
        raise InvalidInput.must("by", owner, f"a person: {limit}", name)
    return name


def check_known_person(
    name: str,
    known: Collection[str],
    option: str,
    owner: str,
    nobody: str = "nobody has answered under a name yet",
) -> None:
    """Refuse a name that is not among the known people, and list these."""
    if name not in known:
        people = ", ".join(sorted(known))
        wanted = f"one of {people}" if people else f"the name of a person, but {nobody}"
        raise InvalidInput.must(option, owner, wanted, name, choices=known)


# ---------------------------------------------------------------- labels


def check_label(text: str) -> str:
    """Return a label's name, without spaces around it."""
    name = str(text).strip()
    if not name or not is_single_line(name):
        wanted = f"a name of at most {MAX_NAME:,} characters on one line"
        raise InvalidInput.must("label", OWNER, wanted, text)
    return name


def check_labels(labels: Sequence[str]) -> list[str]:
    """Return the names of the labels to begin with."""
    check_ordered(labels, OWNER)
    names = [check_label(label) for label in labels]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        wanted = "distinct names, also without spaces around them"
        raise InvalidInput.must("labels", OWNER, wanted, Unquoted(f"{repeated[0]!r} twice"))
    if len(names) < 2:
        raise InvalidInput.must("labels", OWNER, "at least two names", names)
    return names


def sort_labels(labels: Iterable[str | None]) -> list[str]:
    """Return the distinct labels that are not None: numbers by size, then words by letter."""
    names = {label for label in labels if label is not None}
    return sorted(names, key=lambda name: (isinstance(parse_label(name), str), parse_label(name)))


def label_warnings(labels: Iterable[str | None]) -> list[str]:
    """Return which labels of a table may be no labels, or the same ones in another spelling, a sentence each."""
    names = sort_labels(labels)
    spellings = dict[str, list[str]]()
    for name in names:
        spellings.setdefault(" ".join(name.casefold().split()), []).append(name)
    alike = [list_labels(same) for same in spellings.values() if len(same) > 1]
    missing = [name for name in names if name.lower() in MISSING_WORDS]
    sentences = []
    if missing:
        remedy = "if they mean that there is none, empty those cells"
        sentences.append(f"taken as labels: {list_labels(missing)}; {remedy}")
    if alike:
        more = f"; and {len(alike) - MAX_LISTED:,} more" if len(alike) > MAX_LISTED else ""
        problem = "labels that differ only in upper and lower case, or in spaces, are different labels"
        sentences.append(f"{problem}: {'; '.join(alike[:MAX_LISTED])}{more}")
    return sentences


def list_labels(names: Iterable[str]) -> str:
    """Return names between commas; those that hold a comma are quoted."""
    return ", ".join(repr(name) if "," in name else name for name in names)
