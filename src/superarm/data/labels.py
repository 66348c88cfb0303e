"""Names <-> numbers of labels: once, for learners, streams, logs, the service and scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from superarm._types import Array
from superarm.errors import InvalidInput
from superarm.parameters import check_int

Label = Any  # an int, or a name if there are names


def plain(label: Any) -> Any:
    """A label as Python's own int or str, if it is one of NumPy's."""
    return label.item() if isinstance(label, np.generic) else label


class Labels:
    """The k labels of a problem; compiled code knows them by their numbers 0..k-1.

    Args:
        names: strings or whole numbers, all different; or how many there are, if they have no names.

    >>> labels = Labels(["ant", "bee", "cat"])
    >>> labels.numbers(["cat", "ant"], "labels", "this").tolist(), labels.decode([1])
    ([2, 0], ['bee'])
    """

    __slots__ = ("_number", "_text", "count", "names", "owner")

    def __init__(self, names: int | Sequence[Label], owner: str = "Labels") -> None:
        self._text: dict[str, int] | None = None
        self.owner = owner
        if isinstance(names, int):
            self.names: tuple[Label, ...] | None = None
            self.count = names
            self._number: dict[Label, int] = {}
            return
        known = tuple(plain(name) for name in names)
        if not all(type(n) in (str, int) for n in known) or len(set(known)) != len(known):
            raise InvalidInput.must("labels", owner, "distinct strings or whole numbers", names)
        self.names, self.count = known, len(known)
        self._number = {name: i for i, name in enumerate(known)}

    def __repr__(self) -> str:
        if self.names is None:
            return f"Labels({self.count})"
        few = ", ".join(map(repr, self.names[:6]))
        return (
            f"Labels({few}, … {self.names[-1]!r}: {self.count})"
            if self.count > 7
            else f"Labels({list(self.names)})"
        )

    @classmethod
    def of(cls, n_labels: Any, labels: Sequence[Label] | None, owner: str) -> Labels:
        """From the two parameters of which one must be given."""
        if labels is not None:
            if isinstance(labels, str) or not isinstance(labels, Iterable):
                raise InvalidInput.must("labels", owner, "a list of names", labels)
            named = cls(list(labels), owner)
            if n_labels not in (None, named.count):
                raise InvalidInput.must(
                    "n_labels", owner, f"left out or {named.count}, as labels has", n_labels
                )
            n_labels = named.count
        count = check_int("n_labels", owner, n_labels, 2)
        return cls(count, owner) if labels is None else named

    def __len__(self) -> int:
        return self.count

    def number(self, label: Label) -> int | None:
        """The number of a label; ``None`` if there is no such label."""
        label = plain(label)
        if self.names is None:
            return label if type(label) is int and 0 <= label < self.count else None
        return self._number.get(label) if type(label) in (str, int) else None

    def numbers(self, labels: Iterable[Label], parameter: str, owner: str) -> Array:
        """The numbers of distinct labels; anything else is refused."""
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise InvalidInput.must(parameter, owner, "a list of labels", labels)
        given = list(labels)
        numbers: list[Any] = [self.number(label) for label in given]
        if None in numbers:
            raise InvalidInput.must(parameter, owner, "known labels", given[numbers.index(None)])
        if len(set(numbers)) != len(numbers):
            raise InvalidInput.must(parameter, owner, "distinct labels", given)
        return np.array(numbers, np.int64)

    def by_text(self, label: Label) -> int | None:
        """The number of the label that is written like this: files know no types."""
        if self._text is None:
            self._text = {str(name): i for i, name in enumerate(self.all())}
            if len(self._text) != self.count:
                wanted = "distinct when written as text"
                raise InvalidInput.must("labels", self.owner, wanted, self.names)
        return self._text.get(str(label))

    def all(self) -> list[Label]:
        return list(range(self.count)) if self.names is None else list(self.names)

    def decode(self, numbers: Any) -> list[Label]:
        """The labels behind numbers, as users know them."""
        names = self.names
        places = numbers.tolist() if isinstance(numbers, np.ndarray) else [int(i) for i in numbers]
        return places if names is None else [names[i] for i in places]

    def array(self, numbers: Array) -> Array:
        """The labels behind an array of numbers, in its shape."""
        return numbers if self.names is None else np.array(self.names)[numbers]

    def grown(self, labels: Any, owner: str) -> Labels:
        """With more labels: their names, or how many if these have no names."""
        if self.names is None:
            return Labels(self.count + check_int("labels", owner, labels, 1), owner)
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise InvalidInput.must("labels", owner, "a list of names", labels)
        return Labels([*self.names, *labels], owner)
