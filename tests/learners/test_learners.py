"""check_learner crossed with every learner; and what single learners promise beyond it."""

import copy
import inspect
from pathlib import Path

import numpy as np
import pytest
from learner_internals import INTERNALS, run_internal

import superarm as sa
from superarm.checks import CHECKS, check_learner, run_check
from superarm.checks.helpers import answer, state_bytes
from superarm.errors import FeedbackError, InvalidInput
from superarm.learners.registry import learners_by_name, make, parse

OWN = f"{Path(__file__).parent.with_name('own_learner.py')}:UpAndDown"
SPECS = [
    *learners_by_name(),
    "pa:variant=PA",
    "pa:variant=PA-II",
    "mc-slp:gate=true",
    "epabf:variant=EPABF",
    "epabf:variant=EPABF-II",
    "mc-dbf:gamma=1",
    "mc-dbf:estimate=set,gate=true",
    "mc-dbf:estimate=minimum-variance,gate=true,margin=10",
    "mc-dbf:estimate=minimum-variance,rho=0.5",
]


def weights(learner):
    """Dense weights label-major; sparse ones with labels last."""
    state = learner.core.state()
    if learner.inputs.layout.n_dense:
        return state["weights.dense" if "weights.dense" in state else "weights.W"]
    return state["weights.sparse"]


@pytest.mark.parametrize("name", ["mc-dbf", "mc-slp"])
def test_a_gate_is_true_or_false(name):
    for word, gate in {
        "true": True,
        "yes": True,
        "on": True,
        "1": True,
        "false": False,
        "No": False,
        "off": False,
    }.items():
        assert make(f"{name}:gate={word}", n_labels=3, n_features=2).gate is gate
    for word in ("maybe", "2", "none"):
        with pytest.raises(InvalidInput, match=r"gate of \w+ must be true or false, got"):
            make(f"{name}:gate={word}", n_labels=3, n_features=2)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("spec", SPECS)
def test_check(spec, check):
    cls, params = parse(spec)
    run_check(check, cls, **params)


@pytest.mark.parametrize("name", INTERNALS)
@pytest.mark.parametrize("spec", [*SPECS, f"{OWN}:rate=0.5"])
def test_internals(spec, name):
    cls, params = parse(spec)
    run_internal(name, cls, **params)


@pytest.mark.parametrize("set_size", [1, 3, 4])
def test_other_set_sizes(set_size):
    """m = 1, m between, and m = k - 1."""
    for cls in (sa.MCDBF, sa.MCSLP):
        for check in (
            "fused_equals_stepwise",
            "save_load_continues",
            "decision_is_consistent",
            "decision_survives_json",
        ):
            run_check(check, cls, set_size=set_size)


@pytest.mark.parametrize("check", CHECKS)
def test_a_users_own_learner(check):
    cls, _ = parse(OWN)
    run_check(check, cls, rate=0.5)


# ---------------------------------------------------------------- the checks can fail


class TakesTwice(sa.Perceptron):
    def update(self, decision, *, label):
        twin = copy.deepcopy(decision)
        twin.round, twin.learner = None, None
        self.learns_from = lambda decision: True
        super().update(twin, label=label)


class Unseeded(sa.MCDBF):
    def decide(self, x, **kwargs):
        self.seed = int(np.random.default_rng().integers(2**32))
        return super().decide(x, **kwargs)


class IgnoresEligible(sa.MCSLP):
    def decide(self, x, *, eligible=None, set_size=None):
        return super().decide(x, set_size=set_size)


class ForgetsOpenRounds(sa.Softmax):
    def save(self, path):
        self.core.answered.add_many(np.arange(self.round))
        super().save(path)


class RanksByNumber(sa.Perceptron):
    def rank(self, x):
        return sorted(super().rank(x))


class TakesAnything(sa.Perceptron):
    def decide(self, x, **limits):
        try:
            x = np.nan_to_num(np.resize(np.asarray(x, np.float32), self.n_features))
        except (TypeError, ValueError):
            x = np.zeros(self.n_features, np.float32)
        return super().decide(x, **limits)


