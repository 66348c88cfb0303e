"""One holder at a time: a lock beside the journal, which ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path
from typing import Any

from superarm.service.core.faults import JournalDown, JournalHeld
from superarm.service.core.files import PRIVATE_FILE

__all__ = ["hold"]


def hold(journal: Path) -> Any:
    """Be the one holder until the file that this returns is closed."""
    path = journal.with_name(journal.name + ".lock")
    try:
        lock = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE_FILE), "a+")
    except OSError as error:
        raise JournalDown(f"journal {journal} cannot be opened for writing: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.read().strip() or "an unknown process"
        lock.close()
        wanted = "held by no other process"
        raise JournalHeld(f"journal of superarm must be {wanted}, got {journal}: held by {holder}") from error
    try:
        lock.truncate(0)
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        lock.write(f"process {os.getpid()} on {socket.gethostname()} since {since}\n")
        lock.flush()
    except OSError as error:
        lock.close()
        raise JournalDown(f"journal {journal} cannot be opened for writing: {error.strerror}") from error
    return lock
