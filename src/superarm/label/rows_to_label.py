"""What is labelled: a table, a folder of pictures or texts, the embedded digits.

Rows with the same content are one item (item_keys.py), which is asked about once.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from superarm._types import Array, Cell, Frame, JsonObject
from superarm.data.cells import is_missing
from superarm.data.column import LEFT_OUT, TEXT, ColumnKinds
from superarm.data.columns import Columns
from superarm.data.encoding import Warnings
from superarm.data.inference import outcome_columns
from superarm.data.labels import parse_label_column
from superarm.data.rows import Rows
from superarm.data.tables import TABLES, open_table, read_matrix
from superarm.errors import InvalidInput, Unquoted
from superarm.label.item_keys import bytes_of_row, key_of_bytes, key_of_cells
from superarm.label.names import MAX_LISTED, label_warnings, sort_labels
from superarm.label.pictures import MEDIA_TYPES, Picture, load_picture, pixel_features
from superarm.label.table_export import EXPORT_COLUMNS, EXPORT_PREFIX


class RowsToLabel:
    """Rows for people and for the model.

    Args:
        name: where they come from.
        cells: what people see of each row, by column.
        features: what the model sees of each row; left out, the cells.
        labels: of each row, the label that the table has for it; None where it has none.
        truth: of each row, the right label, where a simulated labeller is to know it.
        kinds: what some columns are: ``{"note": "text", "id": "left out"}``.
        pictures: a file or a matrix for each row.
        contents: what tells one row from another; left out, its cells do.

    Attributes:
        keys: of the items.
        item_of_row: the item that each row is.
        first_row: the first row that each item is.
        rows_per_item: how many rows each item stands for.
        columns: of the table that the model sees; None if there is none.
        read_options: how they were read, for the journal.
        n_skipped: files of a folder that are hidden, or neither pictures nor texts.
        unreadable: files of a folder that should be pictures, and cannot be read; they are no rows.
    """

    def __init__(
        self,
        name: str,
        cells: list[dict[str, Cell]],
        features: Rows | None = None,
        *,
        labels: list[str | None] | None = None,
        truth: list[str | None] | None = None,
        kinds: ColumnKinds | None = None,
        pictures: Sequence[Path | Array] | None = None,
        contents: list[bytes] | None = None,
    ) -> None:
        nothing: list[str | None] = [None] * len(cells)
        self.name, self.cells, self.pictures = name, cells, pictures
        self.labels, self.truth = labels or nothing, truth or nothing
        self.label_names = sort_labels(self.labels) or None
        self._features = features
        self.columns = _find_columns(cells, name, kinds) if features is None else None
        self.read_options: JsonObject = {}
        self.n_skipped = 0
        self.unreadable = list[str]()
        self.item_of_key: dict[str, int] = {}
        self.item_of_row = np.empty(len(cells), np.int64)
        first_row = []
        for row, values in enumerate(cells):
            key = key_of_cells(values) if contents is None else key_of_bytes(contents[row])
            if key not in self.item_of_key:
                self.item_of_key[key] = len(self.item_of_key)
                first_row.append(row)
            self.item_of_row[row] = self.item_of_key[key]
        self.keys, self.first_row = list(self.item_of_key), np.array(first_row, np.int64)
        self.rows_per_item = np.bincount(self.item_of_row, minlength=len(self.keys)).astype(float)

    def __len__(self) -> int:
        return len(self.cells)

    # ------------------------------------------------------------ where they come from

    @classmethod
    def read(
        cls,
        source: Frame | str | Path,
        *,
        label: str | None = None,
        answers: str | None = None,
        vectors: str | Path | None = None,
        kinds: ColumnKinds | None = None,
    ) -> RowsToLabel:
        """Read rows from a file, a folder, a frame, a list of dicts, or ``"digits"``.

        Args:
            source: what to label.
            label: the column that holds labels, wholly or in part: it is neither shown nor a feature.
            answers: the column that holds the truth, for a simulated labeller: neither, too.
            vectors: an .npy with a vector for each row, in place of pixels, or beside the columns.
            kinds: what some columns are: ``{"note": "text", "id": "left out"}``.
        """
        path = Path(source) if isinstance(source, str | PathLike) else None
        if path is not None and path.is_dir():
            _check_no_columns(str(path), labels=label, answers=answers, kinds=kinds)
            rows = cls._read_folder(path, vectors)
        elif path is not None and (path.suffix.lower() == ".npz" or _is_digits(path)):
            _check_no_columns(str(path), labels=label, vectors=vectors, kinds=kinds)
            if answers not in (None, "y"):
                raise InvalidInput.must("answers", str(path), "y, the truth that it holds", answers)
            rows = cls._read_arrays(path)
        else:
            if path is not None and path.suffix.lower() not in TABLES:
                wanted = f"a folder, digits, or a file that ends in {', '.join((*TABLES, '.npz'))}"
                raise InvalidInput.must("rows", "superarm label", wanted, str(source))
            table = open_table(source, vectors=None if vectors is None else Path(vectors))
            rows = cls._from_columns(table.name, table.read(), label, answers, kinds)
        options: JsonObject = {"label": label, "answers": answers, "vectors": vectors and str(vectors)}
        options["kinds"] = dict(kinds or {})
        rows.read_options = {name: value for name, value in options.items() if value}
        return rows

    @classmethod
    def _from_columns(
        cls,
        name: str,
        content: dict[str, list[Cell]],
        label: str | None,
        answers: str | None,
        kinds: ColumnKinds | None,
    ) -> RowsToLabel:
        for option, column in (("labels", label), ("answers", answers)):
            if column is not None and column not in content:
                others = (
                    ""
                    if option == "answers"
                    else ", or a list of names (on the command line, a file of them)"
                )
                wanted = f"one of its columns {', '.join(content)}{others}"
                raise InvalidInput.must(option, name, wanted, column, choices=content)
        if all(column in content or EXPORT_PREFIX + column in content for column in EXPORT_COLUMNS):
            wanted = (
                f"a table without {', '.join(EXPORT_COLUMNS)} (labels that were only accepted are a model's)"
            )
            raise InvalidInput.must("rows", name, wanted, Unquoted("what superarm labels export has written"))
        columns = [column for column in content if column not in (label, answers)]
        n = len(next(iter(content.values()), ()))
        return cls(
            name,
            [{column: content[column][row] for column in columns} for row in range(n)],
            labels=None if label is None else _label_names(content[label]),
            truth=None if answers is None else _label_names(content[answers]),
            kinds=kinds,
        )

    @classmethod
    def _read_arrays(cls, path: Path) -> RowsToLabel:
        """Read the rows of an .npz, or the embedded digits, which are pictures."""
        from superarm.streams import open_data

        stream: Any = open_data(str(path))
        truth: list[str | None] = [str(y if stream.labels is None else stream.labels[y]) for y in stream.y]
        cells: list[dict[str, Cell]] = [{"number": row} for row in range(len(truth))]
        pictures = None
        if _is_digits(path):
            cells = [{"picture": f"digit {row}"} for row in range(len(truth))]
            pictures = [x.reshape(8, 8) for x in np.asarray(stream.rows.dense)]
        contents = [bytes_of_row(stream.rows.row(row)) for row in range(len(truth))]
        return cls(str(path), cells, stream.rows, truth=truth, pictures=pictures, contents=contents)

    @classmethod
    def _read_folder(cls, path: Path, vectors: str | Path | None) -> RowsToLabel:
        files = sorted(file for file in path.rglob("*") if file.is_file())
        visible = [file for file in files if not any(p.startswith(".") for p in file.relative_to(path).parts)]
        pictures = [file for file in visible if file.suffix.lower() in MEDIA_TYPES]
        texts = [file for file in visible if file.suffix.lower() == ".txt"]
        if bool(pictures) == bool(texts):
            wanted = f"pictures ({', '.join(MEDIA_TYPES)}) or texts (.txt)"
            raise InvalidInput.must("folder", str(path), wanted, Unquoted("both" if texts else "neither"))
        n_rows = len(pictures or texts)
        matrix = None if vectors is None else _read_vectors(Path(vectors), n_rows, str(path))
        rows = (
            cls._from_pictures(path, pictures, matrix) if pictures else cls._from_texts(path, texts, matrix)
        )
        rows.n_skipped = len(files) - n_rows
        return rows

    @classmethod
    def _from_pictures(cls, folder: Path, files: list[Path], vectors: Array | None) -> RowsToLabel:
        unreadable = []
        if vectors is None:
            pixels = {file: pixel_features(file) for file in files}
            files = [file for file in files if pixels[file] is not None]
            unreadable = [str(file.relative_to(folder)) for file in pixels if pixels[file] is None]
            if not files:
                got = Unquoted(f"{len(unreadable)} broken")
                raise InvalidInput.must("pictures", str(folder), "some that can be read", got)
            vectors = np.array([pixels[file] for file in files])
        cells: list[dict[str, Cell]] = [{"picture": str(file.relative_to(folder))} for file in files]
        contents = [file.read_bytes() for file in files]
        rows = cls(str(folder), cells, Rows(vectors), pictures=files, contents=contents)
        rows.unreadable = unreadable
        return rows

    @classmethod
    def _from_texts(cls, folder: Path, files: list[Path], vectors: Array | None) -> RowsToLabel:
        contents = [file.read_bytes() for file in files]
        cells: list[dict[str, Cell]] = [
            {"file": str(file.relative_to(folder)), "text": _decode(content, file)}
            for file, content in zip(files, contents, strict=True)
        ]
        for row, vector in zip(cells, () if vectors is None else vectors, strict=False):
            row["vectors"] = vector
        return cls(str(folder), cells, kinds={"file": LEFT_OUT, "text": TEXT}, contents=contents)

    # ------------------------------------------------------------ for the model and for people

    def label_by_item(self) -> dict[int, str | None]:
        """Return the label of each item for which the table has one; None where its rows have different ones."""
        return self._by_item(self.labels)

    def _by_item(self, labels: list[str | None]) -> dict[int, str | None]:
        by_item: dict[int, str | None] = {}
        for item, label in zip(self.item_of_row.tolist(), labels, strict=True):
            if label is not None:
                by_item[item] = label if by_item.get(item, label) == label else None
        return by_item

    def warnings(self) -> list[str]:
        """Return what may be wrong with the rows, and with the labels that the table has, a sentence each."""
        sentences = label_warnings([*self.labels, *self.truth])
        by_item = (self._by_item(labels) for labels in (self.labels, self.truth))
        n_contradicted = len({item for labels in by_item for item in labels if labels[item] is None})
        if n_contradicted:
            problem = "rows whose copies have other labels in the table"
            sentences.append(f"{problem}: {n_contradicted:,}; they are asked about")
        empty = self.item_of_key.get(key_of_cells(dict.fromkeys(self.cells[0])))
        if empty is not None and self.rows_per_item[empty] > 1:
            n_empty = int(self.rows_per_item[empty])
            sentences.append(
                f"{n_empty:,} rows have no value in any column: they are one question, and get one label"
            )
        if self.unreadable:
            names = ", ".join(self.unreadable[:MAX_LISTED])
            sentences.append(f"{len(self.unreadable):,} pictures cannot be read, and are skipped: {names}")
        return sentences

    def encode_items(self, n_labels: int) -> Rows:
        """Return the features of the items; ``columns`` become those for so many labels."""
        if self._features is not None:
            return self._features.take(self.first_row)
        assert self.columns is not None
        self.columns = self.columns.for_labels(max(n_labels, 2))
        warnings: Warnings = {}
        items = self.columns.encode_table(
            [self.cells[row] for row in self.first_row], self.name, warnings=warnings
        )
        self.columns.warnings += [
            warning for warning in warnings.values() if warning not in self.columns.warnings
        ]
        return items

    def check_columns(self, names: Sequence[str] | str) -> list[str]:
        """Return the columns that people are to see (one, or a list); an error if there is none of that name."""
        columns = self.cells[0]
        names = [names] if isinstance(names, str) else names
        for name in names:
            if name not in columns:
                wanted = f"among {', '.join(columns)}"
                raise InvalidInput.must("show", self.name, wanted, name, choices=columns)
        return list(names)

    def values(self, row: int, columns: Sequence[str]) -> dict[str, Cell]:
        """Return what people see of a row: these columns, or all if there are none; vectors are nothing to look at."""
        cells = self.cells[row]
        return {
            name: "" if is_missing(cells[name]) else cells[name]
            for name in (columns or cells)
            if not isinstance(cells[name], np.ndarray | list)
        }

    def picture(self, row: int) -> Picture | None:
        """Return the picture of a row; None if there is none."""
        if self.pictures is None or not 0 <= row < len(self):
            return None
        return load_picture(self.pictures[row])


def _is_digits(path: Path) -> bool:
    return str(path) == "digits" and not path.exists()


def _find_columns(cells: list[dict[str, Cell]], name: str, kinds: ColumnKinds | None) -> Columns:
    """Return what each column holds; ids and the like are taken only where there is nothing else."""
    names = cells[0] if cells else {}
    columns = Columns.infer(iter(cells), reserved=outcome_columns(names), kinds=kinds)
    if len(columns):
        return columns
    got = ", ".join(f"{column} ({reason})" for column, reason in columns.left_out.items()) or "no column"
    raise InvalidInput.must("rows", name, "a table with at least one feature", Unquoted(got))


def _label_names(cells: list[Cell]) -> list[str | None]:
    """Return the labels in a column as strings; ``None`` where there is none."""
    return [label if label is None else str(label) for label in parse_label_column(cells)]


def _check_no_columns(source: str, **options: object) -> None:
    """Refuse options that are about the columns of a table."""
    for name, value in options.items():
        if value:
            wanted = "a file" if name == "labels" else "left out"
            raise InvalidInput.must(name, source, f"{wanted}: it is no table with columns", value)


def _decode(content: bytes, file: Path) -> str:
    """Return a text, without the byte order mark that some editors put first."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wanted = "UTF-8 (convert it, or take it out of the folder)"
        got = Unquoted(f"byte {error.object[error.start]:#04x} at {error.start:,}")
        raise InvalidInput.must("text", str(file), wanted, got) from error


def _read_vectors(path: Path, n_rows: int, owner: str) -> Array:
    matrix = np.asarray(read_matrix(path), np.float32)
    if len(matrix) != n_rows:
        wanted = f"a matrix with {n_rows} rows, one for each file by name"
        raise InvalidInput.must("vectors", owner, wanted, matrix.shape)
    return matrix
