"""SetFeedbackClassifier: a classifier that learns only whether the right label was in a set it chose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from superarm._types import Array
from superarm.data.columns import Columns
from superarm.data.encoding import is_matrix
from superarm.data.rows import Rows
from superarm.data.tables import columns_of, is_frame, is_named_rows
from superarm.decisions import Decision, Decisions
from superarm.errors import FeedbackError, InvalidInput, Unquoted
from superarm.learners.registry import make, parse
from superarm.losses import softmax
from superarm.parameters import check_int
from superarm.sklearn.arguments import (
    answered_sets,
    check_no_gaps,
    check_not_answers,
    checked_labels,
    class_indices,
    shown_sets,
)
from superarm.sklearn.scorer import log_loss
from superarm.sklearn.training import AnsweredSets, LabelledRows, TrainingRows, orders, try_on_held_out_rows

if TYPE_CHECKING:
    from superarm.learners import Learner


class SetFeedbackClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns only from whether the right label was in a set it chose.

    In ``fit`` and ``partial_fit`` the learner is told of y only the answer to that question (unless it is one with full
    information, such as ``"softmax"``). `fit` itself looks at labels of rows held out, for ``passes`` and ``coverage``.

    Args:
        learner: a name as on the command line: ``"set-logit"``, ``"mc-dbf:gamma=0.2"``, …
        set_size: how many labels to show, 3 by default; fewer if there are not more than that. With
            ``coverage`` the most, and all by default.
        coverage: show as few labels as needed so that the right one is among them so often, 0.95 say
            (docs/coverage.md). `fit` sets its threshold on rows that have not been learnt: it learns up to six
            times as long.
        passes: how often `fit` goes through the rows, with new sets each time. One pass is tried beside them, on
            four rows in five, and kept if it predicts the others better: several may learn noise by heart.
        shuffle: visit them in a random order.
        random_state: for the order and for the sets.
        columns: what the columns of X are, if it is a data frame or a list of dicts: `superarm.Columns`, a file of
            columns, or a model file. Left out, they are inferred from the first rows of `fit`; ``Columns.infer(X,
            kinds={"code": "words"})`` declares some kinds, and leaves the others to X.

    Attributes:
        classes_: the labels.
        learner_: the learner inside, with everything that superarm's learners can do.
        passes_: how often `fit` went through the rows.
        fitted_with_shown_: whether the last ``y`` it learnt from were answers about ``shown`` sets.
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
            shown: the labels that another system showed: a list for each row, or a data frame with a column for each
                place. scikit-learn routes it: ``model.set_fit_request(shown=True)``.
            propensity: the probability of each set, where it is known.
            classes: all labels, where not every one of them was shown.
        """
        if self.passes < 1:
            raise InvalidInput.must("passes", "SetFeedbackClassifier", "at least 1", self.passes)
        random = check_random_state(self.random_state)
        X = self._checked(X, reset=True)
        sets = None if shown is None else shown_sets(shown)
        if sets is None:
            y = checked_labels(y, X)
            self._make_learner(y, X, random)
        else:
            self._make_learner(list(chain(*sets)) if classes is None else classes, X, random)
        learner = self.learner_
        data = self._training_rows(X, y, sets, propensity)
        self.passes_, calibration = try_on_held_out_rows(learner, data, self.passes, shuffle=self.shuffle)
        data.learn(learner, orders(len(data), self.passes_, random, shuffle=self.shuffle))
        if calibration is not None:  # its rule promises a coverage
            kernel: Any = learner.ensure_core().kernel
            kernel.calibrate(calibration.threshold, calibration.counts, learner.round)
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
        """Continue to learn from rows X, once, in order, answered by y; the first call needs all ``classes``.

        ``X``, ``y``, ``shown`` and ``propensity`` are as in `fit`.
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise InvalidInput.must("classes", "SetFeedbackClassifier", "given with the first call", classes)
        X = self._checked(X, reset=first)
        sets = None if shown is None else shown_sets(shown)
        if sets is None:
            y = checked_labels(y, X)
        if first:
            self._make_learner(classes, X, check_random_state(self.random_state))
        elif classes is not None and not np.array_equal(self.classes_, np.unique(np.asarray(classes))):
            wanted = f"those of the first call, {self.classes_}"
            raise InvalidInput.must("classes", "partial_fit", wanted, classes)
        data = self._training_rows(X, y, sets, propensity)
        data.learn_pass(self.learner_, np.arange(len(data)))
        return self

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, shown: Iterable[Iterable[Any]] | None = None
    ) -> float:
        """Return the share of rows X whose best label is y; with ``shown``, the mean log-likelihood of the answers y.

        Args:
            X: the rows.
            y: their labels; or with ``shown``, whether the right one was among those.
            sample_weight: of each row.
            shown: the labels that were shown; scikit-learn routes it: ``model.set_score_request(shown=True)``.
        """
        if shown is None:
            check_is_fitted(self, "learner_")
            check_not_answers(self.classes_, y, fitted_with_shown=self.fitted_with_shown_)
            check_no_gaps(y)
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
        rows = self._rows(X)
        return self.learner_.decide_many(rows, eligible=eligible, set_size=set_size, coverage=coverage)

    def update(self, decisions: Decisions, hits: Any) -> SetFeedbackClassifier:
        """Learn from the answers, ``hits``, to the ``decisions`` of `decide`; ``None`` where none came."""
        check_is_fitted(self, "learner_")
        self.learner_.update_many(decisions, hits)
        return self

    # ------------------------------------------------------------ predictions

    def decision_function(self, X: Any) -> Array:
        """Return the scores of all labels for every row of X; of two labels, the second's minus the first's."""
        s = self._scores(X).astype(np.float64)
        return np.asarray(s[:, 1] - s[:, 0] if len(self.classes_) == 2 else s)

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of all labels for rows X: the softmax of the learner's scores."""
        return softmax(self._scores(X))

    def predict(self, X: Any) -> Array:
        """Return the best label for every row of X."""
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_set(
        self, X: Any, set_size: int | None = None, *, coverage: float | None = None
    ) -> Array | list[Array]:
        """Return the best ``set_size`` labels for every row of X, best first.

        With a coverage, as many as it needs by its threshold as it is: a list of arrays. The default of a
        classifier with a promise is its own, unless a size is asked for. Without a promise, as many
        as its probabilities need.
        """
        if coverage is not None or (self.coverage is not None and set_size is None):
            rows = self._rows(X)
            learner = self.learner_
            sets = learner.predict_set(rows, set_size, coverage=coverage)
            return [self.classes_[learner.vocabulary.encode(labels, "X", "predict_set")] for labels in sets]
        size = self._max_set_size() if set_size is None else set_size
        check_int("set_size", "predict_set", size, 1)
        order = np.argsort(-self._scores(X), axis=1, kind="stable")
        return np.asarray(self.classes_[order[:, :size]])

    # ------------------------------------------------------------ inside

    def _scores(self, X: Any) -> Array:
        rows = self._rows(X)  # first: it may not be fitted
        return self.learner_.scores(rows)

    def _rows(self, X: Any) -> Rows:
        """Return rows X of a fitted classifier, as its learner reads them."""
        check_is_fitted(self, "learner_")
        return self._learner_rows(self._checked(X, reset=False))

    def _training_rows(self, X: Any, y: Any, sets: list[list[Any]] | None, propensity: Any) -> TrainingRows:
        """Return what there is to learn: rows with labels, or with sets where these were shown."""
        rows = self._learner_rows(X)
        self.fitted_with_shown_ = sets is not None
        if sets is None:
            return LabelledRows(rows, class_indices(self.classes_, y, "y"))
        if not self.learner_.learns_from(Decision.given(None, self.learner_.vocabulary.decode([0]))):
            wanted = "one that learns from given sets, such as set-logit"
            raise FeedbackError.must("learner", "SetFeedbackClassifier", wanted, self.learner)
        answered, *columns = answered_sets(self.classes_, sets, y, propensity, len(rows))
        return AnsweredSets(rows.take(answered), *columns)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return rows X, checked by scikit-learn; rows with names stay as they are."""
        if not self._has_named_columns(X, reset=reset):
            return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=(np.float64, np.float32))
        if reset:
            names = list(columns_of(X)[0])
            self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        return X

    def _has_named_columns(self, X: Any, *, reset: bool) -> bool:
        """Return whether column names matter: with words, dates or missing values, or rows that are dicts."""
        named = is_named_rows(X)
        if reset:
            return named and (not is_frame(X) or self.columns is not None or not is_matrix(X))
        if self.learner_.columns is not None and not named:
            names = ", ".join(map(str, self.feature_names_in_[:6])) + ", …" * (self.n_features_in_ > 6)
            wanted, got = f"rows with names ({names}), as it was fitted", Unquoted("rows without names")
            raise InvalidInput.must("X", "SetFeedbackClassifier", wanted, got)
        return self.learner_.columns is not None

    def _learner_rows(self, X: Any) -> Rows:
        """Return rows that are dense or sparse, as the learner's first rows were."""
        layout = self.learner_.inputs.layout
        sparse = hasattr(X, "tocsr")
        if layout is not None and not is_named_rows(X) and sparse != (layout.n_sparse > 0):
            from scipy.sparse import csr_matrix

            X = X.toarray() if sparse else csr_matrix(X)
        return self.learner_.inputs.encode_rows(X, grow=False)

    def _max_set_size(self) -> int:
        """Return how many labels are shown at most."""
        usual = 3 if self.coverage is None else len(self.classes_)
        return usual if self.set_size is None else self.set_size

    def _make_learner(self, labels: Any, X: Any, random: np.random.RandomState) -> None:
        """Make a new learner for these labels and rows like X."""
        if self.set_size is not None:
            check_int("set_size", "SetFeedbackClassifier", self.set_size, 1)
        classes = np.unique(np.asarray(labels))
        if len(classes) < 2:
            raise InvalidInput.must(
                "classes", "SetFeedbackClassifier", "more than one class", classes.tolist()
            )
        self.classes_ = classes
        promise = {} if self.coverage is None else {"coverage": self.coverage}
        most = len(classes) - (not promise)
        named = classes.dtype.kind in "iuU" or all(type(label) is str for label in classes)
        self.learner_: Learner = make(
            self.learner,
            **({"labels": classes.tolist()} if named else {"n_labels": len(classes)}),
            n_features=None if is_named_rows(X) else X.shape[1],
            set_size=1 if parse(self.learner)[0].shows_one_label else min(self._max_set_size(), most),
            **promise,
            seed=int(random.randint(2**31 - 1)),
        )
        if is_named_rows(X):
            inputs = self.learner_.inputs
            columns = inputs.infer_columns(X) if self.columns is None else Columns.read(self.columns)
            inputs.use_columns(columns)  # the core is made later: `prepare_passes` may choose its size

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
