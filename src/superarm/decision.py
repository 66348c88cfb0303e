"""Decision: what was shown, with what probability, and all that its update needs.

One record for everybody: `Decision.to_dict` is what the service's journal keeps, and `Record`, a
Decision with its answer, is a row of a log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isnan, log, nan
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from superarm.errors import InvalidInput
from superarm.extras import need
from superarm.labels import Label, Labels
from superarm.named import is_named_row, plain_row
from superarm.rows import Dense, Row, Rows, Sparse, SparseRow, as_row, copy_of, row_from_json, row_to_json

if TYPE_CHECKING:
    import polars

    from superarm.explore import Rule

__all__ = ["COLUMNS", "FORMAT", "Decision", "Decisions", "Label", "Record"]

Array = np.ndarray[Any, Any]

FORMAT = 1  # of to_dict; raised when its meaning changes


class Decision:
    """One round: a set of labels that was shown for a row x.

    Attributes:
        x: the row; one with names as it came, as JSON-ready values.
        labels: the shown set, best first.
        drawn: the same set in the order of the draw.
        top: the top set Y^, best first; empty if nobody knows it.
        set_size, eligible: how many were shown, and the only labels that could be (``None``: all).
        rule: how the set was chosen, in words and numbers (``None`` if nobody knows).
        belief: a number of the learner's at that time (MC-DBF: rho).
        propensity: the probability of the *set*.
        ordered_propensity: the probability of the ordered draw (the paper's Z).
        round: the learner's round; ``None`` for a set that somebody else chose.
        learner: the id of the learner it belongs to, or ``None``.

    Labels are names where the learner has names, else numbers.
    """

    __slots__ = (
        "_eligible",
        "_known",
        "_rule",
        "_sets",
        "belief",
        "learner",
        "log_ordered_propensity",
        "log_propensity",
        "round",
        "taught",
        "x",
    )

    def __init__(
        self,
        x: Any,
        sets: Any,
        eligible: Any,
        odds: tuple[float, float],
        belief: float,
        rule: tuple[Rule, Any] | dict[str, Any] | None,
        round_: int | None,
        learner: str | None,
        known: Labels | None,
    ) -> None:
        self.x = x
        self._sets = sets  # the shown set, as drawn, and the top set
        self._eligible = eligible
        self.log_ordered_propensity, self.log_propensity = odds
        self.belief = belief
        self._rule = rule  # with the numbers it wrote down; or what was recorded of it
        self.round = round_
        self.learner = learner
        self._known = known  # the labels behind the numbers; None if these already are labels
        self.taught: frozenset[str] = frozenset()  # learners that have learnt from a given set

    @classmethod
    def given(
        cls,
        x: Any,
        labels: Iterable[Label],
        propensity: float | None = None,
        *,
        top: Iterable[Label] | None = None,
        gamma: float | None = None,
        eligible: Iterable[Label] | None = None,
        rule: dict[str, Any] | None = None,
    ) -> Decision:
        """A set that somebody else chose, with the probability of that set if it is known.

        Args:
            x: the row; one with names is kept as it is, for whoever learns from it.
            labels: the shown labels; in the order of the draw, where there was one.
            propensity: the probability of the set.
            top: the top set that it was drawn around, if it was drawn as in the paper's eq. 5.
            gamma: the share of exploration, then. The unbiased learners need both.
            eligible: the only labels that could have been shown.
            rule: how it was drawn, if by another rule, as `Decision.rule` has it.

        >>> Decision.given([0.5, 1.0], labels=[3, 7]).labels
        [3, 7]
        """
        of = "Decision.given"
        shown = tuple(labels)
        if not shown or len(set(shown)) != len(shown):
            raise InvalidInput.must("labels", of, "distinct and at least one", shown)
        if propensity is not None and not 0.0 < propensity <= 1.0:
            raise InvalidInput.must("propensity", of, "in (0, 1]", propensity)
        best = () if top is None else tuple(top)
        if rule is None and (top is None) != (gamma is None):
            raise InvalidInput.must("top and gamma", of, "given both or neither", (top, gamma))
        if top is not None and (len(set(best)) != len(best) or len(best) != len(shown)):
            raise InvalidInput.must("top", of, f"{len(shown)} distinct labels, as many as shown", best)
        if gamma is not None:
            if not 0.0 < gamma <= 1.0:
                raise InvalidInput.must("gamma", of, "in (0, 1]", gamma)
            rule = {"name": "dilute", "gamma": gamma}
        among = None if eligible is None else tuple(eligible)
        if among is not None and not {*shown, *best} <= set(among):
            raise InvalidInput.must("eligible", of, "a list that holds labels and top", among)
        row = plain_row(x) if is_named_row(x) else None if x is None else as_row(x, None, of)
        odds = (nan, nan if propensity is None else log(propensity))
        return cls(row, (shown, shown, best), among, odds, 0.0, rule, None, None, None)

    def _public(self, numbers: Any) -> list[Label]:
        return list(numbers) if self._known is None else self._known.public(numbers)

    @property
    def labels(self) -> list[Label]:
        return self._public(self._sets[0])

    @property
    def drawn(self) -> list[Label]:
        return self._public(self._sets[1])

    @property
    def top(self) -> list[Label]:
        return self._public(self._sets[2])

    @property
    def eligible(self) -> list[Label] | None:
        return None if self._eligible is None else self._public(self._eligible)

    @property
    def among(self) -> list[Label] | None:
        """The labels that could be shown: the eligible ones, or all; ``None`` if they are not known."""
        if self._eligible is None and self._known is not None:
            return self._known.all()
        return self.eligible

    @property
    def set_size(self) -> int:
        return len(self._sets[0])

    @property
    def rule(self) -> dict[str, Any] | None:
        if isinstance(self._rule, tuple):
            rule, numbers = self._rule
            assert self._known is not None
            self._rule = rule.record(numbers, self._known)
        return self._rule

    @property
    def gamma(self) -> float | None:
        """The share of exploration, if the set was drawn as in the paper."""
        rule = self.rule
        return rule["gamma"] if rule is not None and rule["name"] == "dilute" else None

    @property
    def propensity(self) -> float | None:
        """The probability of the set; ``None`` if nobody knows it."""
        return None if isnan(self.log_propensity) else exp(self.log_propensity)

    @property
    def ordered_propensity(self) -> float | None:
        """The probability of the ordered draw, the paper's Z."""
        return None if isnan(self.log_ordered_propensity) else exp(self.log_ordered_propensity)

    def to_dict(self, *, row: bool = True) -> dict[str, Any]:
        """All of it as JSON-ready values; `from_dict` gives the same Decision back.

        Args:
            row: False leaves out x, for those who keep rows in a form of their own.
        """
        whole: dict[str, Any] = {"format": FORMAT}
        if row:
            whole["x"] = None if self.x is None else row_to_json(self.x)
        return whole | {
            "labels": self.labels,
            "drawn": self.drawn,
            "top": self.top,
            "eligible": self.eligible,
            "rule": self.rule,
            "belief": self.belief,
            "log_propensity": _known(self.log_propensity),
            "log_ordered_propensity": _known(self.log_ordered_propensity),
            "round": self.round,
            "learner": self.learner,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, x: Row | dict[str, Any] | None = None) -> Decision:
        """The Decision that `to_dict` gave as ``data``; ``x`` is its row, if that was left out."""
        try:
            if data["format"] != FORMAT:
                raise InvalidInput.must("format", "Decision.from_dict", str(FORMAT), data["format"])
            if x is None and data["x"] is not None:
                x = row_from_json(data["x"])
            odds = (_number(data["log_ordered_propensity"]), _number(data["log_propensity"]))
            shown, drawn, top = (tuple(data[key]) for key in ("labels", "drawn", "top"))
            eligible = None if data["eligible"] is None else tuple(data["eligible"])
            rule, round_, learner = (data[key] for key in ("rule", "round", "learner"))
            if set(shown) != set(drawn) or len(top) not in (0, len(drawn)):
                raise ValueError("sets")
            return cls(x, (shown, drawn, top), eligible, odds, data["belief"], rule, round_, learner, None)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput.must("data", "Decision.from_dict", "what to_dict gave", data) from error

    def __repr__(self) -> str:
        return f"Decision(labels={self.labels}, propensity={self.propensity}, round={self.round})"

    def _repr_html_(self) -> str:
        from superarm.view import decision_html

        return decision_html(self)


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
        for name in ("labels", "drawn", "top"):
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


SETS = ("labels", "drawn", "top")


def _known(value: float) -> float | None:
    return None if isnan(value) else value


def _number(value: float | None) -> float:
    return nan if value is None else float(value)


# ---------------------------------------------------------------- with its answer

# The columns of a log, in this order. Everything but the features and the labels may be missing.
COLUMNS = (
    "format",
    "id",
    "time",
    "x",
    "x_indices",
    "x_values",
    "labels",
    "drawn",
    "top",
    "eligible",
    "set_size",
    "gamma",
    "propensity",
    "ordered_propensity",
    "rule",
    "hit",
    "label",
    "learner",
    "context",
)


@dataclass(frozen=True, slots=True)
class Record:
    """A decision and what came of it: one row of a log.

    Attributes:
        decision: what was shown.
        hit: whether the right label was among them; ``None`` if no outcome is known.
        label: the right label, where the world named it.
        id, time, context: whatever the writer knew; nothing computes with them.
        number: the row's number in its file, from 0, bad rows included.
        also: other columns of the row that were asked for; they are not written.
    """

    decision: Decision
    hit: bool | None = None
    label: Label | None = None
    id: str | None = None
    time: Any = None
    context: str | None = None
    number: int = 0
    also: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls, decision: Decision, *, hit: bool | None = None, label: Label | None = None, **facts: Any
    ) -> Record:
        """The record of a decision with its ``hit`` or ``label``; ``facts`` are id, time and context."""
        if hit is None and label is not None:
            hit = label in decision.labels
        if hit is not None and hit not in (0, 1):  # NumPy's numbers and booleans are as good
            raise InvalidInput.must("hit", "Record", "True or False", hit)
        return cls(decision, None if hit is None else bool(hit), label, **facts)

    def to_dict(self) -> dict[str, Any]:
        """One JSON-ready value for each of `COLUMNS`."""
        made, x = self.decision, self.decision.x
        sparse = isinstance(x, SparseRow)
        values = {
            "format": FORMAT,
            "id": self.id,
            "time": self.time,
            "x": None if sparse or x is None else x if isinstance(x, dict) else x.tolist(),
            "x_indices": x.indices.tolist() if sparse else None,
            "x_values": x.values.tolist() if sparse else None,
            "labels": made.labels,
            "drawn": made.drawn,
            "top": made.top or None,
            "eligible": made.eligible,
            "set_size": made.set_size,
            "gamma": made.gamma,
            # a probability too small for a float is unknown, not zero
            "propensity": made.propensity or None,
            "ordered_propensity": made.ordered_propensity or None,
            "rule": made.rule,
            "hit": self.hit,
            "label": self.label,
            "learner": made.learner,
            "context": self.context,
        }
        return {name: values[name] for name in COLUMNS}
