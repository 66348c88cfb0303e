"""Many processes on one journal in PostgreSQL, over HTTP: nothing is lost, one order, one model.

(What happens when they are killed under load: test_postgres_chaos.py)
"""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from service_kit import LABELS, D, rows, soon

from superarm.journal.changes import Erase
from superarm.journal.snapshots import model_bytes
from superarm.journal.verify import verify
from superarm.service.requests import DecisionRequest

X = rows(40)


def features(i=0):
    return X[i % len(X)].tolist()


def decide(web, id_, i=0, **more):
    status, body = web.post("/v1/decisions", {"features": features(i), "id": id_, **more})
    assert status == 200, body
    return body


def answer(web, id_, **outcome):
    return web.post(f"/v1/decisions/{id_}/outcome", outcome or {"hit": True})


def learnt(web, count):
    """Wait until so many outcomes are learnt."""
    soon(lambda: web.get("/v1/info")[1]["model_version"] >= count)


def sound(url, *, events=None):
    """All of it is there, in one order, and comes out again, bit for bit."""
    result = verify(url)
    assert result.problems == []
    assert result.replayed.same
    assert events in (None, result.events)
    return result


@pytest.fixture
def webs(shared, live):
    """Three services on one journal."""
    return [live(shared()) for _ in range(3)]


def test_any_process_decides_and_any_takes_the_outcome(webs, shared):
    one, two, three = webs
    for i in range(30):
        made = decide(webs[i % 3], f"d{i}", i)
        assert decide(webs[(i + 1) % 3], f"d{i}", i) == made  # idempotent across processes
        status, body = answer(webs[(i + 2) % 3], f"d{i}", hit=i % 2 == 0)
        assert status == 200
        assert body["outcome"]["learnt"] is True
        assert answer(one, f"d{i}", hit=i % 2 == 0)[1]["outcome"]["hit"] is (i % 2 == 0)
    assert two.post("/v1/decisions", {"features": features(5), "id": "d1"})[0] == 409
    assert answer(two, "d2", hit=False)[0] == 409
    assert answer(two, "nobody")[0] == 404
    decide(one, "few", 1, eligible=LABELS[:3])
    assert answer(two, "few", label=LABELS[5])[0] == 422
    for web in webs:
        learnt(web, 30)
        soon(lambda web=web: web.get("/v1/stats")[1]["decisions"] == 31)
    assert one.get("/v1/decisions/d3")[1] == two.get("/v1/decisions/d3")[1]
    assert one.get("/v1/decisions/d3")[1]["outcome"]["learnt"] is True
    assert one.get("/v1/model")[1] == three.get("/v1/model")[1]
    result = sound(shared.url, events=61)
    assert result.replayed.learner.round >= 31  # one budget for everybody's decisions


def test_the_same_id_at_the_same_moment_is_one_decision(webs, shared):
    barrier = threading.Barrier(3, timeout=20)  # one that fails leaves nobody waiting

    def ask(web, n):
        barrier.wait()
        asks = [{"features": features(), "id": f"{n}-{i}"} for i in range(8)]
        status, shown = web.post("/v1/batch/decisions", {"decisions": asks})
        assert status == 200
        barrier.wait()
        outcomes = [{"id": f"{n}-{i}", "hit": True} for i in range(8)]
        status, answered = web.post("/v1/batch/outcomes", {"outcomes": outcomes})
        assert status == 200
        assert all("error" not in one for one in (*shown["results"], *answered["results"]))
        return shown

    with ThreadPoolExecutor(3) as pool:
        for n in range(10):
            first, second, third = [f.result() for f in [pool.submit(ask, web, n) for web in webs]]
            assert first == second == third
    learnt(webs[0], 80)
    sound(shared.url, events=160)


def test_a_process_that_is_killed_takes_nothing_with_it(fork_server, database):
    url = database.fresh()
    new = {"labels": LABELS, "n_features": D, "set_size": 2}
    running = dict([fork_server.start(url, patience=2.0, **new)])
    next(iter(running.values())).wait()
    running |= dict(fork_server.start(url, patience=2.0) for _ in range(2))
    try:
        for web in running.values():
            web.wait()
        for n in range(2):
            first, *_, last = running.values()
            for i in range(10):
                decide(first, f"{n}-{i}", i)
                assert answer(last, f"{n}-{i}", hit=i % 3 == 0)[0] == 200
            pid = next(iter(running))
            os.kill(pid, signal.SIGKILL)
            del running[pid]
        [web] = running.values()
        decide(web, "last")
        assert answer(web, "last")[1]["outcome"]["learnt"] is True
        assert web.get("/v1/stats")[1]["outcomes"] == 21
        soon(lambda: len(web.get("/v1/stats")[1]["processes"]) == 1)
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)
    sound(url, events=42)


