"""What an operator does: runbooks of docs/operations.md, systemd, certificates, tokens, sockets, traces."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import re
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from service_kit import X, certificate, soon

from superarm.errors import InvalidInput
from superarm.http import server as server_module
from superarm.http import watched_files
from superarm.http.access import AccessControl, Tokens
from superarm.http.listener import Listener
from superarm.service import Client, views
from superarm.service.client.client import ServiceError
from superarm.service.serve import _handle_signals

ROOT = Path(__file__).parents[3]


def shown_certificate(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=10).strip()


def test_a_certificate_was_renewed(live, tmp_path, caplog, monkeypatch):
    """docs/operations.md: a certificate was renewed."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(server_module, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(watched_files, "REFRESH_SECONDS", 0.02)
    first, second = certificate(tmp_path, "first"), certificate(tmp_path, "second")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(first[0].read_bytes())
    key.write_bytes(first[1].read_bytes())
    web = live(listener=Listener(port=0, tls_cert=cert, tls_key=key))
    with Client(f"https://localhost:{web.port}", ca_file=first[0]) as client:
        assert client.decide(X).labels
        assert shown_certificate(web.port) == first[0].read_text().strip()
        # half of it is there: what is in use stays in use
        cert.write_bytes(second[0].read_bytes())
        soon(lambda: "certificate refused" in caplog.text)
        assert shown_certificate(web.port) == first[0].read_text().strip()
        key.write_bytes(second[1].read_bytes())
        soon(lambda: shown_certificate(web.port) == second[0].read_text().strip())
        assert client.decide(X).labels  # connections that are there go on
    with Client(f"https://localhost:{web.port}", ca_file=second[0]) as client:
        assert client.decide(X).labels
    assert "certificate read" in caplog.text


def test_a_handshake_that_never_comes_is_let_go(live, tmp_path):
    cert, key = certificate(tmp_path, "first")
    web = live(listener=Listener(port=0, tls_cert=cert, tls_key=key), head_seconds=0.5)
    with socket.create_connection(("127.0.0.1", web.port), timeout=20) as silent:
        assert silent.recv(10) == b""


def test_a_token_leaked(live, tmp_path, monkeypatch):
    """docs/operations.md: a token leaked."""
    monkeypatch.setattr(watched_files, "REFRESH_SECONDS", 0.02)
    file = tmp_path / "tokens"
    file.write_text("decide the-old-token-of-the-shop\noperate the-token-of-the-team\n")
    web = live(tokens=Tokens(file))

    def write(text: str) -> None:
        new = tmp_path / "tokens.new"
        new.write_text(text)
        new.replace(file)  # never half of it

    with (
        Client(web.url, token="the-old-token-of-the-shop", retries=0) as shop,
        Client(web.url, token="the-token-of-the-team") as team,
    ):
        shop.decide(X)
        # 1. the new one beside the old one, until the shop has it
        write(
            "decide the-old-token-of-the-shop\ndecide the-new-token-of-the-shop\n"
            "operate the-token-of-the-team\n"
        )
        with Client(web.url, token="the-new-token-of-the-shop", retries=0) as renewed:
            soon(lambda: _is_taken(renewed))
            shop.decide(X)
            # 2. the old one is gone: at once, on connections that are open as well
            write("decide the-new-token-of-the-shop\noperate the-token-of-the-team\n")
            soon(lambda: not _is_taken(shop))
            with pytest.raises(ServiceError, match="a token of this service"):
                shop.decide(X)
            renewed.decide(X)
        # 3. what it did meanwhile
        assert team.stats()["decisions"] == 3
        assert team.changes() == []
        assert b"superarm_tokens 2.0" in _metrics(web, "the-token-of-the-team")


def test_sighup_reads_tokens_and_certificate_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(watched_files, "REFRESH_SECONDS", 1e6)
    file, read_again = tmp_path / "tokens", []
    file.write_text("decide the-old-token-of-the-shop")
    tokens = Tokens(file)

    async def hang_up() -> None:
        certificate = SimpleNamespace(reload=lambda: read_again.append(True))
        server = SimpleNamespace(certificate=certificate)
        _handle_signals(SimpleNamespace(access=AccessControl(tokens)), server)
        file.write_text("decide the-new-token-of-the-shop")
        assert tokens.name_of(b"Bearer the-new-token-of-the-shop") is None
        os.kill(os.getpid(), signal.SIGHUP)
        while not read_again:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(hang_up(), 20))
    assert tokens.name_of(b"Bearer the-new-token-of-the-shop") == "decide"
    assert tokens.name_of(b"Bearer the-old-token-of-the-shop") is None


def _is_taken(client: Client) -> bool:
    try:
        client.info()
        return True
    except ServiceError:
        time.sleep(0.15)  # wrong tokens are answered ten times a second
        return False


def _metrics(web, token: str) -> bytes:
    web.token = token
    return web.get("/metrics")[1]


