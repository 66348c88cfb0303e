"""Bearer tokens by role, out of a file that may change while the service runs."""

from __future__ import annotations

import logging
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from time import monotonic

from superarm.errors import InvalidInput

log = logging.getLogger("superarm.service")

FileStamp = tuple[int, int, int]

ROLES = ("decide", "read", "operate")
MAX_BYTES = 1 << 20  # of a file that is read while the service runs
REFRESH_SECONDS = 1.0  # a file is checked for changes at most so often


class Tokens:
    """The tokens that are accepted, and their roles.

    A file holds one token a line, after its role:

        decide  3f8b0c…     decisions and outcomes
        read    9a01d2…     looking at everything
        operate 77c1e0…     all of it, and changes

    Whenever a token is looked up, the file is read again if it has changed. While it is missing or has a mistake
    in it, no token is accepted: a revoked token must not work any more.

    Args:
        file: the file; a mistake in it is raised now, and is in `problem` later.
        master_token: a token that may do everything, where there is no file.
    """

    line_format = f"one of {', '.join(ROLES)}, and a token"  # of a line of the file
    owner = "superarm serve"  # for messages

    def __init__(self, file: Path | None = None, master_token: str | None = None) -> None:
        self.file = file
        self._problem: str | None = None
        self._roles: dict[bytes, str] = {}  # by digest: a lookup takes the same time for every wrong token
        self._stamp: FileStamp | None = None
        self._checked_at = monotonic()
        if file is not None:
            self._stamp = self._file_stamp(file)
            self._roles = self._read(file)
        elif master_token is not None:
            self._roles = {self._digest(master_token): "operate"}

    @property
    def required(self) -> bool:
        """Whether requests need a token."""
        return self.file is not None or bool(self._roles)

    @property
    def count(self) -> int:
        """How many tokens are accepted."""
        return len(self._roles)

    @property
    def problem(self) -> str | None:
        """What is wrong with the file."""
        self.refresh()
        return self._problem

    def role(self, header: bytes) -> str | None:
        """Return the role of the token in an Authorization header; None if it is not accepted."""
        return self._lookup(header)

    def person(self, header: bytes) -> str:
        """Return the name of the person whose token it is; empty where tokens have no names."""
        return ""

    def is_role(self, word: str) -> bool:
        """Return whether a line may begin with this word."""
        return word in ROLES

    def refresh(self) -> None:
        """Read the file again if it has changed since it was last checked, a second ago or earlier."""
        now = monotonic()
        if self.file is None or now < self._checked_at + REFRESH_SECONDS:
            return
        self._checked_at, stamp = now, None
        try:
            stamp = self._file_stamp(self.file)
            if stamp == self._stamp:
                return
            self._roles = self._read(self.file)
            self._problem = None
            log.info("tokens read", extra={"count": self.count})
        except InvalidInput as error:
            self._roles = {}
            sentence = f"no token is accepted: {error}"
            if sentence != self._problem:
                log.error("tokens refused", extra={"reason": str(error)})
            self._problem = sentence
        self._stamp = stamp

    def _lookup(self, header: bytes) -> str | None:
        """Return the word before a token in the file, for the token of an Authorization header."""
        self.refresh()
        scheme, _, token = header.partition(b" ")
        return self._roles.get(sha256(token).digest()) if scheme.lower() == b"bearer" else None

    def _file_stamp(self, file: Path) -> FileStamp:
        try:
            return file_stamp(file, "--token-file", self.owner)
        except OSError as error:
            raise InvalidInput.must("--token-file", self.owner, "a file", str(file)) from error

    def _read(self, file: Path) -> dict[bytes, str]:
        try:
            lines = file.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput.must("--token-file", self.owner, "a text file", str(file)) from error
        roles: dict[bytes, str] = {}
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or not self.is_role(words[0]):
                # the line itself may be a secret
                raise InvalidInput.must(f"line {number}", str(file), self.line_format, f"{len(words)} words")
            roles[self._digest(words[1])] = words[0]
        if not roles:
            raise InvalidInput.must("--token-file", self.owner, "a file with a token", str(file))
        return roles

    def _digest(self, token: str) -> bytes:
        if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
            wanted = "at least 16 visible ASCII characters"
            raise InvalidInput.must("token", self.owner, wanted, "a weaker one")
        return sha256(token.encode()).digest()


def file_stamp(file: Path, option: str, owner: str) -> FileStamp:
    """Return what changes when a file is replaced; a pipe or a device, which might block, is refused."""
    stat = file.stat()
    if not S_ISREG(stat.st_mode) or stat.st_size > MAX_BYTES:
        raise InvalidInput.must(option, owner, f"a regular file of at most {MAX_BYTES:,} bytes", str(file))
    return stat.st_mtime_ns, stat.st_ino, stat.st_size