def test_a_process_that_was_stopped_learns_nothing_twice(shared, live, monkeypatch):
    from superarm.journal.projector import Projector

    webs = [live(shared()), live(shared())]
    paused, wake, project = threading.Event(), threading.Event(), Projector.project
    mine = webs[0].service.projector

    def sleepy(self, events, **options):
        if self is mine and not paused.is_set():
            paused.set()
            wake.wait(60)  # as if the machine had been stopped, with the events in hand
        return project(self, events, **options)

    monkeypatch.setattr(Projector, "project", sleepy)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(decide, webs[0], "a")
        assert paused.wait(10)
        answer(webs[1], "a")  # while the first is still away
        decide(webs[1], "b")
        answer(webs[1], "b", hit=False)
        learnt(webs[1], 2)
        wake.set()
        asked.result(timeout=20.0)
    learnt(webs[0], 2)
    assert webs[0].get("/v1/stats")[1]["outcomes"] == 2
    assert webs[0].get("/v1/model")[1] == webs[1].get("/v1/model")[1]
    sound(shared.url, events=4)


def test_a_process_without_requests_keeps_up(webs):
    one, _, idle = webs
    for i in range(10):
        decide(one, f"d{i}", i)
        assert answer(one, f"d{i}")[0] == 200
    learnt(idle, 10)
    assert idle.get("/v1/model")[1] == one.get("/v1/model")[1]


def test_what_one_process_has_acknowledged_every_other_knows_at_once(webs):
    one, two, three = webs
    for i in range(10):
        made = decide(one, f"d{i}", i)
        assert two.get(f"/v1/decisions/d{i}")[1]["labels"] == made["labels"]
        answer(two, f"d{i}")
        assert three.get(f"/v1/decisions/d{i}")[1]["outcome"]["learnt"] is True
    assert three.get("/v1/decisions/nobody")[0] == 404


def test_labels_grow_while_others_still_decide_without_them(webs, shared):
    one, two, _ = webs
    decide(two, "old")
    status, body = one.post("/v1/changes", {"what": "add_labels", "labels": ["new-1", "new-2"]})
    assert (status, body["labels"][-2:]) == (200, ["new-1", "new-2"])
    assert one.post("/v1/changes", {"what": "disable_labels", "labels": ["label-0"]})[0] == 200
    assert two.post("/v1/changes", {"what": "add_labels", "labels": ["label-1"]})[0] == 422
    assert answer(one, "old", label="label-4")[0] == 200
    for i in range(12):
        made = decide(one, f"d{i}", i)
        assert "label-0" not in made["labels"]
        soon(lambda: len(two.get("/v1/info")[1]["labels"]) == 8)
        assert answer(two, f"d{i}", label="new-1" if i % 2 else made["labels"][0])[0] == 200
    learnt(one, 13)
    kinds = [change["what"] for change in two.get("/v1/changes")[1]["changes"]]
    assert sorted(kinds) == ["add_labels", "disable_labels"]
    sound(shared.url)


def test_what_is_erased_is_erased_for_all(webs, shared):
    one, two, three = webs
    for i in range(12):
        decide(one, f"d{i}", i, context={"name": "Ada"})
        if i < 10:
            answer(two, f"d{i}", hit=i % 2 == 0)
    learnt(three, 10)
    status, body = three.post("/v1/changes", {"what": "erase", "ids": ["d3", "d11"]})
    assert (status, body["erased"], body["finished"]) == (200, 2, True)
    for web in webs:
        record = web.get("/v1/decisions/d3")[1]
        assert (record["features"], record["context"], record["erased"]) == (None, None, True)
    again = {"features": features(3), "id": "d3", "context": {"name": "Ada"}}
    soon(lambda: two.post("/v1/decisions", again)[0] == 410)
    assert sound(shared.url).erased == 2


@pytest.mark.parametrize("erases", [False, True])
def test_a_process_projects_its_own_events_without_reading_them_again(shared, monkeypatch, erases):
    mine, other = shared(), shared()
    decisions = [DecisionRequest(X[i], id=f"d{i}") for i in range(4)]
    other.call(decisions[0])
    append, read, raw_events = mine.store.append, [], mine.store.raw_events

    def append_after_the_other(events, **options):
        other.call(decisions[1])
        if erases:  # what came in between cannot be projected any more
            other.call(Erase(ids=["d1"]))
            other.call(decisions[2])
        return append(events, **options)

    def noted(*arguments):
        for event in raw_events(*arguments):
            read.append(event.id)
            yield event

    mine.call(DecisionRequest(X[5], id="first"))
    monkeypatch.setattr(mine.store, "append", append_after_the_other)
    monkeypatch.setattr(mine.store, "raw_events", noted)
    mine.call(decisions[3])
    assert ("d3" in read) == erases
    monkeypatch.undo()
    for service in (mine, other):
        service.call(lambda: None)
    assert model_bytes(mine.follower.projector.learner) == model_bytes(other.follower.projector.learner)
    sound(shared.url, events=6 if erases else 4)
