"""Files that are whole, private and on the disk, or not there at all.

Everything that the core writes outside of SQLite goes through here. A rename or a new file survives a
power cut only after its folder has been synced, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

__all__ = [
    "clear_parts",
    "digest_of",
    "discard",
    "make_folder",
    "remove",
    "sync_file",
    "sync_folder",
    "write_durably",
]

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_file(path: Path) -> None:
    """Make what a file holds, and its length, durable."""
    opened = os.open(path, os.O_RDWR)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def make_folder(folder: Path) -> None:
    """A private folder; if it is new, its name is durable."""
    with suppress(FileExistsError):
        folder.mkdir(mode=PRIVATE_FOLDER)
        sync_folder(folder.parent)


def write_durably(path: Path, write: Callable[[Any], object]) -> None:
    """Let ``write(file)`` fill a private file; it gets its name when it is on the disk."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        opened = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
        with os.fdopen(opened, "w+b") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)  # noqa: PTH105  (os.*: tests make each of these calls fail in turn)
        sync_folder(path.parent)
    finally:
        discard(part)


def discard(*paths: Path) -> None:
    """Take files away if that can be done; what is left over, `clear_parts` finds."""
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def clear_parts(path: Path) -> None:
    """Take away what a crash has left of files on their way to a name."""
    discard(*path.parent.glob(f".{path.name}.*.part*"))


def remove(path: Path) -> None:
    """Take a file away for good."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def digest_of(path: Path) -> bytes:
    """The SHA-256 of a file's content."""
    found = sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            found.update(part)
    return found.digest()
