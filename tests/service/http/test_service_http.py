"""The service over HTTP: what it answers, what it refuses, and that it computes the library's bits."""

from __future__ import annotations

import gzip
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from service_kit import LABELS, D, X, both, rows, soon

import superarm as sa
from superarm.explore import distribution_of
from superarm.http.access import DECIDE
from superarm.http.router import Route
from superarm.journal.replay import replay
from superarm.learners import Scores
from superarm.service import Client
from superarm.service import service as service_module
from superarm.service.messages import OutcomeRequestBody, PendingQuery


def test_what_a_route_takes_is_what_its_endpoint_takes():
    def outcome(context: object, person: str, id_: str, request: OutcomeRequestBody) -> None: ...
    def pending(context: object, query: PendingQuery) -> None: ...
    def restart(context: object) -> None: ...

    route = Route("POST", "/outcome/{id}", DECIDE, outcome)
    assert (route.name, route.needs_person, route.request_type) == ("outcome", True, OutcomeRequestBody)
    assert route.decoder.decode(b'{"hit": true}') == OutcomeRequestBody(hit=True)
    route = Route("GET", "/pending", DECIDE, pending)
    assert (route.needs_person, route.request_type, route.decoder) == (False, PendingQuery, None)
    route = Route("POST", "/restart", DECIDE, restart)
    assert (route.needs_person, route.request_type, route.decoder) == (False, None, None)


@pytest.mark.smoke
def test_a_decision_and_its_outcome(live):
    web = live()
    status, shown = web.post("/v1/decisions", {"features": X, "id": "order-1", "context": {"page": "/"}})
    assert status == 200
    assert shown.keys() == {"id", "labels", "propensity", "model_version"}
    assert (shown["id"], len(shown["labels"]), shown["model_version"]) == ("order-1", 2, 0)
    assert 0 < shown["propensity"] <= 1
    record = web.get("/v1/decisions/order-1")[1]
    assert record["outcome"] is None
    assert record["state"] == "pending"
    assert (record["features"], record["context"], record["labels"]) == (X, {"page": "/"}, shown["labels"])
    pending = web.get("/v1/pending")[1]
    assert ([p["id"] for p in pending["pending"]], pending["count"], pending["next"]) == (
        ["order-1"],
        1,
        None,
    )
    status, taken = web.post("/v1/decisions/order-1/outcome", {"hit": True})
    assert status == 200
    assert taken["outcome"]["hit"] is True
    assert taken["outcome"]["learnt"] is True
    assert web.post("/v1/decisions/order-1/outcome", {"hit": True}) == (200, taken)
    assert web.post("/v1/decisions/order-1/outcome", {"hit": False})[0] == 409
    assert web.get("/v1/decisions/order-1")[1]["outcome"] == taken["outcome"]
    assert web.get("/v1/pending")[1]["pending"] == []
    assert web.post("/v1/decisions", {"features": X})[1]["model_version"] == 1


