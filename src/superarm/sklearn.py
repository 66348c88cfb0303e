"""superarm in scikit-learn: a classifier that learns from yes/no answers about sets.

>>> from sklearn.datasets import load_digits
>>> from superarm.sklearn import SetFeedbackClassifier
>>> X, y = load_digits(return_X_y=True)
>>> model = SetFeedbackClassifier(set_size=3, random_state=0).fit(X, y)
>>> model.score(X, y) > 0.9
True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.data.columns import Columns
from superarm.data.encoding import is_matrix
from superarm.data.inference import SURE
from superarm.data.rows import Rows
from superarm.data.tables import columns_of, is_frame, is_named_rows
from superarm.data.values import is_missing
from superarm.decisions.decision import Decision
from superarm.decisions.decisions import Decisions
from superarm.errors import FeedbackError, InvalidInput
from superarm.extras import need
from superarm.learners.predictions import probabilities
from superarm.learners.registry import make, parse
from superarm.losses import set_nll

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import NotFittedError
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError:
    need("sklearn")
    raise

if TYPE_CHECKING:
    from superarm.learners import Learner

__all__ = ["SetFeedbackClassifier", "SetPipeline", "SetScorer", "make_set_pipeline"]

MEASURES = ("log_loss", "hit_rate")


class SetFeedbackClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is told only whether the right label was in a set it chose.

    In ``fit`` and ``partial_fit``, y answers that question and is used for nothing else (unless the
    learner is one with full information, such as ``"softmax"``).

    Args:
        learner: a name as on the command line: ``"set-logit"``, ``"mc-dbf:gamma=0.2"``, …
        set_size: how many labels to show, 3 by default; fewer if there are not more than that. With
            ``coverage`` the most, and all by default.
        coverage: show as few labels as needed so that the right one is among them so often, 0.95 say
            (docs/coverage.md).
        passes: how often `fit` goes through the rows, with new sets each time.
        shuffle: visit them in a random order.
        random_state: for the order and for the sets.
        columns: what the columns of X are, if it is a data frame or a list of dicts: `superarm.Columns`, a file of
            columns, or a model file. Left out, the first rows that `fit` sees tell.

    Attributes:
        classes_: the labels.
        learner_: the learner inside, with everything that superarm's learners can do.
    """

    def __init__(
        self,
        learner: str = "set-logit",
        *,
        set_size: int | None = None,
        coverage: float | None = None,
        passes: int = 20,
        shuffle: bool = True,
        random_state: Any = None,
        columns: Any = None,
    ) -> None:
        self.learner = learner
        self.set_size = set_size
        self.coverage = coverage
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state
        self.columns = columns

    # ------------------------------------------------------------ learning

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        shown: Iterable[Iterable[Any]] | None = None,
        propensity: Iterable[float | None] | None = None,
        classes: Sequence[Any] | None = None,
    ) -> SetFeedbackClassifier:
        """Learn from scratch.

        Args:
            X: the rows.
            y: their labels, which only answer whether they were in the sets that it shows; or with ``shown``, whether
                the right label was among those (rows without an answer, ``None`` or a gap, teach nothing).
            shown: the labels that somebody else showed: a list for each row, or a data frame with a column for each
                place. scikit-learn routes it: ``model.set_fit_request(shown=True)``.
            propensity: the probability of each set, where it is known.
            classes: all labels, where not every one of them was shown.
        """
        if self.passes < 1:
            raise InvalidInput.must("passes", "SetFeedbackClassifier", "at least 1", self.passes)
        random = check_random_state(self.random_state)
        if shown is not None:
            sets, X = _sets(shown), self._checked(X, reset=True)
            every = [label for labels in sets for label in labels] if classes is None else classes
            self._begin(np.unique(np.asarray(every)), X, random)
            X = self._as_learnt(X)
            learner = self._whole_learner()
            for turn in range(self.passes):
                learner.anneal(1.0 - turn / self.passes, self.passes)
                order = random.permutation(_length(X)) if self.shuffle else None
                self._learn_sets(X, sets, y, propensity, order)
            learner.anneal(1.0, self.passes)
            return self
        X, y = self._validated(X, y, reset=True)
        self._begin(np.unique(y), X, random)
        codes, X = np.searchsorted(self.classes_, y), self._as_learnt(X)
        for _ in range(self.passes):
            self._run(X, codes, random.permutation(len(codes)) if self.shuffle else None)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Sequence[Any] | None = None,
        *,
        shown: Iterable[Iterable[Any]] | None = None,
        propensity: Iterable[float | None] | None = None,
    ) -> SetFeedbackClassifier:
        """Go on learning from rows X, once, in order, answered by y; arguments as for `fit`.

        Args:
            X: the rows.
            y: their labels; or with ``shown``, whether the right one was among those.
            classes: all labels, with the first call.
            shown: the labels that somebody else showed.
            propensity: the probability of each set.
        """
        first = self._first(classes)
        if shown is None:
            X, y = self._validated(X, y, reset=first)
        else:
            X = self._checked(X, reset=first)
        if first:
            self._begin(np.unique(np.asarray(classes)), X, check_random_state(self.random_state))
        elif classes is not None and not np.array_equal(self.classes_, np.unique(np.asarray(classes))):
            wanted = f"those of the first call, {self.classes_}"
            raise InvalidInput.must("classes", "partial_fit", wanted, classes)
        if shown is None:
            self._run(X, self._codes(y, "y"), None)
        else:
            self._learn_sets(self._as_learnt(X), _sets(shown), y, propensity, None)
        return self

    def _learn_sets(self, X: Any, sets: list[list[Any]], hit: Any, propensity: Any, order: Any) -> None:
        """One pass over sets that somebody else showed."""
        learner = self._whole_learner()
        if not learner.learns_from_given:
            wanted = "one of given sets, as set-logit"
            raise FeedbackError.must("learner", "SetFeedbackClassifier", wanted, self.learner)
        bits = _column(hit)
        odds = [None] * len(sets) if propensity is None else _column(propensity)
        n = _length(X)
        if not len(sets) == len(bits) == len(odds) == n:
            got = f"{n} rows, {len(sets)} sets, {len(bits)} answers, {len(odds)} propensities"
            raise InvalidInput.must("shown and y", "SetFeedbackClassifier", "one for each row of X", got)
        given, answers = list[Decision](), list[Any]()
        for i in range(n) if order is None else order:
            if bits[i] is not None:
                codes = self._codes(np.asarray(sets[i]), "shown")
                row = X.row(i) if isinstance(X, Rows) else X[[i]] if hasattr(X, "tocsr") else X[i]
                given.append(Decision.given(row, learner.known.public(codes), odds[i]))
                answers.append(bits[i])
        learner.update_many(given, answers)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, shown: Iterable[Iterable[Any]] | None = None
    ) -> float:
        """The share of rows X whose best label is y; with ``shown``, the mean log-likelihood of the answers y.

        Args:
            X: the rows.
            y: their labels; or with ``shown``, whether the right one was among those.
            sample_weight: of each row.
            shown: the labels that were shown; scikit-learn routes it: ``model.set_score_request(shown=True)``.
        """
        if shown is None:
            return float(super().score(X, y, sample_weight))
        return -_log_loss(self, X, y, _sets(shown), sample_weight)

    def decide(
        self,
        X: Any,
        *,
        eligible: Iterable[Any] | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
    ) -> Decisions:
        """Choose a set for every row of X, to be shown; `update` takes the answers, now or days later.

        Args:
            X: a matrix, or a data frame.
            eligible: the only labels that may be shown.
            set_size: how many to show; with a promised coverage, the most.
            coverage: another promise, for these rows.
        """
        how: dict[str, Any] = {"eligible": eligible, "set_size": set_size, "coverage": coverage}
        return self._whole_learner().decide_many(self._rows(X), **how)

    def update(self, decisions: Decisions, hits: Any) -> SetFeedbackClassifier:
        """Learn from the answers, ``hits``, to the ``decisions`` of `decide`; ``None`` where none came."""
        self._whole_learner().update_many(decisions, hits)
        return self

    # ------------------------------------------------------------ predictions

    def decision_function(self, X: Any) -> np.ndarray[Any, Any]:
        """The scores of all labels for every row of X; of two labels, the second's minus the first's."""
        X = self._rows(X)
        if self.learner_ is None:
            return np.zeros(_length(X))
        s = self.learner_.scores(X).astype(np.float64)
        return np.asarray(s[:, 1] - s[:, 0] if len(self.classes_) == 2 else s)

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """The probabilities of all labels for rows X: the learner's own, or the softmax of its scores."""
        X = self._rows(X)
        return np.ones((_length(X), 1)) if self.learner_ is None else probabilities(self.learner_.scores(X))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The best label for every row of X."""
        X = self._rows(X)
        if self.learner_ is None:
            return np.full(_length(X), self.classes_[0])
        return np.asarray(self.classes_[self.learner_.scores(X).argmax(axis=1)])

    def predict_set(
        self, X: Any, set_size: int | None = None, *, coverage: float | None = None
    ) -> np.ndarray[Any, Any] | list[np.ndarray[Any, Any]]:
        """The best ``set_size`` labels for every row of X, best first.

        With a coverage, as many as it needs by its threshold as it is: a list of arrays. The default of a
        classifier with a promise is its own, unless a size is asked for.
        """
        X = self._rows(X)
        if self.learner_ is None:
            return np.full((_length(X), 1), self.classes_[0])
        if coverage is not None or (self.coverage is not None and set_size is None):
            sets = self.learner_.predict_set(X, set_size, coverage=coverage)
            return [self.classes_[self.learner_.known.numbers(one, "X", "predict_set")] for one in sets]
        size = min(self._most() if set_size is None else set_size, len(self.classes_))
        order = np.argsort(-self.learner_.scores(X), axis=1, kind="stable")
        return np.asarray(self.classes_[order[:, :size]])

    # ------------------------------------------------------------ inside

    def _first(self, classes: Any) -> bool:
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise InvalidInput.must("classes", "SetFeedbackClassifier", "given with the first call", classes)
        return first

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        if self._named(X, reset=reset):
            X, y = self._checked(X, reset=reset), column_or_1d(y, warn=True)
            check_classification_targets(y)
            if len(X) != len(y):
                raise InvalidInput.must("y", "SetFeedbackClassifier", f"{len(X)} labels", f"{len(y)}")
            return X, y
        X, y = validate_data(
            self, X, y, reset=reset, accept_sparse="csr", dtype=(np.float64, np.float32), multi_output=False
        )
        check_classification_targets(y)
        return X, column_or_1d(y)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "classes_")
        return self._as_learnt(self._checked(X, reset=False))

    def _named(self, X: Any, *, reset: bool) -> bool:
        """Whether rows have names that matter: words, dates or gaps among the columns, or dicts."""
        if not is_named_rows(X):
            return False
        learner = None if reset else getattr(self, "learner_", None)
        if learner is None:
            return not is_frame(X) or self.columns is not None or not is_matrix(X)
        return learner.columns is not None

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if not self._named(X, reset=reset):
            return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=(np.float64, np.float32))
        if reset:
            names = list(columns_of(X)[0])
            self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        return X

    def _as_learnt(self, X: Any) -> Any:
        """Dense or sparse, as the learner's rows are."""
        learner: Learner | None = self.learner_
        if is_named_rows(X):
            return np.zeros((len(X), 1)) if learner is None else learner.inputs.rows(X, grow=False)
        if isinstance(X, Rows):
            return X
        layout = None if learner is None else learner.inputs.layout
        if layout is None or hasattr(X, "tocsr") == (layout.width > 0):
            return X
        from scipy.sparse import csr_matrix

        return csr_matrix(X) if layout.width else X.toarray()

    def _most(self) -> int:
        """The labels that are shown, at most."""
        usual = 3 if self.coverage is None else len(self.classes_)
        return usual if self.set_size is None else self.set_size

    def _begin(self, classes: Any, X: Any, random: Any) -> None:
        if self.set_size is not None and (
            not isinstance(self.set_size, int | np.integer) or self.set_size < 1
        ):
            wanted = "a whole number of at least 1"
            raise InvalidInput.must("set_size", "SetFeedbackClassifier", wanted, self.set_size)
        self.classes_ = classes
        self.learner_: Learner | None = None  # of one class nothing is to be learnt
        if len(classes) > 1:
            promise = {} if self.coverage is None else {"coverage": self.coverage}
            most = len(classes) - (not promise)
            size = 1 if parse(self.learner)[0].single_label else min(self._most(), most)
            named = classes.dtype.kind in "iuU" or all(type(label) is str for label in classes)
            labels = {"labels": classes.tolist()} if named else {"n_labels": len(classes)}
            self.learner_ = make(
                self.learner,
                **labels,
                n_features=None if is_named_rows(X) else X.shape[1],
                set_size=size,
                **promise,
                seed=int(random.randint(2**31 - 1)),
            )
            if is_named_rows(X):
                told = Columns.look(X, everything=len(X) < SURE) if self.columns is None else self.columns
                self.learner_.use_columns(told)

    def _whole_learner(self) -> Learner:
        if self.learner_ is None:
            raise InvalidInput.must("classes", "SetFeedbackClassifier", "at least two", self.classes_)
        return self.learner_

    def _codes(self, y: Any, parameter: str) -> Any:
        return _codes(self.classes_, y, parameter)

    def _run(self, X: Any, codes: Any, visit: Any) -> None:
        if self.learner_ is not None:
            self.learner_.run(self._as_learnt(X), codes, visit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _sets(shown: Any) -> list[list[Any]]:
    """The labels of every row; a data frame has a column for each place, with gaps, or one of lists."""
    if is_frame(shown):
        columns = [shown[name].to_list() for name in shown.columns]
        if len(columns) == 1 and any(np.ndim(cell) for cell in columns[0]):
            return [list(labels) for labels in columns[0]]
        return [[label for label in row if not is_missing(label)] for row in zip(*columns, strict=True)]
    shown = list(shown)
    if any(isinstance(labels, str) for labels in shown):
        text = next(labels for labels in shown if isinstance(labels, str))
        raise InvalidInput.must("shown", "SetFeedbackClassifier", "a list of labels for each row", text)
    return [list(labels) for labels in shown]


def _column(values: Any) -> list[Any]:
    """One value for every row, ``None`` for a gap; a data frame of one column will do."""
    if is_frame(values):
        if len(values.columns) != 1:
            raise InvalidInput.must("column", "SetFeedbackClassifier", "one", list(values.columns))
        values = values[values.columns[0]]
    return [None if is_missing(value) else value for value in values]


def _codes(classes: Any, y: Any, parameter: str) -> Any:
    """The places of labels among the classes."""
    codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    known = classes[codes] == y
    if not np.all(known):
        unknown = np.asarray(y)[~known][0]
        raise InvalidInput.must(parameter, "SetFeedbackClassifier", "made of its classes", unknown)
    return codes


# ---------------------------------------------------------------- judged by bits


def _log_loss(model: Any, X: Any, hit: Any, sets: list[list[Any]], sample_weight: Any = None) -> float:
    """The mean log loss of the answers; rows without one do not count."""
    logits = np.log(np.maximum(model.predict_proba(X), 1e-300))
    inside = np.zeros(logits.shape, bool)
    for i, labels in enumerate(sets):
        inside[i, _codes(model.classes_, np.asarray(labels), "shown")] = True
    bits = _column(hit)
    some = [i for i, bit in enumerate(bits) if bit is not None]
    told = np.array([bits[i] for i in some], bool)
    loss = set_nll(logits[some], inside[some], told, reduction="none")
    return float(np.average(loss, weights=None if sample_weight is None else np.asarray(sample_weight)[some]))


class SetScorer(BaseEstimator):  # type: ignore[misc]
    """Judge a classifier by sets that were shown, and whether the right label was among them.

    For ``scoring=`` of `cross_val_score`, `GridSearchCV` and the like, with scikit-learn's metadata routing on: it
    asks for ``shown``, and for ``propensity`` where that is given.

    Args:
        measure: ``"log_loss"``, of the answers to the sets that were shown, negative, as scikit-learn has it; or
            ``"hit_rate"``, what the classifier's own best labels would have got, estimated from those answers as
            `superarm evaluate` does (docs/evaluation.md); NaN where they cannot tell.
        set_size: of ``"hit_rate"``: how many labels it would show; as many as most sets have by default.
        uniform: of ``"hit_rate"``: the sets were drawn uniformly at random. Else it needs ``propensity``.
    """

    __metadata_request__score = {"shown": True, "propensity": True}  # noqa: RUF012 (scikit-learn reads it)

    def __init__(
        self, measure: str = "log_loss", *, set_size: int | None = None, uniform: bool = False
    ) -> None:
        self.measure, self.set_size, self.uniform = measure, set_size, uniform

    def __call__(
        self, estimator: Any, X: Any, y: Any, *, shown: Iterable[Iterable[Any]], propensity: Any = None
    ) -> float:
        """The score of a fitted classifier, or of a pipeline with one at its end; more is better.

        Args:
            estimator: it.
            X: rows.
            y: whether the right label was among the shown ones.
            shown: the labels that were shown.
            propensity: the probability of each set.
        """
        return self.score(estimator, X, y, shown=shown, propensity=propensity)

    def score(
        self, estimator: Any, X: Any, y: Any, *, shown: Iterable[Iterable[Any]], propensity: Any = None
    ) -> float:
        """The same; ``estimator``, ``X``, ``y``, ``shown`` and ``propensity`` as there."""
        if self.measure not in MEASURES:
            raise InvalidInput.must("measure", "SetScorer", f"one of {', '.join(MEASURES)}", self.measure)
        sets = _sets(shown)
        if self.measure == "log_loss":
            return -_log_loss(estimator, X, y, sets)
        return self._hit_rate(estimator, X, _column(y), sets, propensity)

    def _hit_rate(self, model: Any, X: Any, bits: list[Any], sets: list[list[Any]], propensity: Any) -> float:
        from superarm.logs import Log, Policy, evaluate, survey

        if propensity is None and not self.uniform:
            raise InvalidInput.must("propensity", "SetScorer", "given, or uniform=True", None)
        odds = [None] * len(sets) if propensity is None else _column(propensity)
        p = model.predict_proba(X)
        rows = [
            {"x": [0.0], "labels": _codes(model.classes_, np.asarray(labels), "shown").tolist(), "hit": hit}
            | {"propensity": chance, "p": row.tolist()}
            for labels, hit, chance, row in zip(sets, bits, odds, p, strict=True)
        ]
        log = Log(rows, uniform=self.uniform)
        facts = survey(log, labels=len(model.classes_))
        policy = Policy("it", probabilities="p", set_size=self.set_size or facts.set_size)
        best = evaluate(log, [policy], facts, holdout=None).verdicts[0].best
        return float("nan") if best is None else best.rate


def make_set_pipeline(*steps: Any) -> SetPipeline:
    """A `SetPipeline` of these steps, which get names of their own, as scikit-learn's make_pipeline gives.

    >>> from sklearn.preprocessing import StandardScaler
    >>> make_set_pipeline(StandardScaler(), SetFeedbackClassifier()).steps[0][0]
    'standardscaler'
    """
    return SetPipeline(make_pipeline(*steps).steps)


class SetPipeline(Pipeline):  # type: ignore[misc]
    """scikit-learn's Pipeline, with a SetFeedbackClassifier at its end and all that it can do.

    Its parameters (steps, transform_input, memory, verbose) are those of Pipeline.

    >>> from sklearn.preprocessing import StandardScaler
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    >>> steps = [("scale", StandardScaler()), ("sets", SetFeedbackClassifier(set_size=2, random_state=0))]
    >>> model = SetPipeline(steps).fit(X, ["a", "b", "c", "d"])
    >>> decisions = model.decide(X)
    >>> model.update(decisions, [True, False, True, None]).predict_set(X).shape
    (4, 2)
    """

    def decide(
        self,
        X: Any,
        *,
        eligible: Iterable[Any] | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
    ) -> Decisions:
        """Choose a set for every row of X, out of the steps before.

        ``eligible``, ``set_size`` and ``coverage`` are as there.
        """
        last: SetFeedbackClassifier = self[-1]
        return last.decide(self._before(X), eligible=eligible, set_size=set_size, coverage=coverage)

    def update(self, decisions: Decisions, hits: Any) -> SetPipeline:
        """Learn from the answers, ``hits``, to the ``decisions`` of `decide`."""
        self[-1].update(decisions, hits)
        return self

    def predict_set(
        self, X: Any, set_size: int | None = None, *, coverage: float | None = None
    ) -> np.ndarray[Any, Any] | list[np.ndarray[Any, Any]]:
        """The best labels for every row of X, best first; ``set_size`` and ``coverage`` as there."""
        last: SetFeedbackClassifier = self[-1]
        return last.predict_set(self._before(X), set_size, coverage=coverage)

    def partial_fit(self, X: Any, y: Any, **more: Any) -> SetPipeline:
        """Go on learning from X and y (and ``shown``, …: `SetFeedbackClassifier.partial_fit`); fit the steps before."""
        self[-1].partial_fit(self._before(X), y, **more)
        return self

    def _before(self, X: Any) -> Any:
        if len(self.steps) < 2:
            return X
        try:
            return self[:-1].transform(X)
        except NotFittedError as error:
            wanted = "fitted before it begins from sets (pipeline[:-1].fit(X))"
            raise InvalidInput.must("steps", "SetPipeline", wanted, str(error)) from error