@pytest.mark.parametrize(
    ("cls", "check"),
    [
        (TakesTwice, "second_answer_is_refused"),
        (TakesTwice, "foreign_decision_is_refused"),
        (Unseeded, "fused_equals_stepwise"),
        (Unseeded, "same_seed_same_draws"),
        (IgnoresEligible, "eligible_and_set_size_are_respected"),
        (ForgetsOpenRounds, "save_load_continues"),
        (RanksByNumber, "rank_and_predict_agree"),
        (TakesAnything, "bad_rows_are_refused"),
    ],
)
def test_a_broken_learner_is_found(cls, check):
    with pytest.raises(AssertionError, match=f"^{check}: "):
        run_check(check, cls)


def test_a_learner_that_moves_ineligible_labels_is_found():
    with pytest.raises(AssertionError, match="weights of ineligible labels moved"):
        run_internal("ineligible_labels_keep_weights", IgnoresEligible)


def test_check_learner_runs_all_and_names_the_first_failure():
    check_learner(lambda **common: sa.Perceptron(**common))
    check_learner(lambda **common: sa.Banditron(gamma=0.2, **common))  # which shows single labels
    check_learner(RanksByNumber, skip=["rank_and_predict_agree", "names_are_kept"])
    with pytest.raises(AssertionError, match=r"^rank_and_predict_agree: "):
        check_learner(RanksByNumber)
    with pytest.raises(InvalidInput, match="skip of check_learner must be"):
        check_learner(sa.Perceptron, skip=["no such check"])
    with pytest.raises(InvalidInput, match="name of run_check must be one of CHECKS, got 'second_answer'"):
        run_check("second_answer", sa.Perceptron)


# ---------------------------------------------------------------- single learners


@pytest.mark.parametrize("estimate", ["ordered", "set"])
def test_mcdbf_of_one_label_is_banditron(digits, estimate):
    """m = 1: bit for bit."""
    X, y = digits
    common = {"n_labels": 10, "n_features": 64, "gamma": 0.2, "seed": 3}
    one, two = sa.Banditron(**common), sa.MCDBF(set_size=1, estimate=estimate, **common)
    assert one.run(X, y).tolist() == two.run(X, y).tolist()
    if estimate == "ordered":
        assert weights(one).tobytes() == weights(two).tobytes()
    else:  # 1/P from a table instead of from the draw
        np.testing.assert_allclose(weights(one), weights(two), rtol=1e-4, atol=1e-3)


def test_two_labels():
    """k = 2 leaves m = 1, and every learner works."""
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    for name in learners_by_name():
        learner = make(name, n_labels=2, n_features=3)
        learner.run(X, y)
        assert (learner.predict(X) == y).mean() > 0.8, name


def test_many_labels():
    """k = 10^5, m = 60: sparse, a few rounds, finite, quick."""
    learner = sa.MCDBF(n_labels=100_000, n_features=30, set_size=60, gamma=0.01, estimate="set")
    x = [2, 7], [0.5, 0.5]
    for hit in (True, False, True):
        decision = learner.decide(x)
        assert len(set(decision.drawn)) == 60
        assert 0.0 < decision.ordered_propensity <= decision.propensity <= 1.0
        learner.update(decision, hit=hit)
    assert weights(learner).shape == (31, 100_000)
    assert np.isfinite(weights(learner)).all()


def test_full_exploration():
    """gamma = 1 shows every label equally often."""
    learner = sa.MCDBF(n_labels=4, n_features=1, set_size=2, gamma=1.0)
    counts = np.zeros(4)
    for _ in range(4000):
        decision = learner.decide([1.0])
        counts[decision.drawn] += 1
        assert decision.propensity == pytest.approx(1 / 6)
    assert abs(counts / 2000 - 1).max() < 0.1


def test_centring_changes_no_ranking(digits):
    """The shared part is taken out every 65,536 updates; scores differ by a constant only."""
    X, y = digits
    learner = sa.MCDBF(n_labels=10, n_features=64, set_size=4, seed=1)
    visit = np.arange(65_535) % len(X)
    learner.run(X, y, visit)
    W = weights(learner).astype(float).copy()
    learner.run(X, y, visit[:1])
    moved = weights(learner) - W
    spread = moved - moved.mean(axis=0)
    assert np.abs(moved.mean(axis=0)).max() > 1.0
    np.testing.assert_allclose(weights(learner).mean(axis=0), 0.0, atol=1e-3)
    assert np.abs(spread).max() < 0.05 * np.abs(W).max()


