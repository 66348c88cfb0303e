"""The service in somebody's application (Starlette, FastAPI); opened by the first request, or before."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from urllib.parse import urljoin

import pytest
from service_kit import LABELS, D, X

from superarm.errors import InvalidInput
from superarm.journal.errors import JournalLocked
from superarm.service import Service, asgi

pytest.importorskip("starlette", reason="starlette (extra dev) is not installed")
pytest.importorskip("httpx2", reason="httpx2 (extra dev) is not installed")

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

NEW = {"labels": LABELS, "n_features": D, "set_size": 2}
LOCAL = {"base_url": "http://127.0.0.1"}


def pair(client, prefix: str = "/arms") -> dict:
    shown = client.post(f"{prefix}/v1/decisions", json={"features": X})
    assert shown.status_code == 200, shown.text
    answer = client.post(f"{prefix}/v1/decisions/{shown.json()['id']}/outcome", json={"hit": True})
    assert answer.status_code == 200, answer.text
    return answer.json()["outcome"]


def outcomes(path) -> int:
    """What a journal has that nobody holds any more."""
    service = Service.open(path)
    try:
        return service.projector.seq // 2
    finally:
        service.close()


def framework(name: str, arms, lifespan=None):
    if name == "starlette":
        return Starlette(routes=[Mount("/arms", arms)], lifespan=lifespan)
    fastapi = pytest.importorskip("fastapi", reason="fastapi (extra dev) is not installed")
    app = fastapi.FastAPI(lifespan=lifespan)
    app.mount("/arms", arms)

    @app.get("/own")
    def own():
        return "mine"

    return app


both_frameworks = pytest.mark.parametrize("name", ["starlette", "fastapi"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"time_out": 1.0},
            "option of asgi must be one of clock, columns, .*, got 'time_out'; did you mean 'timeout'",
        ),
        ({"timeout": -1.0}, "^timeout of superarm serve must be"),
        ({"timeout": "soon"}, "^timeout of superarm serve must be a time such as 90d, 12h, 30m or 45s"),
        ({"timeout": [1]}, "timeout of superarm serve must be more than 0 seconds"),
        ({"default_outcome": "perhaps"}, "^default_outcome of superarm serve must be none, miss or hit"),
        ({"default_outcome": 0}, "^default_outcome of superarm serve must be none, miss or hit"),
        (
            {"default_outcome": "miss"},
            "^default_outcome of superarm serve must be none where .* no timeout, got",
        ),
        ({"labels": "abc"}, "labels of superarm serve must be a list of names, got 'abc'"),
        ({"labels": [1, 2, 3]}, "labels of superarm serve must be a list of names, got"),
        ({"set_size": True}, "set_size of superarm serve must be a whole number of at least 1, got True"),
        ({"seed": "0"}, "seed of superarm serve must be a whole number of at least 0, got '0'"),
        ({"set_size": 9}, "set_size of SetLogit must be below n_labels = 6, got 9"),
        ({"coverage": 1.0}, "coverage of .* must be above 0 and below 1, got 1.0"),
        ({"learner": "set-logitt"}, "did you mean 'set-logit'"),
        ({"coverage": "0.9"}, "coverage of superarm serve must be above 0 and below 1, got '0.9'"),
        ({"learner": ["set-logit"]}, "learner of superarm serve must be a text, got"),
        ({"shadows": [1]}, "^shadows of superarm serve must be a learner, or a list of them, got"),
        ({"trust_clock": "no"}, "^trust_clock of superarm serve must be true or false, got 'no'"),
        ({"any_host": "no"}, "any_host of asgi must be true or false, got 'no'"),
        ({"snapshot_every": "often"}, "^snapshot_every of superarm serve must be a whole number"),
        ({"features": 3}, "option of asgi must be one of clock, .*, got 'features'"),
    ],
)
def test_wrong_options_are_refused_at_once(options, message, tmp_path):
    with pytest.raises(InvalidInput, match=message):
        asgi(tmp_path / "e.db", **(NEW | options))


def test_options_may_be_spelt_as_on_the_command_line(tmp_path):
    spelt = {"timeout": "90s", "retain": "90d", "default_outcome": "miss", "shadows": "set-logit"}
    service = asgi(tmp_path / "e.db", **NEW, **spelt).open_service()
    settings = service.settings
    service.close()
    assert (settings.timeout, settings.retain, settings.default_outcome) == (90.0, 90 * 86400.0, False)
    assert list(settings.shadows) == ["set-logit"]


def test_a_rate_below_one_a_second(tmp_path):
    arms = asgi(tmp_path / "e.db", rate_limit=0.01, **NEW)
    with TestClient(arms, **LOCAL) as client:
        assert [client.get("/health").status_code for _ in range(3)] == [200, 429, 429]


@both_frameworks
def test_a_service_that_cannot_open_is_no_fault_of_the_request(name, tmp_path, caplog):
    arms = asgi(tmp_path / "e.db", set_size=2)  # a new journal needs labels
    with TestClient(framework(name, arms), **LOCAL) as client:
        response = client.get("/arms/health")
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    error = response.json()["error"]
    assert error["field"] is None
    assert "labels" in error["message"]
    assert [record.reason for record in caplog.records if "not opened" in record.msg] == [error["message"]]
    assert f"not opened: {error['message']}" in caplog.text
    with pytest.raises(InvalidInput, match="labels"), TestClient(arms, **LOCAL):
        pass


@both_frameworks
def test_opened_and_closed_with_the_application(name, tmp_path):
    arms = asgi(tmp_path / "e.db", **NEW)

    @asynccontextmanager
    async def lifespan(app):
        async with arms:
            yield

    with TestClient(framework(name, arms, lifespan), **LOCAL) as client:
        assert arms.context is not None  # before any request
        assert pair(client)["learnt"] is True
        assert client.get("/arms/v1/stats").json()["decisions"] == 1
        page = client.get("/arms/")
        assert page.status_code == 200
        assert 'fetchJson("v1/stats")' in page.text  # relative to where it is mounted
        document = client.get("/arms/openapi.json")
        root = urljoin(str(document.url), document.json()["servers"][0]["url"]).rstrip(
            "/"
        )  # paths are appended
        path = next(path for path in document.json()["paths"] if path == "/v1/stats")
        assert client.get(root + path).json()["decisions"] == 1
        assert client.get("/arms/nowhere").status_code == 404
        assert client.get("/v1/stats").status_code == 404
        if name == "fastapi":
            assert client.get("/own").json() == "mine"
        with pytest.raises(JournalLocked):
            Service.open(tmp_path / "e.db")
    assert arms.context is None
    assert outcomes(tmp_path / "e.db") == 1


@both_frameworks
def test_opened_by_the_first_request(name, tmp_path):
    opened = []
    arms = asgi(tmp_path / "e.db", **NEW)
    open_service = arms.open_service
    arms.open_service = lambda: opened.append(1) or open_service()
    with TestClient(framework(name, arms), **LOCAL) as client:
        assert arms.context is None
        with ThreadPoolExecutor(8) as pool:  # all at once: one opens, the others wait
            done = list(pool.map(lambda _: pair(client)["learnt"], range(8)))
        assert done == [True] * 8
        assert opened == [1]
    # another loop: what was left behind in the first is closed, and opened again
    with TestClient(framework(name, arms), **LOCAL) as client:
        assert client.get("/arms/v1/stats").json()["decisions"] == 8
        assert opened == [1, 1]
        client.portal.call(arms.close)
    assert outcomes(tmp_path / "e.db") == 8


def test_the_root_application_of_a_server_hears_of_start_and_end(tmp_path):
    arms = asgi(tmp_path / "e.db", **NEW)
    with TestClient(arms, **LOCAL) as client:
        assert arms.context is not None
        pair(client, "")
    assert outcomes(tmp_path / "e.db") == 1
    broken = asgi(tmp_path / "none" / "e.db", create=False)
    with pytest.raises(Exception, match="journal"), TestClient(broken, **LOCAL):
        pass


def test_a_service_that_cannot_be_opened_says_so_and_is_tried_again(tmp_path):
    holder = Service.open(tmp_path / "e.db", labels=LABELS, n_features=D, set_size=2)
    arms = asgi(tmp_path / "e.db")
    with TestClient(framework("starlette", arms), **LOCAL) as client:
        for _ in range(3):
            answer = client.get("/arms/v1/info")
            assert answer.status_code == 503
            assert "is open in this process already" in answer.json()["error"]["message"]
        holder.close()
        pair(client)
        client.portal.call(arms.close)


def test_who_may_come_in_where_it_is_mounted(tmp_path):
    arms = asgi(tmp_path / "e.db", **NEW)
    with TestClient(framework("starlette", arms), base_url="http://shop.example") as client:
        assert client.get("/arms/v1/info").status_code == 403  # no token, and a name of the world
        client.portal.call(arms.close)
    arms = asgi(tmp_path / "e.db", any_host=True, **NEW)
    with TestClient(framework("starlette", arms), base_url="http://shop.example") as client:
        assert client.get("/arms/v1/info").status_code == 200
        client.portal.call(arms.close)
    arms = asgi(tmp_path / "e.db", token="a-very-secret-token", max_body=2000)
    with TestClient(framework("starlette", arms), base_url="http://shop.example") as client:
        assert client.get("/arms/v1/info").status_code == 401
        client.headers["Authorization"] = "Bearer a-very-secret-token"
        pair(client)
        long = client.post("/arms/v1/decisions", json={"features": X, "context": "x" * 3000})
        assert (long.status_code, long.json()["error"]["field"]) == (413, "body")
        client.portal.call(arms.close)
    with pytest.raises(InvalidInput, match="16 visible"):
        asgi(tmp_path / "e.db", token="short")


LEFT_OPEN = """
import sys
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
import superarm as sa
arms = sa.service.asgi(sys.argv[1], labels=["a", "b", "c"], n_features=2, set_size=2)
with TestClient(Starlette(routes=[Mount("/arms", arms)]), base_url="http://127.0.0.1") as client:
    for i in range(5):
        assert client.post("/arms/v1/decisions", json={"features": [i, 1]}).status_code == 200
"""


def test_a_process_that_ends_without_a_word_keeps_a_snapshot(tmp_path):
    subprocess.run([sys.executable, "-c", LEFT_OPEN, str(tmp_path / "e.db")], check=True, timeout=120)
    service = Service.open(tmp_path / "e.db")
    assert (service.projector.seq, service.follower.replayed) == (5, 0)
    service.close()
