"""SetFeedbackClassifier as scikit-learn wants it, and as people use it."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits, make_classification
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import superarm as sa
from superarm.errors import FeedbackError, InvalidInput
from superarm.learners.registry import make
from superarm.sklearn import SetFeedbackClassifier, SetPipeline, SetScorer


@parametrize_with_checks(
    [SetFeedbackClassifier(random_state=0), SetFeedbackClassifier(set_size=1, random_state=0)]
)
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, np.array([f"d{label}" for label in y])


@pytest.mark.smoke
def test_string_labels_sets_and_probabilities(digits):
    X, y = digits
    model = SetFeedbackClassifier(set_size=4, random_state=1).fit(X, y)
    assert model.score(X, y) > 0.9
    sets = model.predict_set(X)
    assert sets.shape == (len(X), 4)
    assert np.mean([label in s for label, s in zip(y, sets, strict=True)]) >= model.score(X, y)
    assert (sets[:, 0] == model.predict(X)).all()
    assert model.predict_set(X, 99).shape == (len(X), 10)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_y_answers_only_the_bit(digits):
    """A learner that was told the bits alone, round by round, has the same weights."""
    X, y = digits
    model = SetFeedbackClassifier("mc-dbf", set_size=3, random_state=0).fit(X[:200], y[:200])
    assert model.learner_.round == 200 * model.passes
    own = make("mc-dbf", n_labels=10, n_features=64, set_size=3, seed=model.learner_.seed)
    codes = np.searchsorted(model.classes_, y[:200])
    random = np.random.RandomState(0)
    assert random.randint(2**31 - 1) == own.seed
    for _ in range(model.passes):
        for i in random.permutation(200):
            decision = own.decide(X[i])
            own.update(decision, hit=bool(codes[i] in decision.labels))
    np.testing.assert_array_equal(
        own.core.state()["weights.dense"], model.learner_.core.state()["weights.dense"]
    )


def test_full_information_learners_fit_too(digits):
    X, y = digits
    assert SetFeedbackClassifier("softmax", random_state=0).fit(X, y).score(X, y) > 0.9


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
        model.partial_fit(X, hit, shown=shown, classes=names)
    assert model.score(X, y) > 0.85


def test_sets_that_somebody_else_showed_in_a_search(digits):
    """Metadata routing: scikit-learn hands the rows of ``shown`` to fit and score."""
    X, y = digits
    random = np.random.default_rng(0)
    shown = np.array([random.permutation(np.unique(y))[:4] for _ in X])
    hit = (shown == y[:, None]).any(axis=1)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SetFeedbackClassifier(random_state=0, passes=5)
        model.set_fit_request(shown=True).set_score_request(shown=True)
        scores = cross_val_score(model, X, hit, params={"shown": shown}, cv=3)
        found = GridSearchCV(model, {"passes": [1, 5]}, cv=3).fit(X, hit, shown=shown)
    assert (scores > -0.4).all()  # the mean log-likelihood of a bit; knowing only the rate gives -0.67
    assert found.best_params_ == {"passes": 5}
    assert found.best_estimator_.score(X, y) > 0.85
    once = SetFeedbackClassifier(random_state=0, passes=1, shuffle=False).fit(X, hit, shown=shown)
    steps = SetFeedbackClassifier(random_state=0).partial_fit(X, hit, shown=shown, classes=np.unique(y))
    np.testing.assert_array_equal(once.decision_function(X), steps.decision_function(X))


def test_a_frame_gets_as_many_random_features_as_a_matrix():
    random = np.random.default_rng(0)
    X = random.normal(size=(9, 3))
    shown = np.argsort(random.random((9, 4)), axis=1)[:, :2]
    hit = random.random(9) < 0.5
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    words = frame.assign(word=["x", "y", "z"] * 3)
    models = [
        SetFeedbackClassifier(passes=4, random_state=0).fit(rows, hit, shown=shown, classes=range(4))
        for rows in (X, frame, words)
    ]
    assert [model.learner_.n_random_features for model in models] == [4096, 4096, 4096]


def test_noisy_answers_are_not_learnt_by_heart():
    """Of 20 passes and one, the one that predicts answers better that were set aside; then all rows teach."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 30))
    y = (X[:, :6] + 1.5 * random.gumbel(size=(1500, 6))).argmax(axis=1)
    shown = np.argsort(random.random((1500, 6)), axis=1)[:, :2]
    hit = (shown == y[:, None]).any(axis=1)
    model = SetFeedbackClassifier(set_size=2, random_state=0).fit(X[:900], hit[:900], shown=shown[:900])
    assert model.passes_ == 1
    assert model.score(X[900:], hit[900:], shown=shown[900:]) > -0.75  # -0.97 after 20 passes
    few = SetFeedbackClassifier(passes=4, random_state=0).fit(X[:9], hit[:9], shown=shown[:9])
    assert few.passes_ == 4  # too few rows to set any aside
    assert SetFeedbackClassifier(passes=4, random_state=0).fit(X, y).passes_ == 4


