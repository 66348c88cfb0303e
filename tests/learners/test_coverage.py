"""SetLogit(coverage=...): what the promise means in every way a learner is used (docs/coverage.md)."""

from __future__ import annotations

import json
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import superarm as sa
from superarm.cli.app import app
from superarm.errors import FeedbackError, InvalidInput
from superarm.explore import Cover, distribution_of
from superarm.logs import Log, Policy, Writer, evaluate, summarize
from superarm.logs.nightly import decide_file, learn_file
from superarm.streams import open_data

NUMBERED = {"labels": None, "n_labels": 6, "coverage": None}
NAMES = ["ant", "bee", "cat", "dog", "emu", "fox"]


def rows(n: int, seed: int = 0, k: int = 6, noise: float = 1.0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    weights = np.random.default_rng(99).normal(size=(4, k))
    X = random.normal(size=(n, 4)).astype(np.float32)
    y = (X @ weights + random.gumbel(size=(n, k)) * noise).argmax(axis=1)
    return X, y


def learner(**parameters: Any) -> sa.SetLogit:
    usual = {"labels": NAMES, "coverage": 0.9, "seed": 1, "curves": 0}
    return sa.SetLogit(**usual | parameters)


def test_one_by_one_many_and_run_are_the_same_bits() -> None:
    X, y = rows(3000)
    single, run = learner(), learner()
    for x, label in zip(X, y, strict=True):
        decision = single.decide(x)
        single.update(decision, hit=NAMES[label] in decision.labels)
    run.run(X, y)
    assert single.coverage == run.coverage
    np.testing.assert_array_equal(single.scores(X[:50]), run.scores(X[:50]))
    decisions = run.decide_many(X[:300])
    for i, x in enumerate(X[:300]):
        assert single.decide(x).to_dict() == decisions[i].to_dict() | {"learner": single.id}
    hits = [NAMES[label] in d.labels for d, label in zip(decisions, y[:300], strict=True)]
    assert run.update_many(decisions, hits) == 300
    assert run.coverage.answers == 900  # type: ignore[union-attr]


def test_stored_late_and_out_of_order_answers() -> None:
    """Each moves the threshold when it comes; one that never comes moves nothing."""
    X, y = rows(4000)
    live, stored = learner(explore="balanced"), learner()
    stored.id = live.id
    for x, label in zip(X[:2600], y[:2600], strict=True):
        for one in (live, stored):
            decision = one.decide(x)
            one.update(decision, hit=NAMES[label] in decision.labels)
    pairs = [(live.decide(x), stored.decide(x)) for x in X[2600:2700]]
    for i in np.random.default_rng(0).permutation(100)[:80]:
        hit = NAMES[y[2600 + i]] in pairs[i][0].labels
        live.update(pairs[i][0], hit=hit)
        text = json.dumps(pairs[i][1].to_dict())
        stored.update(sa.Decision.from_dict(json.loads(text)), hit=hit)
    assert live.coverage == stored.coverage
    assert live.coverage.answers == 200 + 80  # type: ignore[union-attr]
    with pytest.raises(FeedbackError):
        live.update(pairs[i][0], hit=True)


def test_cursor_and_advance() -> None:
    X, y = rows(3000)
    one, other = learner(), learner()
    other.id = one.id
    for each in (one, other):
        each.run(X, y)
    cursor = one.cursor()
    ahead = [one.decide(x, cursor=cursor) for x in X[:20]]
    assert [d.to_dict() for d in ahead] == [other.decide(x).to_dict() for x in X[:20]]
    for decision in ahead:
        one.advance(sa.Decision.from_dict(decision.to_dict()))
    assert one.cursor() == other.cursor() == cursor


def test_save_and_load_go_on_bit_for_bit(tmp_path: Path) -> None:
    X, y = rows(3200)
    one = learner(set_size=5, false_no=0.05)
    one.run(X[:2900], y[:2900])
    one.update(one.decide(X[0], coverage=0.7), hit=True)
    one.save(tmp_path / "model")
    again = sa.load(tmp_path / "model")
    assert again.params == one.params
    assert again.params["coverage"] == 0.9
    assert again.coverage == one.coverage
    assert again.coverage_at(0.7) == one.coverage_at(0.7)
    one.run(X[2900:], y[2900:])
    again.run(X[2900:], y[2900:])
    assert again.decide(X[0]).to_dict() == one.decide(X[0]).to_dict()
    whole = learner()
    whole.run(X[:10], y[:10])
    whole.save(tmp_path / "whole")
    assert sa.load(tmp_path / "whole").set_size == 6


def test_another_coverage_for_one_request() -> None:
    X, y = rows(8000)
    one = learner(explore="balanced")
    one.run(X, y)
    main = one.coverage
    for x, label in zip(X[:3000], y[:3000], strict=True):
        decision = one.decide(x, coverage=0.6)
        assert decision.rule is not None
        assert decision.rule["coverage"] == 0.6
        one.update(decision, hit=NAMES[label] in decision.labels)
    assert one.coverage == main
    assert one.coverage_at(0.6).kept == pytest.approx(0.6, abs=0.05)
    assert one.coverage_at(0.6).mean_size < one.coverage.mean_size  # type: ignore[union-attr]
    assert {d.rule["coverage"] for d in one.decide_many(X[:5], coverage=0.6)} == {0.6}  # type: ignore[index]
    assert one.decide(X[0]).rule["coverage"] == 0.9  # type: ignore[index]
    sizes = [np.mean([len(s) for s in one.predict_set(X[:500], coverage=c)]) for c in (0.6, 0.9)]
    assert sizes[0] < sizes[1]


def test_predict_set() -> None:
    X, y = rows(6000)
    one = learner()
    one.run(X, y)
    found = one.predict_set(X[:300])
    assert isinstance(found, list)
    assert {len(s) for s in found} > {1}
    q, p = one.coverage.threshold, one.predict_proba(X[:300])  # type: ignore[union-attr]
    for labels, row in zip(found, p, strict=True):
        assert {NAMES.index(r) for r in labels} == {*np.flatnonzero(row >= np.exp(-q)), row.argmax()}
    assert np.shape(one.predict_set(X[:3], 2)) == (3, 2)
    assert max(len(s) for s in one.predict_set(X[:300], 2, coverage=0.9)) == 2


def test_predict_set_without_a_promise_goes_by_the_probabilities() -> None:
    X, y = rows(3000)
    one = sa.SetLogit(labels=NAMES, n_features=4, set_size=2)
    one.run(X, y)
    found, p = one.predict_set(X[:300], coverage=0.95), one.predict_proba(X[:300])
    for labels, row in zip(found, p, strict=True):
        best = np.sort(row)[::-1]
        assert list(labels) == [NAMES[i] for i in np.argsort(-row, kind="stable")[: len(labels)]]
        assert best[: len(labels)].sum() >= 0.95 - 1e-6
        assert best[: len(labels) - 1].sum() < 0.95 + 1e-6
    assert max(map(len, found)) > 2  # set_size is no limit here,
    assert max(len(s) for s in one.predict_set(X[:300], 2, coverage=0.95)) == 2  # unless it is asked for
    assert one.predict_set(X[:5]).shape == (5, 2)
    with pytest.raises(InvalidInput, match="coverage of SetLogit must be above 0 and below 1, got 95"):
        one.predict_set(X[:3], coverage=95)
    with pytest.raises(InvalidInput, match="coverage of Perceptron must be left out: Perceptron was made"):
        sa.Perceptron(labels=NAMES, n_features=4).predict_set(X[:3], coverage=0.9)


def test_none_label_counts_rows_whose_truth_can_be_shown() -> None:
    """Half of all rows want nothing: the promise is about the others."""
    X, y = rows(30_000)
    nothing = np.random.default_rng(5).random(len(y)) < 0.5
    y = np.where(nothing, 6, y)
    one = learner(labels=[*NAMES, "nothing"], none_label="nothing")
    one.run(X[:15_000], y[:15_000])
    covered = []
    for x, label in zip(X[15_000:], y[15_000:], strict=True):
        decision = one.decide(x)
        assert "nothing" not in decision.labels
        hit = [*NAMES, "nothing"][label] in decision.labels
        one.update(decision, hit=hit)
        if label != 6:
            covered.append(hit)
    assert 0.88 < np.mean(covered) < 0.98  # as good as the model's belief about nothing
    before = one.coverage
    one.update(one.decide(X[0]), label="nothing")  # the world says so: it does not count
    assert one.coverage == before


def test_wrong_answers_are_corrected_for() -> None:
    """A yes turns into a no with probability 0.1: the observed rate of yes is 0.81, the true coverage 0.9."""
    X, y = rows(30_000)
    random = np.random.default_rng(2)
    one = learner(false_no=0.1)
    covered, seen = [], []
    for x, label in zip(X, y, strict=True):
        decision = one.decide(x)
        true = NAMES[label] in decision.labels
        told = true and random.random() >= 0.1
        one.update(decision, hit=told)
        covered.append(true)
        seen.append(told)
    assert np.mean(covered[3000:]) == pytest.approx(0.9, abs=0.012)
    assert np.mean(seen[3000:]) == pytest.approx(0.81, abs=0.012)
    assert one.coverage.kept == pytest.approx(0.9, abs=0.012)  # type: ignore[union-attr]


def test_eligible_labels() -> None:
    X, y = rows(3000)
    one = learner()
    one.run(X, y)
    for _ in range(20):
        decision = one.decide(X[0], eligible=["ant", "dog"])
        assert set(decision.labels) <= {"ant", "dog"}
        draw = distribution_of(decision)
        assert draw is not None
        assert draw.probability(decision.labels) == pytest.approx(decision.propensity)
    many = one.decide_many(X[:2], eligible=[["ant"], ["bee", "cat", "fox"]])
    assert many[0].labels == ["ant"]
    before = one.coverage
    one.update(many[0], hit=False)  # all that could be shown was shown: the truth was not among it
    assert one.coverage == before


def test_added_labels() -> None:
    X, y = rows(3000)
    one = learner()
    one.run(X, y)
    before = one.coverage
    one.add_labels(["gnu", "hen"])
    assert one.coverage == before  # no second warm-up: 2,400 rounds, not 3,200
    assert one.set_size == 8
    assert one.decide(X[0]).rule["counts"]
    capped = learner(set_size=3)
    capped.run(X, y)
    capped.add_labels(["gnu"])
    assert capped.set_size == 3


def test_a_largest_size() -> None:
    X, y = rows(12_000, noise=4.0)
    one = learner(coverage=0.99, set_size=2)
    with pytest.warns(UserWarning, match="set_size is too small for a coverage of 0.99"):
        one.run(X, y)
    assert one.decide_many(X[:100]).set_size == 2
    assert one.coverage.kept < 0.9
    assert one.coverage.capped_misses > 500


def test_a_plain_learner_with_cover() -> None:
    class Frequent(sa.PlainLearner):
        def begin(self) -> dict[str, Any]:
            return {"yes": np.ones(self.n_labels)}

        def score(self, x: Any) -> Any:
            return np.log(self.memory["yes"] / self.memory["yes"].sum())

        def learn(self, x: Any, shown: Any, hit: bool) -> None:
            self.memory["yes"][shown] += hit / len(shown)

    one = Frequent(n_labels=5, explore=Cover(coverage=0.8, warm_up=100))
    assert one.set_size == 5
    random = np.random.default_rng(0)
    for label in random.choice(5, size=3000, p=[0.5, 0.2, 0.1, 0.1, 0.1]):
        decision = one.decide([1.0])
        one.update(decision, hit=bool(label in decision.labels))
    assert one.coverage is not None
    assert one.coverage.kept == pytest.approx(0.8, abs=0.03)


def test_traces_tell_coverage_and_size_after_the_warm_up() -> None:
    one = sa.SetLogit(n_labels=10, n_features=64, coverage=0.999, seed=0)
    trace = sa.simulate(one, "digits", 6000)
    kept = one.coverage
    assert kept is not None
    assert trace.warm_up == kept.warm_up == 4000
    assert trace.promised == 0.999
    assert trace.coverage == pytest.approx(kept.kept)
    assert trace.mean_size == pytest.approx(kept.mean_size)
    assert f"coverage {trace.coverage:.4f}" in repr(trace)
    short = sa.simulate(sa.SetLogit(n_labels=10, n_features=64, coverage=0.9), open_data("digits"), 100)
    assert isnan(short.coverage)
    assert isnan(short.mean_size)
    fixed = sa.simulate(sa.SetLogit(n_labels=10, n_features=64, set_size=3), "digits", 1000)
    assert fixed.mean_size == 3.0
    assert fixed.coverage == pytest.approx(1 - fixed.shown_miss_rate)


def test_command_line(tmp_path: Path) -> None:
    call = ["simulate", "--data", "digits", "--learner", "set-logit:coverage=0.95", "--rounds", "4500"]
    told = CliRunner().invoke(app, [*call, "--json"])
    found = json.loads(told.stdout)
    for part in (found["runs"][0], found["mean"]):
        assert 0.9 < part["coverage"] <= 1.0
        assert 1.0 <= part["mean_size"] < 2.0
    assert "mean size" in CliRunner().invoke(app, call).stdout
    logged = CliRunner().invoke(app, [*call, "--json", "--log", str(tmp_path / "log.parquet")])
    assert json.loads(logged.stdout)["mean"] == found["mean"]


def test_a_model_with_a_promise_may_show_all_labels_whatever_its_log_showed(tmp_path: Path) -> None:
    log, model = str(tmp_path / "log.parquet"), str(tmp_path / "model.npz")
    call = "simulate --data digits --learner set-logit:set_size=2 --rounds 300 --log"
    assert CliRunner().invoke(app, [*call.split(), log]).exit_code == 0
    train = ["train", log, "--output", model, "--force", "--learner", "set-logit"]
    for options, size in (([], 2), ([":coverage=0.9"], 10), ([":coverage=0.9,set_size=4"], 4)):
        told = CliRunner().invoke(app, [*train[:-1], train[-1] + "".join(options)])
        assert told.exit_code == 0, told.output
        assert sa.load(model).set_size == size
    told = CliRunner().invoke(app, [*train[:-1], "set-logit:coverage=0.9", "--set-size", "3"])
    assert sa.load(model).set_size == 3


def test_parameters() -> None:
    assert learner().set_size == 6
    assert learner(set_size=6).set_size == 6
    assert "set_size" not in repr(learner())
    assert "set_size" not in repr(sa.SetLogit(n_labels=3))
    with pytest.raises(InvalidInput, match="coverage of SetLogit must be above 0 and below 1"):
        learner(coverage=95)
    with pytest.raises(InvalidInput, match="set_size"):
        learner(set_size=7)
    with pytest.raises(
        InvalidInput, match="coverage of SetLogit must be left out: SetLogit was made without"
    ):
        sa.SetLogit(labels=NAMES).decide([1.0], coverage=0.9)
    assert sa.SetLogit(labels=NAMES).coverage is None
    assert sa.SetLogit(labels=NAMES, explore=Cover(coverage=0.8)).coverage.promised == 0.8  # type: ignore[union-attr]


def test_given_sets_shorten_the_warm_up() -> None:
    one, (X, y) = learner(labels=None, n_labels=6), rows(200)
    before = one.coverage.warm_up  # type: ignore[union-attr]
    for x, label in zip(X, y, strict=True):
        one.update(sa.Decision.given(x, [0, 1, 2], None), hit=bool(label < 3))
    assert one.coverage.warm_up == before - 200  # type: ignore[union-attr]
    assert one.coverage.answers == 0  # type: ignore[union-attr]


def test_noes_to_sets_of_all_labels_are_told() -> None:
    """Wrong answers: even a set of all labels is missed."""
    rule = Cover(coverage=0.9, warm_up=0)

    def use() -> None:
        for _ in range(3000):
            rule.update(rule.decide([1.0, 0.5, 0.0, -0.5]), hit=False)

    with pytest.warns(UserWarning, match="answers were no although all labels were shown"):
        use()
    kept = rule.observed_coverage()
    assert kept.noes_to_all + kept.answers == 3000
    assert kept.trouble is not None
    assert "false_no" in kept.trouble


def test_a_label_that_is_not_eligible_any_more() -> None:
    """A retired label is one that is never eligible: the promise goes on among the others."""
    X, y = rows(4000)
    one = learner(**NUMBERED, explore=Cover(coverage=0.9, warm_up=500))
    left, hits = [0, 1, 2, 3, 4], []
    for x, label in zip(X, y, strict=True):
        decision = one.decide(x, eligible=left)
        assert 5 not in decision.labels
        if label != 5:
            hits.append(label in decision.labels)
            one.update(decision, hit=bool(hits[-1]))
    assert np.mean(hits[1500:]) > 0.88


def test_evaluate_says_what_would_have_been_covered(tmp_path: Path) -> None:
    """From a log of uniform sets; against what the labels say."""
    X, y = rows(9000)
    one = learner(**NUMBERED, explore=Cover(coverage=0.9, warm_up=500))
    one.run(X[:3000], y[:3000])
    random = np.random.default_rng(5)
    with Writer(tmp_path / "log.jsonl") as writer:
        for i, x in enumerate(X[3000:]):
            labels = random.permutation(6)[:3].tolist()
            decision = sa.Decision.given(x, labels, 1 / 20)
            writer.add(decision, hit=bool(y[3000 + i] in labels), id=str(i))
    log = Log(tmp_path / "log.jsonl")
    policies = [
        Policy("own", learner=one),
        Policy("less", learner=one, coverage=0.6),
        Policy("m", one, set_size=2),
    ]
    own, less, fixed = evaluate(log, policies, summarize(log, labels=6), holdout=None).results
    for result, level in ((own, 0.9), (less, 0.6)):
        sets = one.predict_set(X[3000:], coverage=level)
        covered = np.mean([label in shown for label, shown in zip(y[3000:], sets, strict=True)])
        assert result.coverage == level
        assert result.mean_size == pytest.approx(np.mean([len(shown) for shown in sets]))
        assert result.best is not None
        assert abs(result.best.value - covered) < result.best.width  # four standard errors
        assert f"mean size {result.mean_size:.2f}, coverage = {level:g}" in repr(result)
    assert (fixed.coverage, fixed.mean_size) == (None, 2.0)
    with pytest.raises(InvalidInput, match="coverage"):
        Policy("no", fixed=[1, 2], coverage=0.9)


def test_a_log_of_a_promise_can_be_judged(tmp_path: Path) -> None:
    """Sets of several sizes, some with a runner-up left out: the log looks as its rule says, and answers."""
    X, y = rows(3000)
    one = learner(**NUMBERED, explore=Cover(coverage=0.8, warm_up=0, uniform=0.1))
    with Writer(tmp_path / "log.jsonl") as writer:
        for i, (x, label) in enumerate(zip(X, y, strict=True)):
            decision = one.decide(x)
            hit = bool(label in decision.labels)
            one.update(decision, hit=hit)
            writer.add(decision, hit=hit, id=str(i))
    log = Log(tmp_path / "log.jsonl")
    answer = evaluate(log, [Policy("own", learner=one, rule="own")], summarize(log, labels=6), holdout=None)
    assert answer.warnings == ()
    assert answer.rows == 3000
    weights = {one.name: one.mean_weight for one in answer.results[0].estimates}
    assert 0.5 < weights["ips"] < 1.5


def test_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from superarm.sklearn import SetFeedbackClassifier

    X, y = rows(3000)
    names = np.array(list("abcdef"))[y]
    model = SetFeedbackClassifier(coverage=0.9, passes=2, random_state=0).fit(X, names)
    kept = model.learner_.coverage
    assert (kept.promised, model.learner_.set_size) == (0.9, 6)
    assert kept.kept > 0.88
    sets = model.predict_set(X[:50])
    assert len({len(shown) for shown in sets}) > 1
    assert set(np.concatenate(sets)) <= set("abcdef")
    assert model.predict_set(X[:50], 2).shape == (50, 2)
    decisions = model.decide(X[:5], coverage=0.5)
    assert {one.rule["coverage"] for one in decisions} == {0.5}
    assert SetFeedbackClassifier(coverage=0.9, set_size=2, passes=1).fit(X, names).learner_.set_size == 2


def test_files_overnight(tmp_path: Path) -> None:
    """superarm decide and learn: the thresholds of the levels that were asked for move as in the process."""
    X, y = rows(400)
    live = learner(**NUMBERED, explore=Cover(coverage=0.9, warm_up=0))
    live.run(X[:100], y[:100])
    live.save(tmp_path / "model.npz")
    np.save(tmp_path / "rows.npy", X[100:])
    decide_file(tmp_path / "model.npz", tmp_path / "rows.npy", tmp_path / "made.parquet", coverage=0.7)
    decisions = live.decide_many(X[100:], coverage=0.7)
    hits = [bool(label in one.labels) for one, label in zip(decisions, y[100:], strict=True)]
    live.update_many(decisions, hits)
    ids = range(100, 400)
    lines = [f"{i},{str(hit).lower()}" for i, hit in zip(ids, hits, strict=True)]
    (tmp_path / "answers.csv").write_text("\n".join(["id,hit", *lines]) + "\n")
    learn_file(tmp_path / "model.npz", tmp_path / "made.parquet", tmp_path / "answers.csv")
    again = sa.load(tmp_path / "model.npz")
    assert again.coverage_at(0.7) == live.coverage_at(0.7)
    assert again.coverage_at(0.7).answers == 300
    assert again.coverage == live.coverage
