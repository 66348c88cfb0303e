"""A high-water mark beside the journal, outside of its write-ahead log: `events.db-mark`.

SQLite drops the end of its log, without a word, from the first frame whose checksum is wrong. The mark says
how far the journal had come: number and digest of the last event that a commit made durable. It
is written after each commit and synced now and then, so it may lag, but it never runs ahead. A third line says
which copy of the journal it belongs to (backup.py gives each a number of its own; 0 for none).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from superarm.journal.events import digest
from superarm.journal.journal_files import PRIVATE_FILE

WORD, COPY = "superarm-mark", "superarm-copy"


class Mark(NamedTuple):
    seq: int
    digest: bytes


def _path(journal: Path) -> Path:
    return journal.with_name(journal.name + "-mark")


def _line(mark: Mark) -> bytes:
    text = f"{WORD} {mark.seq:020d} {mark.digest.hex()}"
    return f"{text} {digest(text.encode()).hex()}\n".encode()


def _mark(line: bytes) -> Mark | None:
    try:
        _, seq, chain, _ = line.decode().split()
        mark = Mark(int(seq), bytes.fromhex(chain))
    except ValueError:
        return None
    return mark if _line(mark) == line else None


def read_mark(journal: Path) -> Mark | None:
    """The mark; None if there is none that can be read."""
    try:
        lines = _path(journal).read_bytes().splitlines(keepends=True)
    except OSError:
        return None
    return max((mark for line in lines if (mark := _mark(line)) is not None), default=None)


def read_copy(journal: Path) -> int | None:
    """The number of the copy that the mark belongs to; None if it has none."""
    try:
        words = [line.split() for line in _path(journal).read_text().splitlines()]
        return next((int(line[1]) for line in words if len(line) == 2 and line[0] == COPY), None)
    except (OSError, ValueError):
        return None


def is_damaged(journal: Path) -> bool:
    """Whether there is a mark of which no line can be read."""
    path = _path(journal)
    return path.exists() and path.stat().st_size > 0 and read_mark(journal) is None


class Marker:
    """Writes the mark: two lines in turn, so that a write that was cut short leaves the other one."""

    def __init__(self, journal: Path) -> None:
        self._file = os.open(_path(journal), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        self._second = False

    def put(self, seq: int, chain: bytes) -> None:
        line = _line(Mark(seq, chain))
        with suppress(OSError):  # the events themselves are durable; the mark lags until the next commit
            os.pwrite(self._file, line, len(line) if self._second else 0)
            self._second = not self._second

    def begin(self, seq: int, chain: bytes, copy: int = 0) -> None:
        """Set both lines: the mark may go back."""
        with suppress(OSError):
            os.pwrite(self._file, _line(Mark(seq, chain)) * 2 + f"{COPY} {copy:020d}\n".encode(), 0)

    def sync(self) -> None:
        with suppress(OSError):
            os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)
