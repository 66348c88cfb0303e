"""Decision, and the book of answered rounds."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm import Decision, Decisions
from superarm.checks.helpers import state_bytes
from superarm.errors import InvalidInput
from superarm.explore import Cover, Dilute, RunnerUp, Uniform
from superarm.native.answered_rounds import AnsweredRounds

ROUNDS = st.integers(0, 60)


@given(st.lists(ROUNDS | st.lists(ROUNDS, unique=True), max_size=80), st.integers(0, 80), st.lists(ROUNDS))
@settings(max_examples=300)
def test_answered_is_a_set(adds, restart, asked):
    """Against a plain set, through many at once, repetitions, and saving in between."""
    answered, plain = AnsweredRounds(), set()
    for i, item in enumerate(adds):
        if isinstance(item, list):
            answered.add_many(np.array(item, np.int64))
            plain |= set(item)
        else:
            answered.add(item)
            plain.add(item)
        if i == restart:
            answered = AnsweredRounds(answered.start, bytes.fromhex(answered.bits.hex()))
        assert {t for t in range(70) if t in answered} == plain
        first_open = next(t for t in range(200) if t not in plain)
        assert (answered.start, answered.count) == (first_open // 8 * 8, len(plain))
        assert answered.first_of(np.array(asked, np.int64)) == next((t for t in asked if t in plain), None)


def test_answers_in_order_take_no_memory():
    answered = AnsweredRounds()
    for t in range(10_000):
        answered.add(t)
    assert (answered.start, bytes(answered.bits)) == (10_000, b"")
    answered.add_many(np.arange(10_000, 1_000_002))
    assert (answered.start, bytes(answered.bits)) == (1_000_000, b"\3")


def test_an_open_round_costs_a_bit_a_round():
    answered = AnsweredRounds()
    answered.add_many(np.arange(1, 80_001))
    assert answered.start == 0
    assert len(answered.bits) <= 10_001
    answered.add(0)
    assert (answered.start, bytes(answered.bits)) == (80_000, b"\1")


# ---------------------------------------------------------------- Decision


def test_given():
    decision = sa.Decision.given([0.5, 1.0], labels=[3, 7], propensity=0.25)
    assert decision.labels == decision.drawn == [3, 7]
    assert decision.top == []
    assert decision.set_size == 2
    assert decision.propensity == pytest.approx(0.25)
    assert decision.ordered_propensity is None
    assert decision.round is None
    assert decision.learner is None
    assert decision.eligible is None
    assert sa.Decision.given([0.5], ["a"]).propensity is None


def test_given_takes_no_text_for_a_list():
    for arguments in (
        {"labels": "ads"},
        {"labels": ["a"], "top": "a", "gamma": 0.1},
        {"labels": ["a"], "eligible": "ab"},
    ):
        with pytest.raises(
            InvalidInput, match=r"(labels|top|eligible) of Decision.given must be a list of labels"
        ):
            sa.Decision.given([0.0], **arguments)


@pytest.mark.parametrize("labels", [[], [1, 1], ["a", "b", "a"]])
def test_given_wants_distinct_labels(labels):
    with pytest.raises(InvalidInput, match=r"labels of Decision.given must be distinct and at least one"):
        sa.Decision.given([1.0], labels)


@pytest.mark.parametrize("propensity", [0.0, -0.1, 1.1, float("nan")])
def test_given_wants_a_probability(propensity):
    with pytest.raises(InvalidInput, match=r"propensity of Decision.given must be in \(0, 1\]"):
        sa.Decision.given([1.0], [0], propensity)


def test_given_wants_a_top_set_as_large_as_the_draw_around_it():
    """Rules other than the paper's may leave labels of their top set out."""
    left_out = {"labels": ["a"], "top": ["a", "b"]}
    assert sa.Decision.given([1.0], **left_out, rule={"name": "cover"}).top == ["a", "b"]
    for paper in ({"gamma": 0.5}, {"rule": {"name": "dilute", "gamma": 0.5}}):
        with pytest.raises(InvalidInput, match=r"top of Decision.given must be 1 distinct labels, as many"):
            sa.Decision.given([1.0], **left_out, **paper)
    with pytest.raises(InvalidInput, match=r"top of Decision.given must be distinct labels"):
        sa.Decision.given([1.0], ["a"], top=["a", "a"], rule={"name": "cover"})


