"""The labels of a labelling: some are added, renamed, merged or disabled while people work.

A label keeps its number for good. One that was merged or disabled is not live any more, and another may take its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from superarm._types import Array
from superarm.label.answers import Answer


class LabelSet:
    """Labels by name and by number.

    Args:
        names: of the labels to begin with.

    Attributes:
        names: of all labels, by number.
        numbers: of all labels, by their names of now and of before.
        live: whether a label may still be given.
        merged_into: the number of the label that it has become; its own if it was not merged.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.numbers = {name: number for number, name in enumerate(names)}
        self.live = np.ones(len(names), bool)
        self.merged_into = list(range(len(names)))

    def live_names(self) -> list[str]:
        """Return the names of the labels that may be given."""
        return [name for name, live in zip(self.names, self.live, strict=True) if live]

    # ------------------------------------------------------------ changes

    def add(self, name: str) -> int:
        """Add a label, or take back the one that was disabled under this name, and return its number."""
        number = self.numbers.get(name)
        if number is not None and self.names[number] == name and self.merged_into[number] == number:
            self.live[number] = True
            return number
        number = self.numbers[name] = len(self.names)
        self.merged_into.append(number)
        self.names.append(name)
        self.live = np.append(self.live, True)
        return number

    def rename(self, old: str, new: str) -> None:
        """Give a label another name; the old name still means it, until another label takes it."""
        number = self.numbers[new] = self.numbers[old]
        self.names[number] = new

    def disable(self, name: str) -> None:
        """Let a label not be given any more."""
        self.live[self.numbers[name]] = False

    def merge(self, name: str, into: str) -> None:
        """Let a label become another."""
        self.disable(name)
        old, new = self.numbers[name], self.numbers[into]
        self.merged_into = [new if number == old else number for number in self.merged_into]

    # ------------------------------------------------------------ what was said before a change

    def current_probabilities(self, p: Array) -> Array:
        """Return probabilities of the labels of an earlier time for the labels of now."""
        k = len(self.names)
        if p.shape[1] < k:
            p = np.concatenate([p, np.full((len(p), k - p.shape[1]), 1.0 / k)], axis=1)
        elif self.live.all():
            return p
        p = np.maximum(p, 1e-12)
        for number, into in enumerate(self.merged_into):
            if into != number:
                p[:, into] += p[:, number]
        p *= self.live
        p /= p.sum(axis=1, keepdims=True)
        return p

    def current_names(self, names: Iterable[str], *, denied: bool) -> list[str]:
        """Return what labels are called now, some of which were renamed or merged; unknown names stay as they are.

        A "no" about a label that was merged says nothing about the other: such labels are left out if ``denied``.
        """
        current: dict[str, None] = {}
        for name in names:
            number = self.numbers.get(name)
            into = None if number is None else self.merged_into[number]
            if into == number or not denied:
                current[name if into is None else self.names[into]] = None
        return list(current)

    def current_answer(self, answer: Answer) -> Answer | None:
        """Return an answer in the labels of now; None if none of the labels in it is live."""
        if self.live.all():
            return answer
        into = self.merged_into
        label = answer.label if answer.label < 0 else into[answer.label]
        # a "no" about a label that was merged says nothing about the other
        same = [number for number in answer.shown if answer.hit or into[number] == number]
        shown = tuple(dict.fromkeys(into[number] for number in same if self.live[into[number]]))
        if not shown if label < 0 else not self.live[label]:
            return None
        return answer._replace(label=label, shown=shown)
