"""Many processes on one journal in PostgreSQL, over HTTP: nothing is lost, one order, one learns.

(What happens when they are killed under load: test_postgres_chaos.py)
"""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from service_kit import LABELS, D, rows, soon

from superarm.journal.postgres_address import Address
from superarm.journal.verify import verify
from superarm.service import service as service_module

X = rows(40)


def features(i=0):
    return X[i % len(X)].tolist()


def decide(web, id_, i=0, **more):
    status, told = web.post("/v1/decisions", {"features": features(i), "id": id_, **more})
    assert status == 200, told
    return told


def answer(web, id_, **outcome):
    return web.post(f"/v1/decisions/{id_}/outcome", outcome or {"hit": True})


def learnt(web, count):
    """Wait until so many outcomes are learnt."""
    soon(lambda: web.get("/v1/info")[1]["model_version"] >= count)


def sound(url, *, events=None):
    """All of it is there, in one order, and comes out again, bit for bit."""
    found = verify(url)
    assert found.problems == []
    assert found.replayed.same
    assert events in (None, found.events)
    return found


@pytest.fixture
def webs(shared, live):
    """Three services on one journal."""
    return [live(shared()) for _ in range(3)]


def test_any_process_decides_and_any_takes_the_outcome(webs, shared):
    one, two, three = webs
    for i in range(30):
        made = decide(webs[i % 3], f"d{i}", i)
        assert decide(webs[(i + 1) % 3], f"d{i}", i) == made  # idempotent across processes
        status, told = answer(webs[(i + 2) % 3], f"d{i}", hit=i % 2 == 0)
        assert status == 200
        assert told["outcome"]["learnt"] is None  # nobody has taken it yet
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
    found = sound(shared.url, events=61)
    assert found.replayed.learner.round >= 31  # one budget for everybody's decisions


def test_the_same_id_at_the_same_moment_is_one_decision(webs, shared):
    barrier = threading.Barrier(3, timeout=20)  # one that fails leaves nobody waiting

    def ask(web, n):
        barrier.wait()
        asks = [{"features": features(), "id": f"{n}-{i}"} for i in range(8)]
        status, shown = web.post("/v1/batch/decisions", {"decisions": asks})
        assert status == 200
        barrier.wait()
        outcomes = [{"id": f"{n}-{i}", "hit": True} for i in range(8)]
        status, told = web.post("/v1/batch/outcomes", {"outcomes": outcomes})
        assert status == 200
        assert all("error" not in one for one in (*shown["results"], *told["results"]))
        return shown

    with ThreadPoolExecutor(3) as pool:
        for n in range(10):
            first, second, third = [f.result() for f in [pool.submit(ask, web, n) for web in webs]]
            assert first == second == third
    learnt(webs[0], 80)
    sound(shared.url, events=160)


def test_another_process_learns_when_the_learner_is_killed(nursery, database):
    url = database.fresh()
    options = {"lease": 0.5, "patience": 2.0}
    new = {"labels": LABELS, "n_features": D, "set_size": 2}
    running = dict([nursery.start(url, **options, **new)])
    next(iter(running.values())).wait()
    running |= dict(nursery.start(url, **options) for _ in range(2))
    address = Address(url)

    def learner():
        with address.connect() as connection:
            row = connection.execute("SELECT process FROM lease").fetchone()
        pid = int(row[0].split("-")[-2]) if row and row[0] else 0
        return pid if pid in running else None

    try:
        for web in running.values():
            web.wait()
        for n in range(2):
            pid = soon(learner)
            for i in range(10):
                first, *_, last = running.values()
                decide(first, f"{n}-{i}", i)
                assert answer(last, f"{n}-{i}", hit=i % 3 == 0)[0] == 200
            os.kill(pid, signal.SIGKILL)  # with outcomes that it may not have taken
            del running[pid]
            began = time.monotonic()
            learnt(next(iter(running.values())), 10 * (n + 1))
            assert learner() not in (None, pid)
            assert time.monotonic() - began < 10.0
        [web] = running.values()
        decide(web, "last")
        assert answer(web, "last")[0] == 200
        learnt(web, 21)
        assert web.get("/v1/stats")[1]["outcomes"] == 21
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)
    sound(url, events=42)


def test_a_learner_whose_connection_is_lost_comes_back(webs, shared):
    one = webs[0]
    services = [web.service.model for web in webs]
    for n in range(2):
        learner = soon(lambda: [model for model in services if model.learning is not None])[0]
        assert sum(model.learning is not None for model in services) == 1
        was = learner.learning
        for i in range(5):
            decide(webs[i % 3], f"{n}-{i}", i)
            answer(webs[(i + 1) % 3], f"{n}-{i}")
        with learner.address.connect() as connection:
            pid = was.lease.connection.info.backend_pid
            connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
        soon(lambda learner=learner, was=was: learner.learning is not was)
        learnt(one, 5 * (n + 1))
    sound(shared.url, events=20)


