"""What is labelled: a table, a folder of pictures or texts, the embedded digits.

Rows with the same content are one row, with copies. A row is known again by its key, a hash of its content: also in a
file whose rows were moved, or to which some were added.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from superarm._extras import need
from superarm._types import Array
from superarm.data.cells import is_missing, parse_scalar
from superarm.data.columns import Columns
from superarm.data.inference import outcome_columns
from superarm.data.rows import Rows
from superarm.data.tables import TABLES, open_table, read_matrix
from superarm.errors import InvalidInput
from superarm.label.names import exported_columns

PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
SIDE = 28  # pixels of a picture's side, as the model sees it
OWNER = "superarm label"


class LabelRows:
    """Rows for people and for the model.

    Args:
        name: where they come from.
        cells: what people see of each row of the table, by column.
        known: of each row, its label where one is known; None where not.
        truth: the same, for a labeller that is played.
        features: a table of what the model sees; or a matrix.
        asked: how columns are to be taken, as `Columns.infer` has it.
        pictures: files or arrays, one for each row.

    Attributes:
        keys: of the distinct rows.
        copies: how many rows of the table each of them stands for.
        inverse: which of them each row of the table is.
        first: the first row of the table that each of them is.
        reading: how they were read, for the journal.
        skipped: files of a folder that are hidden, or neither pictures nor texts.
    """

    def __init__(
        self,
        name: str,
        cells: list[dict[str, Any]],
        known: list[str | None],
        truth: list[str | None],
        features: Any,
        asked: dict[str, Any],
        pictures: list[Any] | None = None,
        identity: list[bytes] | None = None,
    ) -> None:
        self.name, self.cells, self.known, self.truth, self.pictures = name, cells, known, truth, pictures
        self._features, self._asked, self._identity = features, asked, identity
        self.columns: Columns | None = None
        self.reading: dict[str, Any] = {}
        self.skipped = 0
        number_of: dict[str, int] = {}
        firsts = []
        self.inverse = np.empty(len(cells), np.int64)
        for number, row in enumerate(cells):
            content = _content(row) if identity is None else identity[number]
            key = sha256(content).hexdigest()[:24]
            if key not in number_of:
                number_of[key] = len(number_of)
                firsts.append(number)
            self.inverse[number] = number_of[key]
        self.keys, self.first = list(number_of), np.array(firsts, np.int64)
        self.number_of = number_of
        self.copies = np.bincount(self.inverse, minlength=len(number_of)).astype(float)

    def __len__(self) -> int:
        """Rows of the table."""
        return len(self.cells)

    # ------------------------------------------------------------ where they come from

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        label: str | None = None,
        answers: str | None = None,
        vectors: str | Path | None = None,
        **asked: Any,
    ) -> LabelRows:
        """From a file, a folder, a frame, a list of dicts, or ``"digits"``.

        Args:
            source: what to label.
            label: the column that holds labels, wholly or in part: it is neither shown nor a feature.
            answers: the column that holds the truth, for a labeller that is played: neither, too.
            vectors: an .npy with a vector for each row, in place of pixels, or beside the columns.
            asked: text, words, numbers, dates, leave_out: how columns are to be taken.
        """
        path = Path(source) if isinstance(source, str | PathLike) else None
        if path is not None and path.is_dir():
            _check_no_columns(str(path), labels=label, answers=answers, **asked)
            rows = cls._folder(path, vectors)
        elif path is not None and (
            path.suffix.lower() == ".npz" or (str(path) == "digits" and not path.exists())
        ):
            _check_no_columns(str(path), labels=label, vectors=vectors, **asked)
            if answers not in (None, "y"):
                raise InvalidInput.must("answers", str(path), "y, the truth that it holds", answers)
            rows = cls._matrix(path) if path.suffix else cls._digits()
        else:
            rows = cls._table(source, path, label, answers, vectors, asked)
        kept: dict[str, Any] = {"label": label, "answers": answers, "vectors": vectors and str(vectors)}
        kept |= {name: list(columns) for name, columns in asked.items()}
        rows.reading = {name: value for name, value in kept.items() if value}
        return rows

    @classmethod
    def _table(
        cls,
        source: Any,
        path: Path | None,
        label: str | None,
        answers: str | None,
        vectors: str | Path | None,
        asked: dict[str, Any],
    ) -> LabelRows:
        if path is not None and path.suffix.lower() not in TABLES:
            wanted = f"a folder, digits, or a file that ends in {', '.join((*TABLES, '.npz'))}"
            raise InvalidInput.must("rows", OWNER, wanted, str(source))
        if path is not None and not path.is_file():
            raise InvalidInput(f"no such file: {path}")
        table = open_table(source, vectors=None if vectors is None else Path(vectors))
        name = table.name
        rows = list(table.whole_rows())
        if not rows:
            raise InvalidInput(f"{name} has no rows")
        rows = [{str(key): value for key, value in row.items()} for row in rows]
        names = list(dict.fromkeys(key for row in rows for key in row))
        for option, column in (("labels", label), ("answers", answers)):
            if column is not None and column not in names:
                raise InvalidInput.must(
                    option, name, f"one of its columns {', '.join(names)}", column, among=names
                )
        known, truth = (
            _labels([None if column is None else row.get(column) for row in rows])
            for column in (label, answers)
        )
        features = {key: [row.get(key) for row in rows] for key in names if key not in (label, answers)}
        shown = [key for key in features if key not in exported_columns(features)]
        cells = [{key: row.get(key) for key in shown} for row in rows]
        return cls(name, cells, known, truth, features, asked)

    @classmethod
    def _matrix(cls, path: Path) -> LabelRows:
        from superarm.streams import open_data

        stream: Any = open_data(str(path))
        truth: list[str | None] = [
            str(stream.labels[y]) if stream.labels is not None else str(y) for y in stream.y
        ]
        identity = [_row_bytes(stream.rows.row(number)) for number in range(len(truth))]
        cells = [{"number": number} for number in range(len(truth))]
        return cls(str(path), cells, [None] * len(truth), truth, stream.rows, {}, identity=identity)

    @classmethod
    def _digits(cls) -> LabelRows:
        from superarm.streams import open_data

        stream: Any = open_data("digits")
        X = np.asarray(stream.rows.dense)
        cells = [{"picture": f"digit {number}"} for number in range(len(X))]
        truth: list[str | None] = [str(y) for y in stream.y]
        pictures, identity = [row.reshape(8, 8) for row in X], [row.tobytes() for row in X]
        return cls("digits", cells, [None] * len(X), truth, Rows(X), {}, pictures, identity)

    @classmethod
    def _folder(cls, path: Path, vectors: str | Path | None) -> LabelRows:
        every = sorted(file for file in path.rglob("*") if file.is_file())
        files = [file for file in every if not any(p.startswith(".") for p in file.relative_to(path).parts)]
        pictures = [file for file in files if file.suffix.lower() in PICTURES]
        texts = [file for file in files if file.suffix.lower() == ".txt"]
        if bool(pictures) == bool(texts):
            wanted = f"pictures ({', '.join(PICTURES)}) or texts (.txt)"
            raise InvalidInput.must("folder", str(path), wanted, "both" if texts else "neither")
        chosen = pictures or texts
        names = [str(file.relative_to(path)) for file in chosen]
        content = [file.read_bytes() for file in chosen]
        matrix = None if vectors is None else _vectors(Path(vectors), len(chosen), str(path))
        none: list[str | None] = [None] * len(chosen)
        if texts:
            read = [_decode(data, file) for data, file in zip(content, chosen, strict=True)]
            cells = [{"file": name, "text": text} for name, text in zip(names, read, strict=True)]
            features: Any = {"text": read} | ({} if matrix is None else {"vectors": list(matrix)})
            rows = cls(str(path), cells, none, none, features, {"text": ("text",)}, identity=content)
        else:
            cells = [{"picture": name} for name in names]
            pixels = _pixels(chosen) if matrix is None else np.asarray(matrix, np.float32)
            rows = cls(str(path), cells, none, none, Rows(pixels), {}, list(chosen), identity=content)
        rows.skipped = len(every) - len(chosen)
        return rows

    def check_shown(self, names: Sequence[str]) -> tuple[str, ...]:
        """Columns that people see; an error if there is none of that name."""
        there = self.cells[0]
        for name in names:
            if name not in there:
                raise InvalidInput.must("show", self.name, f"among {', '.join(there)}", name, among=there)
        return tuple(names)

    def known_labels(self) -> list[str] | None:
        """Those that the table holds already; None if it holds none."""
        return sorted({label for label in self.known if label is not None}) or None

    def known_by_row(self) -> dict[int, str | None]:
        """The label of each distinct row for which the table holds one; None where equal rows have several."""
        known: dict[int, str | None] = {}
        for row, label in zip(self.inverse.tolist(), self.known, strict=True):
            if label is not None:
                known[row] = label if known.get(row, label) == label else None
        return known

    def sample(self, numbers: Array) -> LabelRows:
        """Some rows of the table."""
        features = self._features
        if isinstance(features, dict):
            features = {name: [cells[i] for i in numbers] for name, cells in features.items()}
        else:
            features = features.take(numbers)
        cells, known, truth = ([many[i] for i in numbers] for many in (self.cells, self.known, self.truth))
        pictures = None if self.pictures is None else [self.pictures[i] for i in numbers]
        identity = None if self._identity is None else [self._identity[i] for i in numbers]
        return LabelRows(self.name, cells, known, truth, features, self._asked, pictures, identity)

    # ------------------------------------------------------------ for the model and for people

    def features(self, k: int) -> Rows:
        """The distinct rows, as the model takes them."""
        if isinstance(self._features, dict):
            columns = self.columns or self._infer_columns()
            self.columns = columns.for_labels(max(k, 2))
            table = {name: [cells[i] for i in self.first] for name, cells in self._features.items()}
            return self.columns.rows(table, self.name)
        features: Rows = self._features.take(self.first)
        return features

    def check_columns(self) -> None:
        """Refuse columns that are not there, before anything is written."""
        if isinstance(self._features, dict) and self.columns is None:
            self.columns = self._infer_columns()

    def _infer_columns(self) -> Columns:
        reserved = outcome_columns(self._features)
        reserved |= dict.fromkeys(exported_columns(self._features), "written by superarm labels export")
        columns = Columns.infer(self._features, reserved=reserved, **self._asked)
        if not len(columns):
            raise InvalidInput.must(
                "rows", self.name, "a table with at least one feature", list(self._features)
            )
        return columns

    def texts(self) -> list[str]:
        """The columns of text."""
        return [name for name, kind in self.columns.kinds.items() if kind == "text"] if self.columns else []

    def shown(self, number: int, show: tuple[str, ...]) -> dict[str, Any]:
        """What people see of a row of the table."""
        row = self.cells[number]
        return {
            name: "" if is_missing(row[name]) else row[name]
            for name in (show or row)
            if not isinstance(row[name], np.ndarray | list)
        }

    def picture(self, number: int) -> tuple[bytes, str] | None:
        """The picture of a row of the table, and its media type."""
        if self.pictures is None:
            return None
        picture = self.pictures[number]
        if isinstance(picture, Path):
            return picture.read_bytes(), PICTURES[picture.suffix.lower()]
        return _png(picture), "image/png"


def _labels(cells: list[Any]) -> list[str | None]:
    """Those of a column; among numbers NA and its like are gaps, as in all columns."""
    labels = [_label(cell) for cell in cells]
    if all(label is None or not isinstance(parse_scalar(label), str | bool) for label in labels):
        return [None if label is None or parse_scalar(label) is None else label for label in labels]
    return labels


def _label(value: Any) -> str | None:
    """A cell of the label column; whole numbers as people write them."""
    if is_missing(value) or value == "":
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip() or None


def _content(row: dict[str, Any]) -> bytes:
    return json.dumps(row, sort_keys=True, default=_plain).encode()


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _row_bytes(row: Any) -> bytes:
    parts = (row.dense, row.indices, row.values) if hasattr(row, "indices") else (row,)
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def _check_no_columns(source: str, **options: Any) -> None:
    """Refuse options that are about the columns of a table."""
    for name, value in options.items():
        if value:
            wanted = "a file" if name == "labels" else "left out"
            raise InvalidInput.must(name, source, f"{wanted}: it is no table with columns", value)


def _decode(content: bytes, file: Path) -> str:
    """A text, without the mark that some editors put first."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wanted, got = (
            "UTF-8 (convert it, or take it out of the folder)",
            f"byte {error.object[error.start]:#04x} at {error.start:,}",
        )
        raise InvalidInput.must("text", str(file), wanted, got) from error


