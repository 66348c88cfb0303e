"""A first look through a log: its labels, its features, and what it knows about its sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from superarm.decision import Decision, Label
from superarm.errors import InvalidInput
from superarm.kernels.randomness import uniform_number
from superarm.logs.entry import Entry
from superarm.logs.reading import BadRow, Log
from superarm.rows import SparseRow

__all__ = ["Survey", "Vocabulary", "held_out", "survey"]


@dataclass(frozen=True, slots=True)
class Survey:
    """What a log holds."""

    rows: int
    bad: int
    answered: int  # rows with an outcome
    hits: int
    with_propensity: int
    with_design: int  # rows that say how their set was drawn: top set and gamma
    n_features: int
    labels: tuple[Label, ...] | None  # names; None if labels are the numbers 0..n_labels-1
    n_labels: int
    set_size: int  # the most common one

    @property
    def common(self) -> dict[str, Any]:
        """The parameters that every learner for this log shares."""
        names = {"n_labels": self.n_labels} if self.labels is None else {"labels": self.labels}
        return {**names, "n_features": self.n_features, "set_size": min(self.set_size, self.n_labels - 1)}


def survey(log: Log, *, labels: Iterable[Label] | int | None = None, n_features: int | None = None) -> Survey:
    """Read a log once.

    Args:
        log: the log.
        labels: all labels, or how many there are, where not every one was ever shown.
        n_features: for sparse rows whose last features never occur.
    """
    seen: set[Label] = set()
    sizes: Counter[int] = Counter()
    rows = answered = hits = known = drawn = width = 0
    for entry in log:
        rows += 1
        seen.update(entry.labels, entry.top or (), entry.eligible or ())
        if entry.label is not None:
            seen.add(entry.label)
        sizes[len(entry.labels)] += 1
        answered += entry.hit is not None
        hits += entry.hit is True
        known += entry.propensity is not None
        drawn += entry.gamma is not None and (entry.top is not None or entry.gamma == 1.0)
        if isinstance(entry.x, SparseRow) and len(entry.x.indices):
            width = max(width, int(entry.x.indices[-1]) + 1)
    if not rows:
        raise InvalidInput.must("content", str(log.path), "a log with a row that can be read", log.first_bad)
    names, count = _names(seen, labels, str(log.path))
    return Survey(
        rows=rows,
        bad=log.bad,
        answered=answered,
        hits=hits,
        with_propensity=known,
        with_design=drawn,
        n_features=n_features or log.n_features or max(width, 1),
        labels=names,
        n_labels=count,
        set_size=sizes.most_common(1)[0][0],
    )


def _names(seen: set[Label], labels: Any, of: str) -> tuple[tuple[Label, ...] | None, int]:
    """The names of all labels and their number; numbers from 0 on need no names."""
    whole = all(isinstance(label, int) for label in seen)
    if isinstance(labels, int):
        if not whole or max(seen, default=0) >= labels:
            got = sorted(map(str, seen))
            raise InvalidInput.must("labels", of, f"whole numbers below {labels}", got)
        return None, labels
    if labels is not None:
        given = tuple(labels)
        unknown = sorted({str(s) for s in seen} - {str(g) for g in given})
        if unknown:
            raise InvalidInput.must("labels", of, "among the given ones", unknown)
        return given, len(given)
    if whole and 0 in seen and max(seen) < 2 * len(seen):
        return None, max(max(seen) + 1, 2)
    names = sorted(seen) if whole else sorted(map(str, seen))
    if len(names) < 2:
        raise InvalidInput.must("labels", of, "at least two different ones", names)
    return tuple(names), len(names)


class Vocabulary:
    """A learner's labels as a log spells them: 3, 3.0 and "3" are one label."""

    def __init__(self, labels: tuple[Label, ...] | None, n_labels: int) -> None:
        self.labels: tuple[Label, ...] = tuple(range(n_labels)) if labels is None else labels
        self.n_labels = n_labels
        self._place = {str(label): i for i, label in enumerate(self.labels)}
        if len(self._place) != n_labels:
            raise InvalidInput.must("labels", "a log", "distinct when written as text", self.labels)

    def codes(self, labels: Iterable[Label], field: str, place: int) -> list[int]:
        """The numbers of labels."""
        try:
            return [self._place[str(label)] for label in labels]
        except KeyError as error:
            raise BadRow.must(field, f"row {place + 1}", "labels of the learner", error.args[0]) from None

    def decision(self, entry: Entry) -> Decision:
        """The decision that a learner with these labels can learn from."""

        def own(labels: Iterable[Label], field: str) -> list[Label]:
            return [self.labels[i] for i in self.codes(labels, field, entry.place)]

        drawn = own(entry.drawn or entry.labels, "labels")
        among = None if entry.eligible is None else own(entry.eligible, "eligible")
        gamma, top = entry.gamma, None if entry.top is None else own(entry.top, "top")
        if gamma == 1.0 and top is None:  # uniform: any top set gives the same draw
            top = list(among or self.labels)[: len(drawn)]
        if gamma is None or top is None:
            gamma = top = None
        return Decision.given(entry.x, drawn, entry.propensity, top=top, gamma=gamma, eligible=among)


def held_out(place: int, share: float, seed: int = 0) -> bool:
    """Whether the row at ``place`` is kept from training: a pure function, the same for every command.

    >>> [held_out(place, 0.5) for place in range(6)]
    [False, True, False, False, False, False]
    """
    # another seed than a learner's: its draws at that round would be the same numbers, and the rows
    # kept out would be those with certain sets
    return bool(uniform_number(seed + 2**41, place, 0) < share)
