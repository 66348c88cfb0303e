"""The client: typed answers, and retries that do nothing twice."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import numpy as np
import pytest
from ports import free_port
from service_kit import LABELS, D, rows

from superarm.errors import InvalidInput
from superarm.service.client import client as client_module
from superarm.service.client.client import Client, ServiceError
from superarm.service.client.traffic import UserBehaviour, simulate_users
from superarm.streams import Arrays


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(client_module, "random", lambda: 0.0)


def test_all_of_it(live):
    with Client(live().url) as client:
        shown = client.decide(rows(1)[0], id="a", context={"page": 1}, set_size=3, eligible=LABELS[:5])
        assert (shown.id, len(shown.labels)) == ("a", 3)
        outcome = client.outcome("a", label=shown.labels[0])
        assert (outcome.hit, outcome.label, outcome.learnt) == (True, shown.labels[0], True)
        assert client.decision("a")["outcome"]["hit"] is True
        many = client.decide_many([[0.0] * D, np.ones(D)])
        assert len({one.id for one in many}) == 2
        assert [o.hit for o in client.outcomes([(many[0].id, True), (many[1].id, False)])] == [True, False]
        assert client.pending()["pending"] == []
        with pytest.raises(ServiceError, match=r"id of .* must be"):
            client.decide([0.0] * D, id="")
        for name, call in {
            "labels": client.add_labels, "eligible": lambda text: client.decide([0.0] * D, eligible=text),
            "ids": lambda text: client.erase(ids=text),
        }.items():  # fmt: skip
            with pytest.raises(InvalidInput, match=rf"{name} of Client must be a list.*, got 'abc'"):
                call("abc")
        with pytest.raises(ServiceError, match=r"labels of change must be names of .* on one line"):
            client.add_labels(["a\nb"])
        assert client.info()["labels"] == LABELS
        assert client.stats()["outcomes"] == 3


def test_threads_may_share_it(live):
    """They used to read each other's responses."""
    with Client(live().url) as client, ThreadPoolExecutor(8) as pool:
        ids = [f"d{i}" for i in range(400)]
        assert [shown.id for shown in pool.map(lambda id_: client.decide([0.0] * D, id=id_), ids)] == ids


