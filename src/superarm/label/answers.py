"""Answers of people about items, in names and in numbers of labels; and the names of people."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import category

from superarm._types import JsonObject
from superarm.errors import InvalidInput
from superarm.label.settings import OWNER

if TYPE_CHECKING:
    from superarm.journal.events import AnswerBody

TABLE_AS_PERSON = "file"  # stands for a person in answers that are labels of the table
MAX_NAME = 1_000  # characters; the page has the same limit
LINE_BREAKERS = ("Cc", "Cs", "Zl", "Zp")  # categories of Unicode: control, surrogates, ends of lines


class Answer(NamedTuple):
    """What a person said about an item, in numbers of labels.

    Attributes:
        seq: the number of its event.
        by: who said it.
        shown: the labels of the question.
        hit: whether the right label is among them; None if the question was skipped.
        label: the right label, where it was named; else -1.
        is_audit: whether the item would have been accepted unasked.
        final: whether earlier answers do not count: a label of the table, or the end of a disagreement.
    """

    seq: int
    by: str
    shown: tuple[int, ...]
    hit: bool | None
    label: int = -1
    is_audit: bool = False
    final: bool = False

    @property
    def is_click(self) -> bool:
        """Whether it answers a question: it was not skipped, and is not final."""
        return self.hit is not None and not self.final

    @classmethod
    def from_body(cls, body: AnswerBody, numbers: Mapping[str, int], seq: int = 0) -> Answer:
        """Return the answer of an event, with the numbers that labels have."""
        shown = tuple(numbers[name] for name in body.labels or ())
        label = -1 if body.label is None else numbers[body.label]
        return cls(seq, body.by, shown, body.final or body.hit, label, body.audit, body.final)

    def in_names(self, names: Sequence[str]) -> JsonObject:
        """Return who said it, the labels shown, hit, the label and whether it is final, with names of labels."""
        return {
            "by": self.by,
            "labels": [names[label] for label in self.shown],
            "hit": self.hit,
            "label": names[self.label] if self.label >= 0 else None,
            "final": self.final,
        }


def is_single_line(name: str) -> bool:
    """Return whether a text can be a name: not too long, and on one line."""
    return len(name) <= MAX_NAME and not any(category(letter) in LINE_BREAKERS for letter in name)


def check_person(name: str, owner: str = OWNER) -> str:
    """Return the name of a person, which may be empty. Exports list names between commas, and the table as one."""
    if "," in name or name != name.strip() or name == TABLE_AS_PERSON or not is_single_line(name):
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
        people = ", ".join(person or "'' (whoever gave no name)" for person in sorted(known))
        wanted = f"one of {people}" if people else f"the name of a person, but {nobody}"
        raise InvalidInput.must(option, owner, wanted, name, choices=known)
