"""Coverage by label and by a column of the rows: in simulations, of logs, and behind a service."""

from __future__ import annotations

import json
from math import isnan
from typing import Any

import numpy as np
import polars as pl
import pytest
from lab_kit import run

import superarm as sa
from superarm._intervals import wilson_interval
from superarm.errors import InvalidInput
from superarm.groups import MISSING, GroupCoverage, Groups, coverage_by, pool_coverage, worst_first
from superarm.journal.backends import open_store
from superarm.journal.errors import JournalMismatch
from superarm.journal.projector import Projector
from superarm.journal.totals import MAX_GROUPS, OTHERS, CoverageCounts, Totals
from superarm.logs import Log, Policy, Writer, evaluate, summarize
from superarm.service import DecisionRequest, OutcomeRequest, Service, views

KINDS = ("east", "north", "south", "west")


def frame(n: int, seed: int = 0) -> pl.DataFrame:
    """Of two sites one has noise; some rows do not say where they come from."""
    random = np.random.default_rng(seed)
    site = random.choice(["calm", "noisy", ""], n, p=[0.45, 0.45, 0.1])
    a, b = random.normal(size=(2, n))
    noise = np.where(site == "noisy", random.normal(size=n), 0.0)
    kind = np.array(KINDS)[(a + noise > 0).astype(int) + 2 * (b > 0)]
    places = [name or None for name in site.tolist()]
    return pl.DataFrame({"a": a, "b": b, "site": places, "kind": kind})


# ------------------------------------------------------------ simulations


@pytest.mark.parametrize("logged", [False, True])
def test_a_simulation_by_label_and_by_group_is_what_a_loop_counts(logged: bool, tmp_path: Any) -> None:
    stream = sa.streams.from_frame(frame(300), label="kind", group="site")
    assert stream.groups.names == (MISSING, "calm", "noisy")
    rule = sa.explore.Cover(coverage=0.8, warm_up=150)
    fast, slow = (sa.SetLogit(labels=KINDS, explore=rule, curves=0) for _ in range(2))
    if logged:
        with Writer(tmp_path / "log.jsonl") as writer:
            trace = sa.simulate(fast, stream, 500, log=writer)
    else:
        trace = sa.simulate(fast, stream, 500)
    slow.use_columns(stream.columns)
    counted: dict[str, list[tuple[bool, int]]] = {}
    done = 0
    for chunk in stream.chunks(0):
        for i in chunk.order[: 500 - done]:
            decision, label = slow.decide(chunk.rows.row(i)), KINDS[chunk.y[i]]
            slow.update(decision, hit=label in decision.labels)
            done += 1
            if done > 150:
                for name in (label, stream.groups.names[stream.groups.indices[i]]):
                    told = (label in decision.labels, len(decision.labels))
                    counted.setdefault(name, []).append(told)
        if done == 500:
            break
    parts = [*trace.by_label, *trace.by_group]
    assert {part.name for part in parts} == counted.keys()
    for part in parts:
        hits, sizes = zip(*counted[part.name], strict=True)
        assert part.rows == len(hits)
        assert part.coverage == pytest.approx(np.mean(hits))
        assert part.mean_size == pytest.approx(np.mean(sizes))
        assert part.low < part.coverage + 1e-12
        assert part.coverage - 1e-12 < part.high
    for parts_ in (trace.by_label, trace.by_group):
        assert sum(part.rows for part in parts_) == 350
        assert sum(part.rows * part.coverage for part in parts_) / 350 == pytest.approx(trace.coverage)


def test_a_promise_is_kept_on_average_and_not_in_each_group() -> None:
    stream = sa.streams.from_frame(frame(4000), label="kind", group="site")
    trace = sa.simulate(sa.SetLogit(labels=KINDS, coverage=0.9), stream, 20_000)
    found = {part.name: part for part in trace.by_group}
    assert trace.coverage > 0.895
    assert found["noisy"].high < 0.87
    assert found["calm"].low > 0.95


def test_without_groups_and_promise_nothing_is_told_apart() -> None:
    data = frame(100)
    trace = sa.simulate(sa.SetLogit(labels=KINDS, set_size=2), sa.streams.from_frame(data, label="kind"), 200)
    assert trace.by_label == trace.by_group == ()
    with_groups = sa.streams.from_frame(data, label="kind", group="site")
    trace = sa.simulate(sa.SetLogit(labels=KINDS, set_size=2), with_groups, 200)
    assert {part.mean_size for part in trace.by_group} == {2.0}


