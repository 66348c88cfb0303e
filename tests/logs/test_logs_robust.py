"""What other tools write into columns that superarm has a name for, and logs that say little."""

from __future__ import annotations

import json

import numpy as np
import pytest
from logged import write_log

import superarm as sa
from superarm.errors import InvalidInput
from superarm.explore import Choice, Mixture, PlainRule
from superarm.logs import BadRow, Log, LogColumns, Policy, Writer, evaluate, summarize, train
from superarm.logs.hit_rates import ESTIMATORS, C, HitRateEstimator, Y
from superarm.logs.nightly import learn_file


def answered(i, **cells):
    """A row of a log that shows one of three labels."""
    row = {"a": float(i), "labels": [i % 3], "hit": i % 2 == 0, "propensity": 0.5}
    return row | cells


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("top", ('"red, blue"', '"red, x"')),
        ("drawn", ("yes", "no")),
        ("gamma", ("3.0", "2.5")),
        ("set_size", ("9", "8")),
    ],
)
def test_columns_of_another_tool_with_our_names_are_features(tmp_path, name, cells):
    path = write_log(tmp_path, f"age,{name},labels,hit\n1,{cells[0]},a;b,1\n2,{cells[1]},b;c,0\n")
    log = Log(path)
    assert len(list(log)) == 2
    assert name in log.feature_columns.names


def test_a_context_column_is_listed_among_those_left_out(tmp_path):
    log = Log(write_log(tmp_path, "age,context,labels,hit\n1,web,a;b,1\n2,app,b;c,0\n"))
    assert "context" in log.feature_columns.left_out["context"]


def test_missing_values_of_rows_are_missing():
    rows = [{"a": 1, "labels": "x;y", "hit": True, "propensity": "", "label": ""},
            {"a": 2, "labels": "y;z", "hit": float("nan"), "propensity": float("nan"), "label": "y"}]  # fmt: skip
    one, two = Log(rows)
    assert (one.decision.propensity, one.label, two.hit, two.label) == (None, None, True, "y")


def test_a_matrix_and_vectors_cannot_both_be_given(tmp_path):
    path, matrix = write_log(tmp_path, "age,labels,hit\n1,a;b,1\n2,b;c,0\n"), tmp_path / "x.npy"
    np.save(matrix, np.ones((2, 3)))
    with pytest.raises(InvalidInput, match="matrix of Log must be left out: there are vectors"):
        Log(path, matrix=matrix, vectors=matrix)
    with pytest.raises(InvalidInput, match="matrix of Log must be left out: features are in columns"):
        Log(path, matrix=matrix, columns=LogColumns(features=("age",)))


class Fewer(PlainRule):
    """The top set, or its first label alone."""

    name = "fewer-labels"

    def choose(self, context):
        order = np.argsort(-context.scores, kind="stable")[: context.set_size]
        return Choice(order[:1], 0.5) if context.uniform(0) < 0.5 else Choice(order, 0.5)

    @classmethod
    def distribution_from(cls, record, top, eligible, m):
        return Mixture(eligible, len(top), [(top, 0.5), (top[:1], 0.5)])


def test_logs_of_a_rule_that_shows_fewer_labels_are_read_back(tmp_path):
    rule = Fewer(set_size=3)
    with Writer(tmp_path / "log.jsonl") as writer:
        for i in range(40):
            writer.add(rule.decide(scores=[3.0, 2.0, 1.0, 0.0], x=[1.0, i % 5]), hit=i % 2 == 0)
    log = Log(tmp_path / "log.jsonl")
    assert {len(record.decision.labels) for record in log} == {1, 3}
    evaluation = evaluate(log, [Policy("all", fixed=[0, 1, 2])], summarize(log, labels=4), holdout=None)
    assert not any("rule" in warning for warning in evaluation.warnings)


def test_an_unknown_rule_is_told(tmp_path):
    log = Log([answered(i, rule='{"name": "of-somebody"}') for i in range(9)])
    evaluation = evaluate(log, [Policy("one", fixed=[0])], summarize(log), holdout=None)
    assert any("rule 'of-somebody' that drew sets is not known" in warning for warning in evaluation.warnings)


@pytest.mark.parametrize(("cell", "value"), [("0,102", 0.102), ("1,02E-05", 1.02e-05), ("1,5", None)])
def test_propensities_may_have_a_decimal_comma(cell, value):
    log = Log([{"a": 1, "labels": ["x"], "hit": 1, "propensity": cell}] * 2)
    if value is None:
        with pytest.raises(BadRow, match=r"in \(0, 1\]"):
            list(log)
    else:
        assert next(iter(log)).decision.propensity == pytest.approx(value)


