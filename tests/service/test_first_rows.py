"""The first row fixes what all others must look like: rows that came with it in one batch, or to another process."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from service_kit import LABELS, both, kill, soon

from superarm.journal.errors import OtherEventsFirst
from superarm.journal.events import CHANGE, Event
from superarm.journal.projector import Projector
from superarm.journal.verify import verify, verify_store
from superarm.service import DecisionRequest, OutcomeRequest, Service
from superarm.service.batch import Batch

# two rows, each of which may be the first, and not both
PAIRS = {
    "names and numbers": ({"a": 1}, [1, 2, 3]),
    "two lengths": ([1, 2], [1, 2, 3]),
    "vectors of two lengths": ({"e": [1, 2]}, {"e": [1, 2, 3]}),
    "a vector that comes late": ({"f": 1}, {"e": [1, 2, 3]}),
}
pairs = pytest.mark.parametrize("pair", PAIRS)
UNSHAPED = {"labels": LABELS, "set_size": 2}


def check_sound(journal):
    """All of it is what was written, and comes out again, bit for bit."""
    result = verify(journal)
    assert result.problems == []
    assert result.replayed.same
    return result


def request(x, id_):
    return DecisionRequest(x if isinstance(x, dict) else np.array(x, np.float32), id_)


@pytest.mark.parametrize("turned", [False, True])
@pairs
def test_of_two_first_rows_in_a_batch_one_is_refused_and_the_journal_starts_again(
    fork_server, tmp_path, pair, turned
):
    journal = tmp_path / "events.db"
    first, second = PAIRS[pair][::-1] if turned else PAIRS[pair]
    pid, web = fork_server.start(journal, **UNSHAPED)
    web.wait()
    decisions = [{"features": first, "id": "n1"}, {"features": second, "id": "n2"}]
    status, response = web.post("/v1/batch/decisions", {"decisions": decisions})
    assert status == 200
    errors = [answer.get("error") for answer in response["results"]]
    if turned and pair == "a vector that comes late":  # {"e": […]}, then a row without it
        assert errors == [None, None]
    else:
        assert errors[0] is None
        assert errors[1] is not None
        assert web.get("/v1/decisions/n2")[0] == 404
    assert web.post("/v1/decisions", {"features": first, "id": "n3"})[0] == 200
    for id_ in ("n1", "n3"):
        status, told = web.post(f"/v1/decisions/{id_}/outcome", {"hit": True})
        assert (status, told["outcome"]["learnt"]) == (200, True)
    kill(pid)
    pid, web = fork_server.start(journal)
    web.wait()
    assert web.get("/v1/info")[1]["model_version"] == 2
    assert web.post("/v1/decisions", {"features": first, "id": "n4"})[0] == 200
    kill(pid)
    check_sound(journal)


@pairs
def test_of_two_first_rows_to_two_processes_one_is_refused(shared, pair):
    one, two = shared(n_features=None), shared()
    first, second = PAIRS[pair]
    one.call(request(first, "n1"))
    with pytest.raises(ValueError, match="must be"):
        two.call(request(second, "n2"))
    one.call(OutcomeRequest("n1", hit=True))
    shared()
    assert check_sound(shared.url).events == 2


@pairs
def test_two_first_rows_at_the_same_moment(database, pair):
    """Both processes have looked before either writes: the second one looks again."""
    url = database.fresh()
    one, two = Service.open(url, **UNSHAPED), Service.open(url)
    barrier = threading.Barrier(2, timeout=20)
    waited = set()

    def wait_once(service):
        append = service.store.append

        def append_together(events, **options):
            if service not in waited:
                waited.add(service)
                barrier.wait()
            return append(events, **options)

        service.store.append = append_together

    def decide(service, x, id_):
        try:
            return service.call(request(x, id_))
        except ValueError as error:
            return error

    for service in (one, two):
        wait_once(service)
    with ThreadPoolExecutor(2) as pool:
        done = [
            work.result()
            for work in [
                pool.submit(decide, service, x, f"n{i}")
                for i, (service, x) in enumerate(zip((one, two), PAIRS[pair], strict=True))
            ]
        ]
    accepted = [response for response in done if not isinstance(response, Exception)]
    assert one.store.head().seq == len(accepted)
    if pair != "a vector that comes late":  # a row without its vector may well come later
        assert len(accepted) == 1
    for service in (one, two):
        service.close()
    Service.open(url).close()
    check_sound(url)


# ---------------------------------------------------------------- a journal that has such events all the same


def two_first_rows(service, first, second):
    """Write both, as a service once did that judged every row of a batch alone."""
    batch, events = Batch(service, []), []
    for x, id_ in ((first, "n1"), (second, "n2")):
        events.append(batch._new_decision(request(x, id_), None))
        batch._staged.clear()
    service.store.append(events)


@both
@pairs
def test_a_decision_that_does_not_fit_is_a_refusal(open_service, pair):
    service = open_service("unshaped.db", **UNSHAPED, n_features=None, shadows=("set-logit",))
    two_first_rows(service, *PAIRS[pair])
    service.follower.load()
    totals = service.projector.totals
    assert list(totals.refusals) == [2]
    assert (totals.stats.decisions, totals.stats.refused) == (2, 1)
    for id_, learnt in (("n1", True), ("n2", False)):
        told = service.call(OutcomeRequest(id_, hit=True))
        assert told.outcome.learnt is learnt
    assert service.projector.totals.stats.refused == 2
    assert [shadow.stop_reason for shadow in service.projector.shadows.values()] == [""]
    result = verify_store(service.store)
    assert result.problems == []
    assert result.replayed.same


@both
def test_events_are_appended_after_the_given_one_or_not_at_all(open_service):
    store = open_service().store
    first, second = (Event.new(1.0, CHANGE, {"what": "freeze"}) for _ in range(2))
    assert store.append([first], only_after=0) == []
    with pytest.raises(OtherEventsFirst):
        store.append([second], only_after=0)
    assert store.head().seq == 1
    assert store.append([second], only_after=1) == []
    assert [event.seq for event in store.events()] == [1, 2]


# ---------------------------------------------------------------- events that cannot be applied


def test_a_service_that_cannot_apply_its_events_is_down_and_says_why(open_service, live, monkeypatch):
    service = open_service()
    web = live(service)
    x = {"features": [0.0] * 5}
    assert web.post("/v1/decisions", x | {"id": "one"})[0] == 200

    def fail(self, event):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Projector, "_on_outcome", fail)
    for _ in range(2):  # the event is durable, and nothing more is acknowledged
        status, told = web.post("/v1/decisions/one/outcome", {"hit": True})
        assert status == 503
        assert "cannot be applied: ZeroDivisionError('a bug')" in str(told)
    assert web.post("/v1/decisions", x)[0] == 503
    status, told = web.get("/ready")
    assert status == 503
    assert "a bug" in str(told)
    monkeypatch.undo()
    soon(lambda: web.get("/ready")[0] == 200)
    assert web.get("/v1/decisions/one")[1]["outcome"]["learnt"] is True