def test_a_learner_that_was_away_for_longer_than_its_lease_learns_nothing_twice(shared, live, monkeypatch):
    from superarm.journal.projector import Projector

    one = shared(lease=0.3)
    model = one.model
    soon(lambda: model.learning is not None)
    webs = [live(one), live(shared(lease=0.3))]
    paused, wake, project = threading.Event(), threading.Event(), Projector.project
    mine = model.learning.projector

    def sleepy(self, events):
        if self is mine and not paused.is_set():
            paused.set()
            wake.wait(60)  # as if the machine had been stopped, with the events in hand
        return project(self, events)

    monkeypatch.setattr(Projector, "project", sleepy)
    decide(webs[0], "a")
    assert paused.wait(10)
    soon(lambda: webs[1].service.model.learning is not None)  # while the first is still away
    answer(webs[0], "a")
    decide(webs[1], "b")
    answer(webs[1], "b", hit=False)
    learnt(webs[1], 2)
    wake.set()
    soon(lambda: model.learning is None)
    learnt(webs[0], 2)
    assert webs[0].get("/v1/stats")[1]["outcomes"] == 2
    sound(shared.url, events=4)


def test_a_model_is_found_again_without_the_published_one(shared, live):
    one = live(shared())
    for i in range(10):
        decide(one, f"d{i}", i)
        answer(one, f"d{i}", hit=i % 3 == 0)
    learnt(one, 10)
    before = one.get("/v1/model")[1]
    one.stop()
    with one.service.model.address.connect() as connection:
        connection.execute("DELETE FROM published")  # as after a crash of the database: it is not logged
    other = live(shared(may_learn=False))  # begins with a snapshot, and the events after it
    assert other.get("/v1/info")[1]["model_version"] == 10
    assert other.get("/v1/model")[1] == before
    sound(shared.url, events=20)


def test_labels_grow_while_others_still_decide_without_them(webs, shared):
    one, two, _ = webs
    decide(two, "old")
    status, told = one.post("/v1/changes", {"what": "add_labels", "labels": ["new-1", "new-2"]})
    assert (status, told["labels"][-2:]) == (200, ["new-1", "new-2"])
    assert one.post("/v1/changes", {"what": "disable_labels", "labels": ["label-0"]})[0] == 200
    assert two.post("/v1/changes", {"what": "add_labels", "labels": ["label-1"]})[0] == 422
    assert answer(one, "old", label="label-4")[0] == 200
    for i in range(12):
        made = decide(one, f"d{i}", i)
        assert "label-0" not in made["labels"]
        soon(lambda: len(two.get("/v1/info")[1]["labels"]) == 8)
        assert answer(two, f"d{i}", label="new-1" if i % 2 else made["labels"][0])[0] == 200
    learnt(one, 13)
    told = [change["what"] for change in two.get("/v1/changes")[1]["changes"]]
    assert sorted(told) == ["add_labels", "disable_labels"]
    sound(shared.url)


def test_what_is_erased_is_erased_for_all(webs, shared):
    one, two, three = webs
    for i in range(12):
        decide(one, f"d{i}", i, context={"name": "Ada"})
        if i < 10:
            answer(two, f"d{i}", hit=i % 2 == 0)
    learnt(three, 10)
    status, told = three.post("/v1/changes", {"what": "erase", "ids": ["d3", "d11"]})
    assert (status, told["erased"], told["finished"]) == (200, 2, True)
    for web in webs:
        found = web.get("/v1/decisions/d3")[1]
        assert (found["features"], found["context"], found["erased"]) == (None, None, True)
    again = {"features": features(3), "id": "d3", "context": {"name": "Ada"}}
    soon(lambda: two.post("/v1/decisions", again)[0] == 410)
    assert sound(shared.url).erased == 2


def test_without_a_learner_changes_wait_and_say_so(shared, live, monkeypatch):
    monkeypatch.setattr(service_module, "PROJECTED_SECONDS", 0.2)
    one = live(shared(may_learn=False))
    decide(one, "a")
    status, told = one.post("/v1/changes", {"what": "freeze"})
    assert status == 503
    assert "no process learns at the moment" in told["error"]["message"]
    two = live(shared())  # the change was kept, and is made
    soon(lambda: two.get("/v1/info")[1]["frozen"])
    assert [change["what"] for change in two.get("/v1/changes")[1]["changes"]] == ["freeze"]
    sound(shared.url)
