"""The Python client: typed responses, and retries that cannot do anything twice. It needs no extra."""

from __future__ import annotations

import json
import socket
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from random import random
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import convert

from superarm._types import JsonObject
from superarm.data.cells import json_row
from superarm.data.labels import as_list, check_ordered
from superarm.data.tables import named_row
from superarm.errors import InvalidInput, SuperarmError
from superarm.service.messages import DecisionResponse, Outcome

__all__ = ["Client", "ServiceError"]

RETRY_STATUSES = frozenset({408, 429, 503, 507})
CHANGES_PATH = "/v1/changes"
CHANGE = ("POST", CHANGES_PATH)  # without an id: made twice, it may do something else
MAX_PAUSE = 30.0  # seconds, whatever Retry-After says


class ServiceError(SuperarmError):
    """The service has refused a request, or could not be reached (then ``status`` is None)."""

    def __init__(self, message: str, status: int | None = None, field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.status = status


class UnixConnection(HTTPConnection):
    """HTTP over a socket in the file system."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        if not hasattr(socket, "AF_UNIX"):
            raise ServiceError("unix: addresses need Linux or macOS: this system has no such sockets")
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    """A client of a service; threads may share it: each request has a connection of its own while it lasts.

    Args:
        url: as ``http://127.0.0.1:8800``, ``https://models.example`` or ``unix:/run/superarm.sock``.
        token: the bearer token, if the service requires one.
        retries: how often to try again after a failed connection or a 408, 429, 503 or 507; a change is sent once.
        timeout: seconds to wait for an answer.
        ca_file: certificates to trust in place of the system's, for https.

    Every decision gets an id before it is sent, so a request whose answer was lost can be sent
    again: the service gives the same set. The same outcome twice is fine too.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        retries: int = 5,
        timeout: float = 10.0,
        ca_file: str | Path | None = None,
    ) -> None:
        self._new_connection: Callable[[], HTTPConnection]
        self._idle_connections: list[HTTPConnection] = []
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ServiceError(f"url of Client must have a host and a port, got {url!r}: {error}") from error
        self._base_path = parts.path.rstrip("/")
        if parts.scheme == "unix" and parts.path and not parts.netloc:
            self._new_connection, self._base_path = partial(UnixConnection, parts.path, timeout=timeout), ""
        elif parts.scheme == "https" and parts.hostname:
            trust = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
            self._new_connection = partial(
                HTTPSConnection, parts.hostname, port, timeout=timeout, context=trust
            )
        elif parts.scheme == "http" and parts.hostname:
            self._new_connection = partial(HTTPConnection, parts.hostname, port, timeout=timeout)
        else:
            raise ServiceError(f"url of Client must be http://…, https://… or unix:/path, got {url!r}")
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self.url, self.retries = url, retries

    def decide(
        self,
        features: Any = None,
        *,
        scores: Mapping[str, float] | None = None,
        id: str | None = None,
        eligible: Sequence[str] | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
        context: Any = None,
    ) -> DecisionResponse:
        """Ask for a set of labels to show.

        Args:
            features: the row: numbers, {"indices": …, "values": …} (and "dense", if it has both parts), a
                `superarm.Row`, or names and values: a dict, or a row of a data frame.
            scores: in its place, your own model's score of each label (`superarm serve --learner scores`).
            id: how the decision is to be called; without one, the client makes one up.
            eligible: the only labels that may be shown.
            set_size: how many to show; with a promised coverage, the most.
            coverage: another promise, for this time.
            context: JSON that is kept beside it.
        """
        labels = _list(eligible, "eligible")
        options = {"eligible": labels, "set_size": set_size, "coverage": coverage, "context": context}
        body = _decision_body(features, scores, id) | options
        return convert(self._call("POST", "/v1/decisions", body), DecisionResponse)

    def outcome(self, id: str, *, hit: bool | None = None, label: str | None = None) -> Outcome:
        """Report whether decision ``id`` showed the right label, ``hit``, or which one that is, ``label``."""
        path = f"/v1/decisions/{quote(id, safe='')}/outcome"
        response = self._call("POST", path, {"hit": hit, "label": label})
        return convert(response["outcome"], Outcome)

    def decide_many(
        self, rows: Sequence[Any] = (), *, scores: Sequence[Mapping[str, float]] = ()
    ) -> list[DecisionResponse]:
        """Ask for a set for each of the rows, or of the ``scores`` in their place, in one request."""
        items = [_decision_body(features) for features in rows]
        items += [_decision_body(None, row_scores) for row_scores in scores]
        response = self._call("POST", "/v1/batch/decisions", {"decisions": items})
        return [convert(result, DecisionResponse) for result in _results(response)]

    def outcomes(self, outcomes: Sequence[tuple[str, bool]]) -> list[Outcome]:
        """Report many outcomes (id, hit) in one request."""
        items = [{"id": id_, "hit": hit} for id_, hit in outcomes]
        response = self._call("POST", "/v1/batch/outcomes", {"outcomes": items})
        return [convert(result["outcome"], Outcome) for result in _results(response)]

    def decision(self, id: str) -> JsonObject:
        """Return all that is known of the decision ``id``."""
        return self._call("GET", f"/v1/decisions/{quote(id, safe='')}")

    def pending(self, *, limit: int = 100, after: int = 0) -> JsonObject:
        """Return ``limit`` decisions without an outcome, oldest first, from ``after`` an event on."""
        return self._call("GET", f"/v1/pending?limit={limit}&after={after}")

    def info(self) -> JsonObject:
        """Return the learner, labels and options of the service."""
        return self._call("GET", "/v1/info")

    def stats(self) -> JsonObject:
        """Return the figures of the dashboard."""
        return self._call("GET", "/v1/stats")

    # ------------------------------------------------------------ for operators

    def add_labels(self, names: Sequence[str]) -> JsonObject:
        """Add labels of these names, to be shown from now on; disabled ones come back."""
        check_ordered(names, "Client")
        return self._change(what="add_labels", labels=_list(names, "labels"))

    def disable_labels(self, names: Sequence[str]) -> JsonObject:
        """Never show the labels of these names again; outcomes about them are still accepted."""
        return self._change(what="disable_labels", labels=_list(names, "labels"))

    def freeze(self) -> JsonObject:
        """Keep outcomes, and learn nothing from them."""
        return self._change(what="freeze")

    def unfreeze(self) -> JsonObject:
        """Learn again, from the outcomes that come from now on."""
        return self._change(what="unfreeze")

    def set_explore(self, *, explore: str | float | None = None, uniform: float | None = None) -> JsonObject:
        """Explore more or less: the new values of the learner's parameters ``explore`` and ``uniform``."""
        return self._change(what="set_explore", explore=explore, uniform=uniform)

    def rollback(self, to: int) -> JsonObject:
        """Restore the weights of the snapshot after the event ``to`` (see `snapshots`)."""
        return self._change(what="rollback", to=to)

    def erase(self, *, ids: Sequence[str] | None = None, before: float | None = None) -> JsonObject:
        """Erase features and context of the decisions ``ids``, or of all made ``before`` a time."""
        return self._change(what="erase", ids=_list(ids, "ids"), before=before)

    def changes(self) -> list[JsonObject]:
        """Return the changes by operators, oldest first."""
        return self._call("GET", CHANGES_PATH)["changes"]  # type: ignore[no-any-return]

    def snapshots(self) -> list[JsonObject]:
        """Return the kept snapshots, oldest first."""
        return self._call("GET", "/v1/snapshots")["snapshots"]  # type: ignore[no-any-return]

    def _change(self, **change: Any) -> JsonObject:
        return self._call(*CHANGE, change)

    def close(self) -> None:
        while self._idle_connections:
            self._idle_connections.pop().close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: str, path: str, data: Any = None) -> JsonObject:
        body = None if data is None else _encode(data)
        failure: ServiceError | None = None
        pause = 0.0
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(max(pause, min(2.0, 0.05 * 2**attempt) * (0.5 + random())))
            try:
                with self._connection() as connection:
                    status, content, pause = self._send_once(connection, method, path, body)
            except (OSError, HTTPException) as error:
                failure = ServiceError(f"{self.url} cannot be reached: {error or type(error).__name__}")
                continue
            if status in (200, 202):  # 202: an erasure that is not finished yet
                return json.loads(content)  # type: ignore[no-any-return]
            failure = _response_error(status, content)
            if status not in RETRY_STATUSES or (method, path) == CHANGE:  # which may have been made
                break
        assert failure is not None
        raise failure

    @contextmanager
    def _connection(self) -> Iterator[HTTPConnection]:
        """Lend a connection that no other thread uses."""
        try:
            connection = self._idle_connections.pop()
        except IndexError:
            connection = self._new_connection()
        try:
            yield connection
        except BaseException:
            connection.close()  # a response that was not read must not answer the next request
            raise
        finally:
            self._idle_connections.append(connection)

    def _send_once(
        self, connection: HTTPConnection, method: str, path: str, body: bytes | None
    ) -> tuple[int, bytes, float]:
        """Send one request; return the status, the content, and the seconds of Retry-After.

        The service may have closed a connection that was used before: then it is sent once more, on a new one. A
        change gets a new one, and is never sent twice: the first may have been made.
        """
        is_change = (method, path) == CHANGE
        if is_change:
            connection.close()
        while True:
            is_new = connection.sock is None
            if is_new:
                connection.connect()
            try:
                connection.request(method, self._base_path + path, body, self._headers)
                response = connection.getresponse()
                return response.status, response.read(), _retry_seconds(response.headers.get("retry-after"))
            except (OSError, HTTPException) as error:
                connection.close()
                if is_change:
                    message = f"{self.url} has not answered: the change may have been made (see `changes`)"
                    raise ServiceError(message) from error
                if is_new or isinstance(error, TimeoutError):
                    raise


