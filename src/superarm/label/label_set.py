"""The labels of a labelling: some are added, renamed, merged or disabled while people work.

A label keeps its index for good. One that was merged or disabled is not live any more, and another may take its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from superarm._types import Array
from superarm.label.answers import Answer


class LabelSet:
    """Labels by name and by index.

    Args:
        names: of the labels to begin with.

    Attributes:
        names: of all labels, by index.
        index_of: of all labels, by their names of now and of before.
        live: whether a label may still be given.
        merged_into: the index of the label that it has become; its own if it was not merged.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.index_of = {name: index for index, name in enumerate(names)}
        self.live = np.ones(len(names), bool)
        self.merged_into = list(range(len(names)))

    def live_names(self) -> list[str]:
        """Return the names of the labels that may be given."""
        return [name for name, live in zip(self.names, self.live, strict=True) if live]

    # ------------------------------------------------------------ changes

    def add(self, name: str) -> int:
        """Add a label, or take back the one that was disabled under this name, and return its index."""
        index = self.index_of.get(name)
        if index is not None and self.names[index] == name and self.merged_into[index] == index:
            self.live[index] = True
            return index
        index = self.index_of[name] = len(self.names)
        self.merged_into.append(index)
        self.names.append(name)
        self.live = np.append(self.live, True)
        return index

    def rename(self, old: str, new: str) -> None:
        """Give a label another name; the old name still means it, until another label takes it."""
        index = self.index_of[new] = self.index_of[old]
        self.names[index] = new

    def disable(self, name: str) -> None:
        """Let a label not be given any more."""
        self.live[self.index_of[name]] = False

    def merge(self, name: str, into: str) -> None:
        """Let a label become another."""
        self.disable(name)
        old, new = self.index_of[name], self.index_of[into]
        self.merged_into = [new if index == old else index for index in self.merged_into]

    # ------------------------------------------------------------ what was said before a change

    def current_probabilities(self, p: Array) -> Array:
        """Return probabilities of the labels of an earlier time for the labels of now."""
        k = len(self.names)
        if p.shape[1] < k:
            p = np.concatenate([p, np.full((len(p), k - p.shape[1]), 1.0 / k)], axis=1)
        elif self.live.all():
            return p
        p = np.maximum(p, 1e-12)
        for index, into in enumerate(self.merged_into):
            if into != index:
                p[:, into] += p[:, index]
        p *= self.live
        p /= p.sum(axis=1, keepdims=True)
        return p

    def current_names(self, names: Iterable[str], *, denied: bool) -> list[str]:
        """Return what labels are called now, some of which were renamed or merged; unknown names stay as they are.

        A "no" about a label that was merged says nothing about the other: such labels are left out if ``denied``.
        """
        current: dict[str, None] = {}
        for name in names:
            index = self.index_of.get(name)
            into = None if index is None else self.merged_into[index]
            if into == index or not denied:
                current[name if into is None else self.names[into]] = None
        return list(current)

    def current_answer(self, answer: Answer) -> Answer | None:
        """Return an answer in the labels of now; None if none of the labels in it is live."""
        if self.live.all():
            return answer
        into = self.merged_into
        label = answer.label if answer.label < 0 else into[answer.label]
        # a "no" about a label that was merged says nothing about the other
        same = [index for index in answer.shown if answer.hit or into[index] == index]
        shown = tuple(dict.fromkeys(into[index] for index in same if self.live[into[index]]))
        if not shown if label < 0 else not self.live[label]:
            return None
        return answer._replace(label=label, shown=shown)
