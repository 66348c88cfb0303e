"""examples/nginx.conf in a real nginx, before a real service (apt-get install nginx; or NGINX names one)."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attacks
import pytest
from ports import free_port
from service_kit import X, certificate, soon

from superarm.http.listener import Listener
from superarm.service import Client
from superarm.service.client.client import ServiceError

NGINX = os.environ.get("NGINX") or shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
CONFIG = Path(__file__).parents[3] / "examples" / "nginx.conf"
TOKEN = "a-very-secret-token"

pytestmark = pytest.mark.skipif(NGINX is None, reason="no nginx here (apt-get install nginx)")


@pytest.fixture
def proxied(live, tmp_path):
    """The address of nginx, and its certificate."""
    cert, key = certificate(tmp_path, "first")
    path, port = tmp_path / "superarm.sock", free_port()
    live(token=TOKEN, listener=Listener(unix_socket=path))
    own = CONFIG.read_text()
    for old, new in {
        "/run/superarm/superarm.sock": str(path),
        "/etc/superarm/cert.pem": str(cert),
        "/etc/superarm/key.pem": str(key),
        "listen 443": f"listen 127.0.0.1:{port}",
    }.items():
        assert old in own
        own = own.replace(old, new)
    temporary = "".join(
        f"{name}_temp_path {tmp_path}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(
        f"daemon off;\nmaster_process off;\npid {tmp_path}/pid;\nerror_log {tmp_path}/error.log;\n"
        f"events {{ worker_connections 1000; }}\nhttp {{ access_log off;\n{temporary}{own} }}\n"
    )
    assert NGINX is not None
    files = ["-p", tmp_path, "-e", tmp_path / "error.log", "-c", tmp_path / "nginx.conf"]
    process = subprocess.Popen([NGINX, *files])
    try:
        soon(lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, (tmp_path / "error.log").read_text()
        yield port, cert
    finally:
        process.terminate()
        process.wait(20)


def _listens(port: int) -> bool:
    try:
        ssl.get_server_certificate(("127.0.0.1", port), timeout=2)
        return True
    except OSError:
        return False


def test_a_service_behind_nginx(proxied):
    port, cert = proxied
    url = f"https://localhost:{port}"
    with Client(url, token=TOKEN, ca_file=cert) as client:
        shown = client.decide(X)
        assert client.outcome(shown.id, hit=True).learnt
    with Client(url, ca_file=cert, retries=0) as stranger, pytest.raises(ServiceError, match="a token"):
        stranger.info()
    # one address has a hundred connections: the others are refused by nginx, and the service does not notice

    def held(_: int) -> Client:
        client = Client(url, token=TOKEN, ca_file=cert, retries=0)
        client.info()
        return client

    with ThreadPoolExecutor(16) as pool:
        clients = list(pool.map(held, range(90)))
    with Client(url, token=TOKEN, ca_file=cert) as another:
        another.info()
    for client in clients:
        client.close()
    silent = [attacks.Caller(port) for _ in range(300)]  # no handshake: they are nginx' to time out
    with Client(url, token=TOKEN, ca_file=cert) as another:
        another.info()
    for caller in silent:
        caller.close()
