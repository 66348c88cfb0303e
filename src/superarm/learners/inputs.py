"""LearnerInputs: what rows and labels mean to a learner: layout, names of columns, labels, which are eligible.

The layout of rows is fixed by the first one (or by rows with names, or a model file). After that, a single
row of the other kind and the same width is as good, and a matrix of the other kind is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from superarm._types import Array
from superarm.data.columns import Columns, ColumnWarning
from superarm.data.encoding import Warnings, encode_row, encode_table, is_matrix
from superarm.data.inference import ENOUGH_ROWS
from superarm.data.inference_messages import left_out_warnings
from superarm.data.labels import Label, LabelVocabulary
from superarm.data.rows import Layout, Row, Rows, as_row, as_rows, conform_row, layout_of, stack
from superarm.data.tables import is_frame, is_named_rows, named_row
from superarm.decisions.decisions import EligibleLabels
from superarm.errors import InvalidInput, Unquoted
from superarm.parameters import check_int


class LearnerInputs:
    """What rows and labels mean.

    Attributes:
        owner: whose inputs they are, for messages.
        vocabulary: the labels.
        layout: of rows; ``None`` before the first one.
        columns: what the columns of rows with names are; ``None`` for rows without.
        column_warnings: what is not as declared in the last row with names: a sentence for each column.
        warned: the columns that a warning was given about.
        n_features: how wide rows are, (dense, sparse) if they have both parts; ``None`` if that is not known.
        all_labels, showable: the indices of all labels, and of those that may be shown.
        label_additions: (round, labels before) for each time that labels were added.
        sizes_vary: set_size is the most that is shown, and may be all labels.
        shows_one_label: sets have one label.
    """

    sizes_vary = shows_one_label = False

    def __init__(self, owner: str, vocabulary: LabelVocabulary, n_features: Any) -> None:
        self.owner = owner
        self.n_features = self._width(n_features)
        self.layout: Layout | None = None
        self.columns: Columns | None = None
        self.column_warnings: dict[str, str] = {}
        self.warned: set[str] = set()
        self.none_index: int | None = None  # of a label that may be the truth, but is never shown
        self.label_additions: list[tuple[int, int]] = []
        self.use_labels(vocabulary)

    def _width(self, n_features: Any) -> int | tuple[int, int] | None:
        if n_features is None:
            return None
        if isinstance(n_features, list | tuple) and len(n_features) == 2:
            d, width = (check_int("n_features", self.owner, part, 1) for part in n_features)
            return d, width
        return check_int("n_features", self.owner, n_features, 1)

    def invalid(self, parameter: str, expected: str, got: object) -> InvalidInput:
        return InvalidInput.must(parameter, self.owner, expected, got)

    # ------------------------------------------------------------ labels

    def use_labels(self, vocabulary: LabelVocabulary, none_index: int | None = None) -> None:
        """Take these labels; the one of index ``none_index`` is never shown."""
        self.vocabulary = vocabulary
        self.none_index = self.none_index if none_index is None else none_index
        self.all_labels = np.arange(vocabulary.count)
        self.showable = (
            self.all_labels if self.none_index is None else np.delete(self.all_labels, self.none_index)
        )

    @property
    def showable_labels(self) -> list[Label]:
        return self.vocabulary.decode(self.showable)

    @property
    def default_set_size(self) -> int:
        """The set_size if none is given: where sizes vary, all labels; else one."""
        return self.vocabulary.count if self.sizes_vary else 1

    def check_set_size(self, size: Any) -> int:
        """Return a set_size, checked; for ``None`` the default one."""
        m = check_int("set_size", self.owner, self.default_set_size if size is None else size, 1)
        if self.shows_one_label and m != 1:
            raise self.invalid("set_size", "1 (its theory or its rule knows no larger sets)", m)
        if self.sizes_vary and m <= self.vocabulary.count:
            return m
        if m >= self.vocabulary.count:
            raise self.invalid("set_size", f"below n_labels = {self.vocabulary.count}", m)
        return m

    def eligible_indices(
        self, labels: Iterable[Label] | None, named: Mapping[str, Any] | None = None
    ) -> Array:
        """Return the indices of eligible labels, increasing; ``None``: all that may be shown.

        Args:
            labels: the eligible ones.
            named: the row, if it has names: `ScoreInputs` looks at it.
        """
        if labels is None:
            return self.showable
        indices = np.sort(self.vocabulary.encode(labels, "eligible", self.owner))
        if not len(indices):
            raise self.invalid("eligible", "distinct labels, at least one", labels)
        if self.none_index is not None and self.none_index in indices:
            raise self.invalid("eligible", "labels without none_label, which is never shown", labels)
        return indices

    def may_be_right(self, index: int | None, eligible: Iterable[int | None]) -> bool:
        """Return whether a label may be the answer to a decision: it is one of the eligible ones, or none_label."""
        return index is not None and (index in eligible or index == self.none_index)

    def label_may_be_right(self, label: Label, eligible: Iterable[Label] | None) -> bool:
        """Return the same for labels, not their indices; ``None``: all are eligible."""
        index = self.vocabulary.index
        return eligible is None or self.may_be_right(index(label), map(index, eligible))

    def eligible_by_row(self, eligible: Any, n: int, m: int) -> EligibleLabels:
        """Return the indices of eligible labels for n rows of a batch: one list for all, or one for each."""
        given = list(eligible) if isinstance(eligible, Iterable) and not isinstance(eligible, str) else []
        several = bool(given) and not isinstance(given[0], str) and isinstance(given[0], Iterable)
        each = [self.eligible_indices(labels) for labels in (given if several else [given or eligible])]
        if several and len(each) != n:
            wanted, got = f"one list, or one for each of {n} rows", Unquoted(f"{len(each)} lists")
            raise self.invalid("eligible", wanted, got)
        if not self.sizes_vary and any(len(indices) < m for indices in each):
            wanted = f"at least set_size = {m} labels in every row of a batch"
            raise self.invalid("eligible", wanted, eligible)
        return EligibleLabels.by_row(each) if several else EligibleLabels(each[0])

    def labels_at(self, round_: int | None) -> Array:
        """Return the indices of the labels that there were at a round."""
        earlier = [k for start, k in self.label_additions if round_ is not None and round_ < start]
        return self.all_labels[: earlier[0]] if earlier else self.all_labels

    # ------------------------------------------------------------ rows

    def encode_row(self, x: Any, *, grow: bool = True) -> Any:
        """Return a checked copy of one row as compiled code reads it; ``grow`` makes room for new names."""
        named = named_row(x)
        if named is not None:
            return self._encode_named(encode_row, [named], named, grow)
        if self.columns is not None and not isinstance(x, Row):
            is_pair = isinstance(x, tuple) and np.ndim(x[0]) == 1  # a sparse row: indices and values
            if is_pair or np.shape(x) != (self.columns.n_dense,):
                raise self.invalid("x", "a row with names, as its first row was", x)
        or_else = ", or a dict with names" if self.layout is None else ""
        row = as_row(x, self.n_features, self.owner, or_else)
        layout = self.layout or self._declared_layout(layout_of(row))
        row = conform_row(row, layout, self.owner)
        if self.layout is None:
            self.set_layout(layout)
        return row

    def encode_rows(self, X: Any, *, grow: bool = True) -> Rows:
        """Return a checked matrix, which may share its memory with X; warn of columns that are not as declared."""
        if isinstance(X, list) and not X and self.layout is not None:
            return stack([], self.layout)
        if is_named_rows(X) and not self._is_matrix(X):
            rows: Rows = self._encode_named(encode_table, X, X, grow)
            self.warn()
            return rows
        takes_names = self.layout is None or self.columns is not None
        or_else = ", or a data frame or a list of dicts" if takes_names else ""
        rows = as_rows(X, self.n_features, self.owner, or_else)
        if self.layout is None:
            self.set_layout(rows.layout)
        assert self.layout is not None
        if rows.layout.kind != self.layout.kind:
            wanted = f"{self.layout.kind}, as its first row was"
            raise self.invalid("X", wanted, Unquoted(rows.layout.kind))
        return rows

    def encode_owned_rows(self, X: Any) -> Rows:
        """Return a checked matrix that shares no memory with X."""
        rows = self.encode_rows(X)
        # a list or a data frame shares nothing with its matrix
        shares_nothing = not isinstance(X, np.ndarray | Rows | tuple) and not hasattr(X, "tocsr")
        return rows if shares_nothing else rows.copy()

    def is_encoded(self, x: Any) -> bool:
        """Return whether x is a dense row such as `encode_row` gives."""
        layout = self.layout
        is_dense_row = type(x) is np.ndarray and layout is not None and layout == (x.size, 0, 0)
        return is_dense_row and x.ndim == 1 and x.dtype == np.float32 and x.flags.c_contiguous

    def accepts_layout(self, layout: Layout) -> bool:
        """Return whether rows of this layout fit: it is the present one, or the one before the first text."""
        assert self.layout is not None
        return layout.n_dense == self.layout.n_dense and layout.n_sparse in (0, self.layout.n_sparse)

    def set_layout(self, layout: Layout) -> None:
        """Fix the layout of rows."""
        check_int("n_features", self.owner, layout.n_dense + layout.n_sparse, 1)
        self.layout, self.n_features = layout, layout.n_features

    def _declared_layout(self, layout: Layout) -> Layout:
        """Return the layout of both parts, where n_features has both and the first row only one."""
        return Layout(*self.n_features) if isinstance(self.n_features, tuple) else layout

    def example_row(self) -> Any:
        """Return a valid row: zeros, or where rows have names, one without any."""
        if self.columns is not None:
            return {}
        layout = self.layout
        if layout is None:
            n_features = self.n_features
            layout = Layout(*n_features) if isinstance(n_features, tuple) else Layout(n_features or 1, 0)
        if layout.n_sparse == 0:
            return np.zeros(layout.n_dense, np.float32)
        return Row(np.zeros(layout.n_dense) if layout.n_dense else None, ([], []), layout.n_sparse)

    # ------------------------------------------------------------ runs

    def _whole_numbers(self, parameter: str, wanted: str, values: Any) -> Array:
        """Return values as an array of int64; those that are not whole are refused."""
        try:
            with np.errstate(invalid="ignore"):  # NaN is not whole
                numbers = np.ascontiguousarray(values, np.int64)
            whole = bool((numbers == np.asarray(values)).all())
        except (TypeError, ValueError) as error:
            raise self.invalid(parameter, wanted, values) from error
        if not whole:
            raise self.invalid(parameter, wanted, values)
        return numbers

    def check_run(self, n: int, y: Any, order: Any, signed_sizes: Any) -> tuple[Array, Array]:
        """Return label and row indices, checked for compiled code; check ``signed_sizes``, which it fills."""
        y = self._whole_numbers("y", "label indices from 0 (run counts; it knows no names)", y)
        order = np.arange(n) if order is None else self._whole_numbers("order", "row indices", order)
        k = self.vocabulary.count
        if y.shape != (n,) or (n and not 0 <= y.min() <= y.max() < k):
            raise self.invalid("y", f"{n} label indices below n_labels = {k}", y)
        if order.ndim != 1 or (len(order) and not 0 <= order.min() <= order.max() < n):
            raise self.invalid("order", f"row indices below {n}", order)
        if signed_sizes is not None and not (
            isinstance(signed_sizes, np.ndarray)
            and (signed_sizes.dtype, signed_sizes.shape) == (np.intp, order.shape)
            and signed_sizes.flags.carray
            and not np.may_share_memory(signed_sizes, y)
            and not np.may_share_memory(signed_sizes, order)
        ):
            raise self.invalid(
                "signed_sizes", f"a writable array of {len(order)} intp numbers of its own", signed_sizes
            )
        return y, order

    # ------------------------------------------------------------ rows with names

    def _is_matrix(self, X: Any) -> bool:
        """Return whether a table is no more than the matrix that was announced, or that came first."""
        if self.columns is not None or not is_frame(X):
            return False
        return self.layout is not None or (self.n_features == len(X.columns) and is_matrix(X))

    def _columns_for(self, X: Any) -> Columns:
        """Return what the columns of rows with names are; the first rows decide."""
        if self.columns is None:
            if self.layout is not None:
                wanted = f"{self.n_features} numbers, as its first row was"
                raise self.invalid("x", wanted, Unquoted("names"))
            if isinstance(self.n_features, tuple):
                raise self.invalid("x", f"a row of {self.n_features} columns", Unquoted("names"))
            if is_frame(X) and len(X) >= ENOUGH_ROWS and self.n_features is None:
                return self._checked_columns(self.infer_columns(X))
            return self._checked_columns(Columns.open_for(X, self.n_features, self.owner))
        return self.columns

    def infer_columns(self, X: Any) -> Columns:
        """Return what the columns of a table are; warn of those that are left out and may be wanted."""
        columns = Columns.infer(X)
        self.column_warnings |= left_out_warnings(columns.left_out)
        self.warn()
        return columns

    def _encode_named(self, encode: Any, first: Any, x: Any, grow: bool) -> Any:
        """Return a row, or a table, as `encode_row` and `encode_table` do, and take its columns if all went well."""
        column_warnings: Warnings = {}
        columns, k = self._columns_for(first), self.vocabulary.count if grow else None
        encoded, columns = encode(columns, x, self.owner, column_warnings, grow_for=k)
        if columns is not self.columns:
            self.columns = columns
            self.set_layout(columns.layout)
        self.column_warnings = column_warnings
        return encoded

    def use_columns(self, columns: Columns) -> None:
        """Take these columns: the first ones, or the present ones with new ones at the end."""
        self.columns = self._checked_columns(columns)
        self.set_layout(self.columns.layout)

    def _checked_columns(self, columns: Columns) -> Columns:
        """Return columns for as many labels as there are, if they fit what is known of rows."""
        columns = columns.for_labels(self.vocabulary.count)
        if not columns.n_dense and not columns.text_width:
            raise self.invalid("columns", "at least one that is a feature", columns)
        if self.layout is None:
            if self.n_features not in (None, columns.layout.n_features):
                wanted = f"for {self.n_features} features"
                raise self.invalid("columns", wanted, columns.layout.n_features)
        else:
            before = None if self.columns is None else self.columns.to_dict()["columns"]
            if (
                before is None
                or columns.n_dense != self.layout.n_dense
                or columns.to_dict()["columns"][: len(before)] != before
            ):
                raise self.invalid("columns", "its own, with new ones at the end", columns)
        return columns

    def warn(self) -> None:
        """Warn of columns that are not as declared, once of each."""
        for name, sentence in self.column_warnings.items():
            if name not in self.warned:
                self.warned.add(name)
                warnings.warn(f"{self.owner}: {sentence}", ColumnWarning, stacklevel=4)
