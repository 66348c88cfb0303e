"""Rows and labels in memory, visited in a new random order on every pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from superarm.decision import Label
from superarm.errors import InvalidInput
from superarm.rows import Dense, Rows, Sparse, as_rows
from superarm.streams.base import Chunk

__all__ = ["Arrays"]


class Arrays:
    """A stream over a matrix X (dense or SciPy sparse) and labels y.

    Args:
        X: one row per example.
        y: its label: a whole number, or a string.
        labels: the names of all labels; y then holds names, or numbers 0..k-1 of them.
        shuffle: a new random order on every pass; False keeps the order of X.
        scale: ``"unit"`` makes every row's length 1, as the paper's theory asks; ``"none"``.
        name: how it is called in tables.

    >>> stream = Arrays([[3.0, 4.0], [0.0, 2.0]], ["ham", "spam"])
    >>> stream.labels, stream.rows.values.round(1).tolist()
    (('ham', 'spam'), [[0.6000000238418579, 0.800000011920929], [0.0, 1.0]])
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        labels: Sequence[Label] | None = None,
        shuffle: bool = True,
        scale: str = "unit",
        name: str = "arrays",
    ) -> None:
        rows = as_rows(X, None, "Arrays")
        self.n_features = rows.width
        values = rows.values
        if not np.isfinite(values).all():
            raise InvalidInput.must("X", "Arrays", "finite", values[~np.isfinite(values)][0].item())
        if scale not in ("unit", "none"):
            raise InvalidInput.must("scale", "Arrays", "'unit' or 'none'", scale)
        self.rows = _unit(rows) if scale == "unit" else rows
        self.y, self.labels, self.n_labels = _codes(np.asarray(y), labels)
        if len(self.y) != len(rows) or len(self.y) == 0:
            raise InvalidInput.must("y", "Arrays", f"{len(rows)} labels, at least one", len(self.y))
        self.shuffle, self.scale, self.name = shuffle, scale, name

    def chunks(self, seed: int) -> Iterator[Chunk]:
        turn = 0
        while True:
            visit = np.arange(len(self.y))
            if self.shuffle:
                np.random.default_rng([seed, turn]).shuffle(visit)
            yield Chunk(self.rows, self.y, visit)
            turn += 1


def _unit(rows: Rows) -> Rows:
    """Rows of length 1; a row of zeros stays."""
    if isinstance(rows, Dense):
        norms = np.sqrt(np.einsum("ij,ij->i", rows.values, rows.values, dtype=np.float64))
        return Dense(rows.values / np.where(norms > 0.0, norms, 1.0).astype(np.float32)[:, None])
    values, indices, starts, width = rows
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    norms = np.sqrt(np.bincount(owner, values.astype(np.float64) ** 2, len(starts) - 1))
    norms[norms == 0.0] = 1.0
    return Sparse((values / norms[owner]).astype(np.float32), indices, starts, width)


def _codes(y: np.ndarray[Any, Any], labels: Any) -> tuple[Any, tuple[Label, ...] | None, int]:
    """Label numbers, names, and their count."""
    if y.ndim != 1:
        raise InvalidInput.must("y", "Arrays", "one label for each row", f"shape {y.shape}")
    whole = np.issubdtype(y.dtype, np.integer) or (
        np.issubdtype(y.dtype, np.floating) and len(y) > 0 and bool((y == np.floor(y)).all())
    )
    if labels is None and whole:
        code = y.astype(np.int64)
        values = np.unique(code)
        if len(values) and values[0] == 0 and values[-1] < max(2 * len(values), 2):
            return code, None, max(int(values[-1]) + 1, 2)
        labels = values.tolist()
        y = code
    elif labels is None:
        y = y.astype(str)
        labels = np.unique(y).tolist()
    names = tuple(v.item() if isinstance(v, np.generic) else v for v in labels)
    if len(set(names)) != len(names) or len(names) < 2:
        raise InvalidInput.must("labels", "Arrays", "distinct and at least two", names)
    place = {name: i for i, name in enumerate(names)}
    if all(v in place for v in np.unique(y).tolist()):
        return np.array([place[v] for v in y.tolist()], np.int64), names, len(names)
    if whole and y.min() >= 0 and y.max() < len(names):
        return y.astype(np.int64), names, len(names)
    unknown = next(v for v in np.unique(y).tolist() if v not in place)
    raise InvalidInput.must("y", "Arrays", "made of the given labels", unknown)
