"""Changes while it runs, over HTTP and with the client; shadows; what roles may do."""

from __future__ import annotations

import time

import pytest
from service_kit import LABELS, X, both, replayed, rows, soon

from superarm.journal.changes import Erase
from superarm.service import Client, DecisionRequest
from superarm.service.client.client import ServiceError


@both
def test_labels_come_and_go(live, open_service):
    web = live(open_service())
    with Client(web.url) as client:
        told = client.add_labels(["weather", "chess"])
        assert (told["what"], told["labels"][-2:], told["disabled"]) == (
            "add_labels",
            ["weather", "chess"],
            [],
        )
        assert client.info()["labels"] == [*LABELS, "weather", "chess"]
        assert client.decide(X, eligible=["weather", "chess", "label-0"]).labels
        shown = client.decide(X, eligible=["label-0", "label-1", "label-2"])
        told = client.disable_labels(["label-0", "label-1"])
        assert told["disabled"] == ["label-0", "label-1"]
        for _ in range(20):
            assert not {"label-0", "label-1"} & set(client.decide(X).labels)
        assert client.outcome(shown.id, label="label-0").label == "label-0"  # still taken
        for wrong in (["weather"], [""], [], ["a", "a"]):
            with pytest.raises(ServiceError) as caught:
                client.add_labels(wrong)
            assert (caught.value.status, caught.value.field.partition("[")[0]) == (422, "labels")
        with pytest.raises(ServiceError, match="known, and not disabled yet"):
            client.disable_labels(["nobody"])
        assert [one["what"] for one in client.changes()] == ["add_labels", "disable_labels"]
    web.stop()
    again = open_service()
    assert set(again.follower.projector.totals.settings.disabled) == {"label-0", "label-1"}
    assert replayed(again).same


@both
@pytest.mark.slow
def test_freeze_explore_and_rollback(live, open_service):
    service = open_service(snapshot_every=20)
    web = live(service)
    with Client(web.url) as client:
        client.freeze()
        shown = client.decide(X)
        assert not client.outcome(shown.id, hit=True).learnt
        assert soon(lambda: client.decision(shown.id)["outcome"]["learnt"] is False)
        assert client.info()["frozen"] is True
        client.unfreeze()
        for x in rows(30):
            client.outcome(client.decide(x.tolist()).id, hit=True)
        soon(lambda: len(client.snapshots()) > 1)
        newest = client.snapshots()[-1]
        assert newest.keys() == {"seq", "time", "superarm", "cpu"}
        assert client.rollback(newest["seq"])["what"] == "rollback"
        client.set_explore(explore="show")
        with pytest.raises(ServiceError) as caught:
            client.rollback(7)
        assert caught.value.status == 422
        with pytest.raises(ServiceError, match="explore of change must be given, or uniform"):
            client.set_explore()
        with pytest.raises(ServiceError, match="uniform of request must be"):
            client.set_explore(uniform=1.5)
    status, answer = web.post("/v1/changes", {"what": "dance"})
    assert (status, answer["error"]["field"]) == (422, "what")
    web.stop()
    assert replayed(open_service()).same


@both
def test_people_are_forgotten(live, open_service):
    service = open_service()
    web = live(service)
    with Client(web.url) as client:
        for i in range(6):
            shown = client.decide(X, id=f"d{i}", context={"name": "Ada"})
            client.outcome(shown.id, hit=True)
        assert client.erase(ids=["d1", "d3"])["erased"] == 2
        assert client.decision("d1")["features"] is None
        assert client.decision("d1")["context"] is None
        assert client.decision("d2")["context"] == {"name": "Ada"}
        with pytest.raises(ServiceError) as caught:
            client.decide(X, id="d1")
        assert caught.value.status == 410
        with pytest.raises(ServiceError) as caught:
            client.erase(ids=["nobody"])
        assert caught.value.status == 404
        for wrong in ({}, {"ids": ["d2"], "before": 1.0}):
            with pytest.raises(ServiceError, match="not both"):
                client.erase(**wrong)
        assert client.erase(before=time.time() + 1)["erased"] == 4
        assert client.decision("d5")["features"] is None
        assert client.decide(X).labels
    web.stop()
    if hasattr(service.store, "path"):
        assert b"Ada" not in service.store.path.read_bytes()


def test_two_processes_that_erase_at_the_same_moment_count_the_same(shared, monkeypatch):
    """The slower one used to find nothing left to erase, and to respond with 0."""
    one, two = shared(), shared()
    one.call(DecisionRequest(rows(1)[0], "a"))
    erase = one.store.erase

    def erase_after_the_other(*arguments):
        two.call(lambda: None)  # it projects the erasure
        return erase(*arguments)

    monkeypatch.setattr(one.store, "erase", erase_after_the_other)
    seq = one.call(Erase(ids=["a"]))
    assert (one.follower.n_erased(seq), two.follower.n_erased(seq)) == (1, 1)


@both
@pytest.mark.slow
def test_shadows_over_http(live, open_service):
    web = live(open_service(shadows=["set-logit:explore=show"]))
    with Client(web.url) as client:
        assert soon(lambda: len(client.stats()["shadows"]) == 2)
        assert client.stats()["shadows"][1]["rate"] is None
        for x in rows(600):
            client.outcome(client.decide(x.tolist()).id, hit=bool(x[0] > 0))
        own, shadow = soon(lambda: [one for one in [client.stats()["shadows"]] if one[0]["learnt"] == 600])[0]
        assert (own["learner"], shadow["learner"]) == ("set-logit", "set-logit:explore=show")
        for one in (own, shadow):
            assert one["low"] <= one["rate"] <= one["high"]
            assert one["learnt"] == one["rows"] == 600
