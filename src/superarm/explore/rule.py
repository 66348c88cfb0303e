"""Rule: how a set is chosen from scores. With a learner, or alone on the scores of any model.

A rule is a kernel that chooses in compiled code (native/rule.pxd), and around it, in plain Python: its
parameters, what a Decision records of it, and from that record, how probable any set was.
"""

from __future__ import annotations

import copy
import uuid
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, Self, TypedDict

import numpy as np

from superarm._types import Array
from superarm.data.cells import is_named_row, json_row
from superarm.data.labels import Label, LabelVocabulary
from superarm.data.rows import Rows, as_row, as_rows
from superarm.decisions import Decision, Decisions
from superarm.decisions.decisions import EligibleLabels
from superarm.errors import FeedbackError, InvalidInput
from superarm.explore.coverage import Coverage
from superarm.explore.decide_rows import decide_rows
from superarm.explore.distributions import SetDistribution
from superarm.explore.scores import parse_scores
from superarm.native.core import ScoresCore
from superarm.native.cursor import Cursor
from superarm.native.rule import RuleKernel
from superarm.parameters import Parametrised, as_bit, check_int, parameters


class RuleParams(TypedDict, total=False):
    """The parameters that every rule passes on to `Rule`."""

    set_size: int | None
    seed: int
    labels: Sequence[Label] | None


