"""Learner: what all algorithms share. An algorithm adds a state, a `learn` kernel and parameters."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from functools import lru_cache
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from superarm.decision import Decision
from superarm.decisions import Decisions
from superarm.errors import FeedbackError, ModelFileError
from superarm.explore.base import NO_NUMBERS, Rule
from superarm.explore.greedy import Greedy, Nothing
from superarm.kernels.compiling import resolve
from superarm.kernels.held import Held
from superarm.kernels.linear import LINE, set_apart
from superarm.kernels.loop import Kernels, Loop, Tables, compile_loop
from superarm.kernels.scaling import Standard, StandardScratch, Unit, absorb, standardise
from superarm.labels import Label, Labels
from superarm.learners.answered import Answered
from superarm.learners.common import Common, Plan
from superarm.learners.cursor import Cursor, advanced, begun_copy, cursor_of, decided_at, stacked
from superarm.learners.files import copied, read, write
from superarm.named import is_named_row, plain_row
from superarm.parameters import whole
from superarm.rows import Row, SparseRow

__all__ = ["LabelLearner", "Learner", "Nothing", "load"]

Array = np.ndarray[Any, Any]
INT64 = np.dtype(np.int64)
FEW_NUMBERS = 64  # of a rule: more are worth a copy of those that it used


class Learner(Common):
    """The API of every learner.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels (strings or whole numbers), kept with the model.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: every draw is a pure function of (seed, round, position).
        intercept: give every label a constant term: a further feature that is always 0.1 (or the
            number given). Beside rows of length 1 a constant of 1 would be as loud as all the rest.

    A subclass sets the class variables and defines `start` and `scratch`; parameters of its own are
    kept as attributes of the same name (docs/extend.md). The state is made when the first row comes:
    feature-major if that row is sparse, label-major if it is dense.
    """

    name: ClassVar[str]  # on the command line
    kernels: ClassVar[Kernels]
    recipe: ClassVar[int] = 1  # raised when a model file would go on otherwise than before
    feedback: ClassVar[tuple[str, ...]] = ("hit",)  # what update takes: hit, label, or both
    learns_from_given: ClassVar[bool] = False  # from sets that somebody else chose
    single_label: ClassVar[bool] = False  # the theory knows only m = 1
    moves_ineligible: bool = False  # an update may move labels that were not eligible
    couples_labels: bool = False  # no label can be added
    layout_matters: ClassVar[bool] = False  # dense and sparse rows are scaled differently
    own_only: ClassVar[str] = "its own, not a given set"  # what is wrong with a foreign decision

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | None = None,
        set_size: int = 1,
        seed: int = 0,
        intercept: bool | float = True,
    ) -> None:
        self.of = type(self).__name__  # as error messages name it
        self.known = Labels.of(n_labels, labels, self.of)
        self.n_features = None if n_features is None else whole("n_features", self.of, n_features, 1)
        self.names = None
        self.set_size = self._size(set_size)
        self.seed = whole("seed", self.of, seed, 0)
        self.intercept = intercept
        if not isinstance(intercept, int | float) or not 0.0 <= intercept <= 1e6:
            raise self.invalid("intercept", "True, False or a number from 0 to 10^6", intercept)
        self.bias = 0.1 if intercept is True else float(intercept)
        self.sparse: bool | None = None
        self.state: Any = None
        self.round = 0
        self.growth: list[tuple[int, int]] = []  # (round, labels before) for each `add_labels`
        self.answered = Answered()
        self.id = uuid.uuid4().hex[:16]
        self.notes: dict[str, Any] = {}  # JSON-ready facts that travel with the model file
        self._forget_compiled()

    @classmethod
    def spellings(cls) -> dict[str, dict[str, Any]]:
        """Its names on the command line, and the parameters that each stands for."""
        return {cls.name: {}}

    # ------------------------------------------------------------ what a subclass defines

    def start(self, shape: tuple[int, int]) -> Any:
        """The state before the first round: a NamedTuple with W of ``shape``, ``scaling`` and ``rule``."""
        raise TypeError(f"{type(self).__name__} must define start(shape)")

    def scratch(self) -> Any:
        """Scratch space: a NamedTuple with ``scaling`` and ``rule`` in it."""
        raise TypeError(f"{type(self).__name__} must define scratch()")

    @property
    def rule(self) -> Rule:
        """How it chooses its sets."""
        raise TypeError(f"{type(self).__name__} must define rule")

    def tables(self, n: int, m: int) -> Tables:
        """What its kernels need to know about sets of m out of n labels."""
        return Tables(self.rule.table(n, m), 0)

    def learns_from(self, decision: Decision) -> bool:
        """Whether a ``decision`` that somebody else made teaches this learner anything."""
        return self.learns_from_given

    def given_odds(self, decision: Decision, sets: Array, among: Array) -> tuple[Held, float, float]:
        """Tables (held), log ordered propensity and belief by which to learn from somebody else's decision.

        Args:
            decision: it.
            sets: its set, as numbers of labels: best first, as drawn, and the top set.
            among: the labels that could be shown.
        """
        return self._plan(len(among), sets.shape[1]).tables, decision.log_ordered_propensity, 0.0

    def grown(self, before: int) -> None:
        """Labels from number ``before`` on are new: see to the parts of the state that start not at 0."""

    def memory_to_json(self) -> dict[str, Any] | None:
        """What a model file must keep beside the arrays of the state; ``None`` for nothing."""
        return None

    def memory_from(self, kept: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Put back what `memory_to_json` gave as ``kept``, with the ``arrays`` of the model file."""

    def anneal(self, left: float, passes: int) -> None:
        """For steps that shrink: training goes through a log several times.

        Args:
            left: the share that is still to come. 1 at the start, and once more at the end: what comes
                then is life.
            passes: how often it goes through the log.
        """

    @property
    def unit(self) -> Unit:
        """Rows of length 1, as the theory of the paper's learners has them."""
        return Unit(self.bias)

    # ------------------------------------------------------------ learning

    def cursor(self) -> Cursor:
        """What deciding moves: the next round, and the rule's numbers; a copy."""
        return cursor_of(self)

    def advance(self, decision: Decision) -> None:
        """Move as if it had made this decision, of its own, restored or live; nothing is scored."""
        advanced(self, decision)

    def example_row(self) -> Any:
        """A row that it would take; of a learner that has not been told a width, one with names."""
        if self.n_features is None or self.names is not None:
            return {}
        if self.sparse:
            return SparseRow(np.zeros(0, np.int32), np.zeros(0, np.float32), self.n_features)
        return np.zeros(self.n_features, np.float32)

    def decide(
        self,
        x: Any,
        *,
        eligible: Iterable[Label] | None = None,
        set_size: int | None = None,
        at: Cursor | None = None,
    ) -> Decision:
        """Choose a set of labels to show for x.

        Args:
            x: a dense row; a sparse one, as a SciPy row or a pair (indices, values); or one with names,
                as a dict or a data frame's row (superarm/named.py).
            eligible: the only labels that may be shown this time.
            set_size: how many to show this time.
            at: decide with this cursor, and move it in place of the learner.
        """
        if at is not None:
            learner = begun_copy(self, x) if self.state is None else self
            return decided_at(learner, x, eligible, set_size, at)
        among = self._can_show if eligible is None else self._eligible(eligible)
        m = self.set_size if set_size is None else self._size(set_size)
        if type(x) is not np.ndarray and is_named_row(x):
            return self._decide_named(x, among, m)
        return self._decide_row(self._row(x), among, m)

    def _decide_named(self, x: Any, among: Array, m: int) -> Decision:
        """The decision keeps the row as it came, and a row that is refused leaves no names behind."""
        before = None if self.names is None else len(self.names), self.n_features, self.state
        try:
            decision = self._decide_row(self._row(x), among, m)
            decision.x = plain_row(x)
        except Exception:
            count, self.n_features, self.state = before
            if self.state is None:
                self.names = self.sparse = None
                self._forget_compiled()
            elif self.names is not None and count is not None:
                self.names.forget(count)
            raise
        return decision

    def _decide_row(self, row: Row, among: Array, m: int) -> Decision:
        tables, m, n_numbers = self._plan(len(among), m)
        sets = np.empty((3, m), INT64)
        numbers = np.empty(n_numbers) if n_numbers else NO_NUMBERS
        arguments = (
            self._model,
            tables,
            row,
            among,
            self.seed,
            self.round,
            sets,
            numbers,
        )
        if self._decide is None:
            self._decide = resolve(self._loop.decide, arguments)
        fine, ordered, of_set, belief = self._decide(*arguments)
        if not fine:
            raise self._not_finite(row)
        kept = None if among is self._all else among
        rule = (self._rule, self._rule.kept(numbers) if n_numbers > FEW_NUMBERS else numbers)
        decision = Decision(row, sets, kept, (ordered, of_set), belief, rule, self.round, self.id, self.known)
        self.round += 1
        return decision

    def update(self, decision: Decision, *, hit: bool | None = None, label: Label | None = None) -> None:
        """Learn from the answer to a decision: now or days later, in any order, once.

        Args:
            decision: what `decide` gave, or `Decision.given`.
            hit: whether the right label was among the shown ones.
            label: the right label, where the world names it.
        """
        row, sets, among, hit, number = self._read(decision, hit, label)
        given = decision.round is None
        if given:
            tables, ordered, belief = self.given_odds(decision, sets, among)
        else:
            tables = self._plan(len(among), sets.shape[1]).tables
            ordered, belief = decision.log_ordered_propensity, decision.belief
        arguments = (
            self._model,
            tables,
            row,
            among,
            sets,
            ordered,
            decision.log_propensity,
            belief,
            given,
            hit,
            number,
        )
        if self._update is None:
            self._update = resolve(self._loop.update, arguments)
        status = self._update(*arguments)
        if status:
            raise self._failed(status, row, decision.round)
        self._book(decision)

    def decide_many(
        self,
        X: Any,
        *,
        eligible: Iterable[Label] | Sequence[Iterable[Label]] | None = None,
        set_size: int | None = None,
    ) -> Decisions:
        """Choose a set for every row of X: the same bits as `decide` row by row, in one compiled loop.

        Args:
            X: a matrix, or a data frame.
            eligible: the only labels that may be shown: one list, or a list for each row (slower).
            set_size: how many to show.
        """
        rows = self._own_rows(X)
        m = self.set_size if set_size is None else self._size(set_size)
        each = None if eligible is None else self._eligible_each(eligible, len(rows), m)
        shown = self._all if isinstance(each, list) else self._can_show if each is None else each
        tables, fewer, n_numbers = self._plan(len(shown), m)
        if isinstance(each, list) or n_numbers > FEW_NUMBERS:  # n x k numbers might not fit
            among = each if isinstance(each, list) else [shown] * len(rows)
            made = [self._decide_row(rows.row(i), labels, m) for i, labels in enumerate(among)]
            return Decisions.of(made, rows, self.known, fewer)
        m = fewer
        sets, odds = np.empty((len(rows), 3, m), np.int64), np.empty((len(rows), 3))
        numbers = np.zeros((len(rows), n_numbers))
        done = self._loop.decide_many(
            self._model,
            tables,
            rows,
            shown,
            self.seed,
            self.round,
            sets,
            numbers,
            odds,
        )
        rounds, kept = np.arange(self.round, self.round + len(rows)), None if shown is self._all else shown
        self.round += done
        if done < len(rows):
            raise self._not_finite(rows.row(done))
        return Decisions(rows, sets, kept, odds, self._rule, numbers, rounds, self.id, self.known)

    def update_many(self, decisions: Decisions | list[Decision], hits: Any = None, *, labels: Any = None) -> int:
        """Learn from the answers to many decisions, in their order: the same bits as one by one.

        Args:
            decisions: what `decide_many` gave, or a part of it.
            hits: for each, whether the right label was among the shown ones; ``None`` where no answer came.
            labels: for each, the right label, where the world names it; or ``None``.

        Returns:
            How many answers were learnt from.
        """
        if isinstance(decisions, list):
            return self._update_list(decisions, hits, labels)
        which, bits, told = self._answers(decisions, hits, labels)
        among = decisions._eligible
        if isinstance(among, list) or self.growth or decisions._known is not self.known:
            for i, hit, label in zip(which, bits, told, strict=True):
                named = None if labels is None else self.known.public([label])[0]
                self.update(decisions[i], hit=None if named is not None else bool(hit), label=named)
            return len(which)
        assert decisions.rows is not None
        among = self._all if among is None else among
        done, status = self._loop.update_many(
            self._model,
            self._plan(len(among), decisions.set_size).tables,
            decisions.rows,
            which,
            among,
            decisions._sets,
            decisions._odds,
            bits,
            told,
        )
        self.answered.add_many(decisions.round[which[:done]])
        if status:
            at = which[done]
            raise self._failed(status, decisions.rows.row(at), int(decisions.round[at]))
        return done

    def _update_list(self, decisions: list[Decision], hits: Any, labels: Any) -> int:
        columns = stacked(self, decisions)
        if columns is not None:
            return self.update_many(columns, hits, labels=labels)
        answers = [{"hit": bool(hit)} for hit in hits] if labels is None else [{"label": r} for r in labels]
        for decision, answer in zip(decisions, answers, strict=True):
            self.update(decision, **answer)
        return len(decisions)

    def run(self, X: Any, y: Any, visit: Any = None) -> Array:
        """Rounds over rows of X, answered from y, in one compiled loop.

        The same bits as `decide` and `update` round by round.

        Args:
            X: a matrix, or a data frame.
            y: label numbers 0..k-1; they answer and count, and reach no learner of bits.
            visit: the rows to go through, in this order; all of them by default.

        Returns:
            How many rounds had a wrong top label, a miss of the top set, a miss of the shown set.
        """
        rows = self._rows(X)
        y, visit = self._checked_run(len(rows), y, visit)
        tables, m, n_numbers = self._plan(len(self._can_show), self.set_size)
        drawn, top = np.empty((2, m), np.int64)
        counts, numbers = np.zeros(3, np.int64), np.zeros(n_numbers)
        done, status = self._loop.run(
            self._model,
            tables,
            rows,
            y,
            visit,
            self._can_show,
            self.seed,
            self.round,
            drawn,
            top,
            numbers,
            counts,
        )
        self.answered.add_range(self.round, self.round + done)
        self.round += done
        if status:
            raise self._failed(status, rows.row(visit[done]), self.round)
        return counts

    def add_labels(self, labels: int | Sequence[Label]) -> None:
        """Add labels to a running learner: their names, or how many if it has no names.

        They start with weights of 0; what has been learnt stays. Decisions made before can still be
        answered, as decisions among the labels of that time.
        """
        known, before, old = self.known.grown(labels, self.of), self.n_labels, self.state
        if old is not None and self.couples_labels:
            raise self.invalid("labels", "left as they are: its matrix couples all labels", labels)
        self.growth.append((self.round, before))
        self.known = known
        self._forget_compiled()
        if old is not None:
            self.state = None
            self._begin(bool(self.sparse))
            copied(old, self.state)
            self.grown(before)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to the file ``path``; loaded again, it goes on bit for bit."""
        write(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Learner:
        """The model that `save` wrote to ``path``."""
        learner = load(path)
        if not isinstance(learner, cls):
            raise ModelFileError.must("class", str(path), cls.__name__, learner.of)
        return learner

    # ------------------------------------------------------------ inside

    def _read(self, decision: Decision, hit: Any, label: Any) -> tuple[Row, Array, Array, bool, int]:
        """A checked answer: row, sets and eligible labels as numbers, the bit, the label's number."""
        self._check_answer(decision, hit, label)
        row, sets, among = decision.x, decision._sets, decision._eligible
        if decision._known is None:  # it was stored, or is somebody else's: labels, not numbers
            row = self._row(row)
            drawn = self.known.numbers(sets[1], "decision", self.of)
            top = self.known.numbers(sets[2], "decision", self.of) if sets[2] else np.full_like(drawn, -1)
            sets = np.stack([drawn, drawn, top])
            among = None if among is None else np.sort(self.known.numbers(among, "decision", self.of))
        elif type(row) is dict:
            row = self._row(row)
        if among is None:
            among = self._all if not self.growth else self._labels_at(decision.round)
        number = -1
        if label is not None:
            found = self.known.number(label)
            if found is None:
                raise self.invalid("label", "a known label", label)
            limited = decision._eligible is not None or self.growth
            if limited and found not in among and found != self.none:
                raise FeedbackError.must("label", self.of, "one of the eligible labels", label)
            number, hit = found, found in sets[1].tolist()
        return row, sets, among, bool(hit), number

    def _book(self, decision: Decision) -> None:
        """This one has been answered."""
        if decision.round is None:
            decision.taught |= {self.id}
        else:
            self.answered.add(decision.round)

    def _begin(self, sparse: bool) -> None:
        """Make the state, in the layout for this kind of rows."""
        self.sparse = sparse
        self._rule = self.rule
        d, k = self.n_features + 1, self.n_labels
        self.state = self.start((d, k) if sparse else (k, -(-d // LINE) * LINE))
        self._scratch = self.scratch()
        standard = self.names is not None and isinstance(self.state.scaling, Unit)
        if standard:  # numbers with names have all kinds of units: length 1 alone would not do
            scaling = Standard.start(self.n_features, sparse=False, bias=self.bias, forget=0.0)
            self.state = self.state._replace(scaling=scaling)
            self._scratch = self._scratch._replace(scaling=StandardScratch.of(self.n_features))
        if self.names is not None and isinstance(self.state.scaling, Standard):
            self.state = self.state._replace(scaling=self.state.scaling.named(self.names.places))
        self.state, self._scratch = set_apart(self.state), set_apart(self._scratch)
        self._loop = loop_of(type(self), type(self._rule), standard)

    def _plan(self, n: int, m: int) -> Plan:
        try:
            return self._plans[n, m]
        except KeyError:
            shown = min(n, m)
            plan = Plan(Held(self.tables(n, shown)), shown, self._rule.n_numbers(n, shown))
            self._plans[n, m] = plan
            return plan

    def _labels_at(self, round_: int | None) -> Array:
        """The labels that there were at a round."""
        earlier = [k for start, k in self.growth if round_ is not None and round_ < start]
        return self._all[: earlier[0]] if earlier else self._all


@lru_cache(maxsize=256)
def loop_of(learner: type[Learner], rule: type[Rule], standard: bool) -> Loop:
    """The compiled loop of a learner that chooses its sets by a rule; ``standard`` replaces its scaling."""
    kernels, name = learner.kernels, f"{learner.name}-{rule.name}"
    if standard:
        kernels, name = kernels._replace(scale=standardise, absorb=absorb), f"{name}-named"
    return compile_loop(name, kernels, rule.choose, rule.hear)


class LabelLearner(Learner):
    """A learner with full information: it shows its top set, and is told the label."""

    feedback = ("label",)

    @property
    def rule(self) -> Rule:
        return Greedy()


def load(path: str | PathLike[str]) -> Learner:
    """The learner that `Learner.save` wrote to ``path``; a class of your own must be imported first."""
    return read(path, Learner)
