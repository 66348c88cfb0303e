"""Who may come in, how much, how often; and how the server is set up."""

from __future__ import annotations

import http.client
import json
import logging
import time

import pytest

from superarm.errors import InvalidInput
from superarm.service.core import group as group_module
from superarm.service.http.server import JsonLines, check_exposure, serve

X = [0.5, 1, 0, 0.25, 2]


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


def test_a_token_is_needed_where_one_is_set(live):
    web = live(token="a-very-secret-token")
    assert web.post("/v1/decisions", {"features": X})[0] == 200
    for given in ("Bearer wrong", "Bearer a-very-secret-toke", "a-very-secret-token", ""):
        for path in ("/v1/stats", "/metrics", "/v1/info", "/v1/model", "/v1/pending", "/v1/decisions/a"):
            status, answer = web.get(path, Authorization=given)
            assert (status, answer["error"]["field"]) == (401, "authorization")
        assert web.post("/v1/decisions", {"features": X}, Authorization=given)[0] == 401
        assert web.post("/v1/batch/decisions", {"decisions": []}, Authorization=given)[0] == 401
    assert web.headers["www-authenticate"] == "Bearer"
    for path in ("/health", "/ready", "/", "/openapi.json"):  # nothing of the model in these
        assert web.get(path, Authorization="")[0] == 200


def test_only_loopback_without_a_token():
    for host in ("127.0.0.1", "::1", "localhost"):
        check_exposure(host, None)
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.org"):
        with pytest.raises(InvalidInput, match="SUPERARM_TOKEN"):
            check_exposure(host, None)
        check_exposure(host, "x" * 16)
    for weak in ("short", "", "has a space in its middle", "größer-als-sechzehn"):
        with pytest.raises(InvalidInput, match="at least 16 visible ASCII"):
            check_exposure("127.0.0.1", weak)


def test_too_many_requests(live):
    web = live(rate=5)
    statuses = [web.get("/health")[0] for _ in range(60)]
    assert statuses[0] == 200
    assert 429 in statuses
    assert web.headers.get("retry-after") == "1" or statuses[-1] == 200
    time.sleep(0.3)
    assert web.get("/health")[0] == 200


def test_too_many_waiting(live, monkeypatch):
    monkeypatch.setattr(group_module, "MOST_WAITING", 3)
    web = live()
    status, answer = web.post("/v1/batch/decisions", {"decisions": [{"features": X}] * 20})
    assert status == 503
    assert "waiting" in answer["error"]["message"]
    assert web.post("/v1/decisions", {"features": X})[0] == 200


def test_the_application_answers_alike_without_the_gates_short_way(live, monkeypatch):
    from superarm.service.http import gate

    monkeypatch.setattr(gate, "HOT", "/never")
    web = live()
    assert web.post("/v1/decisions", {"features": X, "id": "a"})[1]["id"] == "a"
    assert web.post("/v1/decisions/a/outcome", {"hit": True})[0] == 200
    assert web.post("/v1/decisions", {"features": []})[1]["error"]["field"] == "features"
    assert web.post("/v1/decisions/b/outcome", {"hit": True})[0] == 404


def test_logs_are_json_lines():
    record = logging.makeLogRecord({"msg": "snapshot", "levelname": "INFO", "event_no": 7})
    line = json.loads(JsonLines().format(record))
    assert (line["message"], line["level"], line["event_no"]) == ("snapshot", "info", 7)
    try:
        raise ValueError("x")
    except ValueError:
        import sys

        record = logging.makeLogRecord({"msg": "bug", "exc_info": sys.exc_info()})
    assert "ValueError: x" in json.loads(JsonLines().format(record))["traceback"]


def test_serve_sets_up_uvicorn(monkeypatch, open_session):
    import uvicorn

    seen = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self: seen.append(self.config))
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        serve(open_session, port=1234)
    finally:
        root.handlers, root.level = handlers, level
    assert (seen[0].host, seen[0].port, seen[0].server_header) == ("127.0.0.1", 1234, False)


def test_buckets_of_addresses_that_are_gone_are_forgotten(monkeypatch):
    from superarm.service.http import gate as gate_module
    from superarm.service.http.metrics import Metrics

    now = [100.0]
    monkeypatch.setattr(gate_module, "MOST_ADDRESSES", 3)
    monkeypatch.setattr(gate_module, "monotonic", lambda: now[0])
    gate = gate_module.Gate(None, Metrics(), rate=5)
    for i in range(50):
        now[0] += 0.4
        gate._admit({"headers": [(b"host", b"localhost")], "client": (f"10.0.0.{i}", 1)}, "/")
    assert len(gate._buckets) <= 4


def test_without_a_token_only_loopback_names(live):
    web = live()
    for host in ("127.0.0.1:1", "localhost", "LOCALHOST:8800", "[::1]:80"):
        assert web.get("/v1/info", Host=host)[0] == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1"):
        status, answer = web.get("/v1/info", Host=host)
        assert (status, answer["error"]["field"]) == (403, "host")
        assert web.post("/v1/decisions", {"features": X}, Host=host)[0] == 403


def test_with_a_token_any_name(live):
    web = live(token="a-very-secret-token")
    assert web.get("/v1/info", Host="models.example")[0] == 200