def _vectors(path: Path, rows: int, owner: str) -> Array:
    matrix = np.asarray(read_matrix(path), np.float32)
    if matrix.ndim != 2 or len(matrix) != rows:
        raise InvalidInput.must(
            "vectors", owner, f"a matrix with {rows} rows, one for each file by name", matrix.shape
        )
    return matrix


def _pixels(files: list[Path]) -> Array:
    """Grey values of small copies, and their mean colours."""
    need("label")
    from PIL import Image, UnidentifiedImageError

    rows = np.zeros((len(files), SIDE * SIDE + 3), np.float32)
    for row, file in zip(rows, files, strict=True):
        try:
            with Image.open(file) as picture:
                small = picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)
        except (OSError, UnidentifiedImageError) as error:
            raise InvalidInput.must("picture", str(file), "one that can be read", str(error)) from error
        row[:-3] = np.asarray(small.convert("L"), np.float32).ravel() / 255.0
        row[-3:] = np.asarray(small, np.float32).reshape(-1, 3).mean(axis=0) / 255.0
    return rows


def _png(grey: Array) -> bytes:
    """A picture of ink on white, as a PNG."""
    levels = 255 - (grey / max(1.0, float(grey.max())) * 255).astype(np.uint8)
    lines = b"".join(b"\0" + line.tobytes() for line in levels)
    height, width = levels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )
