"""Files that are read again when they have changed: tokens, a certificate and its key."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from stat import S_ISREG
from time import monotonic

from superarm.errors import InvalidInput

log = logging.getLogger("superarm.service")

MAX_FILE_BYTES = 1 << 20
REFRESH_SECONDS = 1.0  # files are checked for changes at most so often


class WatchedFiles:
    """Read files now, and again after each change; a failed read is tried again until it succeeds.

    Args:
        content: what the files hold, for the log.
        paths: each under the option that names it; none: nothing is read.
        owner: the command that has these options, for messages.
        read: is called with the paths; raises `InvalidInput` or `OSError` if the files cannot be used.

    Attributes:
        problem: why the last read has failed; None if it has not.
    """

    def __init__(
        self, content: str, paths: Mapping[str, Path], owner: str, read: Callable[..., None]
    ) -> None:
        self.problem: str | None = None
        self._content, self._paths, self._owner, self._read = content, paths, owner, read
        self._stamps: list[tuple[int, ...]] | None = file_stamps(paths, owner)
        self._checked_at = monotonic()
        if paths:
            read(*paths.values())

    def reload(self) -> None:
        """Read the files again, even if they look unchanged."""
        if self._paths:
            self._stamps = None
            self._read_changed()

    def refresh(self) -> None:
        """Read the files again if they have changed, which is checked once a second."""
        if monotonic() >= self._checked_at + REFRESH_SECONDS:
            self._read_changed()

    def _read_changed(self) -> None:
        self._checked_at = monotonic()
        try:
            stamps = file_stamps(self._paths, self._owner)
            if stamps == self._stamps:
                return
            self._read(*self._paths.values())
            self._stamps, self.problem = stamps, None
            log.info(f"{self._content} read")
        except (InvalidInput, OSError) as error:
            if str(error) != self.problem:
                log.error(f"{self._content} refused: {error}", extra={"reason": str(error)})
            self._stamps, self.problem = None, str(error)


def file_stamps(paths: Mapping[str, Path], owner: str) -> list[tuple[int, ...]]:
    """Refuse a pipe or a device, which might block; return for each file what changes when it is replaced."""
    stamps: list[tuple[int, ...]] = []
    for option, path in paths.items():
        try:
            stat = path.stat()
        except OSError as error:
            raise InvalidInput.must(option, owner, "a file", str(path)) from error
        if not S_ISREG(stat.st_mode) or stat.st_size > MAX_FILE_BYTES:
            wanted = f"a regular file of at most {MAX_FILE_BYTES:,} bytes"
            raise InvalidInput.must(option, owner, wanted, str(path))
        stamps.append((stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_size))
    return stamps
