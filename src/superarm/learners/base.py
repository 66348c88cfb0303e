"""LearnerBase: what a subclass of Learner defines, and what it can use for that: parameters, labels, rule, core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, ClassVar, Self, TypedDict, TypeVar

from superarm._types import Array
from superarm.data.columns import Columns
from superarm.data.labels import Label, LabelVocabulary
from superarm.data.rows import Layout
from superarm.decisions import Decision
from superarm.explore.coverage import Coverage
from superarm.explore.rule import LearnerTraits, Rule
from superarm.learners.inputs import InputSchema
from superarm.native.answered_rounds import AnsweredRounds
from superarm.native.core import Core, Cursor
from superarm.native.rule import RuleKernel
from superarm.native.scaling import Scaling, StandardScaling, UnitScaling
from superarm.parameters import Parametrised, check_parameters, parameters

SCALINGS = ("standard", "unit")
Result = TypeVar("Result")


class CommonParams(TypedDict, total=False):
    """The parameters that every learner passes on to `Learner`; its docstring explains them."""

    n_labels: int | None
    labels: Sequence[Label] | None
    n_features: int | tuple[int, int] | None
    set_size: int | None
    seed: int
    intercept: bool | float
    scaling: str | None


class LearnerBase(Parametrised):
    """The contract of a subclass: `make_core` and `make_rule`, and the others where it differs."""

    name: ClassVar[str]  # on the command line
    # raised when older model files would no longer continue with the same results
    state_version: ClassVar[int] = 1
    feedback: ClassVar[tuple[str, ...]] = ("hit",)  # what update takes: some of hit, label, likelihood
    learns_from_given: ClassVar[bool] = False  # whether it learns from sets that another system chose
    single_label: ClassVar[bool] = False  # the theory knows only m = 1
    fixed_labels: bool = False  # no label can be added
    default_scaling: ClassVar[str] = "unit"  # of rows without names, where ``scaling`` is None
    schema_class: ClassVar[type[InputSchema]] = InputSchema  # what rows and labels mean
    accepted_decisions: ClassVar[str] = "its own, not a given set"  # what a decision must be, for the message

    inputs: InputSchema
    core: Any  # the algorithm in compiled code; None before the first row
    seed: int
    intercept: bool | float
    scaling_forget: float = 0.0  # the least weight of a new row in the statistics of columns
    scaling: str | None  # one of SCALINGS, or its own
    _id: str
    _set_size: int
    trial_core: Core | None = None  # to decide at a cursor before the first row, or the first text
    _trial_key: tuple[Any, ...] = ()

    def __new__(cls, *args: Any, **params: Any) -> Self:
        """Refuse ``params`` that the class does not have; ``args`` are for classes that take such."""
        check_parameters(cls, args, params)
        return super().__new__(cls)

    # ------------------------------------------------------------ what a subclass defines

    def make_core(self, layout: Layout) -> Core:
        """Return the algorithm in compiled code, for rows of this layout, before the first round."""
        raise TypeError(f"{self.owner} must define make_core(layout)")

    def make_rule(self) -> Rule:
        """Return the rule that chooses its sets."""
        raise TypeError(f"{self.owner} must define make_rule()")

    def make_scaling(self, layout: Layout) -> Scaling:
        """Return how rows of this layout reach the weights, by `effective_scaling`."""
        d, width = layout.n_dense, layout.n_sparse
        dense, sparse = self.intercepts
        if self.effective_scaling == "none":
            return Scaling(d, width)
        if self.effective_scaling == "unit":
            return UnitScaling(d, width, bias=dense if d else sparse)
        if not max(dense, sparse) < 1.0:
            raise self.invalid("intercept", "below 1 where columns are standardised", self.intercept)
        return StandardScaling(
            d,
            width,
            bias=dense,
            sparse_bias=sparse,
            forget=self.scaling_forget,
            n_numbers=layout.n_numbers,
        )

    @property
    def intercepts(self) -> tuple[float, float]:
        """The constant features beside the dense part of a row and beside its sparse part."""
        constant = 0.1 if self.intercept is True else float(self.intercept)
        return constant, constant

    def learns_from(self, decision: Decision) -> bool:
        """Return whether it learns anything from a ``decision`` that another system made."""
        return self.learns_from_given

    def anneal(self, remaining: float, passes: int) -> None:
        """Shrink the steps, where training goes through a log several times.

        Args:
            remaining: the share of the training that is still to come. 1 at the start, and once more at the end:
                what follows is no training.
            passes: how often it goes through the log.
        """

    def memory_to_json(self) -> dict[str, Any] | None:
        """Return what a model file must keep beside the arrays of the core; ``None`` for nothing."""
        return None

    def memory_from_json(self, kept: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Put back what `memory_to_json` gave as ``kept``, with the ``arrays`` of the model file."""

    @classmethod
    def command_names(cls) -> dict[str, dict[str, Any]]:
        """Return its names on the command line, and the parameters that each stands for."""
        return {cls.name: {}}

    # ------------------------------------------------------------ parameters

    @property
    def params(self) -> dict[str, Any]:
        """The parameters it was made with, as JSON-ready values."""
        values = {name: self._param(name) for name in parameters(type(self))}
        for name, value in values.items():
            if isinstance(value, tuple | Rule):
                values[name] = value.to_dict() if isinstance(value, Rule) else list(value)
        return values

    @property
    def nondefault_params(self) -> dict[str, Any]:
        """The parameters that are not the default ones."""
        defaults = parameters(type(self))
        if defaults["set_size"] is None:  # the default depends on whether sizes vary
            defaults["set_size"] = self.inputs.default_set_size
        values = {name: self._param(name) for name in defaults}
        own = {name: value for name, value in values.items() if not _is_default(value, defaults[name])}
        if self.labels is not None:
            own.pop("n_labels", None)
        return own

    def _param(self, name: str) -> Any:
        """Return a parameter as it was given (the property ``coverage`` is the observed coverage, too)."""
        if name == "coverage":
            return vars(self).get("_coverage")
        if not hasattr(self, name):
            raise TypeError(f"__init__ of {self.owner} must keep its parameter {name} as self.{name}")
        return getattr(self, name)

    @property
    def effective_scaling(self) -> str:
        """The ``scaling`` that was chosen. By default rows with names are standardised, since their units differ; other
        rows are scaled as the learner prefers (those of the paper: to length 1)."""
        named = self.inputs.layout is not None and self.inputs.layout.n_numbers > 0
        return self.scaling or ("standard" if named else self.default_scaling)

    # ------------------------------------------------------------ labels, rows, rounds

    @property
    def vocabulary(self) -> LabelVocabulary:
        """Its labels: names and numbers."""
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
    def metadata(self) -> dict[str, Any]:
        """JSON-ready values that travel with the model file."""
        return self.inputs.metadata

    @property
    def round(self) -> int:
        """The next round."""
        return 0 if self.core is None else self.core.round

    @property
    def answered(self) -> AnsweredRounds:
        """Which rounds have been answered."""
        return AnsweredRounds() if self.core is None else self.core.answered

    @property
    def set_size(self) -> int:
        return self._set_size

    @set_size.setter
    def set_size(self, size: int) -> None:
        self._set_size = self.inputs.check_set_size(size)
        if self.core is not None:
            self.core.set_size = self._set_size

    @property
    def id(self) -> str:
        """The id of the learner, which its decisions carry."""
        return self._id

    @id.setter
    def id(self, id_: str) -> None:
        self._id = id_
        if self.core is not None:
            self.core.id = id_

    def add_labels(self, labels: int | Sequence[Label]) -> None:
        """Add labels to a running learner: their names, or how many if it has no names.

        They start with weights of 0; what has been learnt stays. Decisions made before can still be
        answered, as decisions among the labels of that time.
        """
        vocabulary, before, old = self.vocabulary.extended(labels, self.owner), self.n_labels, self.core
        if old is not None and self.fixed_labels:
            raise self.invalid("labels", "left as they are: its matrix couples all labels", labels)
        self.inputs.label_additions.append((self.round, before))
        self.inputs.use_labels(vocabulary)
        if self.inputs.sizes_vary and self._set_size == before:  # all labels stay all labels
            self._set_size = self.n_labels
        if old is not None:
            self.core = self.rebuild_core(old)
            self.core.on_labels_added(before)

    def use_columns(self, columns: Columns | dict[str, Any] | str | PathLike[str]) -> None:
        """Declare the columns of rows: before the first row, or the same with new ones at the end.

        Args:
            columns: what `Columns.infer` gave; or a file of columns, or a model file.
        """
        self.inputs.use_columns(Columns.read(columns))
        self.ensure_core()

    # ------------------------------------------------------------ rule and coverage

    @cached_property
    def rule(self) -> Rule:
        """The rule that chooses its sets."""
        return self.make_rule()

    def _use_rule(self, set_size: int | None) -> None:
        """Show sets of this size, or the default one, by the rule."""
        self.inputs.sizes_vary = self.rule.sizes_vary
        self.inputs.single_label = self.single_label or self.rule.single_label
        self._set_size = self.inputs.check_set_size(
            self.inputs.default_set_size if set_size is None else set_size
        )

    def _make_kernel(self) -> RuleKernel:
        """Return its rule in compiled code, before the first round."""
        return self.rule.make_kernel_for_learner(self.n_labels, self.seed, **self._traits)

    @property
    def _traits(self) -> LearnerTraits:
        return {"full_information": self.feedback == ("label",), "none_label": self.inputs.none_index}

    @property
    def _rule_kernel(self) -> RuleKernel:
        """Its rule in compiled code, in its present state."""
        return self._make_kernel() if self.core is None else self.core.rule

    @property
    def coverage(self) -> Coverage | None:
        """The coverage that was promised, and what was kept of it; ``None`` without a promise."""
        return self.coverage_at(None) if self.rule.promises_coverage else None

    def coverage_at(self, coverage: float | None) -> Coverage:
        """Return the coverage promised and kept at another level, which some decisions asked for."""
        return self.rule.coverage_at(self._rule_kernel, coverage, self.owner)

    def _with_coverage(
        self, core: Core, coverage: float | None, decide: Callable[..., Result], *arguments: Any
    ) -> Result:
        """Call ``decide`` with another promise for this time."""
        if coverage is None:
            return decide(*arguments)
        self.rule.use_coverage(core.rule, coverage, self.owner)
        try:
            return decide(*arguments)
        finally:
            self.rule.use_coverage(core.rule, None, self.owner)

    # ------------------------------------------------------------ the core

    def core_args(self, layout: Layout) -> dict[str, Any]:
        """Return the arguments that every core takes: labels, scaling, rule."""
        return {"k": self.n_labels, "scaling": self.make_scaling(layout), "rule": self._make_kernel()}

    def ensure_core(self) -> Core:
        """Return the core: made when the layout has become known, and anew when rows have got a sparse part."""
        if self.core is None:
            self.core = self._new_core()
        elif self._lacks_sparse_part:
            self.core = self.rebuild_core(self.core)
        core: Core = self.core
        return core

    @property
    def _lacks_sparse_part(self) -> bool:
        """Whether rows have got a sparse part that the core has no room for."""
        layout = self.inputs.layout
        return self.core is not None and layout is not None and self.core.scaling.width != layout.n_sparse

    def rebuild_core(self, old: Core) -> Core:
        """Return a new core with room for more labels, or for a sparse part, that continues an old one."""
        core = self._new_core()
        core.restore(core.state() | old.state())
        core.restore_rounds(old.rounds())
        return core

    def core_for_cursor(self, cursor: Cursor) -> Core:
        """Return the core to decide at a cursor; before the first row or the first text, one of its own, which
        serves until the learner learns."""
        core: Core = self.core
        if core is None or self._lacks_sparse_part:
            learnt = None if core is None else (core, core.n_updates)
            key = (self.inputs.layout, self.n_labels, self._set_size, self.id, learnt)
            if self.trial_core is None or key != self._trial_key:
                self.trial_core = self._new_core() if core is None else self.rebuild_core(core)
                self._trial_key = key
            core = self.trial_core
        if not isinstance(cursor, Cursor) or len(cursor.draw_state) != core.rule.n_draw_state:
            raise self.invalid("cursor", "one of this learner", cursor)
        return core

    def _new_core(self) -> Core:
        layout, inputs = self.inputs.layout, self.inputs
        assert layout is not None
        if self.fixed_labels and layout.n_sparse and inputs.columns is not None:
            raise self.invalid("columns", "without text: its matrix couples all features", inputs.columns)
        core = self.make_core(layout)
        core.bind(
            decision_class=Decision,
            explore_rule=self.rule,
            vocabulary=inputs.vocabulary,
            id=self.id,
            all_labels=inputs.all_labels,
            showable=inputs.showable,
            set_size=self._set_size,
            feedback=self.feedback,
            plain_dense_rows=layout.n_sparse == layout.n_numbers == 0 and not inputs.label_additions,
        )
        return core


def _is_default(value: Any, default: Any) -> bool:
    """Return whether a parameter need not be shown; 1.0 is not True."""
    return value is None or (value == default and isinstance(value, bool) == isinstance(default, bool))