def test_a_log_without_hits(tmp_path):
    path = write_log(tmp_path, "a,labels,hit,propensity\n1,x;y,0,0.3333\n2,y;z,0,0.3333\n3,x;z,0,0.3333\n")
    log = Log(path)
    evaluation = evaluate(log, [Policy("xy", fixed=["x", "y"])], summarize(log), holdout=None)
    assert evaluation.results[0].required.rows is None
    assert any("No row hit" in warning for warning in evaluation.warnings)
    assert 0.3 < evaluation.high < 1.0


def test_the_interval_of_a_log_whose_rows_all_hit_has_a_width(tmp_path):
    rows = [{"a": i, "labels": "x;y" if i % 2 else "y;z", "hit": True, "propensity": 0.5} for i in range(20)]
    evaluation = evaluate(Log(rows), [Policy("y", fixed=["y"])], summarize(Log(rows)), holdout=None)
    assert (evaluation.hit_rate, evaluation.high) == pytest.approx((1.0, 1.0))
    assert 0.8 < evaluation.low < 0.9


def test_one_row_is_too_few():
    estimator = HitRateEstimator(one_set=True)
    estimator.by_set.unsupported = 0.0
    assert {e.problem for e in estimator.by_set.estimates()} == {"too few rows"}


def test_a_list_of_scores_needs_the_order_of_the_labels():
    rows = [answered(i, labels=["bee" if i % 2 else "ant"], s=[0.1, 0.9]) for i in range(60)]
    log, policy = Log(rows), Policy("s", scores="s", set_size=1)
    with pytest.raises(InvalidInput, match="labels of s must be given, in the order of the list"):
        evaluate(log, [policy], summarize(log), holdout=None)
    evaluate(log, [policy], summarize(log, labels=["bee", "ant"]), holdout=None)


def test_a_coverage_needs_a_learner_that_has_a_target():
    with pytest.raises(InvalidInput, match="coverage of it must be left out: the learner has no target"):
        Policy("it", learner=sa.SetLogit(n_labels=3, n_features=2, set_size=1), coverage=0.8)


def test_a_context_that_only_looks_like_json_has_no_group():
    log = Log([answered(i, context="{no json", site="n") for i in range(9)])
    [result] = evaluate(log, [Policy("one", fixed=[0])], summarize(log), holdout=None, group="site").results
    assert [group.name for group in result.by_group] == ["n"]


def test_an_action_may_be_called_0_and_broken_dsjson_says_what_is_wrong(tmp_path):
    actions = [{"i": {"id": 7}}, {"i": {"id": 0}}]
    line = {"_label_cost": -1, "a": [2, 1], "p": [0.8, 0.2], "c": {"u": {"age": 1}, "_multi": actions}}
    other = {**line, "_label_cost": 0, "c": {"u": {"age": 2}, "_multi": actions}}
    path = write_log(tmp_path, f"{json.dumps(line)}\n{json.dumps(other)}\n", "log.dsjson")
    assert [record.decision.labels for record in Log(path)] == [[0], [0]]
    slate = {"_outcomes": [{"_a": [5], "_p": [1.0]}], "_label_cost": 0, "c": {"_multi": [{"_slot_id": 0}]}}
    broken = {key: value for key, value in line.items() if key != "p"}
    late = {"EventId": "e", "RewardValue": 1.0, "DanglingReward": True}
    for bad, message in (
        (slate, "slot 0 has 1 actions, and shows that of index 5"),
        (broken, "it lacks 'p'"),
        (late, "must be a decision, not a reward that came late"),
    ):
        path = write_log(
            tmp_path, f"{json.dumps(line)}\n{json.dumps(other)}\n{json.dumps(bad)}\n", "log.dsjson"
        )
        with pytest.raises(BadRow, match=f"row 3.*{message}"):
            list(Log(path))


def test_a_position_that_pi_b_does_not_have():
    feedback = {
        "action": np.array([0, 1]), "reward": np.array([1, 0]), "context": np.ones((2, 2)),
        "position": np.array([0, 3]), "pi_b": np.full((2, 2, 3), 0.5), "n_actions": 2,
    }  # fmt: skip
    with pytest.raises(
        InvalidInput, match="position of bandit_feedback must be below 3, the positions of pi"
    ):
        list(Log(feedback))


def test_train_and_evaluate_agree_for_a_learner_without_probabilities(tmp_path):
    random = np.random.default_rng(3)
    learner = sa.MCDBF(n_labels=4, n_features=3, set_size=2, gamma=0.5, seed=0)
    centres = random.normal(size=(4, 3))
    with Writer(tmp_path / "log.jsonl") as writer:
        for y in random.integers(4, size=1500):
            decision = learner.decide(centres[y] + 0.3 * random.normal(size=3))
            learner.update(decision, hit=bool(y in decision.labels))
            writer.add(decision, hit=bool(y in decision.labels))
    log = Log(tmp_path / "log.jsonl")
    summary = summarize(log)
    model = sa.MCDBF(**summary.learner_params, gamma=0.5)
    trained = train(log, model, summary, holdout=0.5).history[-1].hit_rate
    [result] = evaluate(log, [Policy("it", learner=model)], summary, holdout=0.5).results
    assert trained == result.best


