"""Algorithm: what a subclass of Learner defines, and the core that is made of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from superarm._types import Array
from superarm.data.rows import Layout
from superarm.decisions import Decision
from superarm.explore.cover import Cover, Coverage
from superarm.explore.registry import rule_from
from superarm.explore.rule import Rule
from superarm.learners.info import LearnerInfo
from superarm.learners.inputs import Inputs
from superarm.native.core import Core, Cursor
from superarm.native.scaling import Scaling, Standard, Unit

SCALINGS = ("standard", "unit")


class Algorithm(LearnerInfo):
    """The contract of a subclass: `make_core` and `make_rule`, and the others where it differs."""

    name: ClassVar[str]  # on the command line
    recipe: ClassVar[int] = 1  # raised when a model file would go on otherwise than before
    feedback: ClassVar[tuple[str, ...]] = ("hit",)  # what update takes: some of hit, label, likelihood
    learns_from_given: ClassVar[bool] = False  # from sets that somebody else chose
    single_label: ClassVar[bool] = False  # the theory knows only m = 1
    moves_ineligible: bool = False  # an update may move labels that were not eligible
    couples_labels: bool = False  # no label can be added
    own_scaling: ClassVar[str] = "unit"  # of rows without names, if nobody chose another
    inputs_class: ClassVar[type[Inputs]] = Inputs  # what rows and labels mean
    accepted_decisions: ClassVar[str] = "its own, not a given set"  # what is wrong with a foreign decision

    seed: int
    bias: float  # the constant feature beside a row
    scaling: str | None  # one of SCALINGS, or its own

    def make_core(self, layout: Layout) -> Core:
        """The algorithm in compiled code, for rows of this layout, before the first round."""
        raise TypeError(f"{self.owner} must define make_core(layout)")

    def make_rule(self) -> Rule:
        """How it chooses its sets."""
        raise TypeError(f"{self.owner} must define make_rule()")

    def core_parts(self, layout: Layout) -> dict[str, Any]:
        """What every core is made of: labels, scaling, rule."""
        return {"k": self.n_labels, "scaling": self.make_scaling(layout), "rule": self._native_rule()}

    def _native_rule(self) -> Any:
        """Its rule in compiled code, before the first round."""
        if not isinstance(self.rule, Cover):
            return self.rule.make_native(self.n_labels, self.seed)
        native = self.rule.make_native(self.n_labels, self.seed, full_information=self.feedback == ("label",))
        if self.inputs.none is not None:
            native.none = self.inputs.none
        return native

    def make_scaling(self, layout: Layout) -> Scaling:
        """How rows of this layout reach the weights, by `effective_scaling`."""
        d, width, numbers = layout
        if self.effective_scaling == "unit":
            return Unit(d, width, bias=self.bias)
        if not self.bias < 1.0:
            raise self.invalid("intercept", "below 1 where columns are standardised", self.bias)
        return Standard(d, width, bias=self.bias, sparse_bias=self.bias, numbers=numbers)

    @property
    def effective_scaling(self) -> str:
        """How rows reach the weights: the ``scaling`` that was chosen; else of rows with names, whose numbers have all
        kinds of units, standardised; else the learner's own: for the paper's of length 1, as its theory asks."""
        named = self.inputs.layout is not None and self.inputs.layout.numbers > 0
        return self.scaling or ("standard" if named else self.own_scaling)

    def learns_from(self, decision: Decision) -> bool:
        """Whether a ``decision`` that somebody else made teaches this learner anything."""
        return self.learns_from_given

    def given_log_probs(self, decision: Decision, n: int, m: int) -> tuple[float, float]:
        """Log ordered propensity and belief to learn by from another's ``decision`` of m of n labels."""
        return decision.log_ordered_propensity, 0.0

    def on_labels_added(self, before: int) -> None:
        """Labels from number ``before`` on are new: see to the arrays of the core that start not at 0."""

    def anneal(self, left: float, passes: int) -> None:
        """For steps that shrink: training goes through a log several times.

        Args:
            left: the share that is still to come. 1 at the start, and once more at the end: what comes
                then is life.
            passes: how often it goes through the log.
        """

    def memory_to_json(self) -> dict[str, Any] | None:
        """What a model file must keep beside the arrays of the core; ``None`` for nothing."""
        return None

    def memory_from_json(self, kept: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Put back what `memory_to_json` gave as ``kept``, with the ``arrays`` of the model file."""

    @classmethod
    def command_names(cls) -> dict[str, dict[str, Any]]:
        """Its names on the command line, and the parameters that each stands for."""
        return {cls.name: {}}

    # ------------------------------------------------------------ what is made of it

    @cached_property
    def rule(self) -> Rule:
        """How it chooses its sets."""
        return self.make_rule()

    @property
    def coverage(self) -> Coverage | None:
        """The coverage that was promised, and what was kept of it; ``None`` without a promise."""
        return self.coverage_at(None) if isinstance(self.rule, Cover) else None

    def coverage_at(self, coverage: float | None) -> Coverage:
        """The coverage promised and kept at another level, which some decisions asked for."""
        rule = self._coverage_rule(coverage)
        native = self._native_rule() if self.core is None else self.core.rule
        return rule.coverage_at_level(native, rule.coverage if coverage is None else coverage)

    def _coverage_rule(self, coverage: Any) -> Cover:
        if not isinstance(self.rule, Cover):
            wanted = f"left out: {self.owner} promises none (SetLogit(coverage=...) does)"
            raise self.invalid("coverage", wanted, coverage)
        return self.rule

    def _set_rule(self, explore: Rule | dict[str, Any], set_size: int | None) -> Rule:
        """The rule that was asked for, and the size of its sets."""
        rule = rule_from(explore, self.owner) if isinstance(explore, dict) else explore
        if not isinstance(rule, Rule):
            raise self.invalid("explore", "a rule of superarm.explore", explore)
        self._set_size(set_size, rule)
        if rule.single_label and self._size > 1:
            raise self.invalid("explore", "a rule for sets of more than one label", explore)
        return rule

    def _with_coverage(self, core: Any, coverage: float | None, decide: Any, *arguments: Any) -> Any:
        """What ``decide`` gives, with another promise for this time."""
        if coverage is None:
            return decide(*arguments)
        rule = self._coverage_rule(coverage)
        core.rule.level = rule.level(core.rule, coverage, self.owner)
        try:
            return decide(*arguments)
        finally:
            core.rule.level = rule.coverage

    def _set_size(self, set_size: int | None, rule: Any) -> None:
        """Where sizes vary, ``None`` is all labels; else one."""
        self.inputs.sizes_vary = isinstance(rule, Rule) and rule.sizes_vary
        usual = self.n_labels if self.inputs.sizes_vary else 1
        self._size = self.inputs.size(usual if set_size is None else set_size)

    def ensure_core(self) -> Core:
        """The core, made when the layout has become known, and anew when rows have got a sparse part."""
        core: Core | None = self.core
        if core is None:
            core = self.core = self.new_core(self.inputs.layout)
        elif self._is_narrow:
            core = self.core = self.rebuild_core(core)
        return core

    @property
    def _is_narrow(self) -> bool:
        layout = self.inputs.layout
        return self.core is not None and layout is not None and self.core.scaling.width != layout.width

    def rebuild_core(self, old: Core) -> Core:
        """A new core with room for more labels, or for a sparse part, that goes on from an old one."""
        core = self.new_core(self.inputs.layout)
        copy_state(old, core)
        return core

    def core_for_cursor(self, at: Cursor) -> Core:
        """The core to decide at a cursor; before the first row or the first text, one that is
        forgotten again."""
        core: Core | None = self.core
        if core is None or self._is_narrow:
            layout, trial = vars(self).get("_trial", (None, None))
            if layout != self.inputs.layout or core is not None:
                trial = self.new_core(self.inputs.layout) if core is None else self.rebuild_core(core)
                self._trial = self.inputs.layout, trial
            core = trial
        if not isinstance(at, Cursor) or len(at.rule_state) != core.rule.n_draw_state:
            raise self.invalid("at", "a cursor of this learner", at)
        return core

    def new_core(self, layout: Layout | None) -> Core:
        assert layout is not None
        if self.couples_labels and layout.width and self.inputs.columns is not None:
            raise self.invalid(
                "columns", "without text: its matrix couples all features", self.inputs.columns
            )
        core = self.make_core(layout)
        core.decision_class, core.label_set, core.id, core.explore_rule = (
            Decision,
            self.label_set,
            self._id,
            self.rule,
        )
        core.everything, core.can_show = self.inputs.everything, self.inputs.can_show
        core.set_size, core.takes_hit = self._size, "hit" in self.feedback
        core.fast = layout.width == layout.numbers == 0 and not self.inputs.growth
        return core


def copy_state(old: Core, new: Core) -> None:
    """Let a core that may have room for more labels, or for a sparse part, go on from another one."""
    new.restore(new.state() | old.state())
    new.round = old.round
    new.ledger.restore(old.ledger.low, old.ledger.later)
