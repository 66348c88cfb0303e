"""Decision logs: their format, training on them, and what another policy would have done.

    entry.py       one row: what was shown, how it was drawn, what came of it
    writing.py     Writer: Parquet, JSON lines, CSV
    reading.py     Log: the same formats, and other people's columns
"""

from superarm.logs.entry import FIELDS, Entry
from superarm.logs.reading import BadRow, Columns, Log
from superarm.logs.writing import Writer

__all__ = ["FIELDS", "BadRow", "Columns", "Entry", "Log", "Writer"]
