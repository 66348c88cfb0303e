"""The labels of a labelling: some are added, renamed, merged or retired while people work.

A label keeps its number for good. One that was merged or retired is not live any more, and another may take its name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superarm._types import Array
from superarm.label.belief import Answer


class LabelSet:
    """Labels by name and by number.

    Args:
        names: of those to begin with.

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
        """Of the labels that may be given."""
        return [name for name, live in zip(self.names, self.live, strict=True) if live]

    # ------------------------------------------------------------ changes

    def retired_number(self, name: str) -> int | None:
        """The number of a label that was retired under this name; None if there is none."""
        number = self.numbers.get(name)
        if number is None or self.names[number] != name or self.merged_into[number] != number:
            return None
        return number

    def add(self, name: str) -> None:
        """A new label."""
        self.numbers[name] = len(self.names)
        self.merged_into.append(len(self.names))
        self.names.append(name)
        self.live = np.append(self.live, True)

    def rename(self, old: str, new: str) -> None:
        """A label has another name; the old one still means it, until another label takes it."""
        number = self.numbers[new] = self.numbers[old]
        self.names[number] = new

    def retire(self, name: str) -> None:
        """A label may not be given any more."""
        self.live[self.numbers[name]] = False

    def merge(self, name: str, into: str) -> None:
        """A label has become another."""
        self.retire(name)
        old, new = self.numbers[name], self.numbers[into]
        self.merged_into = [new if number == old else number for number in self.merged_into]

    # ------------------------------------------------------------ what was said before a change

    def current_probabilities(self, p: Array) -> Array:
        """Probabilities of the labels of some time before, for those of now."""
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

    def current_answer(self, answer: Answer) -> Answer | None:
        """An answer, in the labels of now; None if all that it speaks of are gone."""
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