def _encode(data: JsonObject) -> bytes:
    """Return a body as JSON, without what is None; a field that JSON cannot have is named."""
    given = {name: value for name, value in data.items() if value is not None}
    try:
        return json.dumps(given, allow_nan=False).encode()
    except (TypeError, ValueError):
        for field, value in given.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise InvalidInput.must(field, "request", "JSON, with finite numbers", value) from error
        raise


def _list(values: Any, parameter: str) -> list[Any] | None:
    return None if values is None else as_list(values, parameter, "Client", "a list")


def _retry_seconds(retry_after: str | None) -> float:
    """Return the seconds of Retry-After; a date, or anything else that is no number, counts as 0."""
    return min(float(retry_after), MAX_PAUSE) if retry_after and retry_after.isdecimal() else 0.0


def _decision_body(
    features: Any, scores: Mapping[str, float] | None = None, id: str | None = None
) -> JsonObject:
    named = named_row(features)
    if named is not None:
        features = json_row(named)
    elif hasattr(features, "tolist"):
        features = features.tolist()
    elif hasattr(features, "indices"):  # a superarm.Row
        parts = ("dense", "indices", "values") if len(features.dense) else ("indices", "values")
        features = {name: getattr(features, name).tolist() for name in parts}
    elif isinstance(features, list | tuple):
        features = [value.item() if hasattr(value, "item") else value for value in features]
    body = {"id": uuid.uuid4().hex if id is None else id}
    if features is not None:
        body["features"] = features
    return body if scores is None else body | {"scores": json_row(scores)}


def _results(response: JsonObject) -> list[JsonObject]:
    """Return the results of a batch; the first that is an error is raised."""
    for result in response["results"]:
        if "error" in result:
            raise _service_error(result["error"])
    return response["results"]  # type: ignore[no-any-return]


def _response_error(status: int, content: bytes) -> ServiceError:
    try:
        return _service_error(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):  # a proxy's
        return ServiceError(f"the service answered {status}", status)


def _service_error(error: JsonObject) -> ServiceError:
    return ServiceError(error["message"], error["status"], error["field"])