def test_an_open_decision_lasts_through_a_run(digits):
    """A run in between leaves earlier decisions open, and they can be answered after it."""
    X, y = digits
    learner = sa.MCDBF(n_labels=10, n_features=64, set_size=2)
    first = learner.decide(X[0])
    learner.run(X[:100], y[:100])
    assert learner.round == 101
    assert first.round not in learner.answered
    learner.update(first, hit=True)
    assert learner.answered.count == 101


def test_a_decision_that_was_open_is_answered_once_on_each_copy(tmp_path):
    learner = sa.SetLogit(n_labels=4, n_features=2)
    decision = learner.decide(np.ones(2, np.float32))
    learner.save(tmp_path / "model.npz")
    copy = sa.load(tmp_path / "model.npz")
    for each in (learner, copy):  # the copy has this answer to learn, too
        each.update(decision, hit=True)
        with pytest.raises(FeedbackError, match="answered before"):
            each.update(decision, hit=True)
    assert (copy.scores(np.eye(2)) == learner.scores(np.eye(2))).all()


def test_a_decision_keeps_its_own_copy_of_the_row():
    from scipy.sparse import csr_matrix

    row = np.array([1.0, 0.0, 2.0], np.float32)
    matrix = csr_matrix(row)
    for x, values in ((row, row), (matrix, matrix.data)):
        decision = sa.Perceptron(n_labels=3, n_features=3).decide(x)
        kept = decision.to_dict()["x"]
        values[:] = 9.0
        assert decision.to_dict()["x"] == kept


def test_rows_of_any_memory_order():
    wide = np.arange(12.0)
    learners = [sa.Softmax(n_labels=3, n_features=6) for _ in range(3)]
    for learner, x in zip(learners, (wide[::2], wide[10::-2][::-1], wide[None, ::2]), strict=True):
        for _ in range(3):
            learner.update(learner.decide(x), label=1)
    assert len({weights(learner).tobytes() for learner in learners}) == 1


def test_dense_and_sparse_rows_may_be_mixed():
    """The first row chooses the layout; later rows are turned."""
    x = np.array([0.0, 1.5, 0.0, -2.0], np.float32)
    for first, then in ((x, ([1, 3], [1.5, -2.0])), (([1, 3], [1.5, -2.0]), x)):
        learner = sa.Softmax(n_labels=3, n_features=4)
        learner.update(learner.decide(first), label=2)
        learner.update(learner.decide(then), label=2)
        assert learner.rank(x) == learner.rank(([1, 3], [1.5, -2.0]))


