"""Who may come in, and how often; and how the server is set up."""

from __future__ import annotations

import json
import logging
import os
import time

import pytest
from service_kit import X, soon

from superarm.errors import InvalidInput
from superarm.http import access, watched_files
from superarm.http.access import Tokens
from superarm.http.json_logging import JsonFormatter
from superarm.http.listener import Listener, check_exposure
from superarm.service import commit_queue


def test_a_token_is_needed_where_one_is_set(live, monkeypatch):
    monkeypatch.setattr(access, "MAX_FAILED_AUTH_RATE", 1e6)
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


def test_only_loopback_without_a_token(tmp_path):
    for host in ("127.0.0.1", "::1", "localhost"):
        check_exposure(Listener(host), Tokens())
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.org"):
        with pytest.raises(InvalidInput, match="SUPERARM_TOKEN"):
            check_exposure(Listener(host), Tokens())
        check_exposure(Listener(host), Tokens(master_token="x" * 16))
        check_exposure(Listener(host, unix_socket=tmp_path / "socket"), Tokens())
    for weak in ("short", "", "has a space in its middle", "größer-als-sechzehn"):
        with pytest.raises(InvalidInput, match="at least 16 visible ASCII"):
            Tokens(master_token=weak)


TOKENS = """
# role   token
decide   the-token-of-the-shop
read     the-token-of-grafana

operate  the-token-of-the-team
"""


def test_tokens_by_role(live, tmp_path):
    file = tmp_path / "tokens"
    file.write_text(TOKENS)
    web = live(tokens=Tokens(file))
    may = {
        "the-token-of-the-shop": {"decide": 200, "look": 200, "stats": 403, "changes": 403, "change": 403},
        "the-token-of-grafana": {"decide": 403, "look": 200, "stats": 200, "changes": 200, "change": 403},
        "the-token-of-the-team": {"decide": 200, "look": 200, "stats": 200, "changes": 200, "change": 200},
        "the-token-of-nobody-at-all": dict.fromkeys(("decide", "look", "stats", "changes", "change"), 401),
    }
    for token, wanted in may.items():
        web.token = token
        got = {
            "decide": web.post("/v1/decisions", {"features": X})[0],
            "look": web.get("/v1/info")[0],
            "stats": web.get("/v1/stats")[0],
            "changes": web.get("/v1/changes")[0],
            "change": web.post("/v1/changes", {"what": "freeze"})[0],
        }
        assert got == wanted, token
    web.token = "the-token-of-the-shop"
    status, answer = web.get("/v1/stats")
    assert (status, answer["error"]["field"]) == (403, "authorization")
    assert "read" in answer["error"]["message"]


def test_tokens_are_read_again_without_a_restart(live, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(watched_files, "REFRESH_SECONDS", 0.02)
    file = tmp_path / "tokens"
    file.write_text(TOKENS)
    web = live(tokens=Tokens(file))
    web.token = "the-token-of-the-team"
    assert web.get("/v1/stats")[0] == 200
    file.write_text("operate the-new-token-of-the-team")
    soon(lambda: web.get("/v1/stats")[0] == 401)
    web.token = "the-new-token-of-the-team"
    assert web.get("/v1/stats")[0] == 200
    metric = b"superarm_token_file_ok"
    for broken in (
        "operate short",
        "dance the-new-token-of-the-team",
        "",
        "one two three",
        "the-new-token-of-the-team",  # without a role
    ):
        file.write_text(broken)  # whoever takes a token back must be sure that it is gone
        soon(lambda: web.get("/v1/stats")[0] in (401, 429))
        status, answer = web.get("/ready")
        assert status == 503
        assert "no token is accepted" in answer["error"]["message"]
        status, text = web.get("/metrics")  # no token can be right, and an alert must see this
        assert (status, text) == (200, b"# TYPE superarm_token_file_ok gauge\nsuperarm_token_file_ok 0.0\n")
        assert web.get("/health")[0] == 200
        file.write_text("operate the-new-token-of-the-team")
        soon(lambda: web.get("/v1/stats")[0] == 200)
        assert web.get("/ready")[0] == 200
        assert metric + b" 1.0" in web.get("/metrics")[1]
        web.token = "the-token-of-nobody-at-all"
        assert web.get("/metrics")[0] in (401, 429)
        web.token = "the-new-token-of-the-team"
    file.unlink()
    soon(lambda: web.get("/v1/stats")[0] in (401, 429))
    assert metric + b" 0.0" in web.get("/metrics")[1]
    assert caplog.text.count("tokens refused: ") >= 6
    assert "tokens refused: --token-file of superarm serve must be a file, got" in caplog.text


def test_a_pipe_in_place_of_the_token_file_blocks_nobody(live, tmp_path, monkeypatch):
    monkeypatch.setattr(watched_files, "REFRESH_SECONDS", 0.02)
    file = tmp_path / "tokens"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="--token-file of superarm serve must be a regular file"):
        Tokens(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="--tls-cert of superarm serve must be a regular file"):
        Listener(tls_cert=tmp_path / "pipe", tls_key=tmp_path / "pipe").tls_context()
    file.write_text(TOKENS)
    web = live(tokens=Tokens(file))
    web.token = "the-token-of-the-team"
    (tmp_path / "pipe").replace(file)
    soon(lambda: web.get("/v1/stats")[0] == 401)
    status, answer = web.get("/ready")
    assert (status, "must be a regular file" in answer["error"]["message"]) == (503, True)


