"""Where the rows of a log come from: files of several formats, data frames, other people's tools."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any

from superarm.data.tables import FrameTable, JsonTable, Table, TableRow, open_table
from superarm.errors import InvalidInput
from superarm.logs.foreign import from_dsjson, from_obp, is_dsjson

ENDINGS = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv"}


def kind_of(path: str | PathLike[str]) -> str:
    """The format that a file's ending names."""
    kind = ENDINGS.get(Path(path).suffix.lower())
    if kind is None:
        raise InvalidInput.must("ending", os.fspath(path), f"one of {', '.join(ENDINGS)}", Path(path).suffix)
    return kind


def open_source(source: Any) -> Table:
    """A file, a pandas, Polars or Arrow table, or OBP's ``bandit_feedback``."""
    if isinstance(source, dict):
        return FrameTable("bandit_feedback", lambda: from_obp(source))
    return open_table(source, readers=dict.fromkeys((".jsonl", ".ndjson", ".dsjson"), LogLines))


class LogLines(JsonTable):
    """JSON lines, ours or VW's."""

    def converted(self, row: dict[str, Any]) -> TableRow:
        return from_dsjson(row) if is_dsjson(row) else row