# ---------------------------------------------------------------- systemd


@pytest.fixture
def heard(tmp_path, monkeypatch):
    """What systemd would hear."""
    path = tmp_path / "notify"
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    channel.bind(str(path))
    channel.setblocking(False)
    monkeypatch.setenv("NOTIFY_SOCKET", str(path))
    lines: list[str] = []

    def hear() -> list[str]:
        while True:
            try:
                lines.extend(channel.recv(4096).decode().split("\n"))
            except BlockingIOError:
                return lines

    yield hear
    channel.close()


def test_systemd_hears_of_start_life_and_end(live, heard, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "100000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    web = live()
    soon(lambda: heard().count("WATCHDOG=1") >= 3)
    assert heard().count("READY=1") == 1
    web.stop()
    assert "STOPPING=1" in heard()


def test_deadlines_hold_where_no_file_is_left_for_systemd(monkeypatch):
    """One task does both."""
    monkeypatch.setenv("NOTIFY_SOCKET", "@nobody-listens-here")

    def no_file_left(*_):
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(server_module.socket, "socket", no_file_left)
    server_module.notify_systemd("WATCHDOG=1")


def test_without_systemd_nothing_is_said(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    server_module.notify_systemd("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", "@nobody-listens-here")
    server_module.notify_systemd("READY=1")
    monkeypatch.setenv("WATCHDOG_USEC", "1000000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert server_module.watchdog_seconds() is None


def test_the_unit_is_one_that_systemd_takes(tmp_path):
    unit = (ROOT / "examples" / "superarm.service").read_text()
    for line in ("Type=notify\n", "WatchdogSec=", "User=superarm", "NoNewPrivileges=yes", "Restart=", "-HUP"):
        assert line in unit
    copy = tmp_path / "superarm.service"
    copy.write_text(
        unit.replace("/srv/superarm/bin/superarm", "/bin/true").replace("User=superarm", "User=root")
    )
    try:
        found = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60
        )
    except OSError:
        pytest.skip("no systemd-analyze here")
    assert "superarm.service" not in found.stderr, found.stderr


# ---------------------------------------------------------------- sockets in the file system


def test_two_services_on_one_socket(live, open_service, tmp_path):
    path = tmp_path / "superarm.sock"
    first = live(listener=Listener(unix_socket=path))
    with pytest.raises(
        InvalidInput, match="--unix-socket of superarm serve must be used by no other process"
    ):
        live(open_service("other.db"), listener=Listener(unix_socket=path))
    with Client(f"unix:{path}") as client:
        client.info()
    # somebody has taken the path away by hand: its end must not delete what is there now
    path.unlink()
    second = live(open_service("third.db"), listener=Listener(unix_socket=path))
    first.stop()
    with Client(f"unix:{path}") as client:
        client.info()
    second.stop()
    assert not path.exists()


def test_a_socket_that_was_left_behind_is_taken_over(live, tmp_path):
    path = tmp_path / "superarm.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    live(listener=Listener(unix_socket=path))
    with Client(f"unix:{path}") as client:
        client.info()


# ---------------------------------------------------------------- traces


def test_a_trace_is_passed_on_in_logs(live, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    web = live(log_requests=True)
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    web.get("/health", Traceparent=trace)
    [line] = soon(lambda: [one for one in caplog.records if one.message == "request"])
    assert (line.trace_id, line.parent_id) == ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
    for wrong in ("nonsense", trace + '"', trace.upper(), "00-" + "0" * 31 + "-00f067aa0ba902b7-01"):
        caplog.clear()
        web.get("/health", Traceparent=wrong)
        [line] = soon(lambda: [one for one in caplog.records if one.message == "request"])
        assert not hasattr(line, "trace_id")

    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(views, "decision_details", broken)
    web.get("/v1/decisions/a", Traceparent=trace)
    bug = next(one for one in caplog.records if one.message == "unexpected error")
    assert bug.trace_id == "4bf92f3577b34da6a3ce929d0e0e4736"


# ---------------------------------------------------------------- the image


def test_the_dockerfile_is_what_it_should_be():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(lines)
    froms = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert len(froms) == 2
    assert all(re.fullmatch(r"python:3\.\d+-slim(-\w+)?", name) for name in froms), "a tag, not latest"
    last = text[text.rindex("FROM ") :]
    user = re.search(r"^USER (\S+)", last, re.M)
    assert user is not None
    assert user[1] not in ("root", "0")
    assert re.search(r"^HEALTHCHECK ", last, re.M)
    for word in ("ENTRYPOINT", "CMD"):
        for found in re.findall(rf"^{word} (.*)$", last, re.M):
            json.loads(found)  # no shell that keeps the signals
    assert "--no-cache-dir" in text
    assert "apt-get" not in last or "rm -rf /var/lib/apt/lists" in last
    assert not re.search(r"^ADD ", text, re.M)
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert "docker build" in workflow
