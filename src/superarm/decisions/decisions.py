"""Decisions: many decisions of one learner or rule, in columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from superarm.decision import Decision
from superarm.errors import InvalidInput
from superarm.extras import need
from superarm.labels import Labels
from superarm.rows import Dense, Rows, Sparse, copy_of

if TYPE_CHECKING:
    import polars

    from superarm.explore import Rule

__all__ = ["Decisions"]

Array = np.ndarray[Any, Any]

SETS = ("labels", "drawn", "top")


class Decisions:
    """Many rounds of one learner or rule, in columns: what `decide_many` gives.

    ``decisions[i]`` is a `Decision`; a slice, a mask or an array of row numbers gives Decisions again.

    Attributes:
        rows: the rows that are learnt from, a `Dense` or `Sparse` matrix (``None`` if nobody said).
        labels, drawn, top: n x m arrays, as in a Decision.
        propensity, ordered_propensity, belief, round: arrays of n.
        learner: the id of the learner they belong to.

    >>> import superarm as sa
    >>> learner = sa.SetLogit(labels=["ant", "bee", "cat", "dog"], set_size=2, seed=3)
    >>> decisions = learner.decide_many([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> len(decisions), decisions.labels.shape, decisions[1].round
    (3, (3, 2), 1)
    >>> learner.update_many(decisions, [True, False, None])     # no answer to the third
    2
    """

    __slots__ = ("_eligible", "_known", "_numbers", "_odds", "_rule", "_sets", "learner", "round", "rows")

    def __init__(
        self,
        rows: Rows | None,
        sets: Any,
        eligible: Any,
        odds: Any,
        rule: Rule | None,
        numbers: Any,
        rounds: Any,
        learner: str | None,
        known: Labels,
    ) -> None:
        self.rows = rows
        self._sets = sets  # n x 3 x m
        self._eligible = eligible  # None for all labels; an array for every row, or a list of arrays
        self._odds = odds  # n x 3: logarithms of the ordered draw's and the set's probability; belief
        self._rule, self._numbers = rule, numbers  # what the rule wrote down for each: n x q, or a list
        self.round = rounds
        self.learner = learner
        self._known = known

    @classmethod
    def of(cls, decisions: Sequence[Decision], rows: Rows | None, known: Labels, m: int) -> Decisions:
        """Decisions of one learner, all of m labels, as columns.

        Args:
            decisions: they.
            rows: what is learnt from.
            known: the labels of the learner.
            m: how many labels each shows.
        """
        rules = [d._rule if isinstance(d._rule, tuple) else (None, ()) for d in decisions]
        eligible = [d._eligible for d in decisions]
        odds = [(d.log_ordered_propensity, d.log_propensity, d.belief) for d in decisions]
        return cls(
            rows,
            np.array([d._sets for d in decisions], np.int64).reshape(-1, 3, m),
            None if all(among is None for among in eligible) else eligible,
            np.array(odds, np.float64).reshape(-1, 3),
            rules[0][0] if rules else None,
            [numbers for _, numbers in rules],
            np.array([d.round for d in decisions], np.int64),
            decisions[0].learner if decisions else None,
            known,
        )

    def __len__(self) -> int:
        return len(self._sets)

    def __iter__(self) -> Iterator[Decision]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, at: int) -> Decision: ...
    @overload
    def __getitem__(self, at: slice | Array) -> Decisions: ...
    def __getitem__(self, at: Any) -> Decision | Decisions:
        eligible = self._eligible
        if isinstance(at, int | np.integer):
            i = range(len(self))[at]
            row = None if self.rows is None else copy_of(self.rows.row(i))
            among = eligible[i] if isinstance(eligible, list) else eligible
            rule = None
            if self._rule is not None:
                rule = (self._rule, self._numbers[i])
            ordered, of_set, belief = self._odds[i].tolist()
            odds, round_ = (ordered, of_set), int(self.round[i])
            return Decision(row, self._sets[i], among, odds, belief, rule, round_, self.learner, self._known)
        eligible, numbers = (
            [part[i] for i in np.arange(len(self))[at]] if isinstance(part, list) else part
            for part in (eligible, self._numbers)
        )
        return Decisions(
            None if self.rows is None else self.rows.take(at),
            self._sets[at],
            eligible,
            self._odds[at],
            self._rule,
            numbers if isinstance(numbers, list) else numbers[at],
            self.round[at],
            self.learner,
            self._known,
        )

    @property
    def labels(self) -> Array:
        return self._known.array(self._sets[:, 0])

    @property
    def drawn(self) -> Array:
        return self._known.array(self._sets[:, 1])

    @property
    def top(self) -> Array:
        return self._known.array(self._sets[:, 2])

    @property
    def set_size(self) -> int:
        return int(self._sets.shape[2])

    @property
    def propensity(self) -> Array:
        """The probability of every set."""
        return np.exp(self._odds[:, 1])  # type: ignore[no-any-return]

    @property
    def ordered_propensity(self) -> Array:
        """The probability of every ordered draw."""
        return np.exp(self._odds[:, 0])  # type: ignore[no-any-return]

    @property
    def belief(self) -> Array:
        return self._odds[:, 2]  # type: ignore[no-any-return]

    def to_frame(self, *, rows: bool = True) -> polars.DataFrame:
        """A Polars data frame with a row for each: all that `from_frame` needs to give them back.

        Args:
            rows: False leaves out what was learnt from, ``x``.
        """
        need("logs")
        import polars as pl

        kind = pl.Int64 if self._known.names is None else pl.String
        lists = pl.List(kind if all(type(r) is str for r in self._known.all()[:1]) else pl.Int64)
        columns: dict[str, Any] = {"round": self.round, "learner": [self.learner] * len(self)}
        for name in SETS:
            columns[name] = pl.Series(name, getattr(self, name).tolist(), dtype=lists)
        among = [d.eligible for d in self] if isinstance(self._eligible, list) else None
        if self._eligible is not None and among is None:
            among = [self._known.public(self._eligible)] * len(self)
        columns["eligible"] = pl.Series("eligible", among or [None] * len(self), dtype=lists)
        columns["set_size"] = [self.set_size] * len(self)
        columns |= {"propensity": self.propensity, "ordered_propensity": self.ordered_propensity}
        columns["log_propensity"], columns["log_ordered_propensity"] = self._odds[:, 1], self._odds[:, 0]
        columns["belief"] = self.belief
        texts = [json.dumps(d.rule) for d in self[:]] if self._rule is not None else [None] * len(self)
        columns["rule"] = pl.Series("rule", texts, dtype=pl.String)
        if rows and isinstance(self.rows, Dense):
            columns["x"] = pl.Series("x", self.rows.values, dtype=pl.Array(pl.Float32, self.rows.width))
        elif rows and isinstance(self.rows, Sparse):
            each = [self.rows.row(i) for i in range(len(self))]
            columns["x_indices"] = pl.Series("x_indices", [x.indices for x in each], pl.List(pl.Int32))
            columns["x_values"] = pl.Series("x_values", [x.values for x in each], pl.List(pl.Float32))
            columns["x_width"] = [self.rows.width] * len(self)
        return pl.DataFrame(columns)

    @classmethod
    def from_frame(cls, frame: polars.DataFrame, known: Labels) -> Decisions:
        """The Decisions that `to_frame` gave as ``frame``; ``known`` are the labels of their learner."""
        of = "Decisions.from_frame"
        if not hasattr(frame, "get_column"):
            raise InvalidInput.must("frame", of, "a Polars frame, as to_frame gave", type(frame).__module__)
        needed = ("round", "learner", "labels", "drawn", "top", "log_propensity", "belief")
        missing = [name for name in needed if name not in frame.columns]
        rows: Rows
        if "x" in frame.columns:
            rows = Dense(np.ascontiguousarray(np.array(frame["x"].to_list(), np.float32)))
        elif "x_indices" in frame.columns:
            parts = [frame[name].to_list() for name in ("x_indices", "x_values")]
            starts = np.cumsum([0, *map(len, parts[0])])
            width = int(frame["x_width"][0])
            flat = [[value for row in part for value in row] for part in parts]
            rows = Sparse(np.array(flat[1], np.float32), np.array(flat[0], np.int32), starts, width)
        else:
            missing.append("x")
        learners = frame["learner"].unique().to_list() if "learner" in frame.columns else []
        if missing or frame.is_empty() or len(learners) != 1:
            wanted = "what to_frame gave, of one learner"
            raise InvalidInput.must("frame", of, wanted, f"no {', '.join(missing)}" if missing else learners)
        place = {label: i for i, label in enumerate(known.all())}
        try:
            sets = [[[place[r] for r in cell] for cell in frame[name].to_list()] for name in SETS]
        except KeyError as error:
            raise InvalidInput.must("labels", of, "known labels", error.args[0]) from error
        eligible = frame["eligible"].to_list() if "eligible" in frame.columns else [None]
        among = None
        if any(cell is not None for cell in eligible):
            every = np.arange(len(known))
            among = [
                every if cell is None else np.sort(known.numbers(cell, "eligible", of)) for cell in eligible
            ]
        odds = [frame[name].to_numpy() for name in ("log_ordered_propensity", "log_propensity", "belief")]
        return cls(
            rows,
            np.ascontiguousarray(np.array(sets, np.int64).swapaxes(0, 1)),
            among,
            np.stack(odds, axis=1).astype(np.float64),
            None,
            np.zeros((len(frame), 0)),
            frame["round"].to_numpy().astype(np.int64),
            learners[0],
            known,
        )

    def __repr__(self) -> str:
        rounds = f"rounds {self.round[0]} to {self.round[-1]}" if len(self) else "no rounds"
        return f"Decisions({len(self)} x {self.set_size} labels, {rounds})"

    def _repr_html_(self) -> str:
        from superarm.view import decisions_html

        return decisions_html(self)