@pytest.mark.parametrize("rule", [{"gamma": 0.1}, {"name": 3}, "dilute", {"name": "dilute"}])
def test_a_recorded_rule_has_a_name_and_the_papers_its_gamma(rule):
    with pytest.raises(InvalidInput, match=r"(rule|gamma) of Decision.given must be"):
        sa.Decision.given([1.0], [1, 2], top=[1, 2], rule=rule)
    data = sa.Decision.given([1.0], [1, 2]).to_dict()
    with pytest.raises(InvalidInput, match=r"(rule|gamma) of Decision.from_dict must be"):
        sa.Decision.from_dict(data | {"rule": rule})


@pytest.mark.parametrize(
    "x",
    [[0.1, 0.0, 1e-8], ([0, 2], [0.1, 1e-8]), sa.Row([0.1], ([1], [1e-8]), 2)],
    ids=["dense", "sparse", "mixed"],
)
def test_json_and_back(x):
    width = (1, 2) if isinstance(x, sa.Row) else 3
    learner = sa.MCDBF(labels=["a", "b", 3, "d"], n_features=width, set_size=2, estimate="minimum-variance")
    decision = learner.decide(x, eligible=["b", 3, "d"])
    text = json.dumps(decision.to_dict(), allow_nan=False)
    back = sa.Decision.from_dict(json.loads(text))
    for name in ("labels", "drawn", "top", "eligible", "set_size", "gamma", "rule", "round", "learner"):
        assert getattr(back, name) == getattr(decision, name), name
    assert back.log_propensity == decision.log_propensity
    assert back.ordered_propensity == decision.ordered_propensity is not None
    assert decision.gamma == 0.1
    if isinstance(x, list):
        assert back.x.tobytes() == decision.x.tobytes()
    else:
        assert back.x == decision.x


def test_given_sets_go_through_json_too():
    given_ = sa.Decision.given(([1], [2.0]), ["b", "a"])
    back = sa.Decision.from_dict(json.loads(json.dumps(given_.to_dict())))
    learner, stored = (sa.SetLogit(labels=["a", "b", "c"], n_features=4) for _ in range(2))
    learner.update(given_, hit=True)
    stored.update(back, hit=True)
    assert state_bytes(learner) == state_bytes(stored)


@pytest.mark.parametrize(
    "change",
    [
        {"x": "abc"},
        {"log_propensity": "a"},
        {"n_labels": [5]},
        {"labels": 3},
        {"drawn": [0]},
        {"top": [0, 0]},
        {"eligible": 5},
    ],
)
def test_from_dict_checks_its_content(change):
    learner = sa.MCDBF(n_labels=5, n_features=2, set_size=2)
    data = learner.decide([1.0, 0.0]).to_dict()
    with pytest.raises(InvalidInput, match=r"(data|drawn|top) of Decision.from_dict must be"):
        sa.Decision.from_dict(data | change)
    for key in data:
        with pytest.raises(InvalidInput):
            sa.Decision.from_dict({k: v for k, v in data.items() if k != key})


def test_whole_numbers_from_other_languages():
    """JavaScript writes 0 for 0.0."""
    learner = sa.MCSLP(n_labels=3, n_features=2, set_size=2)
    data = learner.decide([1.0, 0.0]).to_dict()
    data["log_propensity"], data["x"] = 0, [1, 0]
    back = sa.Decision.from_dict(data)
    assert back.propensity == 1.0
    learner.update(back, label=2)


