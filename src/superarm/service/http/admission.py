"""Admission of requests: tokens by role, host names, requests a second."""

from __future__ import annotations

import re
from time import monotonic

from superarm.service.http.errors import HttpError
from superarm.service.http.request import Request
from superarm.service.http.tokens import Tokens

# who may use a route: the roles of its tokens
OPEN = frozenset[str]()  # no token is needed
DECIDE = frozenset({"decide", "operate"})
READ = frozenset({"read", "operate"})
ANY_ROLE = DECIDE | READ
OPERATE = frozenset({"operate"})
PERSON = frozenset({"person"})  # whoever has a token, where they are people's

LOCAL = re.compile(rb"(127(\.\d{1,3}){3}|localhost|\[::1\]|)(:\d{1,5})?", re.IGNORECASE)
MOST_ADDRESSES = 10_000
WRONG_TOKENS = 10.0  # a second and address


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
            self._left = {who: bucket for who, bucket in self._left.items() if now - bucket[1] < 1.0}
            if len(self._left) > MOST_ADDRESSES:  # or sorting them out would be the attack
                self._left.clear()
        return True


class Admission:
    """Looks at the head of a request.

    Args:
        tokens: who has which role.
        rate: requests a second from one address.
        any_host: without a token, answer to any host name, and not only to those of this machine: nobody else
            can reach it (a socket in the file system), or the application that has mounted it checks that.
    """

    def __init__(self, tokens: Tokens, rate: float, *, any_host: bool = False) -> None:
        self.tokens, self.any_host = tokens, any_host
        self._requests, self._wrong = Buckets(rate), Buckets(WRONG_TOKENS)

    def check(self, request: Request, roles: frozenset[str]) -> None:
        """Refuse, or return; a route without roles is open to everybody."""
        request.check_host()
        if not self._requests.take(request.address):
            wanted = f"at most {self._requests.rate:g} a second"
            raise HttpError.must("rate", "requests", wanted, "more", status=429)
        if not self.tokens:
            host = request.headers.get(b"host", b"")
            if not self.any_host and not LOCAL.fullmatch(host):
                # a page in a browser here may reach us under a name of its own (DNS rebinding)
                wanted = "127.0.0.1, localhost or [::1]: a service for other names needs a token"
                raise HttpError.must("host", "request", wanted, host.decode("latin-1"), status=403)
        elif roles:
            role = self.tokens.role(request.headers.get(b"authorization", b""))
            if role is None:
                if not self._wrong.take(request.address):
                    wanted = f"at most {WRONG_TOKENS:g} a second without a valid token"
                    raise HttpError.must("authorization", "requests", wanted, "more", status=429)
                message = "authorization of request must be 'Bearer' and a token of this service"
                raise HttpError(message, field="authorization", status=401)
            if role not in roles:
                wanted = f"that of a token whose role is {' or '.join(sorted(roles))}"
                raise HttpError.must("authorization", "request", wanted, role, status=403)

    def person(self, request: Request) -> str:
        """The person with the token of a request; empty where tokens have no names."""
        return self.tokens.person(request.headers.get(b"authorization", b""))
