"""Decision: what was shown, with what probability, and all that its update needs.

`Decision.to_dict` is what the service's journal keeps, and `Record`, a
Decision with its answer, is a row of a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isnan, log, nan
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from superarm._html import first_few, key_value_table, label_chips
from superarm.data.cells import is_named_row, json_row
from superarm.data.labels import Label, Labels
from superarm.data.rows import Row, as_row, row_from_json, row_to_json
from superarm.errors import InvalidInput
from superarm.native.core import DecisionBase
from superarm.native.stateless_rules import log_order_probability

if TYPE_CHECKING:
    from superarm.explore import Rule

__all__ = ["COLUMNS", "FORMAT", "LOG_FORMAT", "Decision", "Label", "Record"]


FORMAT = 2  # of to_dict; raised when its meaning changes
LOG_FORMAT = 1  # of the columns of a log


class Decision(DecisionBase):
    """One round: a set of labels that was shown for a row x.

    Attributes:
        x: the row; one with names as it came, as JSON-ready values.
        labels: the shown set, best first.
        drawn: the same set in the order of the draw.
        top: the top set Y^, best first; empty if it is not known.
        set_size, eligible: how many were shown, and the only labels that could be (``None``: all).
        rule: the record of the rule that chose the set: its name, parameters and numbers (``None`` if not known).
        propensity: the probability of the *set*.
        ordered_propensity: the probability of the ordered draw (the paper's Z), where it is known: of a single
            label, or drawn as in the paper.
        round: the learner's round; ``None`` for a set that another system chose.
        learner: the id of the learner it belongs to, or ``None``.

    Labels are names where the learner has names, else numbers.
    """

    __slots__ = ()

    @classmethod
    def from_parts(
        cls,
        *,
        x: Any,
        sets: Any,
        size: int,
        eligible: Any = None,
        log_propensity: float = nan,
        rule: Rule | dict[str, Any] | None = None,
        draw_log: bytes = b"",
        round: int | None = None,
        learner: str | None = None,
        label_set: Labels | None = None,
        row: Any = None,
        n_labels: int | None = None,
    ) -> Self:
        """Return a decision made of these parts, unchecked. (Learners make theirs in compiled code.)

        Args:
            x: the row, as people see it.
            sets: label numbers, an array: shown best first, as drawn, the top set; or a tuple of three
                tuples of labels, where ``label_set`` is ``None``.
            size: how many are shown.
            eligible: an increasing array of numbers, or a tuple of labels; ``None`` for all.
            log_propensity: log of the probability of the set.
            rule: the one that chose, or its record.
            draw_log: what the rule wrote down: float64 numbers.
            round: of the learner or rule; ``None`` for a set that another system chose.
            learner: whose decision it is.
            label_set: the labels behind the numbers.
            row: the row as compiled code reads it, if that is known.
            n_labels: how many labels there were, where ``label_set`` is ``None`` and that is known.
        """
        decision = cls.__new__(cls)
        decision.x, decision.row = x, row
        decision.sets, decision.size, decision._eligible = sets, size, eligible
        decision.log_propensity, decision.n_labels = log_propensity, n_labels
        decision._rule, decision.draw_log, decision.learnt_by = rule, draw_log, ()
        decision.round, decision.learner, decision.label_set = round, learner, label_set
        return decision

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
        """Return the decision of a set that another system chose, with the probability of that set if it is known.

        Args:
            x: the row; one with names is kept as it is.
            labels: the shown labels; in the order of the draw, where there was one.
            propensity: the probability of the set.
            top: the top set that it was drawn around, as in the paper's eq. 5; with ``rule``, that rule's top set.
            gamma: the share of exploration of eq. 5. The unbiased learners need both.
            eligible: the only labels that could have been shown.
            rule: how it was drawn, if by another rule, as `Decision.rule` has it.

        >>> Decision.given([0.5, 1.0], labels=[3, 7]).labels
        [3, 7]
        """
        owner = "Decision.given"
        for name, given in {"labels": labels, "top": top, "eligible": eligible}.items():
            if isinstance(given, str):
                raise InvalidInput.must(name, owner, "a list of labels", given)
        shown = tuple(labels)
        if not shown or len(set(shown)) != len(shown):
            raise InvalidInput.must("labels", owner, "distinct and at least one", shown)
        if propensity is not None and not 0.0 < propensity <= 1.0:
            raise InvalidInput.must("propensity", owner, "in (0, 1]", propensity)
        best = () if top is None else tuple(top)
        if rule is None and (top is None) != (gamma is None):
            raise InvalidInput.must("top and gamma", owner, "given both or neither", (top, gamma))
        if len(set(best)) != len(best):
            raise InvalidInput.must("top", owner, "distinct labels", best)
        drawn_around_top = rule is None or rule.get("name") == "dilute"  # other rules may leave labels out
        if drawn_around_top and top is not None and len(best) != len(shown):
            raise InvalidInput.must("top", owner, f"{len(shown)} distinct labels, as many as shown", best)
        if gamma is not None:
            if not 0.0 < gamma <= 1.0:
                raise InvalidInput.must("gamma", owner, "in (0, 1]", gamma)
            rule = {"name": "dilute", "gamma": gamma}
        candidates = None if eligible is None else tuple(eligible)
        if candidates is not None and not {*shown, *best} <= set(candidates):
            raise InvalidInput.must("eligible", owner, "a list that holds labels and top", candidates)
        row = json_row(x) if is_named_row(x) else None if x is None else as_row(x, None, owner)
        return cls.from_parts(
            x=row,
            sets=(shown, shown, best),
            size=len(shown),
            eligible=candidates,
            log_propensity=nan if propensity is None else log(propensity),
            rule=rule,
        )

    def _set(self, number: int) -> list[Label]:
        """Return set ``number``: 0 is the shown one, 1 the same as drawn, 2 the top set."""
        if self.label_set is None:
            return list(self.sets[number])
        numbers = self.sets[number * self.size : None if number == 2 else (number + 1) * self.size]
        labels: list[Label] = self.label_set.decode(numbers)
        return labels

    @property
    def labels(self) -> list[Label]:
        return self._set(0)

    @property
    def drawn(self) -> list[Label]:
        return self._set(1)

    @property
    def top(self) -> list[Label]:
        return self._set(2)

    @property
    def eligible(self) -> list[Label] | None:
        if self._eligible is None:
            return None
        return list(self._eligible if self.label_set is None else self.label_set.decode(self._eligible))

    @property
    def candidates(self) -> Sequence[Label] | None:
        """The labels that could be shown: the eligible ones, or all; ``None`` if they are not known."""
        labels = self.label_set
        if self._eligible is None and labels is not None:
            return range(labels.count) if labels.names is None else list(labels.names)
        return self.eligible

    @property
    def set_size(self) -> int:
        return int(self.size)

    @property
    def rule(self) -> dict[str, Any] | None:
        record: Any = self._rule
        if record is not None and not isinstance(record, dict):
            labels = self.label_set if self._eligible is None else Labels(self.eligible or ())
            record = record.record(np.frombuffer(self.draw_log), labels)
            self._rule = record
        return record  # type: ignore[no-any-return]

    @property
    def gamma(self) -> float | None:
        """The share of exploration, if the set was drawn as in the paper."""
        rule = self.rule
        return rule["gamma"] if rule is not None and rule["name"] == "dilute" else None

    @property
    def propensity(self) -> float | None:
        """The probability of the set; ``None`` if it is not known."""
        return None if isnan(self.log_propensity) else exp(self.log_propensity)

    @property
    def ordered_propensity(self) -> float | None:
        """The probability of the ordered draw, the paper's Z; ``None`` if it is not known."""
        if self.size == 1:
            return self.propensity
        candidates = self.candidates
        n, gamma, top = self.n_labels if candidates is None else len(candidates), self.gamma, self.top
        if n is None or gamma is None or len(top) != self.size:
            return None
        rank = {label: i for i, label in enumerate(top)}
        order = np.array([rank.get(label, len(top)) for label in self.drawn], np.intp)
        return exp(log_order_probability(order, n, gamma))

    def to_dict(self, *, row: bool = True) -> dict[str, Any]:
        """Return all of it as JSON-ready values; `from_dict` makes a Decision of the same content of them.

        Args:
            row: False leaves out x, where rows are stored in another form.
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
            "log_propensity": _none_if_nan(self.log_propensity),
            "n_labels": self.n_labels if self.label_set is None else self.label_set.count,
            "round": self.round,
            "learner": self.learner,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, x: Any = None) -> Self:
        """Return the Decision that `to_dict` gave as ``data``; ``x`` is its row, if that was left out."""
        try:
            if data["format"] != FORMAT:
                raise InvalidInput.must("format", "Decision.from_dict", str(FORMAT), data["format"])
            if x is None and data["x"] is not None:
                x = row_from_json(data["x"])
            shown, drawn, top = (tuple(data[key]) for key in ("labels", "drawn", "top"))
            if not shown or set(shown) != set(drawn) or len(shown) != len(drawn) or len(set(top)) != len(top):
                raise ValueError("sets")
            return cls.from_parts(
                x=x,
                sets=(shown, drawn, top),
                size=len(shown),
                eligible=None if data["eligible"] is None else tuple(data["eligible"]),
                n_labels=None if data["n_labels"] is None else int(data["n_labels"]),
                log_propensity=nan_if_none(data["log_propensity"]),
                rule=data["rule"],
                round=data["round"],
                learner=data["learner"],
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput.must("data", "Decision.from_dict", "what to_dict gave", data) from error

    def __repr__(self) -> str:
        return f"Decision(labels={self.labels}, propensity={self.propensity}, round={self.round})"

    def _repr_html_(self) -> str:
        """Labels that are not of the top set are outlined only."""
        shown, top, rule, propensity = self.labels, self.top, self.rule, self.propensity
        numbers = [
            f"{name} = {value:g}" for name, value in (rule or {}).items() if isinstance(value, int | float)
        ]
        return key_value_table(
            "Decision",
            [
                ("shown", label_chips(shown, set(shown) - set(top) if top else ())),
                ("top set", label_chips(top) if top and set(top) != set(shown) else None),
                ("eligible", None if self.eligible is None else first_few(self.eligible)),
                ("propensity", None if propensity is None else f"{propensity:.4g}"),
                ("rule", None if rule is None else ", ".join([rule["name"], *numbers])),
                ("round", self.round),
            ],
        )


def _none_if_nan(value: float) -> float | None:
    return None if isnan(value) else value


def nan_if_none(value: float | None) -> float:
    """Return a number, NaN where it is not known."""
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
        id, time, context: details of the writer's; nothing computes with them.
        row_number: the row's number in its file, from 0, bad rows included.
        extra_columns: other columns of the row that were asked for; they are not written.
    """

    decision: Decision
    hit: bool | None = None
    label: Label | None = None
    id: str | None = None
    time: Any = None
    context: str | None = None
    row_number: int = 0
    extra_columns: Mapping[str, Any] | None = None

    @classmethod
    def from_decision(
        cls, decision: Decision, *, hit: bool | None = None, label: Label | None = None, **details: Any
    ) -> Record:
        """Return the record of a decision with its ``hit`` or ``label``; ``details`` are id, time and context."""
        if hit is None and label is not None:
            hit = label in decision.labels
        if hit is not None and hit not in (0, 1):  # NumPy's numbers and booleans are as good
            raise InvalidInput.must("hit", "Record", "True or False", hit)
        return cls(decision, None if hit is None else bool(hit), label, **details)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready value for each of `COLUMNS`, in their order."""
        decision, x = self.decision, self.decision.x
        sparse = isinstance(x, Row)
        dense = x.dense if sparse else x
        return {
            "format": LOG_FORMAT,
            "id": self.id,
            "time": self.time,
            "x": x if x is None or isinstance(x, dict) else dense.tolist() if len(dense) else None,
            "x_indices": x.indices.tolist() if sparse else None,
            "x_values": x.values.tolist() if sparse else None,
            "labels": decision.labels,
            "drawn": decision.drawn,
            "top": decision.top or None,
            "eligible": decision.eligible,
            "set_size": decision.set_size,
            "gamma": decision.gamma,
            # a probability too small for a float is unknown, not zero
            "propensity": decision.propensity or None,
            "ordered_propensity": decision.ordered_propensity or None,
            "rule": decision.rule,
            "hit": self.hit,
            "label": self.label,
            "learner": decision.learner,
            "context": self.context,
        }