def test_a_log_is_not_written_if_the_model_was_replaced_meanwhile(tmp_path, monkeypatch):
    from superarm.logs import nightly

    learner = sa.SetLogit(labels=["a", "b", "c"], n_features=1, set_size=1, seed=0)
    model, log = tmp_path / "model.npz", tmp_path / "answered.jsonl"
    learner.save(model)
    np.save(tmp_path / "rows.npy", np.ones((3, 1)))
    nightly.decide_file(model, tmp_path / "rows.npy", tmp_path / "d.parquet")
    write_log(tmp_path, "id,hit\n0,1\n1,maybe\n", "answers.csv")
    with pytest.raises(BadRow, match=r"hit of .*answers.csv, row 2 must be true or false"):
        learn_file(model, tmp_path / "d.parquet", tmp_path / "answers.csv")
    write_log(tmp_path, "id,hit\n0,1\n1,0\n", "answers.csv")
    digests = iter(["before", "after"])
    monkeypatch.setattr(nightly, "file_digest", lambda path: next(digests))
    with pytest.raises(InvalidInput, match="nothing was written, run it again"):
        learn_file(model, tmp_path / "d.parquet", tmp_path / "answers.csv", log=log)
    assert not log.exists()


def test_ids_that_repeat_are_rounds(tmp_path):
    from superarm.logs.nightly import decide_file

    learner = sa.SetLogit(labels=["a", "b", "c"], set_size=1, seed=0)
    learner.save(tmp_path / "model.npz")
    rows = write_log(tmp_path, "id,age,city\n1,20,Rome\n1,30,Oslo\n2,40,Rome\n", "rows.csv")
    summary = decide_file(tmp_path / "model.npz", rows, tmp_path / "d.parquet")
    assert (summary.ids, summary.first_round) == (None, 0)
    with pytest.raises(InvalidInput, match=r"id of .* must be different in every row"):
        decide_file(tmp_path / "model.npz", rows, tmp_path / "d.parquet", id_column="id")


def warnings_of(rows):
    log = Log(rows)
    return evaluate(log, [Policy("fixed", fixed=[0])], summarize(log), holdout=None).warnings


def test_sets_of_several_sizes_whose_propensity_includes_the_size():
    """Of 1 or 2 of three labels, any set has 1 in 3 among those of its size; 1 in 6 is not what weights need."""
    random = np.random.default_rng(0)
    sets = [random.choice(3, random.integers(1, 3), replace=False).tolist() for _ in range(400)]
    rows = [answered(i, labels=labels, hit=0 in labels) for i, labels in enumerate(sets)]
    assert warnings_of([row | {"propensity": 1 / 3} for row in rows]) == ()
    (warning,) = warnings_of([row | {"propensity": 1 / 6} for row in rows])
    assert "add up to 2 times" in warning
    assert "log how probable each was among those of its size" in warning


def test_a_log_that_always_shows_the_same_labels_and_no_list_of_all():
    (warning,) = warnings_of([answered(i, labels=[0, 1], propensity=1.0) for i in range(40)])
    assert warning.endswith("name those that it never shows (labels).")


def test_a_set_with_a_label_twice_is_told_whole(tmp_path):
    path = write_log(tmp_path, "age,first,second,hit\n1,a,b,1\n2,a,a,0\n")
    with pytest.raises(BadRow, match=r"row 2 must be distinct labels, at least one, got \['a', 'a'\]"):
        list(Log(path, columns=LogColumns(labels=("first", "second"))))


def test_an_estimator_of_ones_own_stands_beside_the_others(monkeypatch):
    """The one of docs/extend.md: what it makes of the sums, with an interval of its own."""

    def textbook_dr(sums):
        variance = sums.covariance[Y, Y] - 2.0 * sums.covariance[Y, C] + sums.covariance[C, C]
        return float(sums.means[Y] - sums.means[C]), float(variance)

    monkeypatch.setitem(ESTIMATORS["set"], "textbook-dr", textbook_dr)
    random = np.random.default_rng(0)
    rows = [answered(i, labels=[int(random.integers(3))], propensity=1 / 3) for i in range(900)]
    rows = [row | {"hit": bool(random.random() < (0.7, 0.2, 0.1)[row["labels"][0]])} for row in rows]
    log = Log(rows)
    (result,) = evaluate(log, [Policy("fixed", fixed=[0])], summarize(log), holdout=None).results
    assert [one.name for one in result.estimates] == ["ips", "snips", "dr", "textbook-dr", "pi", "pi-dr"]
    own = result.estimates[3]
    assert not own.problem
    assert own.low < 0.7 < own.high
    assert abs(own.value - result.estimates[2].value) < own.width / 4
