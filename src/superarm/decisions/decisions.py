"""Decisions: many decisions of one learner or rule, in columns. Their sets may have different sizes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from superarm._extras import require_extra
from superarm._types import Array
from superarm.data.labels import LabelVocabulary
from superarm.data.rows import Row, Rows, as_rows, stack, take_segments
from superarm.decisions.decision import ROUNDING, Decision, DecisionSets, check_sets
from superarm.errors import InvalidInput, Unquoted

if TYPE_CHECKING:
    import polars

    from superarm.explore import Rule


class DrawnSets(NamedTuple):
    """The sets of many decisions, as compiled code has them. Row i is flat[starts[i] : starts[i + 1]], and so on."""

    flat: Array  # label indices: the `DecisionSets` of each row, one after the other
    starts: Array
    sizes: Array  # how many each shows
    log_probs: Array  # logarithms of the probabilities of the sets
    draw_logs: Array  # what the rule wrote down
    draw_log_starts: Array

    def spans(self, name: str) -> tuple[Array, Array]:
        """Return where the labels, drawn or top of each row begin in ``flat``, and how many there are."""
        first, sizes = self.starts[:-1], self.sizes
        if name == "top":
            return first + 2 * sizes, np.diff(self.starts) - 2 * sizes
        return first + sizes * (name == "drawn"), sizes

    def take(self, rows: Array) -> DrawnSets:
        """Return some of the rows, by their indices."""
        positions, starts = take_segments(self.starts, rows)
        log_positions, draw_log_starts = take_segments(self.draw_log_starts, rows)
        flat, draw_logs = self.flat[positions], self.draw_logs[log_positions]
        return DrawnSets(flat, starts, self.sizes[rows], self.log_probs[rows], draw_logs, draw_log_starts)

    @classmethod
    def from_lists(
        cls, sets: Sequence[Array], sizes: Sequence[int], log_probs: Any, logs: Sequence[Array]
    ) -> DrawnSets:
        """Return the columns of a list of sets and of draw logs, one for each row."""
        numbers = np.array(sizes, np.intp), np.array(log_probs, np.float64)
        return cls(*flatten(sets, np.intp), *numbers, *flatten(logs, np.float64))


class EligibleLabels(NamedTuple):
    """The labels that could be shown: one list for all rows, or where ``starts`` is given, one for each."""

    indices: Array
    starts: Array | None = None

    def of_row(self, i: int) -> Array:
        return self.indices if self.starts is None else self.indices[self.starts[i] : self.starts[i + 1]]

    def take(self, rows: Array) -> EligibleLabels:
        if self.starts is None:
            return self
        positions, starts = take_segments(self.starts, rows)
        return EligibleLabels(self.indices[positions], starts)

    @classmethod
    def by_row(cls, lists: Sequence[Array]) -> EligibleLabels:
        return cls(*flatten(lists, np.intp))


def flatten(parts: Sequence[Any], kind: Any) -> tuple[Array, Array]:
    """Return the parts, one after the other, and where each begins; the last number is where the last part ends."""
    starts = np.zeros(len(parts) + 1, np.intp)
    np.cumsum([len(part) for part in parts], out=starts[1:])
    return np.concatenate([np.zeros(0, kind), *parts]).astype(kind, copy=False), starts


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Decisions:
    """Many rounds of one learner or rule, in columns: what `decide_many` gives.

    ``decisions[i]`` is a Decision; a slice, a mask or an array of row indices gives Decisions again.

    Attributes:
        rows: the rows that are learnt from, a `superarm.data.rows.Rows` (``None`` if they are not known).
        labels, drawn, top: n x m arrays, as in a Decision; lists of arrays where sizes differ.
        sizes: how many each shows; set_size is the largest of them.
        propensity, ordered_propensity, round: arrays of n (round is -1 for sets that another system chose).
        learner: the id of the learner they belong to.

    >>> import superarm as sa
    >>> learner = sa.SetLogit(labels=["ant", "bee", "cat", "dog"], set_size=2, seed=3)
    >>> decisions = learner.decide_many([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> len(decisions), decisions.labels.shape, decisions[1].round
    (3, (3, 2), 1)
    >>> learner.update_many(decisions, [True, False, None])     # no answer to the third
    2
    """

    rows: Rows | None
    draws: DrawnSets
    eligible: EligibleLabels | None  # None: all labels
    rule: Rule | None  # the one that chose; None if they were stored, or it is not known
    round: Array
    learner: str | None
    vocabulary: LabelVocabulary
    rule_records: Array | None = None  # of stored ones: `Decision.rule` of each, as JSON

    def __len__(self) -> int:
        return len(self.draws.sizes)

    def __iter__(self) -> Iterator[Decision]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, at: int) -> Decision: ...
    @overload
    def __getitem__(self, at: slice | Array | list[int]) -> Decisions: ...
    def __getitem__(self, at: Any) -> Decision | Decisions:
        if isinstance(at, int | np.integer):
            return self._one(range(len(self))[at])
        rows = np.arange(len(self))[at]
        return replace(
            self,
            rows=None if self.rows is None else self.rows.take(rows),
            draws=self.draws.take(rows),
            eligible=None if self.eligible is None else self.eligible.take(rows),
            round=self.round[rows],
            rule_records=None if self.rule_records is None else self.rule_records[rows],
        )

    def _one(self, i: int) -> Decision:
        row = None if self.rows is None else self.rows.row(i).copy()
        draws = self.draws
        round_ = int(self.round[i])
        return Decision.from_parts(
            x=row,
            row=row if self.rule_records is None else None,  # a stored row is checked when it is learnt from
            sets=draws.flat[draws.starts[i] : draws.starts[i + 1]],
            size=int(draws.sizes[i]),
            eligible=None if self.eligible is None else self.eligible.of_row(i),
            log_propensity=float(draws.log_probs[i]),
            rule=self._rule_of(i),
            draw_log=draws.draw_logs[draws.draw_log_starts[i] : draws.draw_log_starts[i + 1]].tobytes(),
            round=None if round_ < 0 else round_,
            learner=self.learner,
            vocabulary=self.vocabulary,
        )

    def _rule_of(self, i: int) -> Any:
        """Return the rule that chose set i, or its record; ``None`` if it is not known."""
        return self.rule if self.rule_records is None else json.loads(self.rule_records[i] or "null")

    def draws_of(self, rule: Rule) -> DrawnSets:
        """Return the sets, with the draw logs of those alone that a rule of this kind chose."""
        if self.rule_records is None:
            own = np.full(len(self), rule.is_own_record(self.rule))
        else:
            own = np.array([rule.is_own_record(self._rule_of(i)) for i in range(len(self))], bool)
        if own.all():
            return self.draws
        all_logs = np.split(self.draws.draw_logs, self.draws.draw_log_starts[1:-1])
        logs = [log if is_own else log[:0] for log, is_own in zip(all_logs, own, strict=True)]
        draw_logs, draw_log_starts = flatten(logs, np.float64)
        return self.draws._replace(draw_logs=draw_logs, draw_log_starts=draw_log_starts)

    # ------------------------------------------------------------ columns

    def _sets(self, name: str) -> Any:
        """Return the labels, drawn or top of every row: a matrix where all rows have as many of each."""
        flat, (first, lengths) = self.draws.flat, self.draws.spans(name)
        if all((n == n[:1]).all() for n in (self.draws.sizes, np.diff(self.draws.starts))):
            return self.vocabulary.decode_array(flat[first[:, None] + np.arange(lengths.max(initial=0))])
        return [self.vocabulary.decode_array(flat[a : a + n]) for a, n in zip(first, lengths, strict=True)]

    @property
    def labels(self) -> Any:
        return self._sets("labels")

    @property
    def drawn(self) -> Any:
        return self._sets("drawn")

    @property
    def top(self) -> Any:
        return self._sets("top")

    @property
    def sizes(self) -> Array:
        return self.draws.sizes

    @property
    def set_size(self) -> int:
        return int(self.draws.sizes.max(initial=0))

    @property
    def propensity(self) -> Array:
        """The probability of every set."""
        return _probabilities(self.draws.log_probs)

    @property
    def ordered_propensity(self) -> Array:
        """The probability of every ordered draw; NaN where it is not known."""
        return np.array([decision.ordered_propensity for decision in self], np.float64)

    # ------------------------------------------------------------ frames

    def to_frame(self, *, rows: bool = True) -> polars.DataFrame:
        """Return a Polars data frame with a row for each decision: all that `from_frame` needs.

        Args:
            rows: False leaves out what was learnt from, ``x``.
        """
        require_extra("logs")
        import polars as pl

        if self.vocabulary.is_mixed:
            return replace(self, vocabulary=self.vocabulary.of_one_type()).to_frame(rows=rows)
        n, draws = len(self), self.draws
        named = all(type(label) is str for label in self.vocabulary.all()[:1])
        lists = pl.List(pl.String if self.vocabulary.names is not None and named else pl.Int64)
        columns: dict[str, Any] = {"round": self.round, "learner": [self.learner] * n}
        for name in DecisionSets._fields:
            cells = [part.tolist() for part in getattr(self, name)]
            columns[name] = pl.Series(name, cells, dtype=lists)
        eligible = (
            None
            if self.eligible is None
            else [self.vocabulary.decode(self.eligible.of_row(i)) for i in range(n)]
        )
        columns["eligible"] = pl.Series("eligible", eligible or [None] * n, dtype=lists)
        columns["set_size"] = draws.sizes
        columns |= {"propensity": self.propensity, "ordered_propensity": self.ordered_propensity}
        columns["log_propensity"] = draws.log_probs
        stored = self.rule_records
        records = [json.dumps(one.rule) for one in self] if stored is None else stored.tolist()
        columns["rule"] = pl.Series("rule", records, dtype=pl.String)
        logs = [
            draws.draw_logs[a:b].tolist()
            for a, b in zip(draws.draw_log_starts, draws.draw_log_starts[1:], strict=False)
        ]
        columns["draw_log"] = pl.Series("draw_log", logs, dtype=pl.List(pl.Float64))
        features = self.rows if rows else None
        if features is not None and features.dense is not None:
            columns["x"] = pl.Series("x", features.dense, dtype=pl.Array(pl.Float32, features.d))
        if features is not None and features.starts is not None:
            sparse = [features.row(i) for i in range(n)]
            columns["x_indices"] = pl.Series("x_indices", [x.indices for x in sparse], pl.List(pl.Int32))
            columns["x_values"] = pl.Series("x_values", [x.values for x in sparse], pl.List(pl.Float32))
            columns["x_width"] = [features.width] * n
        return pl.DataFrame(columns)

    @classmethod
    def from_frame(cls, frame: polars.DataFrame, vocabulary: LabelVocabulary) -> Decisions:
        """Return the Decisions that `to_frame` gave as ``frame``; ``vocabulary`` has the labels of their learner."""
        owner = "Decisions.from_frame"
        learner = _learner_of(frame, owner)
        in_frame = vocabulary.of_one_type()
        index = {label: i for i, label in enumerate(in_frame.all())}
        try:
            sets = [
                np.array([index[label] for cell in cells for label in cell], np.intp)
                for cells in zip(*(frame[name].to_list() for name in DecisionSets._fields), strict=True)
            ]
        except KeyError as error:
            raise InvalidInput.must("labels", owner, "known labels", error.args[0]) from error
        for shown, drawn, top, eligible, record in zip(
            *(frame[name].to_list() for name in (*DecisionSets._fields, "eligible", "rule")), strict=True
        ):
            rule = json.loads(record or "null")
            check_sets(DecisionSets(shown, drawn, top), eligible, rule, owner, is_own=True)
        log_propensity = frame["log_propensity"].to_numpy()
        if (log_propensity > ROUNDING).any():
            raise InvalidInput.must("log_propensity", owner, "at most 0", float(np.nanmax(log_propensity)))
        draw_logs = [np.array(cell, np.float64) for cell in frame["draw_log"].to_list()]
        if not all(np.isfinite(draw_log).all() for draw_log in draw_logs):
            raise InvalidInput.must("draw_log", owner, "lists of finite numbers", frame["draw_log"])
        return cls(
            rows=_rows(frame),
            draws=DrawnSets.from_lists(
                sets,
                [len(cell) for cell in frame["labels"].to_list()],
                log_propensity,
                draw_logs,
            ),
            eligible=_eligible(frame, in_frame, owner),
            rule=None,
            round=frame["round"].to_numpy().astype(np.int64),
            learner=learner,
            vocabulary=vocabulary,
            rule_records=frame["rule"].to_numpy(),
        )

    def __repr__(self) -> str:
        rounds = f"rounds {self.round[0]} to {self.round[-1]}" if len(self) else "no rounds"
        sizes = self.draws.sizes
        least = sizes.min(initial=self.set_size)
        shown = f"{least}" if least == self.set_size else f"{least} to {self.set_size}"
        return f"Decisions({len(self)} x {shown} labels, {rounds})"


def _learner_of(frame: Any, owner: str) -> str | None:
    """Return the id of the one learner whose decisions a frame has; refuse what `to_frame` does not give."""
    if not hasattr(frame, "get_column"):
        raise InvalidInput.must("frame", owner, "a Polars frame, as to_frame gave", type(frame).__module__)
    needed = ("round", "learner", *DecisionSets._fields, "eligible", "log_propensity", "rule", "draw_log")
    missing = [name for name in needed if name not in frame.columns]
    if not {"x", "x_indices"} & set(frame.columns):
        missing.append("x")
    learners = frame["learner"].unique().to_list() if "learner" in frame.columns else []
    if missing or frame.is_empty() or len(learners) != 1:
        wanted = "what to_frame gave, of one learner"
        got = Unquoted(f"no {', '.join(missing)}") if missing else learners
        raise InvalidInput.must("frame", owner, wanted, got)
    learner: str | None = learners[0]
    return learner


def _eligible(frame: polars.DataFrame, vocabulary: LabelVocabulary, owner: str) -> EligibleLabels | None:
    """Return the labels that could be shown, row by row; ``None`` where all could."""
    cells = frame["eligible"].to_list()
    if all(cell is None for cell in cells):
        return None
    everything = np.arange(len(vocabulary))
    return EligibleLabels.by_row(
        [everything if c is None else np.sort(vocabulary.encode(c, "eligible", owner)) for c in cells]
    )


def _rows(frame: polars.DataFrame) -> Rows:
    dense = frame["x"].to_list() if "x" in frame.columns else [None] * len(frame)
    if "x_indices" not in frame.columns:
        return as_rows(dense, None, "Decisions.from_frame")
    sparse = (frame[name].to_list() for name in ("x_indices", "x_values", "x_width"))
    return stack([Row(x, (i, v), width) for x, i, v, width in zip(dense, *sparse, strict=True)], None)


def _probabilities(logs: Array) -> Array:
    """Return exp of each number, by the function that `Decision` uses: np.exp may differ in the last bit."""
    return np.fromiter(map(exp, logs.tolist()), np.float64, len(logs))
