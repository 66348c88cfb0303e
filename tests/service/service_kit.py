"""What the tests of the service share: a plain web client, rows, a nursery for servers."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# a test that has this over it runs on a SQLite file, and on PostgreSQL
both = pytest.mark.parametrize("open_service", ["sqlite", "postgresql"], indirect=True)

LABELS = [f"label-{i}" for i in range(6)]
D = 5


class Web:
    """A plain HTTP client that shows everything."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.port, self.token = port, token
        self.headers: dict[str, str] = {}

    def __call__(self, method: str, path: str, data: Any = None, **headers: str) -> tuple[int, Any]:
        body = data if isinstance(data, bytes) or data is None else json.dumps(data).encode()
        given = {"Content-Type": "application/json"} if body is not None else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            given.setdefault("Authorization", f"Bearer {self.token}")
        request = urllib.request.Request(self.url + path, body, given, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                status, content, self.headers = response.status, response.read(), dict(response.headers)
        except urllib.error.HTTPError as error:
            status, content, self.headers = error.code, error.read(), dict(error.headers)
        kind = self.headers.get("content-type", "")
        return status, json.loads(content) if kind.startswith("application/json") else content

    def post(self, path: str, data: Any, **headers: str) -> tuple[int, Any]:
        return self("POST", path, data, **headers)

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        return self("GET", path, **headers)

    def wait(self, seconds: float = 20.0) -> Web:
        until = time.monotonic() + seconds
        while True:
            try:
                if self.get("/health")[0] == 200:
                    return self
            except OSError:
                pass
            assert time.monotonic() < until, "the service did not come up"
            time.sleep(0.01)


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def rows(n: int, seed: int = 0, d: int = D) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


class Nursery:
    """A process that has imported everything and forks servers: a start takes a tenth of a second."""

    def __init__(self, folder: Path) -> None:
        script = Path(__file__).with_name("service_nursery.py")
        self.log = folder / "nursery.log"
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(self.log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._read() == {"ready": True}

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text() if self.log.exists() else "the nursery ended"
        return json.loads(line)

    def start(self, journal: Path, **options: Any) -> tuple[int, Web]:
        """A server on a journal: its process id, and a way to talk to it (it may not be up yet)."""
        port = free_port()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"journal": str(journal), "port": port, **options}) + "\n")
        self.process.stdin.flush()
        return self._read()["pid"], Web(port)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


def replayed(service: Any) -> Any:
    """A replay of the whole journal behind a service."""
    from superarm.journal.replay import replay

    return replay(service.store, from_start=True)


def call(session: Any, method: Any, argument: Any) -> Any:
    """One call in a turn of its own."""
    [(_, result, error)] = session.turn([(method, argument, None)])
    if error is not None:
        raise error
    return result


def soon(what: Any, seconds: float = 30.0) -> Any:
    """What ``what()`` gives as soon as that is true: another process may have to get to it."""
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)
    return found


def sha256_of(session: Any) -> str:
    """Of the model that the session has in memory."""
    return hashlib.sha256(session.model_file()).hexdigest()


def forge(journal: Any, seq: int, **fields: Any) -> None:
    """Change the body of an event, and all digests after it, as no accident ever would."""
    from orjson import dumps
    from superarm.service.core.events import link

    before = journal.digest_at(seq - 1)
    for event in list(journal.unchecked(seq - 1)):
        text = dumps(event.body | fields) if event.seq == seq else event.text
        before = link(before, event.seq, event.time, event.kind, event.id, event.content, text)
        values = (text, before, event.seq)
        journal.write("UPDATE events SET body = ?, digest = ? WHERE seq = ?", values)
    journal.commit()
    for kept in journal.snapshots():
        if kept >= seq:
            forge_snapshot(journal, kept)


def forge_snapshot(journal: Any, seq: int, model: bytes | None = None) -> None:
    """Give a snapshot another model, or only a new digest."""
    from orjson import loads
    from superarm.service.core.parts import describe, read_parts, snapshot_digest

    sql = "SELECT time, totals, made_by, parts FROM snapshots WHERE seq = ?"
    at, totals, made_by, parts = journal.reader.execute(sql, (seq,)).fetchone()
    whole = read_parts(journal.reader, seq, loads(parts))
    if model is not None:
        whole["model"] = model
        journal.write("DELETE FROM chunks WHERE seq = ?", (seq,))
        journal.put_part(seq, "model", 0, model)
    text = json.dumps(describe(whole))
    digest = snapshot_digest(journal.digest_at(seq), seq, at, totals, made_by, text)
    journal.write("UPDATE snapshots SET parts = ?, digest = ? WHERE seq = ?", (text, digest, seq))
    journal.commit()
