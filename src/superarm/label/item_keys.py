"""Which rows are the same item: those with the same content, by a hash of it.

So it is known again in a file whose rows were moved, or to which some were added, and in a data frame of that file.
"""

from __future__ import annotations

import json
from datetime import datetime, time
from hashlib import sha256

import numpy as np

from superarm._types import Cell
from superarm.data.cells import NUMBER, date_order, parse_date, to_python
from superarm.data.rows import AnyRow, Row
from superarm.data.tables import jsonable

# words that pandas takes as a missing value, where it is not told otherwise
PANDAS_MISSING = frozenset(["#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"])
MAX_NUMBER = 40  # characters of a number; what is longer is a text


def key_of_bytes(content: bytes) -> str:
    """Return the key of an item with this content."""
    return sha256(content).hexdigest()[:24]


def key_of_cells(cells: dict[str, Cell]) -> str:
    """Return the key of the item that a row of a table is."""
    comparable = {
        name.strip(): cell if isinstance(cell, np.ndarray | list) else comparable_text(cell)
        for name, cell in cells.items()
    }
    return key_of_bytes(json.dumps(comparable, sort_keys=True, default=jsonable).encode())


def bytes_of_row(row: AnyRow) -> bytes:
    """Return the content of a row of numbers."""
    parts = (row.dense, row.indices, row.values) if isinstance(row, Row) else (row,)
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def comparable_text(value: Cell) -> str | None:
    """Return a cell as the same text, however its table was read; ``None`` if it is missing or empty.

    A column of whole numbers with a gap has floats in pandas, zip codes lose their zeros there, and NA is missing.

    >>> [comparable_text(cell) for cell in ("01067", 1067.0, "1067", "3.50", 3.5, "", "NA", float("nan"), "true", True)]
    ['1067', '1067', '1067', '3.5', '3.5', None, None, None, 'True', 'True']
    >>> [comparable_text(cell) for cell in ("1.5.2024 9:30", datetime(2024, 5, 1, 9, 30), "2024/05/01", "1/5/2024")]
    ['2024-05-01 09:30:00', '2024-05-01 09:30:00', '2024-05-01', '1/5/2024']
    """
    value = to_python(value)
    if isinstance(value, str):
        text = value.strip()
        if len(text) <= MAX_NUMBER and NUMBER.fullmatch(text):
            value = float(text) if set(text) & set(".eE") else int(text)
        elif text.lower() in ("true", "false"):
            value = text.lower() == "true"
        elif date_order(text) is None:  # 1/2/2024 stays: other rows, which may come later, tell what it means
            value = parse_date(text) or value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, datetime) and value.timetz() == time.min:
        value = value.date()
    text = "" if value is None else str(value)
    return None if not text or text in PANDAS_MISSING else text
