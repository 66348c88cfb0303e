"""A high-water mark beside the journal, outside of its write-ahead log: `events.db-mark`.

SQLite drops the end of its log, without a word, from the first frame whose checksum is wrong. The mark says
how far the journal had come: number and digest of the last event that a commit made durable. It
is written after each commit and synced now and then, so it may lag, but it never runs ahead.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from superarm.service.core.events import digest
from superarm.service.core.files import PRIVATE_FILE

__all__ = ["Mark", "Marker", "read_mark"]

WORD = "superarm-mark"


class Mark(NamedTuple):
    seq: int
    digest: bytes


def _path(journal: Path) -> Path:
    return journal.with_name(journal.name + "-mark")


def _line(mark: Mark) -> bytes:
    text = f"{WORD} {mark.seq:020d} {mark.digest.hex()}"
    return f"{text} {digest(text.encode()).hex()}\n".encode()


def read_mark(journal: Path) -> Mark | None:
    """The mark, or None if there is none that can be read: a mark is a help, not a need."""
    try:
        found = _path(journal).read_bytes()
        _, seq, chain, _ = found.decode().split()
        mark = Mark(int(seq), bytes.fromhex(chain))
    except (OSError, ValueError):
        return None
    return mark if _line(mark) == found else None


class Marker:
    """Writes the mark."""

    def __init__(self, journal: Path) -> None:
        self._file = os.open(_path(journal), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)

    def put(self, seq: int, chain: bytes) -> None:
        with suppress(OSError):  # the events themselves are durable; the mark lags until the next commit
            os.pwrite(self._file, _line(Mark(seq, chain)), 0)

    def sync(self) -> None:
        with suppress(OSError):
            os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)