def test_a_failed_read_is_tried_again(tmp_path, caplog, monkeypatch):
    """A file whose permissions were put right has the same time, number and size as before."""
    monkeypatch.setattr(watched_files, "REFRESH_SECONDS", 0.0)
    file, reads = tmp_path / "tokens", []

    def read(path):
        reads.append(path)
        if len(reads) in (2, 3):
            raise PermissionError("not for you")

    file.write_text("1")
    watched = watched_files.WatchedFiles("words", {"--file": file}, "test", read)
    file.write_text("22")
    problems = []
    for _ in range(4):
        watched.refresh()
        problems.append(watched.problem)
    assert problems == ["not for you", "not for you", None, None]
    assert reads == [file] * 4
    assert caplog.text.count("words refused") == 1


def test_a_reload_reads_files_that_look_unchanged_and_a_refresh_looks_at_their_change_time(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(watched_files, "REFRESH_SECONDS", 0.0)
    file, reads = tmp_path / "tokens", []
    file.write_text("1")
    watched = watched_files.WatchedFiles("words", {"--file": file}, "test", reads.append)
    watched.refresh()
    assert len(reads) == 1
    watched.reload()
    assert len(reads) == 2
    stat = file.stat()
    with file.open("r+") as written:  # in place, of the same size; and the time of last writing is put back
        written.write("2")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    watched.refresh()
    assert len(reads) == 3


def test_without_files_nothing_is_read():
    watched = watched_files.WatchedFiles("words", {}, "test", lambda: pytest.fail("read"))
    watched.reload()
    assert watched.problem is None


def test_a_token_file_must_be_usable(tmp_path):
    with pytest.raises(InvalidInput, match="--token-file"):
        Tokens(tmp_path / "missing")
    file = tmp_path / "tokens"
    for text, words in {
        "dance aaaaaaaaaaaaaaaaaaaa": "line 1 .* got another first word",
        "a b c": "line 1 .* got 3 words",
        "read aaaaaaaaaaaaaaaaaaaa\noperate aaaaaaaaaaaaaaaaaaaa": "line 2 .* token that no other line has",
        "the-token-that-has-no-role": "line 1 of .* must be one of decide, read, operate, and a token",
        "# nothing": "a file with a token",
        "decide short": "16 visible",
    }.items():
        file.write_text(text)
        with pytest.raises(InvalidInput, match=words):
            Tokens(file)


def test_wrong_tokens_are_rate_limited_and_right_ones_are_not(live):
    web = live(token="a-very-secret-token")
    statuses = [web.get("/v1/stats", Authorization="Bearer wrong-wrong-wrong")[0] for _ in range(40)]
    assert statuses[:5] == [401] * 5
    assert statuses.count(429) > 10
    assert web.get("/v1/stats")[0] == 200
    assert [web.get("/v1/stats")[0] for _ in range(20)] == [200] * 20


def test_too_many_requests(live):
    web = live(rate=5)
    statuses = [web.get("/health")[0] for _ in range(60)]
    assert statuses[0] == 200
    assert 429 in statuses
    assert web.headers.get("retry-after") == "1" or statuses[-1] == 200
    time.sleep(0.3)
    assert web.get("/health")[0] == 200


def test_too_many_waiting(live, monkeypatch):
    monkeypatch.setattr(commit_queue, "MAX_WAITING", 3)
    web = live()
    status, answer = web.post("/v1/batch/decisions", {"decisions": [{"features": X}] * 20})
    assert status == 503
    assert "waiting" in answer["error"]["message"]
    assert web.post("/v1/decisions", {"features": X})[0] == 200


def test_logs_are_json_lines():
    record = logging.makeLogRecord({"msg": "snapshot", "levelname": "INFO", "event_no": 7})
    line = json.loads(JsonFormatter().format(record))
    assert (line["message"], line["level"], line["event_no"]) == ("snapshot", "info", 7)
    try:
        raise ValueError("x")
    except ValueError:
        import sys

        record = logging.makeLogRecord({"msg": "bug", "exc_info": sys.exc_info()})
    assert "ValueError: x" in json.loads(JsonFormatter().format(record))["traceback"]


def test_buckets_of_addresses_that_are_gone_are_forgotten(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(access, "MAX_ADDRESSES", 3)
    monkeypatch.setattr(access, "monotonic", lambda: now[0])
    limiter = access.RateLimiter(5)
    for i in range(50):
        now[0] += 0.4
        assert limiter.allows(f"10.0.0.{i}")
    assert len(limiter._buckets) <= 4


def test_without_a_token_only_loopback_names(live):
    web = live()
    for host in ("127.0.0.1:1", "localhost", "LOCALHOST:8800", "[::1]:80"):
        assert web.get("/v1/info", Host=host)[0] == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1"):
        status, answer = web.get("/v1/info", Host=host)
        assert (status, answer["error"]["field"]) == (403, "host")
        assert web.post("/v1/decisions", {"features": X}, Host=host)[0] == 403
