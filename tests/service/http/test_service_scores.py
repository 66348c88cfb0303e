"""Scores in place of a row: somebody's own model ranks, the service explores, keeps, replays and is evaluated."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from lab_kit import run
from service_kit import LABELS, D, both

from superarm.journal.replay import replay
from superarm.journal.verify import verify_store
from superarm.service import Client
from superarm.service.client.client import ServiceError

SCORED = {"learner": "scores", "n_features": None, "set_size": 2}


def scores(n, seed=0, labels=LABELS):
    random = np.random.default_rng(seed)
    return [dict(zip(labels, random.normal(size=len(labels)).tolist(), strict=True)) for _ in range(n)]


def answer_all(url, worlds):
    """Decide by scores and say whether the label was shown: by eight callers, who share the journal's commits."""

    def answer(part):
        with Client(url) as client:
            for asked, label in part:
                shown = client.decide(scores=asked)
                client.outcome(shown.id, hit=label in shown.labels)

    with ThreadPoolExecutor(8) as callers:
        list(callers.map(answer, [worlds[i::8] for i in range(8)]))


@both
def test_some_labels_have_no_score_others_are_new_or_disabled_and_all_of_it_replays(live, open_service):
    service = open_service(**SCORED)
    with Client(live(service).url) as client:
        few = client.decide(scores=dict.fromkeys(LABELS[:3], 0.0), id="few")
        assert set(few.labels) < set(LABELS[:3])
        record = client.decision("few")
        assert (record["features"], record["eligible"]) == (dict.fromkeys(LABELS[:3], 0.0), LABELS[:3])
        assert few.propensity == pytest.approx(1 / 3)
        assert client.decide(scores={LABELS[4]: 1.0}).labels == (LABELS[4],)
        for shown in client.decide_many(scores=scores(20)):
            client.outcome(shown.id, hit=True)
        client.disable_labels([LABELS[0]])
        assert client.decide(scores=dict.fromkeys(LABELS[:2], 1.0)).labels == (LABELS[1],)
        client.add_labels(["new"])
        assert "new" in client.decide(scores={"new": 9.0, LABELS[1]: -9.0, LABELS[2]: -9.0}).labels
        assert client.decide(scores=dict.fromkeys(LABELS[:3], 0.0), id="few") == few
        client.outcome("few", hit=True)
        client.outcome(client.decide(scores=scores(1, labels=[*LABELS, "new"])[0]).id, hit=False)
    assert replay(service.store, from_start=True).same
    assert verify_store(service.store).ok


def test_what_is_refused_and_why(live, open_service):
    web = live(open_service(**SCORED))
    whole = dict.fromkeys(LABELS, 0.0)
    for ask, field, message in (
        ({"features": [0.0] * D}, "features", "left out: this service takes scores"),
        ({}, "features", "given, or scores in its place, and not both"),
        ({"scores": whole, "features": [1.0]}, "features", "given, or scores in its place, and not both"),
        ({"scores": {}}, "scores", "an object with a length of at least 1"),
        ({"scores": whole | {"other": 1.0}}, "scores.other", "of a known label"),
        ({"scores": whole | {LABELS[1]: "high"}}, f"scores.{LABELS[1]}", "a number"),
        ({"scores": {LABELS[1]: 1.0}, "eligible": LABELS[:2]}, "eligible", "labels that have a score"),
    ):
        status, told = web.post("/v1/decisions", ask)
        assert (status, told["error"]["field"]) == (422, field)
        assert message in told["error"]["message"]
    assert web.post("/v1/decisions", {"scores": whole, "id": "a"})[0] == 200
    assert web.post("/v1/decisions", {"scores": whole | {LABELS[0]: 1.0}, "id": "a"})[0] == 409
    with (
        Client(live(open_service("rows.db")).url) as client,
        pytest.raises(ServiceError, match="left out: this service takes features"),
    ):
        client.decide(scores=whole)


def test_a_promise_by_scores(live, open_service):
    web = live(open_service(learner="scores", n_features=None, set_size=None, coverage=0.8))
    random = np.random.default_rng(0)
    for _ in range(60):
        p = random.dirichlet(np.full(len(LABELS), 0.3))
        label = LABELS[random.choice(len(LABELS), p=p)]
        asked = dict(zip(LABELS, np.log(p + 1e-9).tolist(), strict=True))
        shown = web.post("/v1/decisions", {"scores": asked})[1]
        web.post(f"/v1/decisions/{shown['id']}/outcome", {"hit": label in shown["labels"]})
    stats = web.get("/v1/stats")[1]
    assert stats["promise"]["promised"] == 0.8
    assert sum(size > 0 for size in stats["sizes"]) > 1  # they vary


def test_the_export_is_evaluated_by_the_scores_that_were_sent(live, open_service, tmp_path):
    """Also where some rows have scores of a few labels only."""
    service = open_service(learner="scores:uniform=0.3", n_features=None, set_size=2)
    random = np.random.default_rng(1)
    worlds = []
    for i in range(600):
        label = LABELS[random.integers(len(LABELS))]
        asked = {name: 3.0 * (name == label) + random.normal() for name in LABELS}
        if i % 5 == 0:
            asked = {name: score for name, score in asked.items() if name in (label, *LABELS[:3])}
        worlds.append((asked, label))
    answer_all(live(service).url, worlds)
    log = tmp_path / "log.parquet"
    service.store.close()
    run("export", tmp_path / "events.db", "--output", log)
    told = run("evaluate", log, "--scores", "x", "--set-size", 2, "--rule", "greedy")
    rate = float(told.split("read: ")[1].split(", ")[1].split(" ")[0])
    assert rate > 0.9


def test_a_shadow_learns_from_scores(open_service, live):
    """As from any other row of numbers with names: scores that are wrong in one way can be put right."""
    service = open_service(**SCORED, shadows=["set-logit"])
    random, wrong = np.random.default_rng(2), [*LABELS[1:], LABELS[0]]
    worlds = []
    for _ in range(400):
        label = int(random.integers(len(LABELS)))
        asked = {name: 2.0 * (name == wrong[label]) + 0.1 * random.normal() for name in LABELS}
        worlds.append((asked, LABELS[label]))
    url = live(service).url
    answer_all(url, worlds)
    with Client(url) as client:
        own, shadow = client.stats()["shadows"]
    assert (own["learnt"], shadow["learnt"]) == (400, 400)
    (learner,) = service.projector.shadows.values()
    asked = {name: 2.0 * (name == wrong[3]) for name in LABELS}
    assert learner.learner.rank(asked)[0] == LABELS[3]