def test_what_groups_refuse() -> None:
    with pytest.raises(InvalidInput, match=r"group of Arrays must be a column of at most 1,000 different"):
        Groups.from_values(range(1001))
    with pytest.raises(InvalidInput, match=r"groups of Arrays must be 2 values, one for each row, got 3"):
        sa.streams.Arrays([[1.0], [2.0]], [0, 1], groups=["a", "b", "c"])
    with pytest.raises(InvalidInput, match="group of frame must be one of its columns a, b, site, kind"):
        sa.streams.from_frame(frame(10), label="kind", group="sight")


def test_intervals_pools_and_order() -> None:
    assert wilson_interval(0.5, 4) == pytest.approx((0.150, 0.850), abs=1e-3)
    assert wilson_interval(1.0, 10)[1] == 1.0
    one = coverage_by(["x", "y", "z"], np.array([[4, 2, 8], [2, 2, 2], [0, 0, 0]]))
    assert [part.name for part in one] == ["x", "y"]
    both = pool_coverage([one, one])
    assert [(part.rows, part.coverage, part.mean_size) for part in both] == [(8, 0.5, 2.0), (4, 1.0, 1.0)]
    assert both[0].high < one[0].high
    unknown = GroupCoverage("?", 3, *(float("nan"),) * 3, 1.0)
    worst, others = worst_first([unknown, *both], 2)
    assert ([part.name for part in worst], others) == (["x", "y"], 1)


def test_simulate_tells_it(tmp_path: Any) -> None:
    path = tmp_path / "sites.csv"
    frame(1000).write_csv(path)
    common = ("simulate", "--data", path, "--label", "kind", "--rounds", 3000, "--seeds", 2)
    promise = ("--learner", "set-logit:coverage=0.9", "--group", "site")
    printed = run(*common, *promise)
    assert "coverage by label" in printed
    assert "coverage by site" in printed
    found = json.loads(run(*common, *promise, "--json"))
    assert {part["name"] for part in found["by_group"]} == {MISSING, "calm", "noisy"}
    assert {part["name"] for part in found["by_label"]} == set(KINDS)
    assert sum(part["rows"] for part in found["by_label"]) == 2 * (3000 - 1600)
    assert "by_label" not in json.loads(run(*common, "--set-size", 2, "--json"))


# ------------------------------------------------------------ logs


@pytest.fixture(scope="module")
def log(tmp_path_factory: Any) -> Any:
    """A log of uniform sets of two, whose rows name their labels; the sites are features."""
    path = tmp_path_factory.mktemp("groups") / "log.jsonl"
    rule = sa.SetLogit(labels=KINDS, set_size=2, explore=sa.explore.Uniform())
    with Writer(path) as writer:
        for row in frame(3000, 1).to_dicts():
            kind = row.pop("kind")
            decision = rule.decide(row)
            writer.add(decision, hit=kind in decision.labels, label=kind, context={"desk": row["a"] > 0})
    return path


def model() -> sa.SetLogit:
    learner = sa.SetLogit(labels=KINDS, explore=sa.explore.Cover(coverage=0.9, warm_up=2000))
    sa.simulate(learner, sa.streams.from_frame(frame(4000), label="kind"), 20_000)
    return learner


def test_a_log_by_label_and_by_group(log: Any) -> None:
    source = Log(log)
    learner, summary = model(), summarize(source)
    [result] = evaluate(source, [Policy("own", learner=learner)], summary, holdout=None, group="site").results
    rows = frame(3000, 1)
    sets = learner.predict_set(rows.drop("kind"), coverage=0.9)
    covered: dict[str, list[bool]] = {}
    for row, shown in zip(rows.to_dicts(), sets, strict=True):
        for name in (row["kind"], row["site"] or MISSING):
            covered.setdefault(name, []).append(row["kind"] in shown)
    for part in result.by_label:  # exactly
        assert part.rows == len(covered[part.name])
        assert part.coverage == pytest.approx(np.mean(covered[part.name]))
    for part in result.by_group:  # by the bits alone
        assert part.rows == len(covered[part.name])
        if part.name == MISSING:
            assert isnan(part.coverage)  # too few rows
        else:
            assert part.low - 0.02 <= np.mean(covered[part.name]) <= part.high + 0.02
    assert [part.name for part in result.by_group] == [MISSING, "calm", "noisy"]
    [result] = evaluate(source, [Policy("own", learner=learner)], summary, holdout=None, group="desk").results
    assert [part.name for part in result.by_group] == ["False", "True"]
    with pytest.raises(InvalidInput, match="must be a column of the log, or a name in its x or context"):
        evaluate(source, [Policy("own", learner=learner)], summary, holdout=None, group="sight")


