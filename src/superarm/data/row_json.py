"""Rows as JSON-ready values, for journals, logs and requests."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm.data.rows import NOTHING, AnyRow, Row


def row_to_json(row: AnyRow | dict[str, Any]) -> Any:
    """A row as JSON-ready values."""
    if isinstance(row, dict):  # with names (columns.py)
        return {"named": row}
    if isinstance(row, Row):
        sparse = {"indices": row.indices.tolist(), "values": row.values.tolist(), "width": row.width}
        return {"dense": row.dense.tolist(), **sparse} if len(row.dense) else sparse
    return row.tolist()


def row_from_json(data: Any) -> AnyRow | dict[str, Any]:
    """The row that `row_to_json` described."""
    if isinstance(data, dict) and "named" in data:
        return dict(data["named"])
    if isinstance(data, dict):
        parts = (np.array(data["indices"], np.int32), np.array(data["values"], np.float32))
        dense = np.array(data["dense"], np.float32) if "dense" in data else NOTHING
        return Row.of(dense, *parts, int(data["width"]))
    return np.array(data, np.float32)
