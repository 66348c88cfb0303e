"""Files beside a journal: made durable, and taken away when a crash has left parts of them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from superarm.journal.errors import JournalForeign

__all__ = ["clear_parts", "discard", "real_path", "sync_file"]

PRIVATE_FILE = 0o600


def real_path(path: str | Path) -> Path:
    """The path without links: lock and log lie beside the real file."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise JournalForeign(f"journal of superarm must be a file, got a loop of links: {path}") from error


def sync_file(path: Path) -> None:
    """Make what a file holds, and its length, durable."""
    opened = os.open(path, os.O_RDWR)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def discard(*paths: Path) -> None:
    """Take files away if that can be done; what is left over, `clear_parts` finds."""
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def clear_parts(path: Path) -> None:
    """Take away what a crash has left of files on their way to a name."""
    discard(*path.parent.glob(f".{path.name}.*.part*"))