@pytest.mark.parametrize("name", learners_by_name())
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_labels_can_be_added(name, sparse, tmp_path):
    """Old labels keep their weights; earlier decisions can be answered; a file knows all of it."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4)).astype(np.float32)
    learner = make(name, labels=["a", "b", "c"], n_features=4, seed=2)

    rows = [(np.arange(4), x) if sparse else x for x in X]
    for i, x in enumerate(rows[:30]):
        answer(learner, learner.decide(x), i % 3)
    late = learner.decide(rows[30])
    ranks = [learner.rank(x) for x in rows[:30]]
    if name == "soba":
        with pytest.raises(InvalidInput, match="labels of SOBA must be left as they are"):
            learner.add_labels(["d", "e"])
        return
    learner.add_labels(["d", "e"])
    assert [[r for r in learner.rank(x) if r in "abc"] for x in rows[:30]] == ranks
    assert learner.labels == ("a", "b", "c", "d", "e")
    learner.save(tmp_path / "model.npz")
    loaded = sa.load(tmp_path / "model.npz")
    for it in (learner, loaded):
        answer(it, late, 1)
        for i, x in enumerate(rows[30:]):
            answer(it, it.decide(x), i % 5)
    assert state_bytes(learner) == state_bytes(loaded)
    if name != "soba-diag":  # which rarely updates
        W = weights(learner)
        assert (W.T if sparse else W)[3:].any()


def test_labels_without_names_are_added_by_number():
    learner = sa.MCDBF(n_labels=3, n_features=2, set_size=2)
    learner.update(learner.decide([1.0, 0.0]), hit=True)
    learner.add_labels(2)
    assert learner.n_labels == 5
    assert sorted(learner.rank([1.0, 0.0])) == [0, 1, 2, 3, 4]
    with pytest.raises(InvalidInput, match="labels of MCDBF must be a whole number of at least 1, got 0"):
        learner.add_labels(0)


@pytest.mark.parametrize("spec", SPECS)
def test_copies_go_on_by_themselves(spec, digits):
    """A copy (as for a worker process) goes on with the same bits, and leaves the original alone."""
    X, y = digits
    size = {} if spec.startswith(("soba", "newtron", "epabf", "banditron")) else {"set_size": 3}
    learner = make(spec, n_labels=10, n_features=64, seed=5, **size)
    if spec == "soba":
        X, learner = X[:, :8].copy(), make(spec, n_labels=10, n_features=8, seed=5)
    learner.run(X[:100], y[:100])
    before = state_bytes(learner)
    twin = copy.deepcopy(learner)
    twin.run(X[100:200], y[100:200])
    assert state_bytes(learner) == before
    learner.run(X[100:200], y[100:200])
    assert state_bytes(learner) == state_bytes(twin)
    assert learner.rank(X[0]) == twin.rank(X[0])


def test_params_make_the_same_learner():
    for spec in SPECS:
        learner = make(spec, labels=["a", "b", "c"], n_features=2, seed=9)
        again = type(learner)(**learner.params)
        assert again.params == learner.params
        assert again.labels == ("a", "b", "c")


def test_base_class_says_what_is_missing():
    with pytest.raises(TypeError, match="Learner must define make_"):
        sa.Learner(n_labels=3, n_features=2).decide([1.0, 2.0])


@pytest.mark.parametrize("name", learners_by_name())
def test_signatures_name_every_parameter(name):
    """What an IDE and help() show is what there is: no **common in built-in learners."""
    cls, _ = learners_by_name()[name]
    parameters = inspect.signature(cls).parameters
    assert {"n_labels", "labels", "n_features", "set_size", "seed", "intercept"} <= set(parameters)
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    made = make(name, n_labels=3, n_features=2)
    assert set(made.params) == set(parameters)


@pytest.mark.parametrize("cls", [sa.SetLogit, sa.AveragedSoftmax])
@pytest.mark.parametrize("intercept", [1, 1.0, 2, 1e6])
def test_an_intercept_that_leaves_nothing_for_the_features(cls, intercept):
    with pytest.raises(InvalidInput, match=r"intercept of \w+ must be True, False or a number in \[0, 1\)"):
        cls(n_labels=3, n_features=2, intercept=intercept)
    cls(n_labels=3, n_features=2, intercept=0.99)


def test_an_intercept_of_1_is_shown():
    assert repr(sa.Softmax(n_labels=3, intercept=1.0)) == "Softmax(n_labels=3, intercept=1.0)"
    assert repr(sa.Softmax(n_labels=3, intercept=True)) == "Softmax(n_labels=3)"


@pytest.mark.parametrize(
    "signed_sizes", [np.zeros(9, np.intp), np.zeros(10, np.int32), np.zeros(20, np.intp)[::2], [0] * 10]
)
def test_sizes_of_a_run_are_checked(signed_sizes):
    """They are written by compiled code."""
    learner = sa.SetLogit(n_labels=3, n_features=2)
    with pytest.raises(
        InvalidInput, match="signed_sizes of SetLogit must be a writable array of 10 intp numbers"
    ):
        learner.run(np.ones((10, 2), np.float32), np.zeros(10, int), signed_sizes=signed_sizes)
    assert learner.round == 0


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"curves": 64}, "curves"),
        ({"curves": 2048}, "curves"),  # cosines and sines would stand at other places
        ({"explore": sa.explore.Cover(coverage=0.9)}, "explore"),
    ],
)
def test_other_parameters_that_have_no_place_for_what_was_learnt(params, name):
    learner = sa.SetLogit(n_labels=4, n_features=2, set_size=2)
    learner.update(learner.decide([1.0, 0.0]), hit=True)
    with pytest.raises(
        InvalidInput, match=f"{name} of SetLogit must be left as it is: what was learnt would have"
    ):
        learner.with_params(**params)


def test_an_update_leaves_a_stored_decision_as_it_was():
    learner = sa.SetLogit(n_labels=4, n_features=2, set_size=2)
    stored = sa.Decision.from_dict(learner.decide([1.0, 0.0]).to_dict())
    before = stored.draw_log
    learner.update(stored, hit=True)
    assert stored.draw_log == before
