"""Files of a journal: paths, and the lock of the one process that may write."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from superarm.errors import Description
from superarm.journal.errors import JournalLocked, JournalMismatch, JournalUnavailable

PRIVATE_FILE = 0o600


def real_path(path: str | Path) -> Path:
    """Return the path without links: lock and log lie beside the real file."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise JournalMismatch(f"journal of superarm must be a file, got a loop of links: {path}") from error


def sibling(journal: Path, ending: str) -> Path:
    """Return the file beside a journal whose name has this ending."""
    return journal.with_name(journal.name + ending)


class FileLock:
    """The lock beside a journal, until it is closed; it ends with its process, however that ends."""

    def __init__(self, journal: Path) -> None:
        if journal.is_file() and journal.stat().st_nlink > 1:  # the lock goes by the name
            wanted = "a file with one name: two processes could hold it by different ones"
            raise JournalLocked.must(
                "journal", "superarm", wanted, Description(f"{journal}, which has hard links")
            )
        try:
            self._file = os.open(sibling(journal, ".lock"), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        except OSError as error:
            raise JournalUnavailable(
                f"journal {journal} cannot be opened for writing: {error.strerror}"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip() or "an unknown process"
            os.close(self._file)
            wanted = "held by no other process"
            message = f"journal of superarm must be {wanted}, got {journal}: held by {holder}"
            raise JournalLocked(message) from error
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        with suppress(OSError):  # that is for people; the lock holds without it
            os.ftruncate(self._file, 0)
            holder = f"process {os.getpid()} on {socket.gethostname()} since {since}\n"
            os.pwrite(self._file, holder.encode(), 0)

    def close(self) -> None:
        os.close(self._file)
