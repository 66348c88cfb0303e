"""One holder at a time: a lock beside the journal, which ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from superarm.journal.errors import JournalDown, JournalHeld
from superarm.journal.files import PRIVATE_FILE

__all__ = ["FileLock"]


class FileLock:
    """The one holder, until it is closed."""

    def __init__(self, journal: Path) -> None:
        if journal.is_file() and journal.stat().st_nlink > 1:  # the lock goes by the name
            wanted = "a file with one name: two processes could hold it by different ones"
            raise JournalHeld.must("journal", "superarm", wanted, f"{journal}, which has hard links")
        path = journal.with_name(journal.name + ".lock")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        except OSError as error:
            raise JournalDown(f"journal {journal} cannot be opened for writing: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip() or "an unknown process"
            os.close(self._file)
            wanted = "held by no other process"
            message = f"journal of superarm must be {wanted}, got {journal}: held by {holder}"
            raise JournalHeld(message) from error
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        with suppress(OSError):  # that is for people; the lock holds without it
            os.ftruncate(self._file, 0)
            holder = f"process {os.getpid()} on {socket.gethostname()} since {since}\n"
            os.pwrite(self._file, holder.encode(), 0)

    def close(self) -> None:
        os.close(self._file)
