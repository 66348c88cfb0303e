"""What a stream is: an endless sequence of (row, label), the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from superarm._types import Array
from superarm.data.labels import Label
from superarm.data.rows import Rows


class Chunk(NamedTuple):
    """Some consecutive rounds: rows[i] with label y[i], for i in ``order``."""

    rows: Rows
    y: Array
    order: Array


class Stream(Protocol):
    """A source of rows (see data/rows.py) with the indices 0..k-1 of their labels."""

    name: str
    n_features: int | tuple[int, int]
    n_labels: int
    labels: tuple[Label, ...] | None  # names, if it has them

    def chunks(self, seed: int) -> Iterator[Chunk]:
        """Yield chunks without end; a pure function of the seed."""
        ...


def size_of(stream: Stream) -> dict[str, Any]:
    """Return the number of features and the labels of a stream, as parameters of learners."""
    labels = {"labels": stream.labels} if stream.labels else {"n_labels": stream.n_labels}
    return {"n_features": stream.n_features, **labels}
