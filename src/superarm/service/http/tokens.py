"""Bearer tokens by role, out of a file that may change while the service runs."""

from __future__ import annotations

import logging
from hashlib import sha256
from pathlib import Path

from superarm.errors import InvalidInput

__all__ = ["ROLES", "Tokens"]

log = logging.getLogger("superarm.service")

ROLES = ("decide", "read", "operate")


class Tokens:
    """The tokens that are taken, and their roles.

    A file holds one token a line, after its role:

        decide  3f8b0c…     decisions and outcomes
        read    9a01d2…     looking at everything
        operate 77c1e0…     all of it, and changes

    The file is read again when it changes. While it is missing or has a mistake in it, nobody is let in:
    whoever takes a token back must be sure that it is gone.

    Args:
        file: the file; a mistake in it is raised now, and told in `trouble` later.
        single: a token that may do everything, where there is no file.
    """

    def __init__(self, file: Path | None = None, single: str | None = None) -> None:
        self.file = file
        self.trouble: str | None = None  # what is wrong with the file
        # of digests: looking one up takes the same time whatever is wrong with it
        self._roles: dict[bytes, str] = {}
        self._stamp: tuple[int, int, int] | None = None
        if file is not None:
            self._stamp = _stamp(file)
            self._roles = _read(file)
        elif single is not None:
            self._roles = {_digest(_strong(single)): "operate"}

    def __bool__(self) -> bool:
        """Whether a token is needed."""
        return self.file is not None or bool(self._roles)

    def __len__(self) -> int:
        return len(self._roles)

    def role(self, header: bytes) -> str | None:
        """The role of the token in an Authorization header."""
        kind, _, token = header.partition(b" ")
        return self._roles.get(sha256(token).digest()) if kind.lower() == b"bearer" else None

    def refresh(self, *, force: bool = False) -> None:
        """Read the file again if it has changed."""
        if self.file is None:
            return
        stamp = None
        try:
            stamp = _stamp(self.file)
            if stamp == self._stamp and not force:
                return
            self._roles = _read(self.file)
            self.trouble = None
            log.info("tokens read", extra={"count": len(self._roles)})
        except InvalidInput as error:
            self._roles = {}
            sentence = f"nobody is let in: {error}"
            if sentence != self.trouble:
                log.error("tokens refused", extra={"reason": str(error)})
            self.trouble = sentence
        self._stamp = stamp


def _stamp(file: Path) -> tuple[int, int, int]:
    try:
        found = file.stat()
    except OSError as error:
        raise InvalidInput.must("--token-file", "superarm serve", "a file", str(file)) from error
    return found.st_mtime_ns, found.st_ino, found.st_size


def _read(file: Path) -> dict[bytes, str]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput.must("--token-file", "superarm serve", "a text file", str(file)) from error
    roles: dict[bytes, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or words[0] not in ROLES:
            wanted = f"one of {', '.join(ROLES)}, and a token"  # what it is instead may be a secret
            raise InvalidInput.must(f"line {number}", str(file), wanted, f"{len(words)} words")
        roles[_digest(_strong(words[1]))] = words[0]
    if not roles:
        raise InvalidInput.must("--token-file", "superarm serve", "a file with a token", str(file))
    return roles


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()


def _strong(token: str) -> str:
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        wanted = "at least 16 visible ASCII characters"
        raise InvalidInput.must("token", "superarm serve", wanted, "a weaker one")
    return token