def test_labels_are_not_learnt_by_heart_either(digits):
    """Of 20 passes and one, the one that errs less on rows held out; where they are alike, all passes."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 6))
    y = (X + 1.5 * random.gumbel(size=(1500, 6))).argmax(axis=1)
    many, once = (SetFeedbackClassifier(set_size=2, passes=n, random_state=0) for n in (20, 1))
    assert many.fit(X, y).passes_ == once.fit(X, y).passes_ == 1
    np.testing.assert_array_equal(many.decision_function(X), once.decision_function(X))
    assert SetFeedbackClassifier(random_state=0).fit(*digits).passes_ == 20


@pytest.fixture(scope="module")
def noisy_classes():
    return make_classification(5000, n_informative=8, n_classes=5, random_state=1, flip_y=0.1)


@pytest.mark.parametrize("shown", [False, True])
def test_a_coverage_is_kept_on_new_rows(noisy_classes, shown):
    """Not only on rows that are known by heart: of these one label is enough."""
    X, y = noisy_classes
    model, told = SetFeedbackClassifier(coverage=0.9, random_state=0), {}
    if shown:
        sets = np.argsort(np.random.default_rng(0).random((1500, 5)), axis=1)[:, :2]
        told = {"y": (sets == y[:1500, None]).any(axis=1), "shown": sets}
    model.fit(X[:1500], **{"y": y[:1500], **told})
    covered = np.mean([label in s for label, s in zip(y[1500:], model.predict_set(X[1500:]), strict=True)])
    coverage = model.learner_.coverage
    assert covered > 0.885  # .70 and .84 without rows held out
    assert coverage.answers == pytest.approx(1500)
    assert abs(coverage.kept - covered) < 0.03
    assert coverage.warm_up <= model.learner_.round  # the promise counts from here on


def test_a_coverage_that_few_rows_cannot_tell(noisy_classes):
    """So few that one miss may be too many: everything is shown, as far as set_size allows."""
    X, y = noisy_classes
    for rows in (8, 30):
        model = SetFeedbackClassifier(coverage=0.99, random_state=0).fit(X[:rows], y[:rows])
        assert [len(s) for s in model.predict_set(X[rows : rows + 9])] == [len(model.classes_)] * 9
    model = SetFeedbackClassifier(coverage=0.99, set_size=2, random_state=0)
    with pytest.warns(UserWarning, match="set_size is too small"):
        model.fit(X[:300], y[:300])
    coverage = model.learner_.coverage
    assert coverage.kept < 0.9
    assert coverage.capped_misses == pytest.approx(300 * (1 - coverage.kept))
    softmax = SetFeedbackClassifier("softmax-averaged", coverage=0.9, random_state=0).fit(X[:1500], y[:1500])
    sets = softmax.predict_set(X[1500:])
    assert np.mean([label in s for label, s in zip(y[1500:], sets, strict=True)]) > 0.88


@pytest.fixture(scope="module")
def pairs():
    """Two of four labels were shown for each row, at random."""
    X, y = make_classification(4000, n_informative=8, n_classes=4, random_state=0)
    names = np.array(["ant", "bee", "cat", "dog"])
    shown = np.array([np.random.default_rng(i).permutation(names)[:2] for i in range(len(X))])
    return X, names[y], shown, (shown == names[y][:, None]).any(axis=1)


def test_a_scorer_of_hit_rates(pairs):
    """Off-policy, from bits: near the truth, whether it is told that sets were uniform or how probable each was."""
    X, y, shown, hit = pairs
    train, test = slice(0, 2000), slice(2000, None)
    model = SetFeedbackClassifier(passes=3, random_state=0).fit(X[train], hit[train], shown=shown[train])
    for size in (1, 2):
        truth = (model.predict_set(X[test], size) == y[test, None]).any(axis=1).mean()
        for scorer, more in (
            (SetScorer("hit_rate", uniform=True, set_size=size), {}),
            (SetScorer("hit_rate", set_size=size), {"propensity": np.full(2000, 1 / 6)}),
        ):
            assert scorer(model, X[test], hit[test], shown=shown[test], **more) == pytest.approx(
                truth, abs=0.05
            )
    few = slice(2000, 2040)
    assert np.isnan(SetScorer("hit_rate", uniform=True)(model, X[few], hit[few], shown=shown[few]))
    loss = SetScorer()(model, X[test], hit[test], shown=shown[test])
    assert loss == model.score(X[test], hit[test], shown=shown[test])
    gaps = [None, *hit[test].tolist()[1:]]
    assert SetScorer()(model, X[test], gaps, shown=shown[test]) == pytest.approx(loss, abs=0.01)
    with pytest.raises(InvalidInput, match="propensity of SetScorer must be given, or uniform=True"):
        SetScorer("hit_rate")(model, X[test], hit[test], shown=shown[test])
    with pytest.raises(InvalidInput, match="measure of SetScorer must be one of log_loss, hit_rate"):
        SetScorer("accuracy")(model, X[test], hit[test], shown=shown[test])


@pytest.mark.slow
def test_scorers_in_cross_validation_and_searches(pairs):
    X, _, shown, hit = pairs
    scoring = {"hits": SetScorer("hit_rate", uniform=True), "loss": SetScorer("log_loss")}
    with sklearn.config_context(enable_metadata_routing=True):
        last = SetFeedbackClassifier(random_state=0).set_fit_request(shown=True)
        pipeline = SetPipeline([("scale", StandardScaler()), ("sets", last)])
        values = {"sets__passes": [1, 3]}
        search = GridSearchCV(pipeline, values, scoring=scoring, refit="hits", cv=2, error_score="raise")
        search.fit(X, hit, shown=shown)
        odds = np.full(len(X), 1 / 6)
        last.set_fit_request(shown=True, propensity=True)
        told = {"shown": shown, "propensity": odds}
        scores = cross_val_score(
            last, X, hit, scoring=SetScorer("hit_rate"), cv=2, params=told, error_score="raise"
        )
    assert (search.cv_results_["mean_test_hits"] > 0.8).all()
    assert (search.cv_results_["mean_test_loss"] < 0.0).all()
    assert (scores > 0.8).all()


def test_sparse_rows_in_training_or_prediction(digits):
    X, y = digits
    sparse = SetFeedbackClassifier(random_state=0).fit(csr_matrix(X), y)
    assert sparse.score(csr_matrix(X), y) > 0.85
    np.testing.assert_array_equal(sparse.predict(X), sparse.predict(csr_matrix(X)))
    dense = SetFeedbackClassifier(random_state=0, passes=1).fit(X, y)
    np.testing.assert_array_equal(dense.predict(X), dense.predict(csr_matrix(X)))
    one = SetFeedbackClassifier(random_state=0)
    one.partial_fit(csr_matrix(X[:5]), [True] * 5, shown=[["d0", "d1"]] * 5, classes=np.unique(y))
    assert one.predict(csr_matrix(X[:1]))[0] in ("d0", "d1")


def test_pipeline_grid_search_and_pickle(digits):
    X, y = digits
    pipe = make_pipeline(StandardScaler(), SetFeedbackClassifier(passes=2, random_state=0))
    assert cross_val_score(pipe, X[:600], y[:600], cv=2).mean() > 0.5
    search = GridSearchCV(pipe, {"setfeedbackclassifier__set_size": [2, 4]}, cv=2).fit(X[:600], y[:600])
    assert search.best_params_["setfeedbackclassifier__set_size"] in (2, 4)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


SHOWN = "shown of SetFeedbackClassifier"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X, y: m.partial_fit(X, y), "classes of SetFeedbackClassifier must be given"),
        (lambda m, X, y: m.set_params(set_size=0).fit(X, y), "set_size of SetFeedbackClassifier"),
        (lambda m, X, y: m.fit(X, y).predict_set(X, -1), "set_size of predict_set must be a whole"),
        (lambda m, X, y: m.fit(X, y).predict_set(X, 0), "set_size of predict_set must be a whole"),
        (lambda m, X, y: m.set_params(passes=0).fit(X, y), "passes of SetFeedbackClassifier"),
        (lambda m, X, y: m.fit(X, ["one"] * len(X)), "more than one class"),
        (lambda m, X, y: m.fit(X, y).partial_fit(X, ["new"] * len(X)), "made of its classes"),
        (
            lambda m, X, y: m.fit(X, y).partial_fit(X, y, classes=["a", "b"]),
            "classes of partial_fit must be those of the first call",
        ),
        (
            lambda m, X, y: m.fit(X, y).score(X, [True] * 50, shown=[["d0"]] * 49),
            f"{SHOWN} must be one for each row of X, got 49 for 50 rows",
        ),
        (
            lambda m, X, y: m.fit(pd.DataFrame({"a": X[:, 0], "b": ["x"] * 50}), y).predict(X[:, :2]),
            r"X of SetFeedbackClassifier must be rows with names \(a, b\), as it was fitted",
        ),
        (
            lambda m, X, y: SetPipeline([("scale", StandardScaler()), ("sets", m)]).partial_fit(X, y),
            "steps of SetPipeline must be fitted",
        ),
    ],
)
def test_what_is_refused(digits, call, message):
    X, y = digits
    with pytest.raises(InvalidInput, match=message):
        call(SetFeedbackClassifier(passes=1, random_state=0), X[:50], y[:50])


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA])
@pytest.mark.parametrize("in_series", [False, True])
@pytest.mark.parametrize("method", ["fit", "partial_fit", "score"])
def test_a_label_that_is_missing(digits, gap, in_series, method):
    X, y = digits
    labels = [*y[:20], gap, *y[21:50]]
    model = SetFeedbackClassifier(passes=1, random_state=0)
    if method == "score":
        model.fit(X[:50], y[:50])
    more = {"classes": np.unique(y)} if method == "partial_fit" else {}
    with pytest.raises(InvalidInput, match=r"^y of .* must be a label in every row .*, got none in row 21$"):
        getattr(model, method)(X[:50], pd.Series(labels) if in_series else labels, **more)


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ([["d0"]], " must be one for each row of X"),
        (["d0|d1", ["d0"]], r", row 1 must be a list of labels, got 'd0\|d1'"),
        ([["d0"], None], ", row 2 must be distinct labels, at least one"),
        (np.array([["d0", "d1"], [np.nan, np.nan]], object), ", row 2 must be distinct labels, at least one"),
        ([["d1"], ["d0", "d0"]], ", row 2 must be distinct labels, at least one"),
        ([["new"], ["d0"]], " must be made of its classes"),
    ],
)
def test_sets_that_are_refused(digits, shown, message):
    X, y = digits
    model = SetFeedbackClassifier(passes=1, random_state=0).fit(X[:50], y[:50])
    with pytest.raises(InvalidInput, match=SHOWN + message):
        model.partial_fit(X[:2], [True, True], shown=shown)


def test_a_learner_of_single_labels_shows_one_and_takes_no_sets_of_others(digits):
    X, y = digits
    model = SetFeedbackClassifier("banditron", passes=1, random_state=0).fit(X[:50], y[:50])
    assert model.learner_.set_size == 1
    with pytest.raises(
        FeedbackError, match="learner of SetFeedbackClassifier must be one that learns from given"
    ):
        model.partial_fit(X[:1], [True], shown=[["d0"]])


def test_answers_are_not_scored_as_labels(digits):
    X, y = digits
    y = np.array([int(name[1:]) for name in y[:300]])
    shown = np.array([np.random.default_rng(i).permutation(10)[:4] for i in range(300)])
    hit = (shown == y[:, None]).any(axis=1)
    model = SetFeedbackClassifier(passes=1, random_state=0).fit(X[:300], hit, shown=shown)
    for answers in (hit, hit.tolist(), pd.Series(hit), [None, *hit[1:]]):
        with pytest.raises(InvalidInput, match="y are answers: pass shown="):
            model.score(X[:300], answers)
    with pytest.warns(UserWarning, match="y are 0 and 1, scored as labels"):
        model.score(X[:300], hit.astype(int))
    assert model.score(X[:300], y) > 0.3  # labels are labels
    with pytest.warns(UserWarning, match="y are answers"):
        assert np.isnan(cross_val_score(model, X[:300], hit, params={"shown": shown}, cv=3)).all()
    model.fit(X[:300], y)
    few = y < 2
    assert model.score(X[:300][few], y[few]) > 0.3  # no warning: it has learnt from labels


# ---------------------------------------------------------------- data frames, and sets through a pipeline


def people(n=600, seed=0):
    random = np.random.default_rng(seed)
    age, city = random.integers(18, 80, n), random.integers(0, 3, n)
    y = np.array(["low", "mid", "high", "top"])[(age > 49) * 2 + (city == 1)]
    cities = np.array(["Rome", "Oslo", "Lima"])[city]
    return pd.DataFrame({"age": np.where(random.random(n) < 0.05, np.nan, age), "city": cities}), y


@pytest.mark.parametrize("kind", ["pandas", "polars", "dicts"])
def test_frames_with_words_and_gaps(kind):
    X, y = people()
    rows = X.to_dict("records") if kind == "dicts" else pl.DataFrame(X) if kind == "polars" else X
    model = SetFeedbackClassifier(set_size=2, random_state=0).fit(rows, y)
    assert model.score(rows, y) > 0.9
    assert model.n_features_in_ == 2
    assert sorted(model.feature_names_in_) == ["age", "city"]
    assert model.predict_set(rows).shape == (600, 2)
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(rows) == model.predict(rows)).all()
    decisions = model.decide(rows)
    model.update(decisions, [label in shown for label, shown in zip(y, decisions.labels, strict=True)])
    assert model.learner_.round == 600 * 21


def test_a_frame_of_numbers_is_a_matrix(digits):
    X, y = digits
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])
    a, b = (SetFeedbackClassifier(random_state=0, passes=1).fit(data, y) for data in (X, frame))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(frame))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_sets_in_a_frame(frame):
    X, y = people(300)
    random = np.random.default_rng(1)
    names = np.array(["high", "low", "mid", "top"])
    shown = [random.choice(names, 2, replace=False).tolist() for _ in y]
    hit = [label in two for label, two in zip(y, shown, strict=True)]
    lists, table = (SetFeedbackClassifier(random_state=0) for _ in range(2))
    lists.partial_fit(X, hit, shown=shown, classes=names)
    columns = frame({"first": [s[0] for s in shown], "second": [s[1] for s in shown]})
    table.partial_fit(X, pd.Series(hit), shown=columns, classes=names)
    np.testing.assert_array_equal(lists.predict_proba(X), table.predict_proba(X))
    assert lists.learner_.columns is not None


def test_a_frame_of_sets_with_empty_places(digits):
    X, y = digits
    shown = pd.DataFrame({"a": ["d1", "d2"], "b": ["d3", None]})
    model = SetFeedbackClassifier(random_state=0)
    model.partial_fit(X[:2], [True, False], shown=shown, classes=np.unique(y))
    lists = SetFeedbackClassifier(random_state=0)
    lists.partial_fit(X[:2], [True, False], shown=[["d1", "d3"], ["d2"]], classes=np.unique(y))
    np.testing.assert_array_equal(model.decision_function(X), lists.decision_function(X))


def test_sets_through_a_pipeline(digits):
    X, y = digits
    steps = [("scale", StandardScaler()), ("sets", SetFeedbackClassifier(set_size=3, random_state=0))]
    model = SetPipeline(steps).fit(X[:900], y[:900])
    assert model.score(X[900:], y[900:]) > 0.85
    sets = model.predict_set(X[900:], 4)
    assert sets.shape == (len(X) - 900, 4)
    before = model[-1].learner_.round
    decisions = model.decide(X[900:])
    assert set(decisions.labels.ravel()) <= set(y)
    hits = (decisions.labels == y[900:, None]).any(axis=1)
    assert model.update(decisions, hits) is model
    assert model[-1].learner_.round == before + len(hits)
    model.partial_fit(X[:5], [True] * 5, shown=[[label] for label in y[:5]])
    some = model.decide(X[:10], eligible=["d1", "d2", "d3"], set_size=2)
    assert set(some.labels.ravel()) <= {"d1", "d2", "d3"}


# ---------------------------------------------------------------- whatever people keep sets and answers in


@pytest.fixture(scope="module")
def seen(digits):
    """Sets of two that somebody else showed, and whether they hit."""
    X, y = digits
    random = np.random.default_rng(2)
    names = np.unique(y)
    shown = [random.choice(names, 2, replace=False).tolist() for _ in range(300)]
    return X[:300], shown, [label in two for label, two in zip(y, shown, strict=False)], names


def learnt(X, shown, hit, names, **more):
    model = SetFeedbackClassifier(random_state=0).partial_fit(X, hit, shown=shown, classes=names, **more)
    return model.predict_proba(X[:20])


def places(shown):
    return {"first": [two[0] for two in shown], "second": [two[1] for two in shown]}


@pytest.mark.parametrize(
    "form",
    [
        np.array,
        lambda shown: np.array(shown, dtype=object),
        lambda shown: [tuple(two) for two in shown],
        lambda shown: [set(two) for two in shown],
        lambda shown: (two for two in shown),
        pd.Series,
        pl.Series,
        pd.DataFrame,
        lambda shown: pd.DataFrame(places(shown), index=range(5, 305)).astype("category"),
        lambda shown: pl.DataFrame(places(shown)),
        lambda shown: pd.DataFrame({"sets": shown}),
        lambda shown: pl.DataFrame({"sets": shown}),
    ],
)
def test_sets_in_every_form(seen, form):
    X, shown, hit, names = seen
    np.testing.assert_array_equal(learnt(X, form(shown), hit, names), learnt(X, shown, hit, names))


@pytest.mark.parametrize(
    "form",
    [
        np.array,
        lambda hit: np.array(hit, float),
        pd.Series,
        lambda hit: pd.Series(hit, index=range(5, 305)),
        lambda hit: pd.Series(hit, dtype="boolean"),
        pl.Series,
        lambda hit: pd.DataFrame({"hit": hit}),
        lambda hit: pl.DataFrame({"hit": hit}),
    ],
)
def test_answers_in_every_form(seen, form):
    X, shown, hit, names = seen
    np.testing.assert_array_equal(learnt(X, shown, form(hit), names), learnt(X, shown, hit, names))


@pytest.mark.parametrize(
    "form",
    [
        lambda hit: pd.Series(hit, dtype="boolean"),
        lambda hit: pd.Series(hit, dtype=float),
        pl.Series,
        list,
        lambda hit: pd.DataFrame({"hit": pd.Series(hit, dtype=object)}),
    ],
)
def test_rows_without_an_answer_teach_nothing(seen, form):
    X, shown, hit, names = seen
    some = [None if i % 3 == 0 else bit for i, bit in enumerate(hit)]
    which = [i for i in range(300) if i % 3]
    alone = learnt(X, shown, form(some), names)
    model = SetFeedbackClassifier(random_state=0)
    model.partial_fit(X[which], [hit[i] for i in which], shown=[shown[i] for i in which], classes=names)
    np.testing.assert_array_equal(alone, model.predict_proba(X[:20]))


def test_propensities_in_a_series_with_gaps(seen):
    X, shown, hit, names = seen
    odds = pd.Series(np.where(np.arange(300) % 2, 1 / 45, np.nan), index=range(5, 305))
    whole = [None if value != value else value for value in odds]
    np.testing.assert_array_equal(
        learnt(X, shown, hit, names, propensity=odds), learnt(X, shown, hit, names, propensity=whole)
    )


def test_a_frame_of_several_columns_is_no_column_of_answers(seen):
    X, shown, hit, names = seen
    with pytest.raises(
        InvalidInput, match="frame of SetFeedbackClassifier must be one with a single column, got"
    ):
        learnt(X, shown, pd.DataFrame({"a": hit, "b": hit}), names)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_a_column_transformer_before_it(frame, output):
    """Numbers scaled, gaps filled, words to columns: decide, update and predict_set take the frame itself."""
    X, y = people(400)
    X = frame(X)
    before = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        (OneHotEncoder(sparse_output=False), ["city"]),
    ).set_output(transform=output)
    last = SetFeedbackClassifier(set_size=2, passes=5, random_state=0)
    model = SetPipeline([("before", before), ("sets", last)]).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model[-1].n_features_in_ == 4
    decisions = model.decide(X)
    hits = (decisions.labels == y[:, None]).any(axis=1)
    model.update(decisions, pl.Series(hits) if frame is pl.DataFrame else pd.Series(hits))
    assert model[-1].learner_.round == 400 * 6
    found = model.predict_set(X)
    assert (found[:, 0] == model.predict(X)).all()
    shown = frame({"first": found[:, 0], "second": found[:, 1]})
    model.partial_fit(X, (found == y[:, None]).any(axis=1), shown=shown)
    again = clone(model).fit(X, y)
    assert again.predict_set(X, set_size=1).shape == (400, 1)


def test_sparse_output_of_a_column_transformer():
    X, y = people(400)
    before = make_column_transformer((OneHotEncoder(), ["city"]), sparse_threshold=1.0)
    last = SetFeedbackClassifier(set_size=2, random_state=0)
    model = SetPipeline([("before", before), ("sets", last)]).fit(X, y)
    assert model[-1].learner_.inputs.layout.n_sparse
    decisions = model.decide(X)
    model.update(decisions, (decisions.labels == y[:, None]).any(axis=1))
    assert model.predict_set(X).shape == (400, 2)


@pytest.mark.parametrize("learner", [sa.SetLogit, sa.SetLogit(n_labels=3)])
def test_a_learner_is_named(learner):
    X, y = people(30)
    model = SetFeedbackClassifier(learner)
    with pytest.raises(
        InvalidInput, match="learner of superarm must be a name with parameters, as in 'set-logit:cov"
    ):
        model.fit(X, y)


def test_columns_that_are_left_out_are_told():
    X = pd.DataFrame({"age": range(60), "month": pd.period_range("2024-01", periods=60, freq="M")})
    with pytest.warns(
        sa.ColumnWarning, match=r"column 'month' cannot be read \(of type Period\); it is left out"
    ):
        SetFeedbackClassifier(passes=1, random_state=0).fit(X, [0, 1] * 30)