class Rule(Parametrised, ABC):
    """The base of all rules.

    Args:
        set_size: how many labels to show, 1 by default; where sizes vary, the most, and all by default.
        seed: every draw is a pure function of (seed, round, position).
        labels: the names of the labels, if they have names.

    A learner that is given a rule uses its own set_size, seed and labels.
    """

    name: ClassVar[str]  # in records and spec files
    shows_one_label: ClassVar[bool] = False
    promises_coverage: ClassVar[bool] = False  # it has `checked_target` and `coverage_at`
    sizes_vary: ClassVar[bool] = False  # set_size is the most that it shows, and may be all labels
    label_keys: ClassVar[tuple[str, ...]] = ()  # entries of its record that are lists of labels

    _hidden_from_tab = Parametrised._hidden_from_tab | {
        *("shows_one_label", "promises_coverage", "sizes_vary", "label_keys", "make_kernel"),
        *("distribution_from", "record", "draw_log_from", "checked_target", "is_own_record", "draw_log_of"),
        *("without_promise", "count_answer", "coverage_at", "warn_of_promise"),
        *("without_label_names", "with_state_of"),
    }

    def __init__(
        self, *, set_size: int | None = None, seed: int = 0, labels: Sequence[Label] | None = None
    ) -> None:
        default_size = None if self.sizes_vary else 1
        self.set_size = default_size if set_size is None else check_int("set_size", self.owner, set_size, 1)
        self.seed = check_int("seed", self.owner, seed, 0)
        if self.shows_one_label and self.set_size != 1:
            raise self.invalid("set_size", "1 (it knows no larger sets)", set_size)
        self.labels = None if labels is None else LabelVocabulary(labels, self.owner).names
        self.id = uuid.uuid4().hex[:16]
        self._core: ScoresCore | None = None  # which decides, where the rule is used alone
        self._kernel_args: dict[
            str, Any
        ] = {}  # what its learner passes to `make_kernel`, where it continues one

    # ------------------------------------------------------------ what a rule defines

    @abstractmethod
    def make_kernel(self, k: int, seed: int) -> RuleKernel:
        """Return a new kernel with room for k labels, for draws by this ``seed``.

        One that promises a coverage takes from a learner what `Cover.make_kernel` takes.
        """

    @classmethod
    @abstractmethod
    def distribution_from(
        cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int
    ) -> SetDistribution:
        """Return the distribution that a decision was drawn from.

        Args:
            record: what `record` gave.
            top: the top set, best first.
            eligible: the labels that could be shown.
            m: how many were shown.
        """

    def record(self, draw_log: Array, labels: LabelVocabulary) -> dict[str, Any]:
        """Return what a Decision keeps, JSON-ready: all that `distribution_from` and `draw_log_from` need.

        Args:
            draw_log: what the kernel wrote down.
            labels: the labels that could be shown; ``draw_log`` names a label by its position among them.
        """
        return {**self.to_dict(), **({"draw_log": draw_log.tolist()} if len(draw_log) else {})}

    def draw_log_from(self, record: dict[str, Any]) -> Array:
        """Return the head of the draw log behind a record: all that moves the rule, now or when an answer comes."""
        return np.array(record.get("draw_log", ()), np.float64)

    def is_own_record(self, record: Rule | dict[str, Any] | None) -> bool:
        """Return whether a ``record`` of a decision, or the rule behind it, is of its own kind.

        Draw logs are read by position: one that another kind of rule wrote must never reach this one.
        """
        name = record.get("name") if isinstance(record, dict) else getattr(record, "name", None)
        return bool(name == self.name)

    def draw_log_of(self, decision: Decision) -> Array:
        """Return what it wrote down at a decision; of a stored one, the part that moves it.

        It is empty if another rule chose the set, and for one that another system chose, unless gamma is all of it.
        """
        if not self.is_own_record(decision._rule) or (decision.round is None and decision.gamma is None):
            return np.zeros(0)
        if decision.vocabulary is not None:  # it is live, or one of many that were stored
            return np.frombuffer(decision.draw_log)
        record: Any = decision.rule
        try:
            return np.asarray(self.draw_log_from(record), np.float64)
        except (KeyError, TypeError, ValueError) as error:
            raise self.invalid("rule of decision", f"as {self} wrote it", record) from error

    def without_promise(self, draw_log: Array) -> Array:
        """Return ``draw_log`` for a default outcome, which teaches the learner and moves no promise."""
        return draw_log

    def count_answer(self, kernel: Any, draw_log: Array, hit: bool, label: int) -> None:
        """Count an answer, ``hit`` or ``label`` (-1 if unknown), for the promise in ``draw_log``, in ``kernel``."""

    def checked_target(self, kernel: Any, coverage: float | None, owner: str) -> float:
        """Return the coverage to ask ``kernel`` for, checked: 0 for a rule without a promise, which refuses any.

        ``None`` is the rule's own; ``owner`` is whose rule it is, for messages.
        """
        if coverage is not None:
            raise _no_promise(coverage, owner)
        return 0.0

    def coverage_at(self, kernel: Any, coverage: float | None, owner: str) -> Coverage:
        """Return what was promised and kept at this ``coverage`` (``None``: the rule's own), as ``kernel`` has counted.

        ``owner`` is whose rule it is, for messages.
        """
        raise _no_promise(coverage, owner)

    def warn_of_promise(self, kernel: Any) -> None:
        """Warn once, after answers, of a promise that ``kernel`` cannot keep."""
        return  # most rules promise nothing

    # ------------------------------------------------------------ parameters

    @property
    def round(self) -> int:
        """The round of its next decision, where it is used alone."""
        return 0 if self._core is None else self._core.round

    @property
    def params(self) -> dict[str, Any]:
        """Its own parameters: all but set_size, seed and labels."""
        common = parameters(Rule)
        return {name: value for name, value in super().params.items() if name not in common}

    def to_dict(self) -> dict[str, Any]:
        """Return its name and parameters, as `rule_from` reads them."""
        return {"name": self.name, **self.params}

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        return f"{self.owner}({inside})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        # without lists and dicts; 1 and 1.0 are equal, and have one hash
        return hash((self.name, frozenset(p for p in self.params.items() if isinstance(p[1], Hashable))))

    def __getstate__(self) -> dict[str, Any]:
        core, state = self._core, None
        if core is not None:
            kernel_state = {name: array.copy() for name, array in core.kernel.state().items()}
            state = core.k, kernel_state, core.rounds()
        return {**vars(self), "_core": state}

    def __setstate__(self, values: dict[str, Any]) -> None:
        state = values["_core"]
        vars(self).update(values, _core=None)
        if state is not None:
            self._core = self._make_core(*state)

    def without_label_names(self) -> Self:
        """Return a copy in its present state, for label indices."""
        copied = copy.copy(self)
        copied.__setstate__(copied.__getstate__() | {"labels": None})
        return copied

    def with_state_of(self, kernel: RuleKernel, round_: int, kernel_args: dict[str, Any]) -> Self:
        """Return a copy for label indices that continues from a learner's ``kernel``, at round ``round_``.

        ``kernel_args`` are what the learner passes to `make_kernel`, beside k and seed.
        """
        copied = self.without_label_names()
        copied._kernel_args = kernel_args
        copied._core = copied._make_core(kernel.k, kernel.state())
        copied._core.round = round_
        return copied

    # ------------------------------------------------------------ alone, on the scores of any model

    def decide(
        self,
        scores: Any = None,
        *,
        probabilities: Any = None,
        x: Any = None,
        eligible: Iterable[Label] | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
    ) -> Decision:
        """Choose a set by scores of all labels, or by their probabilities, from any model.

        Args:
            scores: a number for each label.
            probabilities: in place of scores.
            x: the row, to be kept with the decision.
            eligible: the only labels that may be shown.
            set_size: how many to show.
            coverage: another promise, for this time (`superarm.explore.Cover`).

        >>> from superarm.explore import Dilute
        >>> rule = Dilute(gamma=0.2, set_size=2, labels=["ant", "bee", "cat", "dog"])
        >>> decision = rule.decide(scores=[0.1, 2.0, 0.3, 1.2])
        >>> decision.top, round(decision.propensity, 3)
        (['bee', 'dog'], 0.065)
        """
        core, s, indices, m, target = self._prepare(1, scores, probabilities, eligible, set_size, coverage)
        if x is not None:
            x = json_row(x) if is_named_row(x) else as_row(x, None, self.owner)
        decision = self._decide(core, s, indices, m, target)
        decision.x = x
        return decision

    def decide_many(
        self,
        scores: Any = None,
        *,
        probabilities: Any = None,
        x: Any = None,
        eligible: Iterable[Label] | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
    ) -> Decisions:
        """Choose a set for each row of scores, at compiled speed: the same bits as one by one.

        ``eligible``, ``set_size`` and ``coverage`` are as in `decide`.

        Args:
            scores: a matrix with a row for each decision, and a number for each label.
            probabilities: in place of scores.
            x: the rows, to be kept with the decisions.

        >>> from superarm.explore import RunnerUp
        >>> decisions = RunnerUp(set_size=2).decide_many(scores=[[0.1, 2.0, 0.3], [1.0, 0.0, 3.0]])
        >>> decisions.top.tolist()
        [[1, 2], [2, 0]]
        """
        core, s, indices, m, target = self._prepare(2, scores, probabilities, eligible, set_size, coverage)
        rows = None if x is None else as_rows(x, None, self.owner)
        if rows is not None and len(rows) != len(s):
            raise self.invalid("x", f"{len(s)} rows, as scores has", len(rows))
        decisions, _ = decide_rows(core, Rows(s), EligibleLabels(indices), m, target, rows)
        return decisions

    def distribution(
        self,
        scores: Any = None,
        *,
        probabilities: Any = None,
        eligible: Iterable[Label] | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
    ) -> SetDistribution:
        """Return the exact distribution of its next set; this moves nothing.

        ``scores``, ``probabilities``, ``eligible``, ``set_size`` and ``coverage`` are as in `decide`.

        >>> from superarm.explore import Uniform
        >>> Uniform(set_size=2).distribution(scores=[1.0, 2.0, 3.0]).inclusion().round(3).tolist()
        [0.667, 0.667, 0.667]
        """
        core, s, indices, m, target = self._prepare(1, scores, probabilities, eligible, set_size, coverage)
        decision: Any = self._decide(core, s, indices, m, target, core.cursor())
        return self.distribution_from(decision.rule, decision.top, decision.candidates, m)

    def update(self, decision: Decision, *, hit: bool) -> None:
        """Take the answer to a decision of its own, once: it moves the rule, and nothing else is learnt.

        Args:
            decision: what `decide` gave.
            hit: whether the right label was shown.
        """
        core, owner, bit = self._core, self.owner, as_bit(hit)
        if not isinstance(decision, Decision):
            raise FeedbackError.must("decision", owner, "a Decision", decision)
        if bit is None:
            raise FeedbackError.must("hit", owner, "True or False", hit)
        if core is None or decision.learner != self.id or decision.round not in range(self.round):
            raise FeedbackError.must("decision", owner, f"of this rule ({self.id})", decision.learner)
        if decision.round in core.answered:
            raise FeedbackError.answered_before(owner, decision.round)
        row, sets = np.zeros(core.k, np.float32), decision.sets_among(core.vocabulary, owner)
        log = self.draw_log_of(decision).tobytes()
        core.update(decision, row, core.all_labels, sets, log, hit=bit, label=-1, likelihood=None)
        self.warn_of_promise(core.kernel)

    def _decide(
        self, core: ScoresCore, s: Array, eligible: Array, m: int, target: float, at: Cursor | None = None
    ) -> Decision:
        """Return a Decision without a row."""
        decision: Decision = core.decide(s, None, eligible, m, at, target)
        decision.row = None  # that was the scores
        return decision

    def _core_for(self, k: int) -> ScoresCore:
        """Return the core for k scores; with another k than before, a new one that continues from the old state."""
        core = self._core
        if core is None:
            core = self._core = self._make_core(k)
        elif core.k != k:
            core = self._core = self._make_core(k, core.kernel.state(), core.rounds())
        return core

    def _make_core(self, k: int, kernel_state: Any = None, rounds: Any = None) -> ScoresCore:
        """Return a new core for k scores, with the kernel state and the rounds of an older one if they are given."""
        core = ScoresCore(k, self.make_kernel(k, self.seed, **self._kernel_args))
        vocabulary = LabelVocabulary(k if self.labels is None else list(self.labels))
        core.bind(decision_class=Decision, rule=self, vocabulary=vocabulary, id=self.id)
        if kernel_state is not None:
            core.kernel.restore(kernel_state)
        if rounds is not None:
            core.restore_rounds(rounds)
        return core

    def _prepare(
        self,
        ndim: int,
        scores: Any,
        probabilities: Any,
        eligible: Iterable[Label] | None,
        set_size: int | None,
        coverage: float | None,
    ) -> tuple[ScoresCore, Array, Array, int, float]:
        """Return the core, the scores (of ``ndim`` dimensions), the eligible labels, how many to show, the coverage."""
        s = parse_scores(self.owner, scores, probabilities, ndim)
        k = s.shape[-1]
        if self.labels is not None and k != len(self.labels):
            raise self.invalid("scores", f"{len(self.labels)} numbers, one a label", k)
        core = self._core_for(k)
        indices: Array = core.all_labels
        if eligible is not None:
            indices = np.sort(core.vocabulary.encode(eligible, "eligible", self.owner))
            if len(indices) == 0:
                raise self.invalid("eligible", "distinct labels, at least one", eligible)
        size = self.set_size if set_size is None else check_int("set_size", self.owner, set_size, 1)
        size = k if size is None else size
        if self.shows_one_label and size != 1:
            raise self.invalid("set_size", "1 (it knows no larger sets)", size)
        if size > k:
            raise self.invalid("set_size", f"at most {k}, as there are labels", size)
        target = self.checked_target(core.kernel, coverage, self.owner)
        return core, s, indices, min(size, len(indices)), target


def _no_promise(coverage: float | None, owner: str) -> InvalidInput:
    wanted = f"left out: {owner} was made without a promise (Cover has one)"
    return InvalidInput.must("coverage", owner, wanted, coverage)
