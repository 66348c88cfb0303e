"""Who may come in, and how often: tokens by role, host names, requests a second."""

from __future__ import annotations

import logging
import re
from hashlib import sha256
from pathlib import Path
from time import monotonic

from superarm.errors import InvalidInput
from superarm.service.http.statuses import RoleMissing, TokenWrong, TooMany, WrongHost
from superarm.service.http.wire import Request

__all__ = ["DECIDE", "LOOK", "OPEN", "OPERATE", "READ", "Admission", "Tokens"]

log = logging.getLogger("superarm.service")

# who may use a route: the roles of its tokens
ROLES = ("decide", "read", "operate")
OPEN = frozenset[str]()  # everybody, and no token is asked for
DECIDE = frozenset({"decide", "operate"})
READ = frozenset({"read", "operate"})
LOOK = DECIDE | READ
OPERATE = frozenset({"operate"})

LOCAL = re.compile(rb"(127(\.\d{1,3}){3}|localhost|\[::1\]|)(:\d{1,5})?", re.IGNORECASE)
MOST_ADDRESSES = 10_000
WRONG_TOKENS = 10.0  # a second and address


class Tokens:
    """The tokens that are taken, and their roles.

    A file holds one token a line, with its role before it; a token alone may do everything:

        decide  3f8b0c…     decisions and outcomes
        read    9a01d2…     looking at everything
        operate 77c1e0…     all of it, and changes

    The file is read again when it changes. One that cannot be used leaves the tokens as they were.
    """

    def __init__(self, file: Path | None = None, single: str | None = None) -> None:
        self.file = file
        self._stamp: tuple[int, int] | None = None
        # of digests: looking one up takes the same time whatever is wrong with it
        self._roles: dict[bytes, str] = {}
        if file is not None:
            self._stamp = _stamp(file)
            self._roles = _read(file)
        elif single is not None:
            self._roles = {_digest(_strong(single)): "operate"}

    def __bool__(self) -> bool:
        """Whether a token is needed."""
        return self.file is not None or bool(self._roles)

    def role(self, header: bytes) -> str | None:
        """The role of the token in an Authorization header."""
        kind, _, token = header.partition(b" ")
        return self._roles.get(sha256(token).digest()) if kind.lower() == b"bearer" else None

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        if self.file is None:
            return
        try:
            stamp = _stamp(self.file)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            self._roles = _read(self.file)
            log.info("tokens read", extra={"count": len(self._roles)})
        except InvalidInput as error:
            log.error("tokens stay as they were", extra={"reason": str(error)})


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError as error:
        raise InvalidInput.must("--token-file", "superarm serve", "a file", str(file)) from error
    return found.st_mtime_ns, found.st_ino


def _read(file: Path) -> dict[bytes, str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput.must("--token-file", "superarm serve", "a text file", str(file)) from error
    roles: dict[bytes, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        role, token = words if len(words) == 2 else ("operate", words[0])
        if len(words) > 2 or role not in ROLES:
            wanted = f"a token, or one of {', '.join(ROLES)} and a token"
            raise InvalidInput.must(f"line {number}", str(file), wanted, f"{len(words)} words")
        roles[_digest(_strong(token))] = role
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


class Buckets:
    """For each address a bucket that holds one second's requests, and fills up evenly."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, address: str) -> bool:
        """Whether there is one left."""
        now = monotonic()
        left, at = self._left.get(address, (self.rate, now))
        left = min(self.rate, left + (now - at) * self.rate)
        if left < 1.0:
            return False
        self._left[address] = left - 1.0, now
        if len(self._left) > MOST_ADDRESSES:  # one that had a second to fill up is as good as none
            self._left = {who: one for who, one in self._left.items() if now - one[1] < 1.0}
        return True


class Admission:
    """Looks at the head of a request.

    Args:
        tokens: who has which role.
        rate: requests a second from one address.
        trusted: nobody but this machine's users can reach it (a Unix socket): any host name will do.
    """

    def __init__(self, tokens: Tokens, rate: float, *, trusted: bool = False) -> None:
        self.tokens, self.trusted = tokens, trusted
        self._requests, self._wrong = Buckets(rate), Buckets(WRONG_TOKENS)

    def check(self, request: Request, roles: frozenset[str]) -> None:
        """Refuse, or return; a route without roles is open to everybody."""
        if not self._requests.take(request.address):
            wanted = f"at most {self._requests.rate:g} a second"
            raise TooMany.must("rate", "requests", wanted, "more")
        if not self.tokens:
            host = request.headers.get(b"host", b"")
            if not self.trusted and not LOCAL.fullmatch(host):
                # a page in a browser here may reach us under a name of its own (DNS rebinding)
                wanted = "127.0.0.1, localhost or [::1]: a service for other names needs a token"
                raise WrongHost.must("host", "request", wanted, host.decode("latin-1"))
        elif roles:
            role = self.tokens.role(request.headers.get(b"authorization", b""))
            if role is None:
                if not self._wrong.take(request.address):
                    wanted = f"at most {WRONG_TOKENS:g} a second without a token that is taken"
                    raise TooMany.must("authorization", "requests", wanted, "more")
                message = "authorization of request must be 'Bearer' and a token of this service"
                raise TokenWrong(message, field="authorization")
            if role not in roles:
                wanted = f"that of a token whose role is {' or '.join(sorted(roles))}"
                raise RoleMissing.must("authorization", "request", wanted, role)
