"""Access control: bearer tokens and their roles, host names, requests a second."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from time import monotonic

from superarm.errors import InvalidInput, Unquoted
from superarm.http.http_errors import HttpError
from superarm.http.request import Request
from superarm.http.watched_files import WatchedFiles

# the roles that may use a route
OPEN = frozenset[str]()  # no token is needed
DECIDE = frozenset({"decide", "operate"})
READ = frozenset({"read", "operate"})
ANY_ROLE = DECIDE | READ
OPERATE = frozenset({"operate"})
PERSON = frozenset({"person"})  # any token of a person

LOOPBACK_HOST = re.compile(rb"(127(\.\d{1,3}){3}|localhost|\[::1\]|)(:\d{1,5})?", re.IGNORECASE)
MAX_ADDRESSES = 10_000
MAX_FAILED_AUTH_RATE = 10.0  # a second and address


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

    line_format = "one of decide, read, operate, and a token"  # of a line of the file
    owner = "superarm serve"  # for messages

    def __init__(self, file: Path | None = None, master_token: str | None = None) -> None:
        self.file = file
        self._names: dict[bytes, str] = {}  # by digest: a lookup takes the same time for every wrong token
        if file is None and master_token is not None:
            self._names = {self._digest(master_token): "operate"}
        self.watched = WatchedFiles(
            "tokens", {} if file is None else {"--token-file": file}, self.owner, self._read
        )

    @property
    def required(self) -> bool:
        """Whether requests need a token."""
        return self.file is not None or bool(self._names)

    @property
    def count(self) -> int:
        """How many tokens are accepted."""
        return len(self._names) if self.problem is None else 0

    @property
    def problem(self) -> str | None:
        """What is wrong with the file."""
        self.watched.refresh()
        reason = self.watched.problem
        return None if reason is None else f"no token is accepted: {reason}"

    def name_of(self, header: bytes) -> str | None:
        """Return the name before the token of an Authorization header in the file; None if the token is not there."""
        scheme, _, token = header.partition(b" ")
        if scheme.lower() != b"bearer" or self.problem is not None:
            return None
        return self._names.get(sha256(token).digest())

    def role_of(self, name: str) -> str | None:
        """Return the role behind a name in the file, here the name itself; None for a name that is not valid."""
        return name if name in ANY_ROLE else None

    def _read(self, file: Path) -> None:
        try:
            lines = file.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput.must("--token-file", self.owner, "a text file", str(file)) from error
        names: dict[bytes, str] = {}
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or self.role_of(words[0]) is None:
                # the line itself may be a secret
                got = "another first word" if len(words) == 2 else f"{len(words)} words"
                raise InvalidInput.must(f"line {number}", str(file), self.line_format, Unquoted(got))
            if names.setdefault(self._digest(words[1]), words[0]) != words[0]:
                wanted = "a token that no other line has"
                raise InvalidInput.must(f"line {number}", str(file), wanted, Unquoted("one given before"))
        if not names:
            raise InvalidInput.must("--token-file", self.owner, "a file with a token", str(file))
        self._names = names

    def _digest(self, token: str) -> bytes:
        if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
            wanted = "at least 16 visible ASCII characters"
            raise InvalidInput.must("token", self.owner, wanted, Unquoted("a weaker one"))
        return sha256(token.encode()).digest()


class RateLimiter:
    """A token bucket for each address: it holds one second's requests, at least one, and fills up evenly."""

    def __init__(self, rate: float) -> None:
        self.rate, self.capacity = rate, max(1.0, rate)
        self._buckets: dict[str, tuple[float, float]] = {}  # requests left, and the time of that count

    def allows(self, address: str) -> bool:
        """Return whether one more request from an address is within the rate, and count it then."""
        now = monotonic()
        left, counted_at = self._buckets.get(address, (self.capacity, now))
        left = min(self.capacity, left + (now - counted_at) * self.rate)
        if left < 1.0:
            return False
        self._buckets[address] = left - 1.0, now
        if len(self._buckets) > MAX_ADDRESSES:  # a bucket that is full again is as good as a new one
            fill_seconds = self.capacity / self.rate
            buckets = self._buckets.items()
            self._buckets = {key: (left, at) for key, (left, at) in buckets if now - at < fill_seconds}
            if len(self._buckets) > MAX_ADDRESSES:  # sorting them at every request would be the attack
                self._buckets.clear()
        return True


class AccessControl:
    """Checks the head of a request.

    Args:
        tokens: who has which role.
        rate: requests a second from one address.
        any_host: without a token, answer to any host name, and not only to those of this machine: for a socket in
            the file system, or if the application that has mounted it checks who may use it.
    """

    def __init__(self, tokens: Tokens, rate: float = 10_000.0, *, any_host: bool = False) -> None:
        self.tokens, self.any_host = tokens, any_host
        self._requests, self._failed_auths = RateLimiter(rate), RateLimiter(MAX_FAILED_AUTH_RATE)

    def check(self, request: Request, roles: frozenset[str]) -> str:
        """Refuse a request that may not use a route of these roles; without roles, no token is needed.

        Returns:
            The name of its token: a role, or a person's; empty where no token is needed.
        """
        request.check_host()
        if not self._requests.allows(request.address):
            wanted = f"at most {self._requests.rate:g} a second"
            raise HttpError.must("rate", "requests", wanted, Unquoted("more"), status=429)
        if not self.tokens.required:
            self._check_loopback(request)
            return ""
        return self._check_token(request, roles) if roles else ""

    def _check_loopback(self, request: Request) -> None:
        """Refuse other host names: a page in a browser here may reach us under a name of its own (DNS rebinding)."""
        host = request.headers.get(b"host", b"")
        if not self.any_host and not LOOPBACK_HOST.fullmatch(host):
            wanted = "127.0.0.1, localhost or [::1]: a service for other names needs a token"
            raise HttpError.must("host", "request", wanted, host.decode("latin-1"), status=403)

    def _check_token(self, request: Request, roles: frozenset[str]) -> str:
        """Return the name of the token, whose role must be one of these."""
        name = self.tokens.name_of(request.headers.get(b"authorization", b""))
        if name is None:
            if not self._failed_auths.allows(request.address):
                wanted = f"at most {MAX_FAILED_AUTH_RATE:g} a second without a valid token"
                raise HttpError.must("authorization", "requests", wanted, Unquoted("more"), status=429)
            message = "authorization of request must be 'Bearer' and a token of this service"
            raise HttpError(message, field="authorization", status=401)
        if self.tokens.role_of(name) not in roles:
            wanted = f"that of a token whose role is {' or '.join(sorted(roles))}"
            raise HttpError.must("authorization", "request", wanted, name, status=403)
        return name
