"""What people on call see: /ready, /metrics, the example alerts."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families
from service_kit import X, both, soon

from superarm.http.access import Tokens

ALERTS = Path(__file__).parents[3] / "examples" / "alerts.yml"


def families(web):
    return {f.name: f for f in text_string_to_metric_families(web.get("/metrics")[1].decode())}


def first_values(found):
    return {name: family.samples[0].value for name, family in found.items() if family.samples}


def test_metrics_are_prometheus(live):
    web = live()
    first = web.get("/metrics")[1]
    assert b"\nsuperarm_hit_rate_recent " not in first  # none yet
    # or an alert would miss the first
    assert b'superarm_requests_total{route="decisions",status="500"} 0.0' in first
    for i in range(10):
        web.post("/v1/decisions", {"features": X, "id": f"d{i}"})
    for i in range(6):
        web.post(f"/v1/decisions/d{i}/outcome", {"hit": i < 3})
    found = families(web)
    value = first_values(found)
    assert value["superarm_decisions"] == 10
    assert value["superarm_outcomes"] == 6
    assert value["superarm_hits"] == 3
    assert value["superarm_pending"] == 4
    assert 0 < value["superarm_propensity_floor"] <= 1
    assert value["process_resident_memory_bytes"] > 1 << 20
    ages = {s.labels.get("le"): s.value for s in found["superarm_outcome_age_seconds"].samples}
    assert ages["+Inf"] == 6
    latency = [s for s in found["superarm_request_seconds"].samples if s.name.endswith("_count")]
    assert {s.labels["route"]: s.value for s in latency}["decisions"] == 10
    assert web.get("/v1/stats")[1]["latency"].keys() == {"p50", "p99"}
    web.application.metrics.count("decisions", 200, 1e9)
    assert web.get("/v1/stats")[1]["latency"]["p50"] is not None
    assert web.get("/v1/stats")[1]["latency"]["p99"] is None  # beyond the last edge


def test_metrics_know_trouble(live, open_service):
    service = open_service(shadows=["set-logit:explore=show"])
    web = live(service)
    for i in range(300):
        web.post("/v1/decisions", {"features": X, "id": f"d{i}"})
        web.post(f"/v1/decisions/d{i}/outcome", {"hit": i % 2 == 0})
    found = families(web)
    value = first_values(found)
    assert value["process_resident_memory_bytes"] > 1 << 20
    assert value["superarm_ready"] == 1
    assert value["superarm_snapshot_lag_events"] == 600
    assert value["superarm_wal_bytes"] > 0
    assert value["superarm_restart_seconds"] > 0
    assert value["superarm_upkeep_failures"] == 0
    build = found["superarm_build_info"].samples[0].labels
    assert build.keys() >= {"superarm", "cpu"}
    learners = {s.labels["learner"] for s in found["superarm_estimated_hit_rate"].samples}
    assert learners == {"set-logit", "set-logit:explore=show"}
    service.upkeep.error, service.upkeep.failures = "snapshot: no", 3
    service.follower.broken_snapshots = (7,)
    value = first_values(families(web))
    assert (value["superarm_upkeep_failures"], value["superarm_broken_snapshots"]) == (3, 1)


def test_ready_knows_a_hung_disk(live, open_service, monkeypatch):
    service = open_service()
    web = live(service)
    service.follower.broken_snapshots = (7,)
    status, answer = web.get("/ready")
    assert (status, answer["status"]) == (200, "ready")
    assert "snapshots are damaged" in answer["trouble"][0]
    monkeypatch.setattr(type(service.queue), "batch_age", 1e9)
    status, answer = web.get("/ready")
    assert status == 503
    assert "waiting for the disk" in answer["error"]["message"]
    assert families(web)["superarm_ready"].samples[0].value == 0


def test_ready_tells_strangers_of_the_model_only_that_it_has_a_problem(live, open_service):
    service = open_service()
    stats = service.projector.totals.stats
    stats.outcomes, stats.long_run_rate, stats.recent_rate = 10_000, 0.9, 0.123
    web = live(service, token="a-very-secret-token")
    assert web.get("/ready", Authorization="")[1]["trouble"] == ["the model: see GET /v1/stats"]
    web.token = "a-very-secret-token"
    assert "0.123 lately" in web.get("/v1/stats")[1]["trouble"][0]


def test_metrics_are_there_while_the_journal_is_not(live, open_service):
    service = open_service()
    web = live(service)
    for find_fault in (
        lambda: service.store.path.rename(service.store.path.with_name("away")),
        service.store.close,
    ):
        find_fault()
        soon(lambda: web.get("/ready")[0] == 503)
        found = families(web)
        assert found["superarm_journal_up"].samples[0].value == 0
        assert "superarm_journal_bytes" not in found


@both
def test_the_example_alerts_ask_for_metrics_that_there_are(live, open_service, tmp_path):
    """What is about the other kind of journal, or a promise, is not there at all: a 0 would look like health."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    service = open_service()
    file = tmp_path / "tokens"
    file.write_text("operate the-token-of-the-team")
    web = live(service, tokens=Tokens(file))
    web.token = "the-token-of-the-team"
    web.application.metrics.logs = SimpleNamespace(dropped_total=0)
    others = {"LogGrows"} if service.store.shared else set()
    others |= {"CoverageBroken"}  # it promises none
    web.post("/v1/decisions", {"features": X})
    there = {name for family in families(web).values() for name in (s.name for s in family.samples)}
    there |= {family.name for family in families(web).values()}
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    assert len(rules) > 8
    for rule in rules:
        assert rule.keys() >= {"alert", "expr", "labels", "annotations"}
        asked = set(re.findall(r"superarm_[a-z_]+", rule["expr"]))
        if rule["alert"].removeprefix("Superarm") in others:
            assert not asked & there, rule
        else:
            assert asked <= there, rule
        assert asked or "up{" in rule["expr"] or "process_resident" in rule["expr"]
