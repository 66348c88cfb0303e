"""What the tests of the service share: a plain web client, rows, a fork server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ports import free_port

# a test that has this over it runs on a SQLite file, and on PostgreSQL
both = pytest.mark.parametrize("open_service", ["sqlite", "postgresql"], indirect=True)

LABELS = [f"label-{i}" for i in range(6)]
D = 5
X = [0.5, 1, 0, 0.25, 2]  # a row


class Web:
    """A plain HTTP client that shows everything."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.port, self.token = port, token
        self.headers: dict[str, str] = {}
        self.timeout = 20.0  # seconds

    def __call__(self, method: str, path: str, data: Any = None, **headers: str) -> tuple[int, Any]:
        body = data if isinstance(data, bytes) or data is None else json.dumps(data).encode()
        given = {"Content-Type": "application/json"} if body is not None else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            given.setdefault("Authorization", f"Bearer {self.token}")
        request = urllib.request.Request(self.url + path, body, given, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
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


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    command += f" -keyout {name}.key -out {name}.pem -subj /CN={name}"
    command += " -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    try:
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    except OSError:
        pytest.skip("no openssl here to make a certificate with (apt-get install openssl)")
    return folder / f"{name}.pem", folder / f"{name}.key"


def serve_command(folder: Path, *options: Any) -> tuple[list[Any], Web]:
    """The command that serves a journal in a folder, as it is started by hand; and a way to talk to it."""
    port, labels = free_port(), folder / "labels.txt"
    labels.write_text("\n".join(LABELS))
    command = [
        sys.executable,
        "-m",
        "superarm",
        "serve",
        "--journal",
        folder / "events.db",
        "--port",
        str(port),
    ]
    return [*command, "--labels", labels, "--features", str(D), "--set-size", "2", *options], Web(port)


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def rows(n: int, seed: int = 0, d: int = D) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


class ForkServer:
    """A process that has imported everything and forks servers: a start takes a tenth of a second."""

    def __init__(self, folder: Path) -> None:
        script = Path(__file__).with_name("fork_server.py")
        self.log = folder / "fork_server.log"
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
        assert line, self.log.read_text() if self.log.exists() else "the fork server ended"
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


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    try:
        while True:  # the fork server leaves no zombies: the process is gone when it has no id any more
            os.kill(pid, 0)
            time.sleep(0.001)
    except ProcessLookupError:
        pass


def replayed(service: Any) -> Any:
    """A replay of the whole journal behind a service."""
    from superarm.journal.replay import replay

    return replay(service.store, from_start=True)


def soon(what: Any, seconds: float = 30.0) -> Any:
    """What ``what()`` gives as soon as that is true: another process may have to get to it."""
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)
    return found
