"""The server: heads, bodies, slow callers, many callers; TLS, Unix sockets, request ids, pipelines."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from service_kit import X, certificate, soon

from superarm.errors import InvalidInput
from superarm.http import connection_limits, server
from superarm.http.listener import Listener
from superarm.http.request import Response
from superarm.service import Client, routes, views
from superarm.service.client.client import ServiceError

HEAD = b"POST /v1/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class RawConnection:
    """Bytes to and from a service."""

    def __init__(self, web, data: bytes = b"") -> None:
        self.socket = socket.create_connection(("127.0.0.1", web.port), timeout=20)
        self.send(data)

    def send(self, data: bytes) -> RawConnection:
        self.socket.sendall(data)
        return self

    def read(self) -> bytes:
        """All that comes until the service hangs up."""
        parts = []
        while True:
            try:
                part = self.socket.recv(1 << 16)
            except ConnectionResetError:
                part = b""
            parts.append(part)
            if not part:
                self.socket.close()
                return b"".join(parts)


def statuses(data: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"HTTP/1.1 (\d+) ", data)]


def raw_statuses(web, data: bytes) -> list[int]:
    """The statuses of all responses to these bytes."""
    return statuses(RawConnection(web, data).read())


@pytest.fixture
def quick_sweeps(monkeypatch):
    monkeypatch.setattr(server, "TICK_SECONDS", 0.02)
    monkeypatch.setattr(connection_limits, "LINGER_SECONDS", 0.1)


# ---------------------------------------------------------------- sizes


def test_content_type_and_size(live):
    web = live(max_body=5000)
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        status, answer = web.post("/v1/decisions", {"features": X}, Content_Type=kind)
        assert (status, answer["error"]["field"]) == (415, "content-type")
    assert (
        web.post("/v1/decisions", {"features": X}, Content_Type="application/json; charset=utf-8")[0] == 200
    )
    status, answer = web.post("/v1/decisions", {"features": X, "context": "x" * 6000})
    assert (status, answer["error"]["field"]) == (413, "body")
    # without saying how long it is
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=10)
    body = iter([b'{"features": [1,2,', b"3,4,5]", b', "id": "chunked"}'])
    connection.request(
        "POST", "/v1/decisions", body, {"Content-Type": "application/json"}, encode_chunked=True
    )
    assert json.loads(connection.getresponse().read())["id"] == "chunked"
    huge = iter([b"x" * 3000] * 3)
    connection.request(
        "POST", "/v1/decisions", huge, {"Content-Type": "application/json"}, encode_chunked=True
    )
    assert connection.getresponse().status == 413
    connection.close()


def test_a_head_of_any_size_is_not_taken(live):
    web = live(max_head=4096, token="a-very-secret-token")
    for big in (b"X-Big: " + b"x" * 5000, b"\r\n".join(b"X-%d: y" % i for i in range(1000))):
        assert raw_statuses(web, b"GET /health HTTP/1.1\r\n" + big + b"\r\n\r\n") == [431]
    assert raw_statuses(web, b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\n\r\n") == [431]
    # one that never ends is cut off soon, and costs neither time nor memory
    endless = RawConnection(web, b"GET /health HTTP/1.1\r\nX-Big: ")
    sent = 0
    try:
        while sent < 200 << 20:
            endless.send(b"x" * (1 << 16))
            sent += 1 << 16
    except OSError:
        pass
    assert sent < 100 << 20
    endless.socket.close()
    assert web.get("/health")[0] == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_head_has_at_most_100_headers_however_it_arrives(live, chunked):
    """In one packet, too: the parser is done with such a head before anything else can count."""
    web = live()
    for number, status in ((90, 200), (101, 431)):
        lines = [b"GET /health HTTP/1.1", b"Host: localhost", b"Connection: close"]
        head = b"\r\n".join([*lines, *(b"X-%d: y" % i for i in range(number)), b"", b""])
        plain = RawConnection(web, head[:100])
        if chunked:
            time.sleep(0.05)
        plain.send(head[100:])
        assert statuses(plain.read()) == [status]


def test_a_large_body_does_not_count_as_the_head_of_the_next_request(live):
    web = live(max_head=4096)
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=10)
    for size, status in ((300_000, 422), (0, 200), (30_000, 200), (0, 200)):
        body = json.dumps({"features": X, "context": "x" * size})
        connection.request("POST", "/v1/decisions", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()


def test_the_body_of_a_stranger_is_not_read(live, quick_sweeps):
    web = live(token="a-very-secret-token")
    caller = RawConnection(web, HEAD + b"Content-Length: 1000000\r\n\r\n")  # and not a byte of the body
    assert statuses(caller.read()) == [401]
    assert raw_statuses(web, HEAD + b"Transfer-Encoding: chunked\r\n\r\n") == [401]


# ---------------------------------------------------------------- slow callers


def test_slow_and_half_requests_time_out(live, quick_sweeps):
    web = live(head_seconds=0.2, body_seconds=0.3, idle_seconds=0.4)
    halves = {
        b"": [],  # it has asked for nothing, and is told nothing
        b"GET /health HT": [408],
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n": [408],
        HEAD + b"Content-Length: 50\r\n\r\n": [408],
        HEAD + b'Content-Length: 50\r\n\r\n{"features"': [408],
        HEAD + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"fea': [408],
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n": [200],  # then idle for too long
    }
    with ThreadPoolExecutor(len(halves)) as pool:
        got = dict(zip(halves, pool.map(lambda half: RawConnection(web, half).read(), halves), strict=True))
    assert {half: statuses(data) for half, data in got.items()} == halves
    soon(lambda: not web.server.tracker.connections)


def test_fifty_half_requests_are_gone_in_the_end(live, quick_sweeps):
    web = live(head_seconds=0.2, body_seconds=0.2)
    callers = [RawConnection(web, HEAD + b"Content-Length: 9\r\n\r\n") for _ in range(50)]
    assert all(statuses(caller.read()) == [408] for caller in callers)


def test_an_answer_that_nobody_fetches_is_dropped(live, quick_sweeps, monkeypatch):
    monkeypatch.setattr(routes, "load_page", lambda *_: Response(200, b"x" * (50 << 20)))
    web = live(send_seconds=0.3)
    caller = RawConnection(web, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert statuses(caller.socket.recv(1000)) == [200]
    soon(lambda: not web.server.tracker.connections)
    caller.socket.close()


# ---------------------------------------------------------------- many callers


def test_connections_are_limited(live):
    web = live(max_connections=4, reserved_connections=2)
    tracker = web.server.tracker
    ask = b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n"
    held = []
    for _ in range(6):  # one after another: each is known before the next one comes
        held.append(RawConnection(web, ask))
        assert statuses(held[-1].socket.recv(1 << 16)) == [200]
    assert (len(tracker.connections), len(tracker.unauthenticated)) == (6, 0)
    answer = RawConnection(web, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").read()
    assert statuses(answer) in ([503], [])
    assert tracker.n_refused == 1
    held.pop().socket.close()
    soon(lambda: len(tracker.connections) == 5)
    assert web.get("/health")[0] == 200
    assert b"superarm_connections_refused_total 1.0" in web.get("/metrics")[1]
    for caller in held:
        caller.socket.close()


def test_strangers_make_room_for_whoever_comes(live):
    web = live(max_connections=20, reserved_connections=4, token="a-very-secret-token")
    tracker = web.server.tracker
    with Client(web.url, token=web.token) as client:
        client.info()
        strangers = [RawConnection(web) for _ in range(50)]
        soon(lambda: tracker.n_refused == 31)
        assert (len(tracker.unauthenticated), len(tracker.connections)) == (19, 20)
        assert client.info()["n_features"] == 5
        assert web.get("/health")[0] == 200
        with Client(web.url, token=web.token, retries=0) as another:
            another.info()
        assert all(stranger.read() == b"" for stranger in strangers[:31])
        for stranger in strangers[31:]:
            stranger.socket.close()


def test_an_address_has_its_share(live, monkeypatch):
    monkeypatch.setattr(connection_limits, "BURST_SECONDS", 0.2)
    web = live(max_unauthenticated_per_address=5)
    tracker = web.server.tracker
    first = [RawConnection(web) for _ in range(12)]  # so many at once may be somebody who starts
    soon(lambda: tracker.n_refused == 2)
    assert len(tracker.unauthenticated) == 10
    assert statuses(first[10].read()) == statuses(first[11].read()) == [503]
    time.sleep(0.2)
    later = RawConnection(web, b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert statuses(later.socket.recv(1000)) == [200]
    assert first[0].read() == b""
    for caller in (*first[1:10], later):
        caller.socket.close()


# ---------------------------------------------------------------- the protocol


def test_pipelined_requests_are_answered_in_their_order(live):
    web = live()
    body = json.dumps({"features": X, "id": "one"}).encode()
    asked = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    reply = b'{"hit":true}'
    answered = (
        b"POST /v1/decisions/one/outcome HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(reply) + reply
    )
    look = b"GET /v1/decisions/one HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    data = RawConnection(web, asked + answered + look).read()
    assert statuses(data) == [200, 200, 200]
    assert json.loads(data.rpartition(b"\r\n\r\n")[2])["outcome"]["hit"] is True


def test_who_has_sent_all_and_says_so_gets_the_answers(live):
    """A client that closes its half; one that has asked for nothing, or for half of something, is closed at once."""
    web = live()
    body = json.dumps({"features": X, "id": "one"}).encode()
    asked = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    look = b"GET /v1/decisions/one HTTP/1.1\r\nHost: localhost\r\n\r\n"
    wanted = {b"": [], asked: [200], asked + look: [200, 200], look + look: [200, 200], asked[:-5]: []}
    for data, answers in wanted.items():
        caller = RawConnection(web, data)
        caller.socket.shutdown(socket.SHUT_WR)
        assert statuses(caller.read()) == answers
    soon(lambda: not web.server.tracker.connections)


def test_a_long_pipeline_is_cut_short(live):
    web = live()
    ask = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert raw_statuses(web, 12 * ask + last) == [200] * 12 + [404]
    # more than any client has a use for: those that were taken are answered, and then it ends
    found = raw_statuses(web, 3000 * ask + last)
    assert found == [200] * (len(found) - 1) + [429]
    assert 12 < len(found) < 20
    # heads that are large take as much memory as many
    large = ask[:-2] + b"X-Large: " + b"y" * 5_000 + b"\r\n\r\n"
    assert raw_statuses(web, 2 * large + last) == [200, 200, 404]
    assert raw_statuses(web, 10 * large + last) == [200, 200, 429]


def test_what_is_not_http_gets_400(live):
    web = live()
    for nonsense in (
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        HEAD + b"Content-Length: x\r\n\r\n",
    ):
        assert raw_statuses(web, nonsense) == [400]
    two = HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert raw_statuses(web, two) == [400]


@pytest.mark.parametrize("wish", [b"h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB", b"websocket"])
def test_a_wish_for_another_protocol_is_ignored(live, wish):
    """Java's HttpClient has one in each request; its body used to be passed over, and it got 400."""
    web, body = live(), json.dumps({"features": X}).encode()
    head = HEAD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: " + wish + b"\r\n"
    whole = head + b"Content-Length: %d\r\n\r\n" % len(body)
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    last = b"GET /none HTTP/1.1\r\nHost: localhost\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\n\r\n"
    assert raw_statuses(web, 3 * (whole + body) + chunked + last) == [200, 200, 200, 200, 404]
    connection = RawConnection(web, whole)  # Java sends the body by itself
    time.sleep(0.05)
    assert statuses(connection.send(body + last).read()) == [200, 404]
    two = whole[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert raw_statuses(web, two) == [400]  # it is checked as any other request
    connect = (
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    )
    assert 200 not in raw_statuses(web, connect)


def test_head_old_http_and_expect(live):
    web = live()
    data = RawConnection(web, b"HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").read()
    assert statuses(data) == [200]
    assert data.endswith(b"\r\n\r\n")
    assert raw_statuses(web, b"GET /health HTTP/1.0\r\n\r\n") == [200]
    body = json.dumps({"features": X}).encode()
    head = HEAD + b"Connection: close\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
    caller = RawConnection(web, head)
    assert caller.socket.recv(100).startswith(b"HTTP/1.1 100 Continue")
    assert statuses(caller.send(body).read()) == [200]
    status, answer = web("DELETE", "/v1/decisions/a")
    assert (status, answer["error"]["field"], web.headers["allow"]) == (405, "method", "GET")


def test_every_answer_has_safe_headers_and_a_request_id(live):
    web = live()
    seen = set()
    for path, status in (
        ("/", 200),
        ("/docs", 200),
        ("/health", 200),
        ("/nowhere", 404),
        ("/v1/pending?limit=0", 422),
    ):
        assert web.get(path)[0] == status
        assert web.headers["x-content-type-options"] == "nosniff"
        assert web.headers["cache-control"] == "no-store"
        assert path not in ("/", "/docs") or web.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in web.headers["content-security-policy"]
        assert "default-src 'none'" in web.headers["content-security-policy"]
        seen.add(web.headers["x-request-id"])
    assert len(seen) == 5
    web.get("/health", X_Request_Id="from-the-proxy-17")
    assert web.headers["x-request-id"] == "from-the-proxy-17"
    for bad in ("two words", "x" * 200, 'quo"te', "ümlaut"):
        web.get("/health", X_Request_Id=bad.encode().decode("latin-1"))
        assert web.headers["x-request-id"] != bad


def test_docs_load_nothing(live):
    page = live().get("/docs")[1].decode()
    assert "<script" not in page
    assert not re.search(r"(src|href)\s*=\s*['\"]?(https?:)?//", page)
    for path in ("/v1/decisions/{id}/outcome", "/v1/pending", "/metrics"):
        assert path in page


def test_a_bug_is_a_500_that_tells_nothing_and_is_logged_with_its_id(live, open_service, monkeypatch, caplog):
    service = open_service()
    web = live(service)
    monkeypatch.setattr(views, "decision_details", lambda *_: 1 / 0)
    status, answer = web.get("/v1/decisions/a", X_Request_Id="the-broken-one")
    assert status == 500
    assert "division" not in answer["error"]["message"]
    bug = next(record for record in caplog.records if record.message == "unexpected error")
    assert bug.request == "the-broken-one"
    assert "ZeroDivisionError" in caplog.text
    assert b'superarm_requests_total{route="decision",status="500"} 1' in web.get("/metrics")[1]


# ---------------------------------------------------------------- TLS and sockets in the file system


@pytest.fixture(scope="module")
def tls_files(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("tls"), "localhost")


def test_tls(live, tls_files):
    cert, key = tls_files
    web = live(listener=Listener(port=0, tls_cert=cert, tls_key=key))
    connection = http.client.HTTPSConnection(
        "localhost", web.port, context=ssl.create_default_context(cafile=str(cert)), timeout=10
    )
    connection.request("GET", "/health")
    assert json.loads(connection.getresponse().read()) == {"status": "ok"}
    connection.close()
    with Client(f"https://localhost:{web.port}", ca_file=cert) as client:
        assert client.decide(X).labels
    with (
        Client(f"https://localhost:{web.port}", retries=0) as client,
        pytest.raises(ServiceError, match="certificate"),
    ):
        client.info()
    assert RawConnection(web, b"GET /health HTTP/1.1\r\n\r\n").read()[:4] != b"HTTP"  # not in the clear


def test_tls_files_must_be_usable(tls_files, tmp_path):
    cert, key = tls_files
    for wrong in (
        {"tls_cert": cert},
        {"tls_key": key},
        {"tls_cert": key, "tls_key": cert},
        {"tls_cert": tmp_path / "no", "tls_key": key},
    ):
        with pytest.raises(InvalidInput, match="--tls-cert"):
            Listener(**wrong).tls_context()


def test_a_key_with_a_passphrase_asks_no_terminal(tls_files, tmp_path, capfd):
    cert, key = tls_files
    locked = tmp_path / "locked.pem"
    command = ["openssl", "ec", "-in", key, "-out", locked, "-aes256", "-passout", "pass:secret"]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(InvalidInput, match="without a passphrase"):
        Listener(tls_cert=cert, tls_key=locked).tls_context()
    assert capfd.readouterr().err == ""  # without a terminal, OpenSSL asks on standard error


def test_a_unix_socket(live, open_service, tmp_path):
    path = tmp_path / "superarm.sock"
    web = live(listener=Listener(unix_socket=path))
    assert path.stat().st_mode & 0o777 == 0o660
    with Client(f"unix:{path}") as client:
        shown = client.decide(X)
        assert client.outcome(shown.id, hit=True).learnt
        assert client.info()["n_features"] == 5
    web.stop()
    assert not path.exists()
    path.write_text("mine")
    with pytest.raises(InvalidInput, match="--unix-socket"):
        live(open_service("other.db"), listener=Listener(unix_socket=path))
    assert path.read_text() == "mine"


def test_a_view_that_waits_for_the_journal_keeps_nobody_else_waiting(live):
    web = live()
    look = b"GET /%b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with web.service.store._reader_lock:  # as the thread that commits has it
        waiting = RawConnection(web, look % b"v1/pending")
        other = RawConnection(web, look % b"health")
        other.socket.settimeout(2)
        assert statuses(other.read()) == [200]
    assert statuses(waiting.read()) == [200]


def test_nobody_waits_for_nagles_algorithm():
    """asyncio turns it off only for sockets that say that they are TCP: 40 ms a request otherwise."""
    with Listener(port=0).bind() as bound:
        assert bound.proto == socket.IPPROTO_TCP
