"""SetFeedbackClassifier as scikit-learn wants it, and as people use it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from superarm.errors import FeedbackError, InvalidInput
from superarm.sklearn import SetFeedbackClassifier


@parametrize_with_checks(
    [SetFeedbackClassifier(random_state=0), SetFeedbackClassifier(set_size=1, random_state=0)]
)
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, np.array([f"d{label}" for label in y])


def test_string_labels_sets_and_probabilities(digits):
    X, y = digits
    model = SetFeedbackClassifier(set_size=4, random_state=1).fit(X, y)
    assert model.score(X, y) > 0.9
    sets = model.predict_set(X)
    assert sets.shape == (len(X), 4)
    assert np.mean([label in s for label, s in zip(y, sets, strict=True)]) > model.score(X, y)
    assert (sets[:, 0] == model.predict(X)).all()
    assert model.predict_set(X, 99).shape == (len(X), 10)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_y_answers_only_the_bit(digits):
    """A learner that was told the bits alone, round by round, has the same weights."""
    X, y = digits
    model = SetFeedbackClassifier("mc-dbf", set_size=3, random_state=0).fit(X[:200], y[:200])
    assert model.learner_.round == 200 * model.passes
    from superarm.learners.registry import make

    own = make("mc-dbf", n_labels=10, n_features=64, set_size=3, seed=model.learner_.seed)
    codes = np.searchsorted(model.classes_, y[:200])
    random = np.random.RandomState(0)
    assert random.randint(2**31 - 1) == own.seed
    for _ in range(model.passes):
        for i in random.permutation(200):
            decision = own.decide(X[i])
            own.update(decision, hit=bool(codes[i] in decision.labels))
    np.testing.assert_array_equal(own.state.W, model.learner_.state.W)


def test_full_information_learners_fit_too(digits):
    X, y = digits
    assert SetFeedbackClassifier("softmax", random_state=0).fit(X, y).score(X, y) > 0.9


def test_learners_of_single_labels_show_one(digits):
    X, y = digits
    assert SetFeedbackClassifier("banditron", passes=1, random_state=0).fit(X, y).learner_.set_size == 1


def test_partial_fit_goes_on_where_it_was(digits):
    X, y = digits
    model = SetFeedbackClassifier(random_state=0)
    for start in range(0, len(X), 300):
        model.partial_fit(X[start : start + 300], y[start : start + 300], classes=np.unique(y))
    whole = SetFeedbackClassifier(random_state=0).partial_fit(X, y, classes=np.unique(y))
    np.testing.assert_array_equal(model.decision_function(X), whole.decision_function(X))


def test_sets_that_somebody_else_showed(digits):
    X, y = digits
    random = np.random.default_rng(0)
    names = np.unique(y)
    model = SetFeedbackClassifier(random_state=0)
    for _ in range(10):
        shown = [random.permutation(names)[:4] for _ in X]
        hit = [label in s for label, s in zip(y, shown, strict=True)]
        model.partial_fit_sets(X, shown, hit, classes=names)
    assert model.score(X, y) > 0.85


def test_sparse_rows_in_training_or_prediction(digits):
    X, y = digits
    sparse = SetFeedbackClassifier(random_state=0).fit(csr_matrix(X), y)
    assert sparse.score(csr_matrix(X), y) > 0.85
    np.testing.assert_array_equal(sparse.predict(X), sparse.predict(csr_matrix(X)))
    dense = SetFeedbackClassifier(random_state=0, passes=1).fit(X, y)
    np.testing.assert_array_equal(dense.predict(X), dense.predict(csr_matrix(X)))
    one = SetFeedbackClassifier(random_state=0)
    one.partial_fit_sets(csr_matrix(X[:5]), [["d0", "d1"]] * 5, [True] * 5, classes=np.unique(y))
    assert one.predict(csr_matrix(X[:1]))[0] in ("d0", "d1")


def test_pipeline_grid_search_and_pickle(digits):
    X, y = digits
    pipe = make_pipeline(StandardScaler(), SetFeedbackClassifier(passes=2, random_state=0))
    assert cross_val_score(pipe, X[:600], y[:600], cv=2).mean() > 0.5
    search = GridSearchCV(pipe, {"setfeedbackclassifier__set_size": [2, 4]}, cv=2).fit(X[:600], y[:600])
    assert search.best_params_["setfeedbackclassifier__set_size"] in (2, 4)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, X, y: m.partial_fit(X, y), InvalidInput, "classes of SetFeedbackClassifier must be given"),
        (
            lambda m, X, y: m.set_params(set_size=0).fit(X, y),
            InvalidInput,
            "set_size of SetFeedbackClassifier",
        ),
        (lambda m, X, y: m.set_params(passes=0).fit(X, y), InvalidInput, "passes of SetFeedbackClassifier"),
        (lambda m, X, y: m.fit(X, y).partial_fit(X, ["new"] * len(X)), InvalidInput, "made of its classes"),
        (
            lambda m, X, y: m.fit(X, y).partial_fit(X, y, classes=["a", "b"]),
            InvalidInput,
            "classes of partial_fit must be those of the first call",
        ),
        (
            lambda m, X, y: m.fit(X, y).partial_fit_sets(X, [["d0"]], [True]),
            InvalidInput,
            "one for each row of X",
        ),
        (
            lambda m, X, y: m.fit(X, y).partial_fit_sets(X[:1], [["new"]], [True]),
            InvalidInput,
            "shown of SetFeedbackClassifier must be made of its classes",
        ),
        (
            lambda m, X, y: (
                m.set_params(learner="banditron").fit(X, y).partial_fit_sets(X[:1], [["d0"]], [True])
            ),
            FeedbackError,
            "learner of partial_fit_sets must be one of given sets",
        ),
        (
            lambda m, X, y: m.fit(X, ["one"] * len(X)).partial_fit_sets(X[:1], [["one"]], [True]),
            InvalidInput,
            "at least two",
        ),
    ],
)
def test_what_is_refused(digits, call, error, message):
    X, y = digits
    with pytest.raises(error, match=message):
        call(SetFeedbackClassifier(passes=1, random_state=0), X[:50], y[:50])


def test_one_class_is_no_question(digits):
    X, _ = digits
    model = SetFeedbackClassifier().fit(X[:9], ["only"] * 9)
    assert set(model.predict(X[:3])) == {"only"}
    assert model.predict_set(X[:3]).tolist() == [["only"]] * 3
    assert model.predict_proba(X[:3]).tolist() == [[1.0]] * 3
    assert model.decision_function(X[:3]).tolist() == [0.0] * 3
