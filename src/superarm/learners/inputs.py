"""Inputs: what rows and labels mean to a learner: layout, names of columns, labels, who is eligible.

The layout of rows is fixed by the first one (or by rows with names, or a model file). After that, a single
row of the other kind and the same width is as good, and a matrix of the other kind is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from superarm.data.labels import Label, Labels
from superarm.data.named import Names, has_words_or_gaps, is_frame, is_named_row, is_named_rows
from superarm.data.rows import Layout, Row, Rows, as_row, as_rows, copy_of, fitted, layout_of
from superarm.errors import InvalidInput
from superarm.parameters import whole

__all__ = ["Inputs"]

Array = np.ndarray[Any, Any]
FLOAT32 = np.dtype(np.float32)


class Inputs:
    """What rows and labels mean.

    Attributes:
        owner: whose they are, for messages.
        known: the labels.
        layout: of rows; ``None`` before the first one.
        names: what stands where, if rows have names.
        n_features: how wide rows are, (dense, sparse) if they have both parts; ``None`` if nobody said.
        everything, can_show: the numbers of all labels, and of those that may be shown.
        growth: (round, labels before) for each time that labels were added.
        notes: JSON-ready facts that travel with the model file.
        sizes_vary: set_size is the most that is shown, and may be all labels.
    """

    sizes_vary = False

    def __init__(self, owner: str, known: Labels, n_features: Any, *, single_label: bool = False) -> None:
        self.owner, self.single_label = owner, single_label
        self.n_features = self._width(n_features)
        self.layout: Layout | None = None
        self.names: Names | None = None
        self.none: int | None = None  # the number of a label that may be the truth, but is never shown
        self.growth: list[tuple[int, int]] = []
        self.notes: dict[str, Any] = {}
        self.use_labels(known)

    def _width(self, n_features: Any) -> int | tuple[int, int] | None:
        if n_features is None:
            return None
        if isinstance(n_features, list | tuple) and len(n_features) == 2:
            d, width = (whole("n_features", self.owner, part, 1) for part in n_features)
            return d, width
        return whole("n_features", self.owner, n_features, 1)

    def invalid(self, parameter: str, be: str, got: object) -> InvalidInput:
        return InvalidInput.must(parameter, self.owner, be, got)

    # ------------------------------------------------------------ labels

    def use_labels(self, known: Labels, never: int | None = None) -> None:
        """These are the labels; number ``never`` is not to be shown."""
        self.known = known
        self.none = self.none if never is None else never
        self.everything = np.arange(known.count)
        self.can_show = self.everything if self.none is None else np.delete(self.everything, self.none)

    def size(self, size: Any) -> int:
        """A checked set_size."""
        m = whole("set_size", self.owner, size, 1)
        if self.single_label and m != 1:
            raise self.invalid("set_size", "1 (its theory knows no larger sets)", m)
        if self.sizes_vary and m <= self.known.count:
            return m
        if m >= self.known.count:
            raise self.invalid("set_size", f"below n_labels = {self.known.count}", m)
        return m

    def eligible(self, labels: Iterable[Label]) -> Array:
        """The numbers of eligible labels, increasing."""
        among = np.sort(self.known.numbers(labels, "eligible", self.owner))
        if not len(among):
            raise self.invalid("eligible", "distinct labels, at least one", labels)
        if self.none is not None and self.none in among:
            raise self.invalid("eligible", "labels without none_label, which is never shown", labels)
        return among

    def eligible_each(self, eligible: Any, n: int, m: int) -> Array | list[Array]:
        """One array of label numbers for all rows of a batch, or one for each."""
        given = list(eligible) if isinstance(eligible, Iterable) and not isinstance(eligible, str) else []
        several = bool(given) and not isinstance(given[0], str) and isinstance(given[0], Iterable)
        each = [self.eligible(labels) for labels in given] if several else [self.eligible(eligible)]
        if several and len(each) != n:
            raise self.invalid("eligible", f"one list, or one for each of {n} rows", f"{len(each)} lists")
        if not self.sizes_vary and any(len(among) < m for among in each):
            raise self.invalid(
                "eligible", f"at least set_size = {m} labels in every row of a batch", eligible
            )
        return each if several else each[0]

    def labels_at(self, round_: int | None) -> Array:
        """The labels that there were at a round."""
        earlier = [k for start, k in self.growth if round_ is not None and round_ < start]
        return self.everything[: earlier[0]] if earlier else self.everything

    # ------------------------------------------------------------ rows

    def row(self, x: Any, *, grow: bool = True) -> Any:
        """A checked copy of one row as compiled code reads it; ``grow`` makes room for new names."""
        if is_named_row(x):
            if self.takes_columns:
                return self._in_order([x]).row(0)
            return self._names_for([x]).row(x, self.owner, grow=grow)
        if is_frame(x) and len(x) == 1:
            return copy_of(self.rows(x, grow=grow).row(0))
        if self.names is not None and np.shape(x) != (self.n_features,):
            raise self.invalid("x", "a row with names, as its first row was", x)
        row = as_row(x, self.n_features, self.owner)
        if self.layout is None:
            self.fix(self._announced(layout_of(row)))
        assert self.layout is not None
        return fitted(row, self.layout, self.owner)

    def rows(self, X: Any, *, grow: bool = True) -> Rows:
        """A checked matrix, which may share its memory with X."""
        if isinstance(X, list) and not X and self.layout is not None:
            return _no_rows(self.layout)
        named = self.names is not None or self.layout is None
        if self.layout is None and is_frame(X) and self.n_features == len(X.columns):
            named = has_words_or_gaps(X)  # else it is the matrix that was announced
        if self.takes_columns and is_named_rows(X):
            return self._in_order(X)
        if named and is_named_rows(X):
            return Rows(self._names_for(X).rows(X, self.owner, grow=grow))
        rows = as_rows(X, self.n_features, self.owner)
        if self.layout is None:
            self.fix(rows.layout)
        assert self.layout is not None
        if rows.layout.kind != self.layout.kind:
            wanted = f"{self.layout.kind}, as its first row was"
            raise self.invalid("X", wanted, rows.layout.kind)
        return rows

    def own_rows(self, X: Any) -> Rows:
        """A matrix that nobody else can change."""
        rows = self.rows(X)
        made = not isinstance(X, np.ndarray | Rows | tuple) and not hasattr(X, "tocsr")
        return rows if made else rows.copy()  # a list or a data frame shares nothing with its matrix

    def fix(self, layout: Layout) -> None:
        """From now on, rows look like this."""
        whole("n_features", self.owner, layout.d + layout.width, 1)
        self.layout, self.n_features = layout, layout.n_features

    def _announced(self, layout: Layout) -> Layout:
        """Both parts, where n_features has both and the first row only one."""
        return Layout(*self.n_features) if isinstance(self.n_features, tuple) else layout

    def example_row(self) -> Any:
        """A row that would be taken: zeros, or no names."""
        if self.names is not None:
            return {}
        layout = self.layout
        if layout is None:
            n_features = self.n_features
            layout = Layout(*n_features) if isinstance(n_features, tuple) else Layout(n_features or 1, 0)
        if layout.width == 0:
            return np.zeros(layout.d, np.float32)
        return Row(np.zeros(layout.d) if layout.d else None, ([], []), layout.width)

    # ------------------------------------------------------------ rows with names

    def _names_for(self, X: Any) -> Names:
        """What stands where in rows with names; the first of them fix it."""
        if self.names is None:
            if self.layout is not None:
                wanted = f"{self.n_features} numbers, as its first row was"
                raise self.invalid("x", wanted, "names")
            if isinstance(self.n_features, tuple):
                raise self.invalid("x", f"a row of {self.n_features} columns", "names")
            self.use_names(Names.first(X, self.n_features, self.owner))
        assert self.names is not None
        return self.names

    def use_names(self, names: Names) -> None:
        """Take these names: the first, or those of now with new ones at the end."""
        if self.layout is None:
            if self.n_features not in (None, names.width):
                raise self.invalid("names", f"for {self.n_features} features", f"{names.width}")
            self.fix(Layout(names.width, 0, names.places))
        else:
            before = [] if self.names is None else self.names.numbers
            if self.names is None or names.width != self.n_features or names.numbers[: len(before)] != before:
                raise self.invalid("names", "its own, with new ones at the end", names.to_dict())
        self.names = names

    def mark(self) -> Any:
        """What `put_back` needs to undo a first row, or new names."""
        return None if self.names is None else len(self.names), self.n_features, self.layout

    def put_back(self, mark: Any) -> None:
        """As if the rows since then had not come."""
        count, self.n_features, self.layout = mark
        if count is None:
            self.names = None
        elif self.names is not None:
            self.names.forget(count)

    # ------------------------------------------------------------ rows by the columns of a table

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that `superarm.logs.train` took as features."""
        return tuple(self.notes.get("training", {}).get("features", ()))

    @property
    def takes_columns(self) -> bool:
        """Whether its rows are numbers in the order of such columns."""
        return self.names is None and bool(self.notes) and len(self.columns) == self.n_features

    def _in_order(self, X: Any) -> Rows:
        """Rows by the names of those columns."""
        columns = list[Array]()
        for name in self.columns:
            given = [x.get(name) for x in X] if not is_frame(X) else X[name] if name in X.columns else None
            try:
                columns.append(np.array(given, np.float64))
            except (TypeError, ValueError):
                columns.append(np.array(np.nan))
            if np.isnan(columns[-1]).any():
                raise self.invalid(f"x[{name!r}]", "a number in every row, as those it was trained on", given)
        return Rows(np.ascontiguousarray(np.stack(columns, axis=1), np.float32))


def _no_rows(layout: Layout) -> Rows:
    dense = np.zeros((0, layout.d), np.float32) if layout.d else None
    if not layout.width:
        return Rows(dense)
    return Rows(dense, np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(1, np.int64), layout.width)
