"""Admission of requests: tokens by role, host names, requests a second."""

from __future__ import annotations

import re
from time import monotonic

from superarm.service.errors import HttpError
from superarm.service.http.request import Request
from superarm.service.http.tokens import Tokens

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


class RateLimiter:
    """A token bucket for each address: it holds one second's requests, at least one, and fills up evenly."""

    def __init__(self, rate: float) -> None:
        self.rate, self.capacity = rate, max(1.0, rate)
        self._buckets: dict[str, tuple[float, float]] = {}  # what is left, and when that was

    def allows(self, address: str) -> bool:
        """Return whether one more request from an address is within the rate, and count it then."""
        now = monotonic()
        left, then = self._buckets.get(address, (self.capacity, now))
        left = min(self.capacity, left + (now - then) * self.rate)
        if left < 1.0:
            return False
        self._buckets[address] = left - 1.0, now
        if len(self._buckets) > MAX_ADDRESSES:  # a bucket that is full again is as good as a new one
            full = self.capacity / self.rate
            self._buckets = {key: bucket for key, bucket in self._buckets.items() if now - bucket[1] < full}
            if len(self._buckets) > MAX_ADDRESSES:  # sorting them at every request would be the attack
                self._buckets.clear()
        return True


class Admission:
    """Checks the head of a request.

    Args:
        tokens: who has which role.
        rate: requests a second from one address.
        any_host: without a token, answer to any host name, and not only to those of this machine: for a socket in
            the file system, or if the application that has mounted it checks who may use it.
    """

    def __init__(self, tokens: Tokens, rate: float, *, any_host: bool = False) -> None:
        self.tokens, self.any_host = tokens, any_host
        self._requests, self._wrong_tokens = RateLimiter(rate), RateLimiter(MAX_FAILED_AUTH_RATE)

    def check(self, request: Request, roles: frozenset[str]) -> None:
        """Refuse a request that may not use a route of these roles; without roles, no token is needed."""
        request.check_host()
        if not self._requests.allows(request.address):
            wanted = f"at most {self._requests.rate:g} a second"
            raise HttpError.must("rate", "requests", wanted, "more", status=429)
        if not self.tokens.required:
            host = request.headers.get(b"host", b"")
            if not self.any_host and not LOOPBACK_HOST.fullmatch(host):
                # a page in a browser here may reach us under a name of its own (DNS rebinding)
                wanted = "127.0.0.1, localhost or [::1]: a service for other names needs a token"
                raise HttpError.must("host", "request", wanted, host.decode("latin-1"), status=403)
        elif roles:
            role = self.tokens.role(request.headers.get(b"authorization", b""))
            if role is None:
                if not self._wrong_tokens.allows(request.address):
                    wanted = f"at most {MAX_FAILED_AUTH_RATE:g} a second without a valid token"
                    raise HttpError.must("authorization", "requests", wanted, "more", status=429)
                message = "authorization of request must be 'Bearer' and a token of this service"
                raise HttpError(message, field="authorization", status=401)
            if role not in roles:
                wanted = f"that of a token whose role is {' or '.join(sorted(roles))}"
                raise HttpError.must("authorization", "request", wanted, role, status=403)

    def person(self, request: Request) -> str:
        """Return the name of the person with the token of a request; empty where tokens have no names."""
        return self.tokens.person(request.headers.get(b"authorization", b""))
