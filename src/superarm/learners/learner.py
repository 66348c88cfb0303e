"""Learner: what every learner is and can do. A subclass defines `make_core` and `make_rule` (docs/extend.md).

Its parts are ``inputs`` (inputs.py), what rows and labels mean; ``rule`` (superarm.explore), how sets are chosen; and
``core`` (superarm.native), the algorithm and the rule in compiled code, and the answered rounds. How each call works
is in cores.py, deciding.py, answers.py, batch_answers.py, predictions.py and model_files.py (threads: locking.py).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, BinaryIO, ClassVar, Self

from superarm._types import Array
from superarm.data.columns import Columns
from superarm.data.labels import Label, LabelVocabulary
from superarm.data.rows import Layout
from superarm.decisions import Decision, Decisions
from superarm.explore.coverage import Coverage
from superarm.explore.rule import Rule
from superarm.learners import (
    answers,
    batch_answers,
    cores,
    deciding,
    display,
    failures,
    model_files,
    predictions,
)
from superarm.learners.inputs import LearnerInputs
from superarm.native.answered_rounds import AnsweredRounds
from superarm.native.call_lock import CallLock
from superarm.native.core import NOT_FAST, Core
from superarm.native.cursor import Cursor
from superarm.parameters import Parametrised, check_int, check_parameters

OWN_SETS = "its update needs its own top set of set_size labels, or the way in which its sets are drawn"


class Learner(Parametrised):
    """The API of every learner.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels (strings or whole numbers), kept with the model.
        n_features: the length d of a row, or a pair (dense, sparse) for rows with both parts; left out, the
            first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k; 1 by default.
        seed: every draw is a pure function of (seed, round, position).
        intercept: give every label a constant term: a further feature that is always 0.1 (or the
            number given). Beside rows of length 1 a constant of 1 would be as loud as all the rest.
        scaling: how rows reach the weights: ``"unit"``, of length 1; ``"standard"``, each column by its own mean and
            spread, learnt online (native/scaling.pyx); ``None``: unit, but standard for rows with names.

    A subclass sets the class variables and defines `make_core` and `make_rule`; parameters of its own are
    kept as attributes of the same name (docs/extend.md).
    """

    name: ClassVar[str]  # on the command line
    variants: ClassVar[dict[str, dict[str, Any]]] = {}  # or several names, each with its parameters
    state_version: ClassVar[int] = 1  # raised when older files would no longer continue with the same results
    feedback: ClassVar[tuple[str, ...]] = ("hit",)  # what update takes: some of hit, label, likelihood
    scores_are_log_probabilities: ClassVar[bool] = False  # but for a constant: their softmax is meant
    shows_one_label: ClassVar[bool] = False  # the theory knows only m = 1
    fixed_labels: bool = False  # no label can be added
    default_scaling: ClassVar[str] = "unit"  # where ``scaling`` is None; "unit" is for rows without names
    scaling_forget: float = 0.0  # the least weight of a new row in the statistics of columns
    left_out: ClassVar[dict[str, str]] = dict.fromkeys(("coverage", "explore"), OWN_SETS)  # and why
    inputs_class: ClassVar[type[LearnerInputs]] = LearnerInputs  # what rows and labels mean
    _hidden_from_tab = Parametrised._hidden_from_tab | {
        *("variants", "state_version", "learns_from", "prepare_passes", "anneal", "shows_one_label"),
        *("fixed_labels", "default_scaling", "scaling_forget", "answer_noise", "intercepts"),
        *("make_core", "make_rule", "core_args", "core", "provisional_core", "ensure_core", "inputs"),
        *("inputs_class", "lock", "vocabulary", "left_out", "scores_are_log_probabilities"),
    }
    core: Core | None = None  # the algorithm in compiled code; None before the first row
    provisional_core: cores.ProvisionalCore | None = None  # decides at a cursor while there is no core

    def __new__(cls, *args: Any, **params: Any) -> Self:
        """Refuse ``params`` that the class does not have; ``args`` are for classes that take such."""
        check_parameters(cls, args, params, cls.left_out)
        return super().__new__(cls)

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | tuple[int, int] | None = None,
        set_size: int | None = None,
        seed: int = 0,
        intercept: bool | float = True,
        scaling: str | None = None,
    ) -> None:
        vocabulary = LabelVocabulary.from_params(n_labels, labels, self.owner)
        self.inputs = self.inputs_class(self.owner, vocabulary, n_features)
        self.inputs.shows_one_label = self.shows_one_label
        self._set_size = self.inputs.check_set_size(set_size)
        self.lock = CallLock()  # (locking.py)
        self.id = uuid.uuid4().hex[:16]  # its decisions carry it; a core keeps the one it was bound to
        self.metadata: dict[str, Any] = {}  # JSON-ready values that travel with the model file
        self.seed = check_int("seed", self.owner, seed, 0)
        self.intercept = intercept
        if not isinstance(intercept, int | float) or not 0.0 <= intercept <= 1e6:
            raise self.invalid("intercept", "True, False or a number from 0 to 10^6", intercept)
        self.scaling = scaling
        if scaling not in (None, *cores.SCALINGS):
            raise self.invalid("scaling", f"one of {', '.join(cores.SCALINGS)}, or None", scaling)

    # ------------------------------------------------------------ what a subclass defines

    def make_core(self, layout: Layout) -> Core:
        """Return the algorithm in compiled code, for rows of this layout, before the first round."""
        raise TypeError(f"{self.owner} must define make_core(layout)")

    def core_args(self, layout: Layout) -> dict[str, Any]:
        """Return the arguments that every core takes: labels, scaling for rows of this layout, rule."""
        return {
            "k": self.n_labels,
            "scaling": cores.make_scaling(self, layout),
            "kernel": cores.make_kernel(self),
        }

    def make_rule(self) -> Rule:
        """Return the rule that chooses its sets."""
        raise TypeError(f"{self.owner} must define make_rule()")

    @property
    def intercepts(self) -> tuple[float, float]:
        """The constant features beside the dense part of a row and beside its sparse part."""
        constant = 0.1 if self.intercept is True else float(self.intercept)
        return constant, constant

    def learns_from(self, decision: Decision) -> bool:
        """Return whether it learns anything from a ``decision`` that another system made."""
        return False

    def prepare_passes(self, passes: int) -> None:
        """Get ready to go ``passes`` times through a log; nothing has been learnt yet."""

    def anneal(self, remaining: float) -> None:
        """Shrink the steps, where training goes several times through a log.

        ``remaining`` is the share of the training that is still to come: 1 at the start, and again at the end.
        """

    # ------------------------------------------------------------ what it can do

    def decide(
        self,
        x: Any,
        *,
        eligible: Iterable[Label] | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
        cursor: Cursor | None = None,
    ) -> Decision:
        """Choose a set of labels to show for x.

        Args:
            x: a dense row; a sparse one, as a SciPy row or a pair (indices, values); one with both parts, a
                `superarm.Row`; or one with names, as a dict or a data frame's row (data/columns.py).
            eligible: the only labels that may be shown this time.
            set_size: how many to show this time; with a promised coverage, the most.
            coverage: another promise, for this time: a threshold is kept for each that is asked for.
            cursor: where to decide; it is moved, and the learner stays as it is, until `advance`.
        """
        if eligible is None and set_size is None and coverage is None and self.core is not None:
            decision: Decision | None = self.core.decide_fast(x, cursor)
            if decision is not None:
                return decision
        return deciding.decide(self, x, eligible, set_size, coverage, cursor)

    def update(
        self,
        decision: Decision,
        *,
        hit: bool | None = None,
        label: Label | None = None,
        likelihood: Any = None,
    ) -> None:
        """Learn from the answer to a decision: now or days later, in any order, once.

        Args:
            decision: what `decide` gave, or `Decision.given`.
            hit: whether the right label was among the shown ones.
            label: the right label, where the world names it.
            likelihood: for each label, how probable what is known would be if it were the right one: k numbers.
        """
        status = NOT_FAST
        if label is None and likelihood is None and self.core is not None:
            status = self.core.update_fast(decision, hit)
        if status == NOT_FAST:
            answers.update(self, decision, hit, label, likelihood)
        elif status:
            raise failures.update_error(self, status, decision.row, decision.round)
        assert self.core is not None  # it has learnt
        self.rule.warn_of_promise(self.core.kernel)

    def cursor(self) -> Cursor:
        """Return a copy of its position: the next round, and those numbers of its rule that deciding moves."""
        return Cursor.of(cores.rule_kernel(self), self.round)

    def advance(self, decision: Decision) -> None:
        """Move on by a decision that was made at a cursor, as `decide` does when it makes one.

        Decisions may come in any order of rounds, each of them once.
        """
        deciding.advance(self, decision)

    def decide_many(
        self,
        X: Any,
        *,
        eligible: Iterable[Label] | Sequence[Iterable[Label]] | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
    ) -> Decisions:
        """Choose a set for every row of X: the same bits as `decide` row by row, in one compiled loop.

        Args:
            X: a matrix, dense or sparse; a pair of both; or a data frame.
            eligible: the only labels that may be shown: one list, or a list for each row.
            set_size: as in `decide`.
            coverage: as in `decide`.
        """
        return deciding.decide_many(self, X, eligible, set_size, coverage)

    def update_many(
        self, decisions: Decisions | Sequence[Decision], hits: Any = None, *, labels: Any = None
    ) -> int:
        """Learn from the answers to many decisions, in their order, and return how many: the same bits as one by one.

        Args:
            decisions: what `decide_many` gave, or a part of it; or a list of Decision objects, also of stored
                and given ones.
            hits: for each, whether the right label was among the shown ones; ``None`` where no answer came.
            labels: for each, the right label, where the world names it; or ``None``.
        """
        return batch_answers.update_many(self, decisions, hits, labels)

    def run(self, X: Any, y: Any, order: Any = None, *, signed_sizes: Array | None = None) -> Array:
        """Run rounds over rows of X, answered from y, in one compiled loop: the same bits as `decide` and `update`.

        Args:
            X: a matrix, or a data frame.
            y: label indices 0..k-1; they answer and count, and reach no learner of bits.
            order: the indices of the rows to go through; by default all, as they stand.
            signed_sizes: an array of intp that gets how many labels each round showed, less than 0 if the right one
                was not among them.

        Returns:
            How many rounds had a wrong top label, a miss of the top set, a miss of the shown set; and how many labels
            were shown in all.
        """
        return deciding.run(self, X, y, order, signed_sizes)

    def scores(self, X: Any) -> Array:
        """Return the scores of all labels for every row of X, by which labels are ranked."""
        return predictions.scores(self, X)

    def rank(self, x: Any) -> list[Label]:
        """Return all labels that can be shown for one row ``x``, best first."""
        return predictions.rank(self, x)

    def predict(self, X: Any) -> Array:
        """Return the best label for every row of X."""
        return predictions.predict(self, X)

    def predict_set(
        self, X: Any, set_size: int | None = None, *, coverage: float | None = None
    ) -> Array | list[Array]:
        """Return the best ``set_size`` labels for every row of X, best first.

        Args:
            X: a matrix, or a data frame.
            set_size: how many; with a coverage, the most.
            coverage: as many as this coverage needs, by its threshold as it is: a list of arrays. The default
                of a learner with a promise is its own, unless a size is asked for. Without a promise: as many
                as its probabilities need to sum up to it, which is as right as these (docs/coverage.md).
        """
        return predictions.predict_set(self, X, set_size, coverage)

    # ------------------------------------------------------------ its parts

    @property
    def vocabulary(self) -> LabelVocabulary:
        """Its labels: names and indices."""
        return self.inputs.vocabulary

    @property
    def labels(self) -> tuple[Label, ...] | None:
        """The names of the labels, if they have names."""
        return self.inputs.vocabulary.names

    @property
    def n_labels(self) -> int:
        return self.inputs.vocabulary.count

    @property
    def n_features(self) -> Any:
        """The length of a row, (dense, sparse) if it has both parts; ``None`` before the first row."""
        return self.inputs.n_features

    @property
    def columns(self) -> Columns | None:
        """What the columns of rows with names are."""
        return self.inputs.columns

    @property
    def column_warnings(self) -> dict[str, str]:
        """What is not as declared in the last row with names: a sentence for each column."""
        return self.inputs.column_warnings

    @property
    def set_size(self) -> int:
        return self._set_size

    @property
    def round(self) -> int:
        """The next round."""
        return 0 if self.core is None else self.core.round

    @property
    def answered(self) -> AnsweredRounds:
        """Which rounds have been answered."""
        return AnsweredRounds() if self.core is None else self.core.answered

    def add_labels(self, labels: int | Sequence[Label]) -> None:
        """Add labels to a running learner: their names, or how many if it has no names.

        They start with weights of 0; what has been learnt stays. Decisions made before can still be
        answered, as decisions among the labels of that time.
        """
        cores.add_labels(self, labels)

    def use_columns(self, columns: Columns | dict[str, Any] | str | PathLike[str]) -> None:
        """Declare the columns of rows: before the first row, or the same with new ones at the end.

        ``columns`` is what `Columns.infer` gave; or a file of columns, or a model file.
        """
        cores.use_columns(self, Columns.read(columns))

    def ensure_core(self) -> Core:
        """Return its core: made when the layout is known, and anew when rows have got a sparse part."""
        return cores.ensure_core(self)

    @cached_property
    def rule(self) -> Rule:
        """The rule that chooses its sets."""
        return self.make_rule()

    def current_rule(self) -> Rule:
        """Return a copy of its rule in its present state, for use without the learner, on any scores."""
        return self.rule.with_state_of(cores.rule_kernel(self), self.round, cores.kernel_args(self))

    @property
    def coverage(self) -> Coverage | None:
        """The coverage that was promised, and what was kept of it; ``None`` without a promise."""
        return self.coverage_at(None) if self.rule.promises_coverage else None

    def coverage_at(self, coverage: float | None) -> Coverage:
        """Return the coverage promised and kept at another level, which some decisions asked for."""
        return self.rule.coverage_at(cores.rule_kernel(self), coverage, self.owner)

    @property
    def effective_scaling(self) -> str:
        """The ``scaling`` that was chosen, or its own; rows with names are standardised, since their units differ."""
        named = self.inputs.layout is not None and self.inputs.layout.n_markable > 0
        own = "standard" if named and self.default_scaling == "unit" else self.default_scaling
        return self.scaling or own

    @property
    def nondefault_params(self) -> dict[str, Any]:
        """The parameters that are not the default ones."""
        return display.nondefault_params(self)

    def with_params(self, **params: Any) -> Self:
        """Return a copy with other parameters; all that it has learnt stays."""
        return model_files.copy_with_params(self, params)

    def with_new_rule(self, **params: Any) -> Self:
        """Return a copy with other parameters, whose rule begins anew; all else that it has learnt stays."""
        return model_files.copy_with_params(self, params, with_rule=False)

    def resume_from_snapshot(self, old: Self) -> Self:
        """Return a copy of ``old``, a snapshot of this learner, with the rounds, answers, labels and columns of now."""
        return model_files.resume_from_snapshot(self, old)

    def save(self, path: str | PathLike[str] | BinaryIO) -> None:
        """Write the model to a file, by its path or open for writing bytes; loaded again, it goes on bit for bit."""
        model_files.save(self, path)

    __getstate__ = model_files.pickle_state
    __setstate__ = model_files.unpickle
    __repr__ = display.learner_text
    _repr_html_ = display.learner_html
