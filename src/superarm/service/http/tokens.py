"""Bearer tokens by role, out of a file that may change while the service runs."""

from __future__ import annotations

import logging
import os
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG

from superarm.errors import InvalidInput

log = logging.getLogger("superarm.service")

ROLES = ("decide", "read", "operate")
MOST_BYTES = 1 << 20  # of a file that is read while the service runs


class Tokens:
    """The tokens that are accepted, and their roles.

    A file holds one token a line, after its role:

        decide  3f8b0c…     decisions and outcomes
        read    9a01d2…     looking at everything
        operate 77c1e0…     all of it, and changes

    The file is read again when it changes. While it is missing or has a mistake in it, no token is accepted:
    a token that was taken back must not work any more.

    Args:
        file: the file; a mistake in it is raised now, and is in `trouble` later.
        single: a token that may do everything, where there is no file.
    """

    line = f"one of {', '.join(ROLES)}, and a token"  # of the file
    owner = "superarm serve"  # for messages

    def __init__(self, file: Path | None = None, single: str | None = None) -> None:
        self.file = file
        self.trouble: str | None = None  # what is wrong with the file
        # of digests: looking one up takes the same time whatever is wrong with it
        self._roles: dict[bytes, str] = {}
        self._stamp: tuple[int, int, int] | None = None
        if file is not None:
            self._stamp = self._file_stamp(file)
            self._roles = self._read(file)
        elif single is not None:
            self._roles = {_digest(self._checked(single)): "operate"}

    def __bool__(self) -> bool:
        """Whether a token is needed."""
        return self.file is not None or bool(self._roles)

    def __len__(self) -> int:
        return len(self._roles)

    def role(self, header: bytes) -> str | None:
        """The role of the token in an Authorization header."""
        return self._entry(header)

    def person(self, header: bytes) -> str:
        """Whose token it is; empty where tokens have no names."""
        return ""

    def may_hold(self, word: str) -> bool:
        """Whether this may stand before a token."""
        return word in ROLES

    def refresh(self, *, force: bool = False) -> None:
        """Read the file again if it has changed."""
        if self.file is None:
            return
        stamp = None
        try:
            stamp = self._file_stamp(self.file)
            if stamp == self._stamp and not force:
                return
            self._roles = self._read(self.file)
            self.trouble = None
            log.info("tokens read", extra={"count": len(self._roles)})
        except InvalidInput as error:
            self._roles = {}
            sentence = f"no token is accepted: {error}"
            if sentence != self.trouble:
                log.error("tokens refused", extra={"reason": str(error)})
            self.trouble = sentence
        self._stamp = stamp

    def _entry(self, header: bytes) -> str | None:
        kind, _, token = header.partition(b" ")
        return self._roles.get(sha256(token).digest()) if kind.lower() == b"bearer" else None

    def _file_stamp(self, file: Path) -> tuple[int, int, int]:
        try:
            stat = file.stat()
        except OSError as error:
            raise InvalidInput.must("--token-file", self.owner, "a file", str(file)) from error
        check_regular(file, stat, "--token-file", self.owner)
        return stat.st_mtime_ns, stat.st_ino, stat.st_size

    def _read(self, file: Path) -> dict[bytes, str]:
        try:
            lines = file.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput.must("--token-file", self.owner, "a text file", str(file)) from error
        roles: dict[bytes, str] = {}
        for number, line in enumerate(lines, 1):
            parts = line.split()
            if not parts or parts[0].startswith("#"):
                continue
            if len(parts) != 2 or not self.may_hold(parts[0]):
                # what it is instead may be a secret
                raise InvalidInput.must(f"line {number}", str(file), self.line, f"{len(parts)} words")
            roles[_digest(self._checked(parts[1]))] = parts[0]
        if not roles:
            raise InvalidInput.must("--token-file", self.owner, "a file with a token", str(file))
        return roles

    def _checked(self, token: str) -> str:
        if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
            wanted = "at least 16 visible ASCII characters"
            raise InvalidInput.must("token", self.owner, wanted, "a weaker one")
        return token


def check_regular(file: Path, stat: os.stat_result, option: str, owner: str) -> None:
    """Refuse a pipe or a device: reading one again would block the event loop."""
    if not S_ISREG(stat.st_mode) or stat.st_size > MOST_BYTES:
        raise InvalidInput.must(option, owner, f"a regular file of at most {MOST_BYTES:,} bytes", str(file))


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()