def test_labels_that_are_not_named_are_not_told_apart(log: Any, tmp_path: Any) -> None:
    """Where only hits name the label, a share by label would be wrong."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    for row in rows:
        if not row["hit"]:
            row["label"] = None
    path = tmp_path / "some.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    source = Log(path)
    [result] = evaluate(source, [Policy("same", fixed=["east"])], summarize(source), holdout=None).results
    assert result.by_label == ()


def test_groups_that_cannot_answer_say_so(log: Any) -> None:
    """Hardly any rows: no estimate is sound."""
    source = Log(log)
    policy = Policy("same", fixed=["east", "west"])
    [result] = evaluate(source, [policy], summarize(source), holdout=0.005, group="site").results
    assert any(isnan(part.coverage) for part in result.by_group)


def test_evaluate_tells_it(log: Any, tmp_path: Any) -> None:
    model().save(tmp_path / "model.npz")
    asked = ("evaluate", log, "--model", tmp_path / "model.npz", "--group", "site")
    printed = run(*asked)
    assert "coverage by label" in printed
    assert "coverage by site" in printed
    [result] = json.loads(run(*asked, "--json"))["results"]
    assert {part["name"] for part in result["by_group"]} == {MISSING, "calm", "noisy"}


# ------------------------------------------------------------ behind a service


def served(path: Any, named: bool, **options: Any) -> Service:
    """100 decisions, of which the first 40 are the warm-up; their sites are in the row or in the context."""
    rule = sa.explore.Cover(coverage=0.9, warm_up=40)
    sa.SetLogit(labels=KINDS, explore=rule, curves=0).save(path.with_suffix(".npz"))
    service = Service.open(path, model=path.with_suffix(".npz"), group="site", **options)
    for i, row in enumerate(frame(100, 2).to_dicts()):
        kind = row.pop("kind")
        context = None if i % 2 else {"site": row.pop("site")}
        shown = service.call(DecisionRequest(row, f"d{i}", context=context))
        told = {"label": kind} if named else {"hit": kind in shown.labels}
        service.call(OutcomeRequest(f"d{i}", **told))
    return service


@pytest.mark.parametrize("named", [True, False])
def test_a_service_tells_it(named: bool, tmp_path: Any) -> None:
    path = tmp_path / "events.db"
    service = served(path, named)
    stats, promise = views.stats(service), service.follower.projector.learner.coverage
    by_group, by_label = stats["by_group"], stats["by_label"]
    assert by_group["column"] == "site"
    assert {part["name"] for part in by_group["parts"]} == {MISSING, "calm", "noisy"}
    assert sum(part["rows"] for part in by_group["parts"]) == 60 == promise.answers
    hits = sum(part["rows"] * part["coverage"] for part in by_group["parts"])
    assert hits / 60 == pytest.approx(promise.kept)
    assert by_label["unnamed"] == (0 if named else 60)
    assert sum(part["rows"] for part in by_label["parts"]) == (60 if named else 0)
    before = service.follower.projector.totals.to_dict()["stats"]
    service.close()
    service = Service.open(path)  # totals go on
    assert service.follower.projector.totals.to_dict()["stats"] == before
    service.close()
    with pytest.raises(JournalMismatch, match="group of superarm serve must be left out or 'site'"):
        Service.open(path, group="desk")
    store = open_store(path, read_only=True)
    again = Projector(store, store.snapshot(0))
    again.catch_up()
    store.close()
    assert again.totals.to_dict()["stats"] == before


def test_groups_beyond_the_most_are_counted_together() -> None:
    stats = Totals().stats
    for i in range(MAX_GROUPS + 5):
        stats.count_for_promise(True, size=2, right=None, group=str(i))
    assert len(stats.coverage_by_group) == MAX_GROUPS + 1
    assert stats.coverage_by_group[OTHERS] == CoverageCounts(5, 5, 10)
    assert stats.coverage_by_label == {}
    stats.count_for_promise(False, size=1, right="new", group=None)
    assert stats.coverage_by_label == {"new": CoverageCounts(1, 0, 1)}


def test_a_group_may_be_new_while_the_figures_are_read(tmp_path) -> None:
    """The thread of the commits counts meanwhile: names and counts used to be listed one after the other."""

    class Growing(dict[str, CoverageCounts]):
        def values(self) -> Any:
            self["new"] = CoverageCounts(1, 1, 1)
            return super().values()

    service = Service.open(tmp_path / "events.db", labels=["x", "y"], n_features=2, set_size=1)
    service.follower.projector.totals.stats.coverage_by_group = Growing(old=CoverageCounts(1, 1, 1))
    assert [part["name"] for part in views.stats(service)["by_group"]["parts"]] == ["old"]
    service.close()