DECIDE = """
import pickle, sys
import superarm as sa
sys.stdout.buffer.write(pickle.dumps(sa.load(sys.argv[1]).decide([1.0, 0.0])))
"""
LEARN = """
import pickle, sys
import superarm as sa
learner = sa.load(sys.argv[1])
other = learner.decide([0.0, 1.0])
learner.update(pickle.loads(sys.stdin.buffer.read()), hit=True)
print(learner.core.state()["weights.dense"].tolist())
"""


def test_a_decision_pickled_to_another_process_is_learnt_with_its_own_row(tmp_path):
    """There the learner has just scored another row; both are the first decision of their process."""
    learner = sa.MCDBF(n_labels=4, n_features=2, set_size=2, gate=True)
    learner.update(learner.decide([1.0, 1.0]), hit=True)
    learner.save(tmp_path / "model.npz")
    path, run = str(tmp_path / "model.npz"), partial(subprocess.run, capture_output=True, check=True)
    pickled = run([sys.executable, "-c", DECIDE, path]).stdout
    learnt = run([sys.executable, "-c", LEARN, path], input=pickled).stdout
    learner.update(learner.decide([1.0, 0.0]), hit=True)
    assert json.loads(learnt) == learner.core.state()["weights.dense"].tolist()


def test_it_shows_itself():
    learner = sa.Perceptron(labels=["x", "y"], n_features=1)
    assert repr(learner.decide([1.0])) == "Decision(labels=['x'], propensity=1.0, round=0)"


def test_one_and_many_have_the_same_probability_to_the_last_bit():
    scores = np.random.default_rng(0).normal(size=(400, 9))
    decisions = sa.explore.RunnerUp(set_size=3, uniform=0.1).decide_many(scores)
    assert len(set(decisions.propensity.tolist())) > 50
    assert decisions.propensity.tolist() == [decision.propensity for decision in decisions]
    ordered = [decision.ordered_propensity for decision in decisions]
    np.testing.assert_array_equal(decisions.ordered_propensity, np.array(ordered, np.float64))


@pytest.mark.parametrize("rule", [Uniform(set_size=2), RunnerUp(set_size=2), Cover(warm_up=0, set_size=2)])
def test_no_order_is_claimed_where_none_is_known(rule):
    """Floyd's algorithm and ranks that fill up give no order whose probability is known."""
    decision = rule.decide([0.0, 0.0, 0.0, 0.0])
    assert decision.propensity is not None
    assert decision.ordered_propensity == (decision.propensity if decision.size == 1 else None)
    many = rule.decide_many([[0.0] * 4] * 20)
    assert (np.isnan(many.ordered_propensity) == (many.sizes > 1)).all()
    assert max(many.sizes) == 2


def test_the_ordered_propensities_of_all_orders_sum_to_one():
    rule, seen = Dilute(set_size=2, gamma=0.5), {}
    for _ in range(500):
        decision = rule.decide([3.0, 2.0, 1.0, 0.0])
        stored = sa.Decision.from_dict(decision.to_dict())
        assert stored.ordered_propensity == decision.ordered_propensity
        seen[tuple(decision.drawn)] = decision.ordered_propensity
    assert len(seen) == 12
    assert sum(seen.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("top", [[0] * 1000, [0, 0], [0, 1, 2]])
def test_a_top_set_that_no_rule_of_the_paper_has_is_refused_before_compiled_code_reads_it(
    top: list[int],
) -> None:
    learner = sa.MCDBF(n_labels=4, n_features=2, set_size=2, seed=0)
    decisions = learner.decide_many(np.eye(2, dtype=np.float32))
    frame = decisions.to_frame().with_columns(pl.Series("top", [top] * 2))
    with pytest.raises(InvalidInput, match=r"top of Decisions\.from_frame must be 2 distinct labels"):
        Decisions.from_frame(frame, learner.vocabulary)
    with pytest.raises(InvalidInput, match=r"top of Decision\.from_dict must be 2 distinct labels"):
        Decision.from_dict(decisions[0].to_dict() | {"top": top})
