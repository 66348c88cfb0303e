"""SetFeedbackClassifier: a classifier that is told only whether the right label was in a set it chose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from superarm._types import Array
from superarm.data.columns import Columns
from superarm.data.encoding import is_matrix
from superarm.data.rows import Rows
from superarm.data.tables import columns_of, is_frame, is_named_rows
from superarm.decisions.decision import Decision
from superarm.decisions.decisions import Decisions
from superarm.errors import FeedbackError, InvalidInput
from superarm.learners.predictions import probabilities
from superarm.learners.registry import make, parse
from superarm.sklearn.arguments import class_codes, one_column, row_count, shown_sets
from superarm.sklearn.scorer import log_loss

if TYPE_CHECKING:
    from superarm.learners import Learner


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
                the right label was among those (rows without an answer, ``None`` or missing, teach nothing).
            shown: the labels that somebody else showed: a list for each row, or a data frame with a column for each
                place. scikit-learn routes it: ``model.set_fit_request(shown=True)``.
            propensity: the probability of each set, where it is known.
            classes: all labels, where not every one of them was shown.
        """
        if self.passes < 1:
            raise InvalidInput.must("passes", "SetFeedbackClassifier", "at least 1", self.passes)
        random = check_random_state(self.random_state)
        if shown is not None:
            sets, X = shown_sets(shown), self._checked(X, reset=True)
            every = [label for labels in sets for label in labels] if classes is None else classes
            self._begin(np.unique(np.asarray(every)), X, random)
            X = self._in_learner_layout(X)
            learner = self._fitted_learner()
            for turn in range(self.passes):
                learner.anneal(1.0 - turn / self.passes, self.passes)
                order = random.permutation(row_count(X)) if self.shuffle else None
                self._learn_sets(X, sets, y, propensity, order)
            learner.anneal(1.0, self.passes)
            return self
        X, y = self._validated(X, y, reset=True)
        self._begin(np.unique(y), X, random)
        codes, X = np.searchsorted(self.classes_, y), self._in_learner_layout(X)
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
        """Go on learning from rows X, once, in order, answered by y; the first call must say all ``classes``.

        ``X``, ``y``, ``shown`` and ``propensity`` are as in `fit`.
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
            self._learn_sets(self._in_learner_layout(X), shown_sets(shown), y, propensity, None)
        return self

    def _learn_sets(self, X: Any, sets: list[list[Any]], hit: Any, propensity: Any, order: Any) -> None:
        """One pass over sets that somebody else showed."""
        learner = self._fitted_learner()
        if not learner.learns_from_given:
            wanted = "one of given sets, as set-logit"
            raise FeedbackError.must("learner", "SetFeedbackClassifier", wanted, self.learner)
        bits = one_column(hit)
        propensities = [None] * len(sets) if propensity is None else one_column(propensity)
        n = row_count(X)
        if not len(sets) == len(bits) == len(propensities) == n:
            got = f"{n} rows, {len(sets)} sets, {len(bits)} answers, {len(propensities)} propensities"
            raise InvalidInput.must("shown and y", "SetFeedbackClassifier", "one for each row of X", got)
        given, answers = list[Decision](), list[Any]()
        for i in range(n) if order is None else order:
            if bits[i] is not None:
                codes = self._codes(np.asarray(sets[i]), "shown")
                row = X.row(i) if isinstance(X, Rows) else X[[i]] if hasattr(X, "tocsr") else X[i]
                given.append(Decision.given(row, learner.known.public(codes), propensities[i]))
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
        return -log_loss(self, X, y, shown_sets(shown), sample_weight)

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
        return self._fitted_learner().decide_many(self._rows(X), **how)

    def update(self, decisions: Decisions, hits: Any) -> SetFeedbackClassifier:
        """Learn from the answers, ``hits``, to the ``decisions`` of `decide`; ``None`` where none came."""
        self._fitted_learner().update_many(decisions, hits)
        return self

    # ------------------------------------------------------------ predictions

    def decision_function(self, X: Any) -> Array:
        """The scores of all labels for every row of X; of two labels, the second's minus the first's."""
        X = self._rows(X)
        if self.learner_ is None:
            return np.zeros(row_count(X))
        s = self.learner_.scores(X).astype(np.float64)
        return np.asarray(s[:, 1] - s[:, 0] if len(self.classes_) == 2 else s)

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of all labels for rows X: the learner's own, or the softmax of its scores."""
        X = self._rows(X)
        return np.ones((row_count(X), 1)) if self.learner_ is None else probabilities(self.learner_.scores(X))

    def predict(self, X: Any) -> Array:
        """The best label for every row of X."""
        X = self._rows(X)
        if self.learner_ is None:
            return np.full(row_count(X), self.classes_[0])
        return np.asarray(self.classes_[self.learner_.scores(X).argmax(axis=1)])

    def predict_set(
        self, X: Any, set_size: int | None = None, *, coverage: float | None = None
    ) -> Array | list[Array]:
        """The best ``set_size`` labels for every row of X, best first.

        With a coverage, as many as it needs by its threshold as it is: a list of arrays. The default of a
        classifier with a promise is its own, unless a size is asked for.
        """
        X = self._rows(X)
        if self.learner_ is None:
            return np.full((row_count(X), 1), self.classes_[0])
        if coverage is not None or (self.coverage is not None and set_size is None):
            sets = self.learner_.predict_set(X, set_size, coverage=coverage)
            return [self.classes_[self.learner_.known.numbers(labels, "X", "predict_set")] for labels in sets]
        size = min(self._largest_set() if set_size is None else set_size, len(self.classes_))
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
        return self._in_learner_layout(self._checked(X, reset=False))

    def _named(self, X: Any, *, reset: bool) -> bool:
        """Whether rows have names that matter: words, dates or missing values among the columns, or dicts."""
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

    def _in_learner_layout(self, X: Any) -> Any:
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

    def _largest_set(self) -> int:
        """How many labels are shown, at most."""
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
            size = 1 if parse(self.learner)[0].single_label else min(self._largest_set(), most)
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
                columns = Columns.infer(X) if self.columns is None else self.columns
                self.learner_.use_columns(columns)

    def _fitted_learner(self) -> Learner:
        if self.learner_ is None:
            raise InvalidInput.must("classes", "SetFeedbackClassifier", "at least two", self.classes_)
        return self.learner_

    def _codes(self, y: Any, parameter: str) -> Any:
        return class_codes(self.classes_, y, parameter)

    def _run(self, X: Any, codes: Any, visit: Any) -> None:
        if self.learner_ is not None:
            self.learner_.run(self._in_learner_layout(X), codes, visit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
