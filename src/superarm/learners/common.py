"""The part of a learner that is no algorithm: labels and parameters, rows that fit, predictions, copies."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from superarm.decision import Decision
from superarm.decisions import Decisions
from superarm.errors import FeedbackError, InvalidInput, WeightsOverflow
from superarm.explore.base import Rule
from superarm.kernels.held import Held
from superarm.kernels.linear import set_apart
from superarm.kernels.loop import Loop, Model
from superarm.labels import Label, Labels
from superarm.learners.answered import Answered
from superarm.learners.files import copied
from superarm.named import Names, has_words_or_gaps, is_frame, is_named_row, is_named_rows
from superarm.parameters import as_bit, whole
from superarm.rows import (
    Dense,
    Row,
    Rows,
    Sparse,
    SparseRow,
    as_row,
    as_rows,
    copy_of,
    densify,
    one_row,
    sparsify,
)

__all__ = ["Common", "Plan", "probabilities"]

Array = np.ndarray[Any, Any]
FLOAT32 = np.dtype(np.float32)  # one object: `is` takes a tenth of the time of ==


class Plan(NamedTuple):
    """How to show m of n labels: made once for each pair."""

    tables: Held
    m: int
    n_numbers: int  # that the rule writes down


class Common(ABC):
    """What `Learner` builds on. It knows no rule and no update."""

    feedback: ClassVar[tuple[str, ...]]
    single_label: ClassVar[bool]
    own_only: ClassVar[str]
    of: str  # as error messages name it
    known: Labels
    n_features: Any  # an int; None before the first row of a learner that was not told
    names: Names | None  # what stands where, if rows have names
    set_size: int
    round: int
    notes: dict[str, Any]
    id: str
    sparse: bool | None
    answered: Answered
    none: int | None = None  # the number of a label that may be the truth, but is never shown
    _loop: Loop
    _state: Any
    _scratch: Any

    @abstractmethod
    def _begin(self, sparse: bool) -> None: ...

    @abstractmethod
    def learns_from(self, decision: Decision) -> bool: ...

    # ------------------------------------------------------------ the state

    @property
    def state(self) -> Any:
        """What was learnt: a NamedTuple of arrays and numbers; ``None`` before the first row."""
        return self._state

    @state.setter
    def state(self, state: Any) -> None:
        self._state = state
        vars(self).pop("_model", None)

    @cached_property
    def _model(self) -> Held:
        """State and scratch as compiled code takes them."""
        return Held(Model(self._state, self._scratch, self._s))

    # ------------------------------------------------------------ labels and parameters

    @property
    def labels(self) -> tuple[Label, ...] | None:
        """The names of the labels, if they have names."""
        return self.known.names

    @property
    def n_labels(self) -> int:
        return self.known.count

    @property
    def params(self) -> dict[str, Any]:
        """The parameters it was made with, as JSON-ready values."""
        names = [
            name
            for cls in type(self).__mro__
            if "__init__" in vars(cls) and cls is not object
            for name, p in inspect.signature(vars(cls)["__init__"]).parameters.items()
            if p.kind is p.KEYWORD_ONLY
        ]
        values = {name: getattr(self, name) for name in dict.fromkeys(names)}
        for name, value in values.items():
            if isinstance(value, tuple | Rule):
                values[name] = value.to_dict() if isinstance(value, Rule) else list(value)
        return values

    @property
    def chosen(self) -> dict[str, Any]:
        """The parameters that are not the usual ones."""
        found = {}
        for cls in reversed(type(self).__mro__):
            if "__init__" in vars(cls) and cls is not object:
                for name, one in inspect.signature(vars(cls)["__init__"]).parameters.items():
                    if one.kind is one.KEYWORD_ONLY:
                        found[name] = getattr(self, name), one.default
        told = {name: value for name, (value, usual) in found.items() if value is not None and value != usual}
        if self.labels is not None:
            told.pop("n_labels", None)
        return told

    def __repr__(self) -> str:
        words = []
        for name, value in self.chosen.items():
            many = name == "labels" and len(value) > 6
            text = f"[{', '.join(map(repr, value[:3]))}, … {value[-1]!r}]" if many else repr(value)
            words.append(f"{name}={list(value)!r}" if name == "labels" and not many else f"{name}={text}")
        return f"{type(self).__name__}({', '.join(words)})"

    def _repr_html_(self) -> str:
        from superarm.view import learner_html

        return learner_html(self)

    def invalid(self, parameter: str, be: str, got: object) -> InvalidInput:
        return InvalidInput.must(parameter, self.of, be, got)

    def _forget_compiled(self) -> None:
        """Whatever depends on the number of labels, and is made when first needed."""
        self._all = np.arange(self.n_labels)
        self._can_show = self._all if self.none is None else np.delete(self._all, self.none)
        self._s = set_apart(np.zeros(self.n_labels, np.float32))
        self._plans: dict[tuple[int, int], Plan] = {}
        self._shape = (self.n_features,)
        self._decide: Callable[..., Any] | None = None
        self._update: Callable[..., Any] | None = None

    def _size(self, size: Any) -> int:
        m = whole("set_size", self.of, size, 1)
        if self.single_label and m != 1:
            raise self.invalid("set_size", "1 (its theory knows no larger sets)", m)
        if m >= self.n_labels:
            raise self.invalid("set_size", f"below n_labels = {self.n_labels}", m)
        return m

    def _eligible(self, labels: Iterable[Label]) -> Array:
        among = np.sort(self.known.numbers(labels, "eligible", self.of))
        if not len(among):
            raise self.invalid("eligible", "distinct labels, at least one", labels)
        if self.none is not None and self.none in among:
            raise self.invalid("eligible", "labels without none_label, which is never shown", labels)
        return among

    # ------------------------------------------------------------ predictions

    def scores(self, X: Any) -> Array:
        """The scores of all labels for every row of X, by which labels are ranked."""
        rows = self._rows(X, grow=False)
        out = np.zeros((len(rows), self.n_labels), np.float32)
        self._loop.score_rows(self._model, rows, out)
        if not np.isfinite(out).all():
            at = int(np.flatnonzero(~np.isfinite(out).all(axis=1))[0])
            raise self._not_finite(rows.row(at))
        return out

    def rank(self, x: Any) -> list[Label]:
        """All labels that can be shown for one row, best first."""
        return self.known.public(self._best(one_row(self._row(x, grow=False)))[0])

    def predict(self, X: Any) -> Array:
        """The best label for every row of X."""
        return self.known.array(self._can_show[self.scores(X)[:, self._can_show].argmax(axis=1)])

    def predict_set(self, X: Any, set_size: int | None = None) -> Array:
        """The best ``set_size`` labels for every row of X, best first."""
        size = self.set_size if set_size is None else self._size(set_size)
        return self.known.array(self._best(X)[:, :size])

    def _best(self, X: Any) -> Array:
        """The numbers of the labels that can be shown, best first, for every row of X."""
        return self._can_show[np.argsort(-self.scores(X)[:, self._can_show], axis=1, kind="stable")]

    # ------------------------------------------------------------ copies

    def __getstate__(self) -> dict[str, Any]:
        """For copies and worker processes (model files are `save`'s): all but compiled code and tables."""
        hidden = ("_loop", "_decide", "_update", "_plans", "_scratch", "_model")
        return {name: value for name, value in vars(self).items() if name not in hidden}

    def __setstate__(self, values: dict[str, Any]) -> None:
        vars(self).update(values)
        old, self.state = self._state, None
        self._forget_compiled()
        if old is not None:  # joblib hands out arrays that cannot be written
            self._begin(bool(self.sparse))
            copied(old, self.state)

    # ------------------------------------------------------------ rows, answers and failures

    def _row(self, x: Any, *, grow: bool = True) -> Row:
        """A checked copy of one row, in the layout of the weights; ``grow`` makes room for new names."""
        plain = self.sparse is False and type(x) is np.ndarray and x.dtype is FLOAT32
        if plain and x.shape == self._shape:
            return x.copy()  # type: ignore[no-any-return]  # the usual case, without detours
        if is_named_row(x):
            if self._takes_columns:
                return self._in_order([x]).row(0)
            return self._names_for([x]).row(x, self.of, grow=grow)
        if is_frame(x) and len(x) == 1:
            return copy_of(self._rows(x, grow=grow).row(0))
        if self.names is not None and np.shape(x) != self._shape:
            raise self.invalid("x", "a row with names, as its first row was", x)
        row = as_row(x, self.n_features, self.of)
        if self.state is None:
            self._fix_width(row.width if isinstance(row, SparseRow) else len(row))
            self._begin(isinstance(row, SparseRow))
        return sparsify(row) if self.sparse else densify(row, self.n_features)

    def _rows(self, X: Any, *, grow: bool = True) -> Rows:
        if self.names is not None and isinstance(X, list) and not X:
            return Dense(np.zeros((0, self.n_features), np.float32))
        named = self.names is not None or self.state is None
        if self.state is None and is_frame(X) and self.n_features == len(X.columns):
            named = has_words_or_gaps(X)  # else it is the matrix that was announced
        if self._takes_columns and is_named_rows(X):
            return self._in_order(X)
        if named and is_named_rows(X):
            return Dense(self._names_for(X).rows(X, self.of, grow=grow))
        rows = as_rows(X, self.n_features, self.of)
        sparse = isinstance(rows, Sparse)
        if self.state is None:
            self._fix_width(rows.width)
            self._begin(sparse)
        if self.sparse is not sparse:
            kinds = ("dense", "sparse")
            raise self.invalid("X", f"{kinds[bool(self.sparse)]}, as its first row was", kinds[sparse])
        return rows

    @property
    def trained_columns(self) -> tuple[str, ...]:
        """The columns of a table that `superarm.logs.train` took as features."""
        return tuple(self.notes.get("training", {}).get("features", ()))

    @property
    def _takes_columns(self) -> bool:
        """Whether its rows are numbers in the order of such columns."""
        return self.names is None and len(self.trained_columns) == self.n_features

    def _in_order(self, X: Any) -> Dense:
        """Rows by the names of those columns."""
        columns = list[Array]()
        for name in self.trained_columns:
            given = [x.get(name) for x in X] if not is_frame(X) else X[name] if name in X.columns else None
            try:
                columns.append(np.array(given, np.float64))
            except (TypeError, ValueError):
                columns.append(np.array(np.nan))
            if np.isnan(columns[-1]).any():
                raise self.invalid(f"x[{name!r}]", "a number in every row, as those it was trained on", given)
        return Dense(np.ascontiguousarray(np.stack(columns, axis=1), np.float32))

    def _fix_width(self, width: int) -> None:
        self.n_features = whole("n_features", self.of, width, 1)
        self._shape = (width,)

    def _names_for(self, X: Any) -> Names:
        """What stands where in rows with names; the first of them fix it."""
        if self.names is None:
            if self.state is not None:
                wanted = f"{self.n_features} numbers, as its first row was"
                raise self.invalid("x", wanted, "names")
            names = Names.first(X, self.n_features, self.of)
            self._fix_width(names.width)
            self.names = names
            self._begin(False)
        return self.names

    def use_names(self, data: dict[str, Any]) -> None:
        """Take over what `names.to_dict` gave, now or at a later round: for a journal that keeps dense rows.

        Names that were known keep their places; anything else is refused.
        """
        names = Names.from_dict(data)
        if self.state is None:
            if self.n_features not in (None, names.width):
                raise self.invalid("names", f"for {self.n_features} features", f"{names.width}")
            self._fix_width(names.width)
            self.names = names
            self._begin(False)
            return
        before = [] if self.names is None else self.names.numbers
        if self.names is None or names.width != self.n_features or names.numbers[: len(before)] != before:
            raise self.invalid("names", "its own, with new ones at the end", data)
        self.names = names

    def _own_rows(self, X: Any) -> Rows:
        """A matrix that nobody else can change."""
        rows = self._rows(X)
        made = not isinstance(X, np.ndarray | Dense | Sparse) and not hasattr(X, "tocsr")
        return rows if made else rows.copy()  # a list or a data frame shares nothing with its matrix

    def _eligible_each(self, eligible: Any, n: int, m: int) -> Array | list[Array]:
        """One array of label numbers for all rows of a batch, or one for each."""
        given = list(eligible) if isinstance(eligible, Iterable) and not isinstance(eligible, str) else []
        several = bool(given) and not isinstance(given[0], str) and isinstance(given[0], Iterable)
        each = [self._eligible(labels) for labels in given] if several else [self._eligible(eligible)]
        if several and len(each) != n:
            raise self.invalid("eligible", f"one list, or one for each of {n} rows", f"{len(each)} lists")
        if any(len(among) < m for among in each):
            raise self.invalid(
                "eligible", f"at least set_size = {m} labels in every row of a batch", eligible
            )
        return each if several else each[0]

    def _answers(self, decisions: Decisions, hits: Any, labels: Any) -> tuple[Array, Array, Array]:
        """The rows that were answered, their bits, and their labels' numbers (-1 where only a bit came)."""
        of = self.of
        if not isinstance(decisions, Decisions):
            raise FeedbackError.must("decisions", of, "Decisions, as decide_many gives them", decisions)
        kind = "hit" if labels is None else "label"
        if (hits is None) == (labels is None) or kind not in self.feedback:
            wanted = " or ".join("hits" if name == "hit" else "labels" for name in self.feedback)
            raise FeedbackError.must("answers", of, wanted, "both" if labels is not None else "the other")
        given = hits if labels is None else labels
        column = np.asarray(given) if labels is None else np.empty(0)
        numbers: Any
        if column.dtype == bool:  # the usual case, without detours
            which, n, numbers = np.arange(len(column)), len(column), column
        else:
            answers = list(given.tolist() if isinstance(given, np.ndarray) else given)
            missing = [a is None or type(a).__name__ == "NAType" or a != a for a in answers]
            which, n = np.flatnonzero(~np.array(missing, bool)), len(answers)
            numbers = [as_bit(answers[i]) if labels is None else self.known.number(answers[i]) for i in which]
            if None in numbers:
                wrong = answers[which[numbers.index(None)]]
                wanted = "True, False or None" if labels is None else "known labels or None"
                raise FeedbackError.must(f"{kind}s", of, wanted, wrong)
        if n != len(decisions):
            got = f"{n} answers to {len(decisions)} decisions"
            raise FeedbackError.must("answers", of, "one for each decision, None where none came", got)
        told = np.full(len(which), -1) if labels is None else np.array(numbers, np.int64)
        if labels is None:
            bits = np.array(numbers, bool)
        else:
            bits = (decisions._sets[which, 1] == told[:, None]).any(axis=1)
        rounds = decisions.round[which]
        if len(which) and (decisions.learner != self.id or rounds.max() >= self.round):
            owner = f"those of learner {decisions.learner}"
            raise FeedbackError.must("decisions", of, f"its own (learner {self.id})", owner)
        again = self.answered.first_of(rounds)
        if again is None and not (np.diff(rounds) > 0).all() and len(np.unique(rounds)) != len(rounds):
            again = int(rounds[0])
        if again is not None:
            raise FeedbackError.must("decisions", of, "not answered before", f"round {again}")
        among = decisions._eligible
        if labels is not None and among is not None and not isinstance(among, list):
            strange = told[~np.isin(told, among)]
            if len(strange):
                wrong = self.known.public(strange[:1])[0]
                raise FeedbackError.must("labels", of, "eligible labels", wrong)
        return which, bits, told

    def _checked_run(self, n: int, y: Any, visit: Any) -> tuple[Array, Array]:
        """Label and row numbers that compiled code can trust."""
        try:
            y = np.ascontiguousarray(y, np.int64)
        except (TypeError, ValueError) as error:
            raise self.invalid("y", "label numbers from 0 (run counts; it knows no names)", y) from error
        visit = np.arange(n) if visit is None else np.ascontiguousarray(visit, np.int64)
        if y.shape != (n,) or (n and not 0 <= y.min() <= y.max() < self.n_labels):
            raise self.invalid("y", f"{n} label numbers below n_labels = {self.n_labels}", y)
        if visit.ndim != 1 or (len(visit) and not 0 <= visit.min() <= visit.max() < n):
            raise self.invalid("visit", f"row numbers below {n}", visit)
        return y, visit

    def _check_answer(self, decision: Decision, hit: Any, label: Any) -> None:
        if not isinstance(decision, Decision):
            raise FeedbackError.must("decision", self.of, "a Decision", decision)
        kind = "hit" if label is None else "label"
        if (hit is None) == (label is None) or kind not in self.feedback:
            wanted = " or ".join(f"{name}=..." for name in self.feedback)
            raise FeedbackError.must("feedback", self.of, wanted, f"hit={hit!r}, label={label!r}")
        if label is None and hit is not True and hit is not False and as_bit(hit) is None:
            raise FeedbackError.must("hit", self.of, "True or False", hit)
        if decision.round is None:
            if not self.learns_from(decision):
                raise FeedbackError.must("decision", self.of, self.own_only, decision)
            again = self.id in decision.taught
        else:
            if decision.learner != self.id or decision.round >= self.round:
                owner = f"one of learner {decision.learner}, round {decision.round}"
                raise FeedbackError.must("decision", self.of, f"its own (learner {self.id})", owner)
            again = decision.round in self.answered
        if again:
            raise FeedbackError.must("decision", self.of, "not answered before", decision)

    def _not_finite(self, row: Row) -> InvalidInput | WeightsOverflow:
        values = row.values if isinstance(row, SparseRow) else row
        if not np.isfinite(values).all():
            return self.invalid("x", "finite", values[~np.isfinite(values)][0].item())
        return WeightsOverflow(f"scores of {self.of} must be finite, got an overflow at round {self.round}")

    def _failed(self, status: int, row: Row, round_: int | None) -> Exception:
        if status == 1 or not np.isfinite(row.values if isinstance(row, SparseRow) else row).all():
            return self._not_finite(row)
        return WeightsOverflow(
            f"weights of {self.of} must stay finite; the update of round {round_} would overflow, "
            "and was not made: all else is as before it"
        )


def probabilities(scores: Array) -> Array:
    """The softmax of each row of scores."""
    p = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))
