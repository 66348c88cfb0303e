"""A promised coverage behind a service: for one request, kept in the journal, replayed, told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from service_kit import LABELS, D

from superarm import SetLogit
from superarm.errors import SuperarmError
from superarm.explore import Cover
from superarm.journal.backends import open_store
from superarm.journal.changes import DisableLabels
from superarm.journal.replay import replay
from superarm.service import DecisionRequest, OutcomeRequest, Service, views
from superarm.service.client.client import Client
from superarm.service.metrics import service_metrics
from superarm.service.request_errors import Conflict


def rounds(service: Any, start: int, stop: int, **asked: Any) -> list[Any]:
    """Decisions, answered; what was kept of each."""
    random = np.random.default_rng(start)
    made = []
    for i in range(start, stop):
        x = random.normal(size=D).astype(np.float32)
        service.call(DecisionRequest(x, f"d{i}", **asked))
        decision = service.projector.records.get(f"d{i}").body
        made.append(decision)
        label = LABELS[int(np.argmax([*x, 0.3]))]
        hit = label in decision.labels
        service.call(OutcomeRequest(f"d{i}", hit=hit))
    return made


def samples(service: Any) -> dict[str, float]:
    return {family.name: family.samples[0].value for family in service_metrics(service) if family.samples}


def test_a_promise_in_the_journal(tmp_path):
    path, rule = tmp_path / "events.db", Cover(coverage=0.9, warm_up=0)
    SetLogit(labels=LABELS, n_features=D, explore=rule, curves=0).save(tmp_path / "model.npz")
    service = Service.open(path, model=tmp_path / "model.npz")
    rounds(service, 0, 60)
    others = rounds(service, 60, 90, coverage=0.5)
    assert {made.coverage for made in others} == {0.5}
    assert {made.rule["coverage"] for made in others} == {0.5}
    learner = service.projector.learner
    assert (learner.coverage.answers, learner.coverage_at(0.5).answers) == (60, 30)
    assert learner.coverage.threshold != learner.coverage_at(0.5).threshold

    again = DecisionRequest(np.random.default_rng(60).normal(size=D).astype(np.float32), "d60")
    with pytest.raises(Conflict, match="coverage"):
        service.call(again)

    info, stats = views.info(service), views.stats(service)
    assert (info.coverage, info.set_size) == (0.9, len(LABELS))
    assert sum(stats["sizes"]) == 90
    assert stats["sizes"][0] == 0
    assert stats["promise"]["promised"] == 0.9
    assert stats["promise"]["kept"] == learner.coverage.kept
    numbers = samples(service)
    assert numbers["superarm_coverage_promised"] == 0.9
    assert numbers["superarm_coverage_kept"] == learner.coverage.kept
    assert numbers["superarm_set_size_mean"] == learner.coverage.mean_size
    assert numbers["superarm_coverage_broken"] == 0
    thresholds = learner.core.kernel.state()["thresholds"].copy()
    service.close()

    service = Service.open(path)  # what was promised goes with the journal
    assert service.meta["coverage"] == 0.9
    assert (service.projector.learner.core.kernel.state()["thresholds"] == thresholds).all()
    service.close()
    with pytest.raises(SuperarmError, match=r"coverage of superarm serve must be left out or 0.9"):
        Service.open(path, coverage=0.8)


def test_replay_gives_the_same_sets_and_thresholds(tmp_path):
    path = tmp_path / "events.db"
    service = Service.open(path, labels=LABELS, n_features=D, coverage=0.8)
    learner = service.projector.learner
    assert (learner.set_size, learner.rule.uniform) == (len(LABELS), 0.0)  # uniform sets are off
    rounds(service, 0, 40)
    rounds(service, 40, 60, coverage=0.6)
    service.close()
    store = open_store(path, read_only=True)
    try:
        done = replay(store, from_start=True)
    finally:
        store.close()
    assert (done.different, done.unchecked) == (0, 0)


def test_a_promise_that_cannot_be_kept_is_told(tmp_path):
    service = Service.open(
        tmp_path / "events.db", learner="set-logit:curves=0", labels=LABELS, n_features=D, coverage=0.9
    )
    rounds(service, 0, 1)
    learner = service.projector.learner
    learner.core.kernel.state()["tally"][0] = 1500.0, 600.0, 1500.0, 500.0, 0.0
    [trouble] = service.problems()
    assert trouble.startswith("set_size is too small for a coverage of 0.9: 0.600 of 1,500 answers were yes")
    assert "500 of the misses" in trouble
    numbers = samples(service)
    assert numbers["superarm_coverage_broken"] == 1
    service.close()


def test_by_label_and_by_group_count_the_services_own_coverage_only(tmp_path):
    rule = Cover(coverage=0.9, warm_up=0)
    SetLogit(labels=LABELS, n_features=D, explore=rule, curves=0).save(tmp_path / "model.npz")
    service = Service.open(tmp_path / "events.db", model=tmp_path / "model.npz", group="site")

    def round_(id_: str, **asked: Any) -> None:
        request = DecisionRequest(np.ones(D, np.float32), id_, context={"site": "rome"}, **asked)
        service.call(request)
        service.call(OutcomeRequest(id_, label=LABELS[0]))

    for n in range(10):
        round_(f"own.{n}")
    round_("own.10", coverage=0.9)  # asked for, and the same
    before = views.stats(service)
    assert [(part["name"], part["rows"]) for part in before["by_label"]["parts"]] == [(LABELS[0], 11)]
    assert [(part["name"], part["rows"]) for part in before["by_group"]["parts"]] == [("rome", 11)]
    for n in range(10):
        round_(f"other.{n}", coverage=0.5)
    after = views.stats(service)
    assert (after["by_label"], after["by_group"]) == (before["by_label"], before["by_group"])
    assert after["outcomes"] == 21
    service.close()


def test_a_promise_in_its_warm_up_has_no_figures_yet(live, open_service):
    web = live(open_service(coverage=0.9, set_size=None))
    for n in range(3):
        web.post("/v1/decisions", {"features": [0.1 * n] * D, "id": f"d{n}"})
        web.post(f"/v1/decisions/d{n}/outcome", {"hit": True})
    text = web.get("/metrics")[1].decode()
    assert "superarm_coverage_promised 0.9" in text
    assert "nan" not in text.lower()
    promise = web.get("/v1/stats")[1]["promise"]
    assert (promise["kept"], promise["mean_size"], promise["answers"]) == (None, None, 0.0)


def test_http(live, open_service):
    web = live(open_service(coverage=0.9, set_size=None))
    row = {"features": [0.1] * D}
    assert web.get("/v1/info")[1]["coverage"] == 0.9
    status, made = web.post("/v1/decisions", row | {"coverage": 0.5})
    assert status == 200
    assert 1 <= len(made["labels"]) <= len(LABELS)
    status, told = web.post("/v1/decisions", row | {"coverage": 1.5})
    assert (status, told["error"]["field"]) == (422, "coverage")
    status, _ = web.post("/v1/decisions", row | {"set_size": len(LABELS)})
    assert status == 200
    assert b"superarm_coverage_promised 0.9" in web.get("/metrics")[1]
    with Client(web.url) as client:
        shown = client.decide([0.1] * D, id="mine", coverage=0.5)
    assert web.get(f"/v1/decisions/{shown.id}")[1]["labels"] == list(shown.labels)


def test_http_without_a_promise(live):
    web = live()
    status, told = web.post("/v1/decisions", {"features": [0.1] * D, "coverage": 0.5})
    assert (status, told["error"]["field"]) == (422, "coverage")
    assert web.get("/v1/info")[1]["coverage"] is None


def test_labels_can_be_disabled_while_a_promise_is_kept(tmp_path):
    """Its set size is the number of labels: none could be disabled."""
    service = Service.open(tmp_path / "events.db", labels=LABELS, n_features=D, coverage=0.9)
    service.call(DisableLabels(labels=LABELS[1:]))
    assert {tuple(made.labels) for made in rounds(service, 0, 5)} == {(LABELS[0],)}
    with pytest.raises(SuperarmError, match="fewer than all"):
        service.call(DisableLabels(labels=LABELS[:1]))
    service.close()
