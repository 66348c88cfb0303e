"""PlainLearner: a learner of your own in plain Python. Slow, and next to the compiled ones in everything.

    class Counting(sa.PlainLearner):
        def begin(self):
            return {"yes": np.ones(self.n_labels), "asked": np.full(self.n_labels, 2.0)}

        def score(self, x):
            return np.log(self.memory["yes"] / self.memory["asked"])

        def learn(self, x, shown, hit):
            self.memory["asked"][shown] += 1
            self.memory["yes"][shown] += hit

Sets, late answers, one answer each, eligible labels, names, batches, model files: all of it is taken care
of. What you keep in ``memory`` must be arrays, or values that JSON knows: it is what a model file holds.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.decision import Decision
from superarm.decisions import Decisions
from superarm.errors import WeightsOverflow
from superarm.explore.base import Rule, choosers, rule_from
from superarm.explore.runner_up import RunnerUp
from superarm.labels import Label
from superarm.learners.base import Learner
from superarm.rows import Dense, Row, Rows, Sparse, densify

__all__ = ["PlainLearner"]

Array = np.ndarray[Any, Any]


class State(NamedTuple):
    rule: Any
    memory: dict[str, Any]


class PlainLearner(Learner):
    """The base class of learners in plain Python: define `begin`, `score` and `learn`.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: every draw is a pure function of (seed, round, position).
        intercept: kept as it is; what it means is up to you.
        explore: the rule that chooses the sets, of `superarm.explore`; RunnerUp() by default.

    Parameters of your own are keyword-only, and kept as attributes of the same name.
    """

    feedback = ("hit",)
    learns_from_given = True
    moves_ineligible = True  # nobody knows what `learn` does

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | None = None,
        set_size: int = 1,
        seed: int = 0,
        intercept: bool | float = True,
        explore: Rule | dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
        )
        made = RunnerUp() if explore is None else explore
        self.explore = rule_from(made, self.of) if isinstance(made, dict) else made
        if not isinstance(self.explore, Rule):
            raise self.invalid("explore", "a rule of superarm.explore", explore)
        if self.explore.single_label and self.set_size > 1:
            raise self.invalid("explore", "a rule for sets of more than one label", explore)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = cls.__name__

    @classmethod
    def spellings(cls) -> dict[str, dict[str, Any]]:
        return {} if cls is PlainLearner else super().spellings()

    # ------------------------------------------------------------ what you define

    def begin(self) -> dict[str, Any]:
        """The memory before the first round: arrays, and values that JSON knows, by name."""
        raise TypeError(f"{self.of} must define begin()")

    def score(self, x: Array) -> Any:
        """k numbers by which to rank the labels for a row x: logarithms of probabilities, or alike."""
        raise TypeError(f"{self.of} must define score(x)")

    def learn(self, x: Array, shown: Array, hit: bool) -> None:
        """What an answer, ``hit``, to x changes: ``shown`` are the numbers of the labels that were shown."""
        raise TypeError(f"{self.of} must define learn(x, shown, hit)")

    @property
    def memory(self) -> dict[str, Any]:
        """What `begin` made and `learn` changes."""
        memory: dict[str, Any] = self.state.memory
        return memory

    # ------------------------------------------------------------ the learner around it

    @property
    def rule(self) -> Rule:
        return self.explore

    def update(self, decision: Decision, *, hit: bool | None = None, label: Label | None = None) -> None:
        """Learn from ``hit`` or ``label``, the answer to a decision: now or later, in any order, once."""
        row, sets, _, bit, _ = self._read(decision, hit, label)
        before = copy.deepcopy(self.memory)
        try:
            self.learn(densify(row, self.n_features), sets[1].copy(), bit)
            fine = all(np.isfinite(value).all() for value in self.memory.values() if _is_numeric(value))
        except BaseException:
            self._put_back(before)
            raise
        if not fine:
            self._put_back(before)
            raise self._failed(2, row, decision.round)
        self._book(decision)

    def scores(self, X: Any) -> Array:
        """The scores of all labels for every row of X, by which labels are ranked."""
        rows = self._rows(X, grow=False)
        return np.array([self._scored(rows.row(i)) for i in range(len(rows))]).reshape(-1, self.n_labels)

    def decide_many(self, X: Any, *, eligible: Any = None, set_size: int | None = None) -> Decisions:
        """Choose a set for every row of X, one after the other; ``eligible``, ``set_size`` as in `decide`."""
        rows = self._own_rows(X)
        m = self.set_size if set_size is None else self._size(set_size)
        each = None if eligible is None else self._eligible_each(eligible, len(rows), m)
        among = each if isinstance(each, list) else [self._can_show if each is None else each] * len(rows)
        made = [self._decide_row(rows.row(i), labels, m) for i, labels in enumerate(among)]
        return Decisions.of(made, rows, self.known, made[0].set_size if made else m)

    def update_many(self, decisions: Decisions | list[Decision], hits: Any = None, *, labels: Any = None) -> int:
        """Learn from the answers, ``hits`` or ``labels``, to many decisions, one after the other."""
        if isinstance(decisions, list):
            for one, hit in zip(decisions, hits, strict=True):
                self.update(one, hit=bool(hit))
            return len(decisions)
        which, bits, _ = self._answers(decisions, hits, labels)
        for i, hit in zip(which, bits, strict=True):
            self.update(decisions[i], hit=bool(hit))
        return len(which)

    def run(self, X: Any, y: Any, visit: Any = None) -> Array:
        """Rounds over X[visit], answered from y; how many tops, top sets and shown sets were wrong."""
        rows = self._rows(X)
        y, visit = self._checked_run(len(rows), y, visit)
        counts = np.zeros(3, np.int64)
        for i in visit:
            decision = self._decide_row(
                densify(rows.row(i), self.n_features).copy(), self._can_show, self.set_size
            )
            shown, top = decision._sets[1], decision._sets[2]
            hit = bool((shown == y[i]).any())
            self.update(decision, hit=hit)
            counts += (top[0] != y[i], not (top == y[i]).any(), not hit)
        return counts

    def add_labels(self, labels: int | Sequence[Label]) -> None:
        """Add labels: arrays with a place for each label grow, if `begin` makes them larger."""
        old = self.state
        super().add_labels(labels)
        if old is not None:
            kept = {name: value for name, value in old.memory.items() if not isinstance(value, np.ndarray)}
            self.memory.update(kept)

    def memory_to_json(self) -> dict[str, Any] | None:
        if self.state is None:
            return None
        return {name: value for name, value in self.memory.items() if not isinstance(value, np.ndarray)}

    def memory_from(self, kept: dict[str, Any], arrays: dict[str, Array]) -> None:
        start = "state.memory."
        found = {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}
        self._put_back({**kept, **found})

    # ------------------------------------------------------------ inside

    def _begin(self, sparse: bool) -> None:
        self.sparse = False  # it sees dense rows only
        self._rule = self.rule
        self.state = State(self._rule.start(), {})
        self._scratch = self._rule.scratch(self.n_labels)
        memory = self.begin()
        if not isinstance(memory, dict):
            raise TypeError(f"begin() of {self.of} must return a dict, got {memory!r}")
        self.memory.update(memory)

    def _decide_row(self, row: Row, among: Array, m: int) -> Decision:
        s = self._scored(row)
        kept = None if among is self._all else among
        tables, m, n_numbers = self._plan(len(among), m)
        sets, numbers = np.empty((3, m), np.int64), np.zeros(n_numbers)
        choose, _ = choosers(type(self._rule))
        odds = choose(
            self.state.rule, self._scratch, tables.value.draw, s, among, self.seed, self.round, sets, numbers
        )
        rule = (self._rule, numbers)
        decision = Decision(row, sets, kept, odds, 0.0, rule, self.round, self.id, self.known)
        self.round += 1
        return decision

    def _scored(self, row: Row) -> Array:
        """Your scores, checked."""
        x = densify(row, self.n_features)
        if not np.isfinite(x).all():
            raise self._not_finite(row)
        with np.errstate(over="ignore"):  # found below
            s = np.asarray(self.score(x.copy()), np.float32)
        if s.shape != (self.n_labels,):
            raise self.invalid("score(x)", f"{self.n_labels} numbers, one for each label", f"shape {s.shape}")
        if not np.isfinite(s).all():
            raise WeightsOverflow(f"scores of {self.of} must be finite, got {s} at round {self.round}")
        return s

    def _rows(self, X: Any, *, grow: bool = True) -> Rows:
        if hasattr(X, "toarray"):
            X = X.toarray()
        elif isinstance(X, Sparse):
            X = Dense(np.stack([densify(X.row(i), X.width) for i in range(len(X))]))
        return super()._rows(X, grow=grow)

    def _put_back(self, memory: dict[str, Any]) -> None:
        self.memory.clear()
        self.memory.update(memory)

    def __setstate__(self, values: dict[str, Any]) -> None:
        vars(self).update(values)
        self._forget_compiled()
        if self.state is not None:
            self._rule = self.rule
            self._scratch = self._rule.scratch(self.n_labels)


def _is_numeric(value: Any) -> bool:
    return isinstance(value, float | int) or (isinstance(value, np.ndarray) and value.dtype.kind in "fiu")