def test_a_response_that_nobody_read_answers_no_other_request(live, monkeypatch):
    """As after Ctrl-C in a notebook."""

    def interrupt(connection):
        raise KeyboardInterrupt

    with Client(live().url) as client:
        monkeypatch.setattr(HTTPConnection, "getresponse", interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.decide([0.0] * D, id="a")
        monkeypatch.undo()
        assert client.decide([0.0] * D, id="b").id == "b"


def test_an_outcome_on_a_shared_journal_is_learnt_at_once(shared, live):
    with Client(live(shared()).url) as client:
        client.decide(rows(1)[0], id="a")
        outcome = client.outcome("a", hit=True)
        assert (outcome.hit, outcome.learnt, outcome.late) == (True, True, False)


def test_an_outcome_is_a_hit_or_a_label(live):
    """Of both, one used to be dropped without a word."""
    with Client(live().url) as client:
        shown = client.decide(rows(1)[0])
        for both in ({"hit": False, "label": shown.labels[0]}, {}):
            with pytest.raises(ServiceError, match="hit of outcome must be given, or label in its place"):
                client.outcome(shown.id, **both)
        assert client.outcome(shown.id, hit=False).hit is False


def test_refusals_are_not_tried_again(live):
    with Client(live().url) as client:
        with pytest.raises(ServiceError, match="features of decision must be of length 5") as caught:
            client.decide([1.0])
        assert (caught.value.status, caught.value.field) == (422, "features")
        with pytest.raises(ServiceError, match="length 5"):
            client.decide_many([[1.0]])
        with pytest.raises(ServiceError) as caught:
            client.outcome("nobody", hit=True)
        assert caught.value.status == 404


def test_a_wrong_token(live):
    web = live(token="a-very-secret-token")
    with Client(web.url, token="another-secret-token") as client, pytest.raises(ServiceError) as caught:
        client.info()
    assert caught.value.status == 401
    with Client(web.url, token="a-very-secret-token") as client:
        assert client.info()["n_features"] == D


def test_nobody_there():
    with (
        Client(f"http://127.0.0.1:{free_port()}", retries=1) as client,
        pytest.raises(ServiceError) as caught,
    ):
        client.info()
    assert caught.value.status is None
    with pytest.raises(ServiceError, match="https://… or unix:/path"):
        Client("localhost:8800")


class LeakyProxy:
    """Passes requests on, and drops every answer of the first ``leaks`` connections."""

    def __init__(self, port: int, leaks: int) -> None:
        self.target, self.left = port, leaks
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                inner, _ = self.listener.accept()
            except OSError:
                return
            with inner, socket.create_connection(("127.0.0.1", self.target)) as outer:
                data = inner.recv(65536)
                while not data.endswith(b"}"):  # head and body may come apart
                    data += inner.recv(65536)
                outer.sendall(data)
                answer = b""
                while not answer.endswith(b"}"):
                    answer += outer.recv(65536)
                if self.left > 0:
                    self.left -= 1
                else:
                    inner.sendall(answer)


def test_a_lost_answer_does_not_decide_twice(live):
    web = live()
    leaky = LeakyProxy(web.port, 3)
    with Client(f"http://127.0.0.1:{leaky.port}", timeout=5) as client:
        shown = client.decide(rows(1)[0].tolist())
        assert leaky.left == 0
        client.outcome(shown.id, hit=True)
        client.outcome(shown.id, hit=True)
    leaky.listener.close()
    stats = web.get("/v1/stats")[1]
    assert (stats["decisions"], stats["outcomes"], stats["learnt"]) == (1, 1, 1)


def test_traffic_with_delays_duplicates_and_losses(live, open_service):
    random = np.random.default_rng(0)
    y = random.integers(0, 6, 300)
    X = (np.eye(6)[y] @ random.normal(size=(6, D)) + 0.1 * random.normal(size=(300, D))).astype(np.float32)
    stream = Arrays(X, np.array(LABELS)[y])
    service = open_service()
    web = live(service)
    behaviour = UserBehaviour(users=4, mean_delay=0.02, lost_share=0.2, repeated_share=0.3)
    ticks = []
    counts = simulate_users(web.url, stream, 300, behaviour=behaviour, progress=ticks.append)
    assert counts.errors == []
    assert sum(ticks) == counts.decisions == 300
    assert counts.outcomes + counts.lost == 300
    assert 30 < counts.lost < 90
    assert counts.repeats > 50
    stats = web.get("/v1/stats")[1]
    assert (stats["decisions"], stats["outcomes"], stats["learnt"]) == (300, counts.outcomes, counts.outcomes)
    assert stats["pending"] == counts.lost
    assert sum(stats["labels"]["shown"]) == 600


def test_traffic_must_fit_the_service(live):
    with pytest.raises(ValueError, match="5 features and 6 labels"):
        simulate_users(live().url, Arrays([[1.0], [2.0]], [0, 1]), 1)


class ScriptedServer:
    """Answers each request on a connection with what the script says, then hangs up if it says so."""

    def __init__(self, *answers: tuple[int, dict[str, str], bool]) -> None:
        self.answers, self.requests, self.connections = list(answers), 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        with self.listener:
            while self.answers:
                self.talk()

    def talk(self) -> None:
        connection, _ = self.listener.accept()
        self.connections += 1
        with connection:
            while self.answers and connection.recv(65536):
                self.requests += 1
                status, headers, hang_up = self.answers.pop(0)
                if status:
                    body = b'{"error": {"status": 0, "field": null, "message": "no"}}'
                    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
                    lines += [f"{name}: {value}" for name, value in headers.items()]
                    connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
                if hang_up:
                    break


def test_a_connection_that_the_service_has_closed_is_not_used_again(monkeypatch):
    slept: list[float] = []
    server = ScriptedServer((200, {}, True), (200, {}, True), (200, {}, True))
    with Client(server.url, retries=0) as client:  # no retry is needed for it, and no pause
        for _ in range(3):
            client.info()
            monkeypatch.setattr(client_module.time, "sleep", slept.append)
    assert (server.connections, server.requests, slept) == (3, 3, [])


def test_a_connection_that_ends_under_a_request_is_tried_once_more_at_once():
    # the second: not a word, and gone
    server = ScriptedServer((200, {}, False), (0, {}, True), (200, {}, True))
    with Client(server.url, retries=0) as client:
        client.info()
        client.info()
    assert (server.connections, server.requests) == (2, 3)
    server = ScriptedServer((0, {}, True))  # on a new connection that is a failure
    with Client(server.url, retries=0) as client, pytest.raises(ServiceError, match="cannot be reached"):
        client.info()


def test_retry_after_is_honoured(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(client_module.time, "sleep", slept.append)
    server = ScriptedServer(
        (429, {"retry-after": "7"}, False), (503, {"retry-after": "Sunday"}, False), (200, {}, True)
    )
    with Client(server.url) as client:
        client.info()
    assert slept[0] == 7.0
    assert 0 < slept[1] < 1.0
    server = ScriptedServer((503, {"retry-after": "86400"}, False), (200, {}, True))
    with Client(server.url) as client:
        client.info()
    assert slept[2] == client_module.MAX_PAUSE


def test_a_change_is_not_sent_again_when_its_answer_was_lost(live):
    """The second used to be refused, since the first was made."""
    web = live()
    leaky = LeakyProxy(web.port, 1)
    with Client(f"http://127.0.0.1:{leaky.port}", timeout=5) as client:
        with pytest.raises(ServiceError, match="the change may have been made"):
            client.add_labels(["new"])
        assert [change["labels"] for change in web.get("/v1/changes")[1]["changes"]] == [["new"]]
        assert client.freeze()["frozen"]
    leaky.listener.close()


@pytest.mark.parametrize("status", [503, 0])
def test_a_change_that_may_have_been_made_is_not_sent_again(status):
    """A service may answer 503 after it has made it, when it cannot read what to answer; 0: it hangs up."""
    server = ScriptedServer((status, {}, True), (200, {}, True))
    with Client(server.url) as client, pytest.raises(ServiceError):
        client.rollback(7)
    assert server.requests == 1


def test_a_change_is_tried_again_while_nobody_can_be_reached(live, monkeypatch):
    web = live()
    with Client(web.url) as client:
        connect, refused = HTTPConnection.connect, [ConnectionRefusedError("not yet")]

        def late(connection):
            if refused:
                raise refused.pop()
            connect(connection)

        monkeypatch.setattr(HTTPConnection, "connect", late)
        assert client.freeze()["frozen"]


@pytest.mark.parametrize("url", ["http://h:abc", "http://[::1", "https://h:99999"])
def test_an_address_with_a_wrong_port(url):
    with pytest.raises(ServiceError, match="url of Client must have a host and a port"):
        Client(url)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_refused_with_its_field(value):
    client = Client("http://127.0.0.1:9", retries=0)
    for call, field in (
        (lambda: client.decide([1.0, value]), "features"),
        (lambda: client.decide(np.array([1.0, value])), "features"),
        (lambda: client.set_explore(explore=value), "explore"),
    ):
        with pytest.raises(
            InvalidInput, match=f"{field} of request must be JSON, with finite numbers"
        ) as caught:
            call()
        assert caught.value.field == field
