"""Learner: what all algorithms share. An algorithm adds a state, a `learn` kernel and parameters."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, ClassVar, NamedTuple

import numpy as np

from superarm import storage
from superarm.decision import Answered, Decision, Label
from superarm.errors import FeedbackError, InvalidInput, ModelFileError, WeightsOverflow
from superarm.learners.loop import Loop, resolve
from superarm.learners.parameters import Parameters
from superarm.numerics import weights
from superarm.rows import Csr, Matrix, Row, as_matrix, as_row, densify, is_sparse, n_rows, sparsify
from superarm.sets import Design, design

__all__ = ["LabelLearner", "Learner", "load"]


class Learner(Parameters):
    """The API of every learner.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels (strings or whole numbers), kept with the model.
        n_features: the length d of a row.
        set_size: how many labels to show, 1 <= m < k.
        seed: every draw is a pure function of (seed, round, position).
        intercept: give every label a constant term: a further feature that is always 0.1 (or the
            number given). Beside rows of length 1 a constant of 1 would be as loud as all the rest.

    A subclass sets the class variables and defines `_start`; parameters of its own are kept as
    attributes of the same name. The state is made when the first row comes: feature-major if that
    row is sparse, label-major if it is dense.
    """

    name: ClassVar[str]  # on the command line
    loop: ClassVar[Loop]
    feedback: ClassVar[tuple[str, ...]] = ("hit",)  # what update takes: hit, label, or both
    learns_from_given: ClassVar[bool] = False  # from sets that somebody else chose
    single_label: ClassVar[bool] = False  # the theory knows only m = 1
    moves_ineligible: bool = False  # an update may move labels that were not eligible
    layout_matters: ClassVar[bool] = False  # dense and sparse rows are scaled differently
    _own_only: ClassVar[str] = "its own, not a given set"  # what is wrong with a foreign decision
    n_scores: ClassVar[int] = 1  # rows of scores that the kernels use

    gamma: float | None = None  # the share of exploration, for learners that have one

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int,
        set_size: int = 1,
        seed: int = 0,
        intercept: bool | float = True,
    ) -> None:
        self._of = type(self).__name__  # as error messages name it
        self.labels = None if labels is None else self._names(labels)
        if self.labels is not None:
            count = len(self.labels)
            if n_labels not in (None, count):
                raise self._invalid("n_labels", f"left out or {count}, as labels has", n_labels)
            n_labels = count
        self.n_labels = self._whole("n_labels", n_labels, 2)
        self.n_features = self._whole("n_features", n_features, 1)
        self.set_size = self._size(set_size)
        self.seed = self._whole("seed", seed, 0)
        self.intercept = intercept
        if not isinstance(intercept, int | float) or not 0.0 <= intercept <= 1e6:
            raise self._invalid("intercept", "True, False or a number from 0 to 10^6", intercept)
        self.bias = 0.1 if intercept is True else float(intercept)
        self.sparse: bool | None = None
        self.state: Any = None
        self.round = 0
        self.growth: list[tuple[int, int]] = []  # (round, labels before) for each `add_labels`
        self.answered = Answered()
        self.id = uuid.uuid4().hex[:16]
        self.notes: dict[str, Any] = {}  # JSON-ready facts that travel with the model file
        self._place = {label: i for i, label in enumerate(self.labels or ())}
        self._shape = (self.n_features,)
        self._all = np.arange(self.n_labels)
        self._s = np.zeros((self.n_scores, self.n_labels), np.float32)
        self._designs: dict[tuple[int, int], Design] = {}
        self._decide: Any = None  # compiled for this learner's state, when first needed
        self._update: Any = None

    # ------------------------------------------------------------ what a subclass defines

    def _start(self, shape: tuple[int, int]) -> Any:
        """The state before the first round: a NamedTuple of arrays and numbers, W among them."""
        raise TypeError(f"{type(self).__name__} must define _start(shape)")

    def _new_design(self, n: int, m: int) -> Design:
        return design(n, m, self.gamma or 0.0)

    def _learns_from(self, decision: Decision) -> bool:
        """Whether a set that somebody else chose teaches this learner anything."""
        return self.learns_from_given

    def _given_plan(self, decision: Decision, sets: Any, among: Any) -> tuple[Design, Any]:
        """The design and odds by which to learn from such a set."""
        return self._plan(among, sets.shape[1]), decision.odds

    def _rho(self) -> float | None:
        """The belief P(y in top set) that the next update will use, if the learner has one."""
        return None

    # ------------------------------------------------------------ learning

    def decide(
        self, x: Any, *, eligible: Iterable[Label] | None = None, set_size: int | None = None
    ) -> Decision:
        """Choose a set of labels to show for x.

        Args:
            x: a dense row, or a sparse one: a SciPy row or a pair (indices, values).
            eligible: the only labels that may be shown this time.
            set_size: how many to show this time.
        """
        row = self._row(x)
        among = self._all if eligible is None else np.sort(self._indices("eligible", eligible))
        plan = self._plan(among, self.set_size if set_size is None else self._size(set_size))
        sets, odds = np.empty((3, plan.m), np.int64), np.empty(3)
        arguments = (self.state, plan, row, self._s, among, self.seed, self.round, sets, odds)
        if self._decide is None:
            self._decide = resolve(self.loop.decide, arguments)
        if not self._decide(*arguments):
            raise self._not_finite(row)
        kept = None if eligible is None else among
        decision = Decision(row, sets, kept, odds, self.gamma, self._rho(), self.round, self.id, self.labels)
        self.round += 1
        return decision

    def update(self, decision: Decision, *, hit: bool | None = None, label: Label | None = None) -> None:
        """Learn from the answer to a decision: now or days later, in any order, once.

        Args:
            decision: what `decide` gave, or `Decision.given`.
            hit: whether the right label was among the shown ones.
            label: the right label, where the world names it.
        """
        self._check_answer(decision, hit, label)
        row, sets, among = decision.x, decision._sets, decision._eligible
        if decision._names == ():  # it was stored, or is somebody else's: labels, not numbers
            row = self._row(row)
            drawn = self._indices("decision", sets[1])
            top = self._indices("decision", sets[2]) if sets[2] else np.full_like(drawn, -1)
            sets = np.stack([drawn, drawn, top])
            among = None if among is None else np.sort(self._indices("decision", among))
        if among is None:
            among = self._all if not self.growth else self._labels_at(decision.round)
        code = -1
        if label is not None:
            code = int(self._indices("label", [label])[0])
            if code not in among:
                raise FeedbackError.must("label", self._of, "one of the eligible labels", label)
            hit = code in sets[1]
        if decision.round is None:
            plan, odds = self._given_plan(decision, sets, among)
        else:
            plan, odds = self._plan(among, sets.shape[1]), decision.odds
        arguments = (self.state, plan, row, self._s, among, sets, odds, bool(hit), code)
        if self._update is None:
            self._update = resolve(self.loop.update, arguments)
        status = self._update(*arguments)
        if status:
            raise self._failed(status, row, decision.round)
        if decision.round is None:
            decision.taught |= {self.id}
        else:
            self.answered.add(decision.round)

    def run(self, X: Any, y: Any, visit: Any = None) -> np.ndarray[Any, Any]:
        """Rounds over rows of X, answered from y, in one compiled loop.

        The same bits as `decide` and `update` round by round. ``y`` holds label numbers 0..k-1; it
        answers and counts, and reaches no learner of bits.

        Returns:
            How many rounds had a wrong top label, a miss of the top set, a miss of the shown set.
        """
        rows = self._fit_matrix(X)
        y, visit = self._checked_run(n_rows(rows), y, visit)
        plan = self._plan(self._all, self.set_size)
        drawn, top, odds = np.empty(plan.m, np.int64), np.empty(plan.m, np.int64), np.zeros(3)
        counts = np.zeros(3, np.int64)
        done, status = self.loop.run(
            self.state,
            plan,
            rows,
            y,
            visit,
            self._s,
            self._all,
            self.seed,
            self.round,
            drawn,
            top,
            odds,
            counts,
        )
        self.answered.add_range(self.round, self.round + done)
        self.round += done
        if status:
            at = visit[done]
            raise self._failed(status, rows.row(at) if self.sparse else rows[at], self.round)
        return counts

    def add_labels(self, labels: int | Sequence[Label]) -> None:
        """Add labels to a running learner: their names, or how many if it has no names.

        They start with weights of 0; what has been learnt stays. Decisions made before can still be
        answered, as decisions among the labels of that time.
        """
        if self.labels is None:
            count = self._whole("labels", labels, 1)
            names = None
        else:
            names = self._names([*self.labels, *labels])  # type: ignore[misc]
            count = len(names) - self.n_labels
        old, before = self.state, self.n_labels
        if old is not None and self.moves_ineligible and not hasattr(old, "credit"):
            raise self._invalid("labels", "left as they are: its matrix couples all labels", labels)
        self.growth.append((self.round, before))
        self.labels, self.n_labels = names, before + count
        self._place = {label: i for i, label in enumerate(names or ())}
        self._all = np.arange(self.n_labels)
        self._s = np.zeros((self.n_scores, self.n_labels), np.float32)
        self._designs.clear()
        if old is not None:
            self._begin(bool(self.sparse))
            for was, now in zip(old, self.state, strict=True):
                if isinstance(was, np.ndarray):
                    now[tuple(slice(size) for size in was.shape)] = was
            if hasattr(self.state, "credit"):
                self.state.credit[before:] = 0.0  # new labels are tried first

    # ------------------------------------------------------------ predictions

    def scores(self, X: Any) -> np.ndarray[Any, Any]:
        """The scores of all labels for every row of X, by which labels are ranked."""
        rows = self._fit_matrix(X)
        out = np.zeros((n_rows(rows), self.n_labels), np.float32)
        self.loop.score_rows(self.state, rows, len(out), self._s, out)
        if not np.isfinite(out).all():
            at = int(np.flatnonzero(~np.isfinite(out).all(axis=1))[0])
            raise self._not_finite(rows.row(at) if self.sparse else rows[at])
        return out

    def rank(self, x: Any) -> list[Label]:
        """All labels for one row, best first."""
        row = self._row(x)
        one = Csr(row[1], row[0], np.array([0, len(row[0])])) if self.sparse else row[None]
        order = np.argsort(-self.scores(one)[0], kind="stable")
        return order.tolist() if self.labels is None else [self.labels[i] for i in order]

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The best label for every row of X."""
        return self._public(self.scores(X).argmax(axis=1))

    def predict_set(self, X: Any, set_size: int | None = None) -> np.ndarray[Any, Any]:
        """The best ``set_size`` labels for every row of X, best first."""
        size = self.set_size if set_size is None else self._size(set_size)
        order = np.argsort(-self.scores(X), axis=1, kind="stable")
        return self._public(order[:, :size])

    # ------------------------------------------------------------ files

    @property
    def params(self) -> dict[str, Any]:
        """The parameters it was made with."""
        names = [
            name
            for cls in type(self).__mro__
            if "__init__" in vars(cls) and cls is not object
            for name, p in inspect.signature(vars(cls)["__init__"]).parameters.items()
            if p.kind is p.KEYWORD_ONLY
        ]
        values = {name: getattr(self, name) for name in dict.fromkeys(names)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file; loaded again, it goes on bit for bit."""
        state = {} if self.state is None else self.state._asdict()
        arrays = {f"state.{k}": v for k, v in state.items() if isinstance(v, np.ndarray)}
        header = {
            "class": self._of,
            "params": self.params,
            "sparse": self.sparse,
            "round": self.round,
            "growth": self.growth,
            "id": self.id,
            "answered": [self.answered.low, self.answered.later.hex()],
            "notes": self.notes,
        }
        storage.write(path, header, arrays)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and worker processes (model files are `save`'s): all but compiled code and tables."""
        return {**vars(self), "_decide": None, "_update": None, "_designs": {}}

    def __setstate__(self, values: dict[str, Any]) -> None:
        def own(value: Any) -> Any:  # joblib hands out arrays that cannot be written
            return np.array(value) if isinstance(value, np.ndarray) else value

        vars(self).update({name: own(value) for name, value in values.items()})
        if self.state is not None:
            self.state = type(self.state)(*map(own, self.state))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Learner:
        """The model that `save` wrote."""
        learner = load(path)
        if not isinstance(learner, cls):
            raise ModelFileError.must("class", str(path), cls.__name__, learner._of)
        return learner

    # ------------------------------------------------------------ inside

    def _public(self, indices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return indices if self.labels is None else np.array(self.labels)[indices]

    def _plan(self, among: np.ndarray[Any, Any], m: int) -> Design:
        key = len(among), m
        try:
            return self._designs[key]
        except KeyError:
            plan = self._designs[key] = self._new_design(*key)
            return plan

    def _labels_at(self, round_: int | None) -> np.ndarray[Any, Any]:
        """The labels that there were at a round."""
        earlier = [k for start, k in self.growth if round_ is not None and round_ < start]
        return self._all[: earlier[0]] if earlier else self._all

    def _begin(self, sparse: bool) -> None:
        """Make the state, in the layout for this kind of rows."""
        self.sparse = sparse
        d, k = self.n_features + 1, self.n_labels
        self.state = self._start((d, k) if sparse else (k, -(-d // 16) * 16))

    def _row(self, x: Any) -> Row:
        """A checked copy of one row, in the layout of the weights."""
        plain = self.sparse is False and type(x) is np.ndarray and x.dtype == np.float32
        if plain and x.shape == self._shape:
            return x.copy()  # the usual case, without detours
        row = as_row(x, self.n_features, self._of)
        if self.state is None:
            self._begin(isinstance(row, tuple))
        if self.sparse is isinstance(row, tuple):
            return row
        return sparsify(row) if self.sparse else densify(row, self.n_features)

    def _fit_matrix(self, X: Any) -> Matrix:
        rows = as_matrix(X, self.n_features, self._of)
        if self.state is None:
            self._begin(isinstance(rows, tuple))
        if self.sparse is not isinstance(rows, tuple):
            kinds = ("dense", "sparse")
            raise self._invalid(
                "X", f"{kinds[bool(self.sparse)]}, as its first row was", kinds[is_sparse(rows)]
            )
        return rows

    def _checked_run(self, n: int, y: Any, visit: Any) -> tuple[Any, Any]:
        """Label numbers and places that compiled code can trust."""
        y = np.ascontiguousarray(y, np.int64)
        visit = np.arange(n) if visit is None else np.ascontiguousarray(visit, np.int64)
        if y.shape != (n,) or (n and not 0 <= y.min() <= y.max() < self.n_labels):
            raise self._invalid("y", f"{n} label numbers below n_labels = {self.n_labels}", y)
        if visit.ndim != 1 or (len(visit) and not 0 <= visit.min() <= visit.max() < n):
            raise self._invalid("visit", f"row numbers below {n}", visit)
        return y, visit

    def _check_answer(self, decision: Decision, hit: Any, label: Any) -> None:
        if not isinstance(decision, Decision):
            raise FeedbackError.must("decision", self._of, "a Decision", decision)
        kind = "hit" if label is None else "label"
        if (hit is None) == (label is None) or kind not in self.feedback:
            wanted = " or ".join(f"{name}=..." for name in self.feedback)
            got = f"hit={hit!r}, label={label!r}"
            raise FeedbackError(f"feedback of {self._of} must be {wanted}, got {got}")
        if label is None and hit is not True and hit is not False and not isinstance(hit, np.bool_):
            raise FeedbackError.must("hit", self._of, "True or False", hit)
        if decision.round is None:
            if not self._learns_from(decision):
                raise FeedbackError.must("decision", self._of, self._own_only, decision)
            again = self.id in decision.taught
        else:
            if decision.learner != self.id or decision.round >= self.round:
                owner = f"one of learner {decision.learner}, round {decision.round}"
                raise FeedbackError.must("decision", self._of, f"its own (learner {self.id})", owner)
            again = decision.round in self.answered
        if again:
            raise FeedbackError.must("decision", self._of, "not answered before", decision)

    def _not_finite(self, row: Row) -> InvalidInput | WeightsOverflow:
        values = row[1] if isinstance(row, tuple) else row
        if not np.isfinite(values).all():
            return self._invalid("x", "finite", values[~np.isfinite(values)][0].item())
        return WeightsOverflow(f"scores of {self._of} must be finite, got an overflow at round {self.round}")

    def _failed(self, status: int, row: Row, round_: int | None) -> Exception:
        if status == 1:
            return self._not_finite(row)
        return WeightsOverflow(
            f"weights of {self._of} must stay finite; the update of round {round_} would overflow, "
            "and was not made: all else is as before it"
        )


class LabelState(NamedTuple):
    """The state of learners that move only a label or two."""

    W: np.ndarray[Any, Any]
    bias: float
    touched: np.ndarray[Any, Any]  # scratch
    c: np.ndarray[Any, Any]  # scratch


class LabelLearner(Learner):
    """A learner with full information: it shows its top set, and is told the label."""

    feedback = ("label",)

    def _start(self, shape: tuple[int, int]) -> Any:
        return LabelState(weights(shape), self.bias, np.zeros(2, np.int64), np.zeros(2))


def probabilities(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The softmax of each row of scores."""
    p = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def load(path: str | PathLike[str]) -> Learner:
    """The learner that `Learner.save` wrote. A class of your own must have been imported before."""
    header, arrays = storage.read(path)
    known = {cls.__name__: cls for cls in _subclasses(Learner)}
    try:
        cls = known[header["class"]]
        learner = cls(**header["params"])
        learner.round, learner.id = int(header["round"]), str(header["id"])
        learner.growth = [(int(start), int(k)) for start, k in header["growth"]]
        learner.notes = dict(header.get("notes", {}))
        low, later = header["answered"]
        learner.answered = Answered(low, bytes.fromhex(later))
        if header["sparse"] is not None:
            learner._begin(header["sparse"])
            for field, value in learner.state._asdict().items():
                if isinstance(value, np.ndarray):
                    saved = arrays[f"state.{field}"]
                    if saved.shape != value.shape or saved.dtype != value.dtype:
                        raise ValueError(field)
                    value[...] = saved
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError.must("content", str(path), "a superarm model", f"a broken {error}") from error
    return learner


def _subclasses(cls: type[Learner]) -> Iterable[type[Learner]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)
