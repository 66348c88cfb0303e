"""Bad input gets a clear error. One test for every `raise` that check_learner does not reach."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import superarm as sa
from superarm import errors
from superarm.data.rows import Layout, as_row, as_rows, conform_row, densify
from superarm.errors import FeedbackError, InvalidInput, SuperarmError, WeightsOverflow, must
from superarm.learners.registry import make, parse
from superarm.service import Service

SIZES = {"n_labels": 4, "n_features": 3}
HERE = Path(__file__).parent


def test_the_tree():
    """Every error is a SuperarmError, and the builtin that a caller would expect."""
    builtin = {
        "InvalidInput": ValueError,
        "FeedbackError": ValueError,
        "ModelFileError": ValueError,
        "MissingModel": FileNotFoundError,
        "MissingData": OSError,
        "WeightsOverflow": ArithmeticError,
        "MissingExtra": ImportError,
    }
    for name, parent in builtin.items():
        assert issubclass(getattr(errors, name), SuperarmError)
        assert issubclass(getattr(errors, name), parent)
    assert set(errors.__all__) == {*builtin, "Unquoted", "SuperarmError", "at_row", "must"}


def test_the_template():
    assert (
        must("X", "PA", "a matrix", errors.Unquoted("a list of 3"))
        == "X of PA must be a matrix, got a list of 3"
    )
    assert must("X", "PA", "a file", OSError("no such file")) == "X of PA must be a file, got no such file"
    assert must("gamma", "MCDBF", "in (0, 1]", 1.5) == "gamma of MCDBF must be in (0, 1], got 1.5"
    long = must("x", "PA", "short", list(range(1000)))
    assert len(long) < 120
    assert long.endswith("...")


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_labels": 0}, "n_labels of MCDBF must be a whole number of at least 2, got 0"),
        ({"n_labels": 1}, "n_labels of MCDBF must be a whole number of at least 2, got 1"),
        ({"n_labels": None}, "n_labels of MCDBF must be a whole number of at least 2, got None"),
        ({"n_labels": 2.5}, "n_labels of MCDBF must be a whole number of at least 2, got 2.5"),
        ({"n_labels": None, "labels": ["a"]}, "labels of MCDBF must be at least two, got"),
        ({"n_labels": True}, "n_labels of MCDBF must be a whole number of at least 2, got True"),
        ({"n_labels": 2**62}, "n_labels of MCDBF must be below 2"),
        ({"n_features": 0}, "n_features of MCDBF must be a whole number of at least 1, got 0"),
        ({"n_features": -3}, "n_features of MCDBF must be a whole number of at least 1, got -3"),
        ({"set_size": 0}, "set_size of MCDBF must be a whole number of at least 1, got 0"),
        ({"set_size": 4}, "set_size of MCDBF must be below n_labels = 4, got 4"),
        ({"seed": -1}, "seed of MCDBF must be a whole number of at least 0, got -1"),
        ({"seed": 2**62}, "seed of MCDBF must be below 2"),
        ({"intercept": -0.5}, "intercept of MCDBF must be True, False or a number"),
        ({"intercept": float("nan")}, "intercept of MCDBF must be True, False or a number"),
        ({"intercept": "yes"}, "intercept of MCDBF must be True, False or a number"),
        ({"intercept": None}, "intercept of MCDBF must be True, False or a number"),
        ({"labels": ["a", "b"]}, "n_labels of MCDBF must be left out or 2, as labels has, got 4"),
        ({"labels": ["a", "b", "b", "c"]}, "labels of MCDBF must be distinct strings or whole numbers"),
        ({"labels": [0.5, 1, 2, 3]}, "labels of MCDBF must be distinct strings or whole numbers"),
        ({"labels": [[0], [1], [2], [3]]}, "labels of MCDBF must be distinct strings or whole numbers"),
        ({"gamma": 0.0}, r"gamma of MCDBF must be in \(0, 1\], got 0.0"),
        ({"gamma": 1.01}, r"gamma of MCDBF must be in \(0, 1\], got 1.01"),
        ({"gamma": float("nan")}, r"gamma of MCDBF must be in \(0, 1\], got nan"),
        ({"gamma": "0.1"}, r"gamma of MCDBF must be in \(0, 1\], got '0.1'"),
        ({"gamma": True}, r"gamma of MCDBF must be in \(0, 1\], got True"),
        ({"margin": 0}, "margin of MCDBF must be a number above 0, got 0"),
        ({"margin": float("inf")}, "margin of MCDBF must be a number above 0, got inf"),
        (
            {"estimate": "best"},
            "estimate of MCDBF must be 'ordered' or 'set' or 'minimum-variance', got 'best'",
        ),
        ({"rho": 1.5}, r"rho of MCDBF must be in \(0, 1\], got 1.5"),
        ({"rho": "half"}, r"rho of MCDBF must be in \(0, 1\], got 'half'"),
    ],
)
def test_parameters(params, message):
    with pytest.raises(InvalidInput, match=message):
        sa.MCDBF(**{**SIZES, **params})


@pytest.mark.parametrize(
    ("owner", "make"),
    [
        ("SetLogit", lambda labels, path: sa.SetLogit(labels=labels)),
        ("SetLogit", lambda labels, path: sa.SetLogit(labels=["x", "y"]).add_labels(labels)),
        ("RunnerUp", lambda labels, path: sa.explore.RunnerUp(set_size=1, labels=labels)),
        ("Arrays", lambda labels, path: sa.streams.Arrays([[1.0], [2.0]], ["a", "b"], labels=labels)),
        ("Labelling", lambda labels, path: sa.Labelling([{"n": 1.0}, {"n": 2.0}], labels=labels)),
        ("superarm serve", lambda labels, path: Service.open(path / "journal.db", labels=labels)),
    ],
)
@pytest.mark.parametrize("kind", [set, frozenset])
def test_labels_have_an_order(owner, make, kind, tmp_path):
    """That of a set is another one in every process, and draws with a seed would be, too."""
    message = (
        rf"^labels of {owner} must be in an order, as in a list .*, got a {kind.__name__}, which has none$"
    )
    with pytest.raises(InvalidInput, match=message):
        make(kind(["a", "b", "c"]), tmp_path)
    assert sa.SetLogit(labels={"b": 1, "a": 2}.keys()).labels == ("b", "a")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("banditron:set_size=2", "set_size of Banditron must be 1 "),
        ("banditron:gamma=0", r"gamma of Banditron must be in \(0, 1\]"),
        ("soba:gamma=2", r"gamma of SOBA must be in \(0, 1\]"),
        ("soba:a=0", "a of SOBA must be a number above 0"),
        ("soba-diag:matrix=half", "matrix of SOBA must be 'diagonal' or 'full', got 'half'"),
        ("newtron:alpha=-1", "alpha of Newtron must be a number above 0"),
        ("newtron:beta=0", "beta of Newtron must be a number above 0"),
        ("newtron:D=0", "D of Newtron must be a number above 0"),
        ("newtron:gamma=0", r"gamma of Newtron must be in \(0, 1\]"),
        ("epabf:variant=PA", "variant of EPABF must be 'EPABF' or 'EPABF-I' or 'EPABF-II', got 'PA'"),
        ("epabf:C=0", "C of EPABF must be a number above 0"),
        ("epabf:gamma=-1", r"gamma of EPABF must be in \(0, 1\]"),
        ("pa:variant=EPABF", "variant of PA must be 'PA' or 'PA-I' or 'PA-II'"),
        ("pa:C=-1", "C of PA must be a number above 0"),
        ("softmax:step=0", "step of Softmax must be a number above 0"),
        ("mc-slp:margin=-2", "margin of MCSLP must be a number above 0"),
        ("perceptron:gamma=0.1", "gamma of Perceptron must be one of its parameters"),
        ("perceptron:gamma", "learner of superarm must be name:key=value,key=value"),
        ("bandit", "learner of superarm must be one of mc-slp, "),
        ("missing.py:Mine", "no such file: missing.py"),
        (f"{HERE / 'own_learner.py'}:Missing", "must be the name of a Learner class in it, got 'Missing'"),
        (f"{HERE / 'own_learner.py'}:NoLearner", "must be the name of a Learner class in it"),
    ],
)
def test_specs(spec, message):
    with pytest.raises(InvalidInput, match=message):
        make(spec, **SIZES)


def test_values_in_specs():
    assert parse("mc-dbf:gate=true,rho=none,margin=2,gamma=1e-1,estimate=set")[1] == {
        "gate": True,
        "rho": None,
        "margin": 2,
        "gamma": 0.1,
        "estimate": "set",
    }
    assert make("mc-dbf:gamma=0.5", gamma=0.1, **SIZES).gamma == 0.5


def test_full_soba_too_large_for_memory():
    with pytest.raises(
        InvalidInput, match=r"matrix of SOBA must be 'diagonal' where .*GB for 1000 labels x 100"
    ):
        sa.SOBA(n_labels=1000, n_features=100_000, matrix="full")
    sa.SOBA(n_labels=1000, n_features=1000, matrix="diagonal")


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 2.0], r"x of PA must be of length 3, got shape \(2,\)"),
        (5.0, "x of PA must be of length 3, got 5.0"),
        ("abc", "x of PA must be 3 numbers, got 'abc'"),
        (csr_matrix(np.ones((2, 3))), r"x of PA must be one row, got shape \(2, 3\)"),
        (csr_matrix(np.ones((1, 4))), "X of PA must be a matrix with 3 columns"),
        ((["a"], [1.0]), "x of PA must be a pair of index and value vectors"),
        (
            ([0, 1], [1.0]),
            r"x of PA must be index and value vectors of one length, got shapes \(2,\) and \(1,\)",
        ),
        (([2, 1], [1.0, 1.0]), "x of PA must be sparse with strictly increasing indices"),
        (([1, 1], [1.0, 1.0]), "x of PA must be sparse with strictly increasing indices"),
        (([0, 3], [1.0, 1.0]), r"x of PA must be sparse with indices in \[0, 3\), got 3"),
        (([-1, 2], [1.0, 1.0]), r"x of PA must be sparse with indices in \[0, 3\), got -1"),
    ],
)
def test_rows(x, message):
    with pytest.raises(InvalidInput, match=message):
        as_row(x, 3, "PA")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0, 3.0], r"X of PA must be a matrix with two dimensions, got shape \(3,\)"),
        (np.ones((2, 4)), r"X of PA must be a matrix with 3 columns, got shape \(2, 4\)"),
        ([["a", "b", "c"]], "X of PA must be a matrix of numbers"),
        (([1.0], [0], [0, 1]), "X of PA must be a matrix of numbers, dense or SciPy sparse"),
        (csr_matrix(np.ones((1, 4))), "X of PA must be a matrix with 3 columns"),
    ],
)
def test_matrices(X, message):
    with pytest.raises(InvalidInput, match=message):
        as_rows(X, 3, "PA")


def test_matrix_without_a_given_width():
    with pytest.raises(InvalidInput, match="X of PA must be a matrix with two dimensions"):
        as_rows([1.0], None, "PA")


def test_broken_csr():
    matrix = csr_matrix(np.eye(3))
    matrix.indices[1] = 7
    with pytest.raises(InvalidInput, match=r"X of PA must be sparse with indices in \[0, 3\)"):
        as_rows(matrix, 3, "PA")


def test_good_rows():
    assert as_row([[1, 2, 3]], 3, "PA").tolist() == [1, 2, 3]
    assert as_row((1, 2, 3), 3, "PA").tolist() == [1, 2, 3]
    assert [len(part) for part in (as_row(([], []), 3, "PA").indices, as_row(([], []), 3, "PA").values)] == [
        0,
        0,
    ]
    unsorted = csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), (1, 3))
    row = as_row(unsorted, 3, "PA")
    assert (row.indices.tolist(), row.values.tolist(), row.width) == ([0, 2], [2.0, 4.0], 3)
    assert densify(row, 3).tolist() == [2.0, 0.0, 4.0]
    back = conform_row(densify(row, 3), Layout(0, 3), "PA")
    assert (back.indices.tolist(), back.values.tolist(), back.width) == ([0, 2], [2.0, 4.0], 3)


def test_rows_know_their_width():
    """A wider matrix is refused, checked before or not: compiled code would write outside of W."""
    rows = as_rows(csr_matrix(np.ones((2, 9))), None, "this")
    for wide in (rows, as_rows(np.ones((2, 9)), None, "this")):
        learner = sa.Perceptron(**SIZES)
        with pytest.raises(InvalidInput, match=r"X of Perceptron must be a matrix with 3 columns, got"):
            learner.run(wide, [0, 1])
    assert as_rows(rows, 9, "this") is rows


def test_a_matrix_of_the_other_kind():
    learner = sa.Perceptron(**SIZES)
    learner.decide([1.0, 0.0, 0.0])
    with pytest.raises(InvalidInput, match="X of Perceptron must be dense, as its first row was, got sparse"):
        learner.predict(csr_matrix(np.ones((1, 3))))


@pytest.mark.parametrize(
    ("y", "order", "message"),
    [
        ([0, 1], None, "y of Perceptron must be 3 label indices below n_labels = 4"),
        ([0, 1, 4], None, "y of Perceptron must be 3 label indices below n_labels = 4"),
        ([0, -1, 2], None, "y of Perceptron must be 3 label indices below n_labels = 4"),
        ([0, 1, 2], [3], "order of Perceptron must be row indices below 3"),
        ([0, 1, 2], [-1], "order of Perceptron must be row indices below 3"),
    ],
)
def test_runs(y, order, message):
    learner = sa.Perceptron(**SIZES)
    with pytest.raises(InvalidInput, match=message):
        learner.run(np.eye(3), y, order)
    assert learner.round == 0


# ---------------------------------------------------------------- labels and answers


@pytest.mark.parametrize("eligible", [[9], [-1], ["a"], [True], [None], [0, 0], [], 3, None])
def test_eligible(eligible):
    learner = sa.MCDBF(**SIZES)
    if eligible is None:
        assert learner.decide([1.0, 0.0, 0.0], eligible=None).eligible is None
        return
    with pytest.raises(InvalidInput, match="eligible of MCDBF must be"):
        learner.decide([1.0, 0.0, 0.0], eligible=eligible)
    assert learner.round == 0


def test_answers():
    learner, other = sa.MCDBF(**SIZES), sa.MCDBF(**SIZES)
    x = [1.0, 0.0, 0.0]
    decision = learner.decide(x, eligible=[0, 1, 2])
    with pytest.raises(
        FeedbackError, match=r"feedback of MCDBF must be hit=... or label=..., got hit=None, label=None"
    ):
        learner.update(decision)
    with pytest.raises(FeedbackError, match="hit of MCDBF must be True or False, got 2"):
        learner.update(decision, hit=2)
    with pytest.raises(
        FeedbackError, match=r"label of MCDBF must be one of the eligible labels \(.*\), got 3"
    ):
        learner.update(decision, label=3)
    with pytest.raises(InvalidInput, match="label of MCDBF must be a known label, got 7"):
        learner.update(decision, label=7)
    with pytest.raises(FeedbackError, match="decision of MCDBF must be a Decision, got 5"):
        learner.update(5, hit=True)
    with pytest.raises(
        FeedbackError,
        match=r"decision of MCDBF must be its own \(given sets teach set-logit, and with top= and gamma= mc-dbf\)",
    ):
        learner.update(sa.Decision.given(x, [1]), hit=True)
    with pytest.raises(
        FeedbackError, match=rf"must be its own \(learner {other.id}\), got one of learner {learner.id}"
    ):
        other.update(decision, hit=True)
    learner.update(decision, hit=np.bool_(True))
    with pytest.raises(FeedbackError, match="decision of MCDBF was answered before"):
        learner.update(decision, hit=True)
    with pytest.raises(FeedbackError, match=r"feedback of Perceptron must be label=..., got hit=True"):
        sa.Perceptron(**SIZES).update(decision, hit=True)


# ---------------------------------------------------------------- overflow


def overflowing(round_):
    """A stream that is harmless until ``round_``."""
    X = np.ones((20, 3), np.float32)
    X[round_:] = 2e38
    return X, np.arange(20) % 4


def test_overflow_names_the_round_and_leaves_the_last_good_state():
    X, y = overflowing(12)
    learner, short = sa.Softmax(step=10.0, **SIZES), sa.Softmax(step=10.0, **SIZES)
    with pytest.raises(WeightsOverflow, match=r"Softmax must .* round 1[0-9]") as caught:
        learner.run(X, y)
    assert 12 <= learner.round < 20
    assert f"round {learner.round}" in str(caught.value)
    short.run(X[: learner.round], y[: learner.round])
    assert learner.core.state()["weights.dense"].tobytes() == short.core.state()["weights.dense"].tobytes()
    assert np.isfinite(learner.core.state()["weights.dense"]).all()


def test_overflow_of_a_single_update():
    learner = sa.Softmax(step=1e20, **SIZES)
    decision = learner.decide([2.0, 0.0, 0.0])
    before = learner.core.state()["weights.dense"].tobytes()
    with pytest.raises(WeightsOverflow, match="weights of Softmax must stay finite; the update of round 0"):
        learner.update(decision, label=1)
    assert learner.core.state()["weights.dense"].tobytes() == before
    assert 0 not in learner.answered


def test_overflow_of_the_scores():
    learner = sa.Perceptron(**SIZES)
    learner.update(learner.decide([1e14, 0.0, 0.0]), label=1)
    learner.core.state()["weights.dense"][1, :2] = 3e38
    with pytest.raises(
        WeightsOverflow, match="scores of Perceptron must be finite, got an overflow at round 1"
    ):
        learner.decide([1.0, 1.0, 0.0])
    with pytest.raises(WeightsOverflow, match="scores of Perceptron"):
        learner.predict([[1.0, 1.0, 0.0]])
    assert learner.rank([1.0, 0.0, 0.0])[0] == 1


def test_far_words_are_not_guessed():
    assert "did you mean" not in must("column", "a.csv", "one of", "nope", choices=["opened", "team"])
    assert "did you mean 'opened'" in must("column", "a.csv", "one of", "open", choices=["opened", "team"])