@pytest.mark.parametrize("field", ["features", "scores"])
def test_http_equals_the_library_round_by_round(field, live, open_service, tmp_path):
    options = {"labels": LABELS, "set_size": 2, "seed": 5}
    if field == "features":
        web, twin = live(open_service(seed=5)), sa.SetLogit(n_features=D, uniform=0.02, **options)
        asked = list(rows(150))
    else:
        service = open_service(learner="scores", n_features=None, seed=5)
        web, twin = live(service), Scores(uniform=0.02, **options)
        asked = [dict(zip(LABELS, x.tolist(), strict=True)) for x in rows(150, d=len(LABELS))]
    assert web.get("/v1/info")[1]["params"]["uniform"] == 0.02
    waiting = []
    for i, x in enumerate(asked):
        limits = {"eligible": LABELS[1:5], "set_size": 1} if i % 7 == 0 else {}
        made = twin.decide(x, **limits)
        body = {field: x if field == "scores" else x.tolist(), **limits}
        shown = web.post("/v1/decisions", body)[1]
        assert (shown["labels"], shown["propensity"]) == (made.labels, made.propensity)
        probability = distribution_of(made, LABELS).probability(made.labels)
        assert probability == pytest.approx(made.propensity, rel=1e-6)
        waiting.append((shown["id"], made))
        if i % 3 == 2:  # answers come late, and not in order
            id_, late = waiting.pop(len(waiting) // 2)
            answer = {"label": late.labels[0]} if i % 2 else {"hit": False}
            assert web.post(f"/v1/decisions/{id_}/outcome", answer)[0] == 200
            # (scores learn nothing of which label it was)
            twin.update(late, **(answer if field == "features" else {"hit": bool(i % 2)}))
    status, model = web.get("/v1/model")
    assert status == 200
    (tmp_path / "model.npz").write_bytes(model)
    loaded = sa.load(tmp_path / "model.npz")
    bits = [{name: array.tobytes() for name, array in one.core.state().items()} for one in (loaded, twin)]
    assert bits[0] == bits[1]
    assert loaded.round == twin.round
    assert loaded.decide(asked[0]).labels == twin.decide(asked[0]).labels


def test_three_forms_of_features(live, open_service):
    sparse = {"indices": [3, 1], "values": [0.5, 2]}
    web = live()
    web.post("/v1/decisions", {"features": sparse, "id": "a"})
    assert web.get("/v1/decisions/a")[1]["features"] == {"indices": [1, 3], "values": [2.0, 0.5]}
    assert web.post("/v1/decisions", {"features": [0.0] * D})[0] == 200
    status, answer = web.post("/v1/decisions", {"features": {"age": 41}})
    assert (status, answer["error"]["field"]) == (422, "features")
    assert "numbers, as its first row was, got names" in answer["error"]["message"]

    row = {"age": 41, "colour": "red", "member": True, "since": "2026-05-01", "income": None}
    web = live(open_service("named.db", n_features=None))
    assert web.get("/v1/info")[1]["n_features"] is None
    assert "--features" in web.post("/v1/decisions", {"features": sparse})[1]["error"]["message"]
    assert web.post("/v1/decisions", {"features": []})[0] == 422
    assert web.post("/v1/decisions", {"features": row, "id": "a"})[0] == 200
    assert web.get("/v1/decisions/a")[1]["features"] == row
    for numbers in (sparse, [1.0, 2.0]):
        message = web.post("/v1/decisions", {"features": numbers})[1]["error"]["message"]
        assert "features of decision must be names, as in the first row, got numbers" in message
    message = web.post("/v1/decisions", {"features": {"age": [1.0]}})[1]["error"]["message"]
    assert "features.age of decision must be numbers, as declared or seen before" in message
    unusual = {"features": {"age": "forty", "text": "a new card please"}, "id": "unusual"}
    shown = web.post("/v1/decisions", unusual)[1]
    assert web.post("/v1/decisions", unusual)[1] == shown  # with its warnings
    assert shown["warnings"] == [
        "column 'age' holds numbers, got 'forty': the number counts as missing, and this as a word"
    ]
    assert web.get("/v1/stats")[1]["warnings"] == shown["warnings"]
    assert b"superarm_column_warnings_total 1" in web.get("/metrics")[1]
    info = web.get("/v1/info")[1]
    assert (info["params"]["uniform"], info["params"]["explore"]) == (0.02, "balanced")


@pytest.mark.parametrize("n_features", [None, 64])
@pytest.mark.parametrize(
    "rows",
    [
        [{"indices": [0.5, 1.5], "site": "Rome"}, {"indices": [1.0, 2.0]}],
        [{"indices": [1.0, 2.0]}],
        [{"indices": [0.5], "values": [1.5], "site": "Rome"}, {"indices": [1.0], "values": [2.0]}],
        [{"values": [0.5]}, {"values": [1.0], "indices": "of prices"}],
    ],
)
def test_columns_may_be_called_as_the_parts_of_a_sparse_row(live, open_service, n_features, rows):
    web = live(open_service("indices.db", n_features=n_features))
    for row in rows:
        status, answer = web.post("/v1/decisions", {"features": row})
        assert status == 200, answer
        assert web.get(f"/v1/decisions/{answer['id']}")[1]["features"] == row


def test_a_row_of_another_shape_than_the_first_is_refused_in_the_words_of_the_request(live, open_service):
    web = live(open_service("first.db", n_features=None))
    rows = [[1.0, 2.0, 3.0], [1.0, 2.0], {"age": 41}]  # no row has come yet: only the learner can refuse
    results = web.post("/v1/batch/decisions", {"decisions": [{"features": x} for x in rows]})[1]["results"]
    errors = [result["error"] for result in results[1:]]
    assert [(error["status"], error["field"]) for error in errors] == 2 * [(422, "features")]
    assert [error["message"] for error in errors] == [
        "features of decision must be of length 3, got shape (2,)",
        "features of decision must be 3 numbers, as its first row was, got names",
    ]


def test_rows_with_a_dense_and_a_sparse_part(live, open_service, tmp_path):
    learner = sa.SetLogit(labels=LABELS, n_features=(2, 9), set_size=2)
    learner.save(tmp_path / "mixed.npz")
    service = open_service(model=tmp_path / "mixed.npz")
    web = live(service)
    assert web.get("/v1/info")[1]["n_features"] == [2, 9]
    mixed = {"dense": [0.5, 1.0], "indices": [3, 8], "values": [1.0, 2.0]}
    for i in range(3):
        status, shown = web.post("/v1/decisions", {"features": mixed, "id": f"d{i}"})
        assert status == 200, shown
        assert web.post(f"/v1/decisions/d{i}/outcome", {"hit": i == 0})[0] == 200
    with Client(web.url) as client:  # the same row as the library has it: the same decision
        row = sa.Row(dense=[0.5, 1.0], sparse=([3, 8], [1.0, 2.0]), width=9)
        assert list(client.decide(row, id="d2").labels) == shown["labels"]
    assert web.get("/v1/decisions/d2")[1]["features"] == mixed
    wrong = [mixed | {"dense": [1.0]}, mixed | {"indices": [3, 9]}, mixed | {"width": 9}, [1.0, 2.0],
             {"indices": [3], "values": [1.0]}]  # fmt: skip
    for features in wrong:
        status, told = web.post("/v1/decisions", {"features": features})
        assert (status, told["error"]["field"].split(".")[0]) == (422, "features")
    web.stop()
    assert replay(open_service().store, from_start=True).same


@both
def test_batches(live, open_service):
    web = live(open_service())
    asks = [
        {"features": X, "id": "a"},
        {"features": [1.0]},
        {"features": X, "id": "a"},
        {"features": X, "id": "b"},
    ]
    status, answer = web.post("/v1/batch/decisions", {"decisions": asks})
    assert status == 200
    a, refused, again, b = answer["results"]
    assert a == again
    assert (refused["error"]["status"], refused["error"]["field"]) == (422, "features")
    outcomes = [
        {"id": "a", "hit": True},
        {"id": "b", "label": b["labels"][0]},
        {"id": "c", "hit": True},
        {"hit": True},
    ]
    status, answer = web.post("/v1/batch/outcomes", {"outcomes": outcomes})
    assert status == 200
    assert [r.get("error", {}).get("status") for r in answer["results"]] == [None, None, 404, 422]
    assert answer["results"][1]["outcome"]["label"] == b["labels"][0]
    for wrong in ({}, {"decisions": []}, {"decisions": [{}] * 1001}, {"decisions": 5}, []):
        status, answer = web.post("/v1/batch/decisions", wrong)
        assert (status, answer["error"]["field"]) == (422, "body" if wrong == [] else "decisions")
    assert web.post("/v1/batch/outcomes", b"{")[0] == 400


BAD = [
    (b'{"features": [1, 2, NaN, 4, 5]}', 422, "features[2]"),
    (b'{"features": [1, 2, 3, 4, Infinity]}', 422, "features[4]"),
    (b'{"features": [1, 2, 1e999, 4, 5]}', 422, "features[2]"),
    (b'{"features": {"a": -Infinity}}', 422, "features.a"),
    (rb'{"features": {"text": "half an emoji: \ud83d"}}', 422, "features.text"),
    (rb'{"features": [1, 2, 3, 4, 5], "context": {"\ud83d": NaN}}', 422, "context"),
    ({"features": [1, 2, 1e39, 4, 5]}, 422, "features[2]"),
    ({"features": [3e38] * 5}, None, None),  # finite, but may make scores that are not
    ({"features": [1, 2, 3]}, 422, "features"),
    ({"features": [1, 2, "3", 4, 5]}, 422, "features[2]"),
    ({"features": [1, 2, True, 4, 5]}, 422, "features[2]"),
    ({"features": [1, 2, None, 4, 5]}, 422, "features[2]"),
    ({"features": "abc"}, 422, "features"),
    ({}, 422, "features"),
    ([], 422, "body"),
    ({"features": {"indices": [1, 1], "values": [1, 2]}}, 422, "features.indices"),
    ({"features": {"indices": [5], "values": [1]}}, 422, "features.indices[0]"),
    ({"features": {"indices": [-1], "values": [1]}}, 422, "features.indices[0]"),
    ({"features": {"indices": [0.5], "values": [1]}}, 422, "features.indices[0]"),
    ({"features": {"indices": [1], "values": [1, 2]}}, 422, "features"),
    ({"features": {"indices": [1], "values": ["x"]}}, 422, "features.values[0]"),
    ({"features": {"a": 1e300}}, 422, "features.a"),
    ({"features": X, "id": "a/b"}, 422, "id"),
    ({"features": X, "id": ""}, 422, "id"),
    ({"features": X, "id": 5}, 422, "id"),
    ({"features": X, "id": "x" * 129}, 422, "id"),
    ({"features": X, "id": "abc\n"}, 422, "id"),
    ({"features": X, "eligible": ["label-1", "nobody"]}, 422, "eligible[1]"),
    ({"features": X, "eligible": []}, 422, "eligible"),
    ({"features": X, "eligible": ["label-1", "label-1"]}, 422, "eligible"),
    ({"features": X, "eligible": "label-1"}, 422, "eligible"),
    ({"features": X, "set_size": 6}, 422, "set_size"),
    ({"features": X, "set_size": 0}, 422, "set_size"),
    ({"features": X, "set_size": True}, 422, "set_size"),
    ({"features": X, "colour": 1}, 422, "colour"),
    (b"", 400, "body"),
    (b"{", 400, "body"),
    (b'{"features": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 422, "features[0]"),
    (b'{"features": [1, 2, 3, 4, 5], "context": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "body"),
    (b'{"features": [1, 2, 3, 4, 5], "context": ' + b"[" * 254 + b"]" * 254 + b"}", 422, "context"),
    (b'{"features": [1, 2, 3, 4, 5], "context": ' + b'{"a":' * 65 + b"1" + b"}" * 65 + b"}", 422, "context"),
    (b'{"features": [1, 2, 3, 4, 5], "context": ' + b"[" * 65 + b"]" * 65 + b"}", 422, "context"),
    ({"features": X, "context": "x" * 70_000}, 422, "context"),
    ({"features": X, "context": 2**70}, 422, "context"),
    (b'\xff\xfe{"features": []}', 400, "body"),
]


@both
def test_bad_decisions_get_a_4xx_that_names_the_field(live, open_service):
    web = live(open_service())
    for body, status, field in BAD:
        got, answer = web.post("/v1/decisions", body)
        if status is None:
            assert got in (200, 422)
            continue
        assert (got, answer["error"]["field"]) == (status, field), (
            body[:60] if isinstance(body, bytes) else body,
            answer,
        )
        assert field.partition("[")[0] in answer["error"]["message"]


@both
def test_a_refusal_says_what_the_field_must_be_and_what_it_is(live, open_service):
    web = live(open_service(coverage=0.9, set_size=None))
    huge = "1" + "0" * 5000
    for body, sentence in [
        ({"coverage": 7}, "coverage of request must be a number below 1, got 7"),
        ({"coverage": -1}, "coverage of request must be a number above 0, got -1"),
        ({"coverage": "much"}, "coverage of request must be a number or null, got a string"),
        ({"set_size": 0}, "set_size of request must be a whole number of at least 1, got 0"),
        ({"set_size": 10**30}, f"set_size of decision must be at most 6, got {10**30}"),
        ({"eligible": []}, "eligible of request must be a list with a length of at least 1, got 0"),
        ({"id": "a b"}, "got 'a b'"),
        ({"features": [1, 2, 1e39, 4, 5]}, "features[2] of request must be a number of at most 3.40282347e+38, got"),
        ({"features": {"a": 1, "b": -1e39}}, "of at least -3.40282347e+38, got -1e+39"),
        ({"colour": 1}, "colour of request is not a known field"),
        (f'{{"set_size": {huge}}}'.encode(), "set_size of request must be a number of 64 bits, got a larger one"),
        (f'{{"coverage": {huge}}}'.encode(), "coverage of request must be a number of 64 bits, got a larger one"),
    ]:  # fmt: skip
        status, answer = web.post(
            "/v1/decisions", body if isinstance(body, bytes) else {"features": X} | body
        )
        assert status == 422, (body, answer)
        assert sentence in answer["error"]["message"]
    for query, sentence in [
        ("limit=0", "limit of request must be a whole number of at least 1, got '0'"),
        ("limit=ten", "limit of request must be a whole number, got a string"),
        (f"after={10**30}", "of at most 9.22337204e+18, got "),
    ]:
        status, answer = web.get(f"/v1/pending?{query}")
        assert status == 422
        assert sentence in answer["error"]["message"]


def test_compressed_bodies_are_refused(live):
    web = live()
    packed = gzip.compress(b'{"features": [1, 2, 3, 4, 5]}')
    status, answer = web.post("/v1/decisions", packed, **{"Content-Encoding": "gzip"})
    assert (status, answer["error"]["field"]) == (415, "content-encoding")


def test_bad_outcomes_get_a_4xx_that_names_the_field(live, open_service):
    web = live(open_service())
    web.post("/v1/decisions", {"features": X, "id": "a"})
    bad = [
        ({}, "hit"),
        ({"hit": True, "label": "label-1"}, "hit"),
        ({"hit": 1}, "hit"),
        ({"hit": "yes"}, "hit"),
        ({"label": "nobody"}, "label"),
        ({"label": 3}, "label"),
        ({"hit": True, "id": "a"}, "id"),
        ([], "body"),
    ]
    for body, field in bad:
        status, answer = web.post("/v1/decisions/a/outcome", body)
        assert (status, answer["error"]["field"]) == (422, field), body
    assert web.post("/v1/decisions/b/outcome", {"hit": True})[0] == 404
    assert web.post("/v1/decisions/..%2F..%2Fetc/outcome", {"hit": True})[0] in (404, 422)
    assert web.get("/v1/decisions/b")[1]["error"]["field"] == "id"
    assert web.get("/v1/decisions/a%20b")[0] == 422
    assert web.get("/v1/pending?limit=0")[1]["error"]["field"] == "limit"
    assert web.get("/nowhere")[1]["error"]["message"] == "no such path: /nowhere"
    assert web("DELETE", "/v1/decisions/a")[0] == 405
    assert web.get("/v1/decisions")[0] == 405


def test_a_full_journal_is_507_and_looking_goes_on(live, open_service, monkeypatch):
    monkeypatch.setattr(service_module, "RETRY_SECONDS", 0.05)
    service = open_service(max_journal_mb=1)
    web = live(service)
    ids = []
    while True:
        status, answer = web.post("/v1/decisions", {"features": X, "context": "x" * 20_000})
        if status != 200:
            break
        ids.append(answer["id"])
    assert status == 507
    assert web.headers["retry-after"] == "1"
    assert "full" in answer["error"]["message"]
    assert web.get("/ready")[0] == 507
    assert web.get("/health")[0] == 200
    assert web.get(f"/v1/decisions/{ids[0]}")[0] == 200
    assert "full" in web.get("/v1/stats")[1]["trouble"][0]
    assert b"superarm_journal_up 0" in web.get("/metrics")[1]
    assert web.post("/v1/batch/outcomes", {"outcomes": [{"id": ids[0], "hit": True}]})[0] == 507
    service.store.max_mb = 50
    soon(lambda: web.get("/ready")[0] == 200)
    assert web.post(f"/v1/decisions/{ids[0]}/outcome", {"hit": True})[0] == 200
    web.stop()
    again = open_service()
    assert again.follower.projector.totals.stats.decisions == len(ids)
    assert len(again.store.events_by_id(ids)) == len(ids)
    assert replay(again.store).same


def test_requests_that_come_together_are_committed_together(live, open_service):
    service = open_service()
    web = live(service)
    with ThreadPoolExecutor(16) as pool:
        ids = list(
            pool.map(lambda x: web.post("/v1/decisions", {"features": x.tolist()})[1]["id"], rows(200))
        )
        done = list(pool.map(lambda id_: web.post(f"/v1/decisions/{id_}/outcome", {"hit": True})[0], ids))
    assert set(done) == {200}
    assert len(set(ids)) == 200
    assert service.queue.n_batches < 400
    web.stop()
    assert replay(open_service().store).same


def test_timeouts_and_snapshots_run_by_themselves(live, open_service):
    service = open_service(timeout=0.05, default_outcome=False, snapshot_every=40, keep_snapshots=1)
    web = live(service)
    web.post("/v1/decisions", {"features": X, "id": "first"})
    for _ in range(3):
        web.post("/v1/batch/decisions", {"decisions": [{"features": x.tolist()} for x in rows(50)]})
        time.sleep(0.7)
    soon(lambda: not web.get("/v1/stats")[1]["pending"])
    record = web.get("/v1/decisions/first")[1]
    assert (record["state"], record["outcome"]["timeout"], record["outcome"]["hit"]) == (
        "expired",
        True,
        False,
    )
    late = web.post("/v1/decisions/first/outcome", {"hit": True})[1]["outcome"]
    assert (late["late"], late["learnt"]) == (True, True)
    web.stop()
    assert replay(open_service().store, from_start=True).same


@both
def test_pending_comes_in_pages(live, open_service):
    web = live(open_service())
    web.post("/v1/batch/decisions", {"decisions": [{"features": X, "id": f"d{i}"} for i in range(25)]})
    seen, after = [], 0
    while after is not None:
        page = web.get(f"/v1/pending?limit=10&after={after}")[1]
        seen += [item["id"] for item in page["pending"]]
        after = page["next"]
    assert seen == [f"d{i}" for i in range(25)]


@both
@pytest.mark.smoke
def test_info_and_openapi(live, open_service):
    web = live(open_service())
    info = web.get("/v1/info")[1]
    assert (info["labels"], info["n_features"], info["set_size"], info["learner"]) == (
        LABELS,
        D,
        2,
        "set-logit",
    )
    document = web.get("/openapi.json")[1]
    for path in ("/v1/decisions", "/v1/decisions/{id}/outcome", "/v1/batch/decisions", "/v1/batch/outcomes"):
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert body["examples"]
        assert body["schema"]["$ref"].rpartition("/")[2] in document["components"]["schemas"]
    assert web.get("/docs")[0] == 200
    # the examples work
    examples = document["paths"]["/v1/decisions"]["post"]["requestBody"]["content"]["application/json"]
    for i, example in enumerate(examples["examples"].values()):  # the first row decides about its kind
        scored = example["value"].get("scores")
        made = {"n_features": 16} if scored is None else {"learner": "scores", "labels": [*scored]}
        fresh = live(open_service(f"{i}.db", **({"n_features": None} | made)))
        assert fresh.post("/v1/decisions", example["value"])[0] == 200
