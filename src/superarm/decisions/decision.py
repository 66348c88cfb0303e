"""Decision: what was shown, with what probability, and all that its update needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, isfinite, isnan, log, nan
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from superarm._html import first_few, key_value_table, label_chips
from superarm._types import Array
from superarm.data.cells import is_named_row, json_row
from superarm.data.labels import Label, LabelVocabulary
from superarm.data.rows import as_row, row_from_json, row_to_json
from superarm.errors import InvalidInput
from superarm.native.core import DecisionBase
from superarm.native.stateless_rules import log_order_probability
from superarm.parameters import check_number

if TYPE_CHECKING:
    from superarm.explore import Rule

__all__ = ["FORMAT", "Decision", "DecisionSets"]


ROUNDING = 1e-6  # that a sum of probabilities may be above 1
FORMAT = 2  # of to_dict; raised when its meaning changes


class DecisionSets(NamedTuple):
    """The three sets of a decision: tuples of labels, or arrays of their indices."""

    labels: Any  # the shown ones, best first
    drawn: Any  # the same in the order of the draw
    top: Any

    @classmethod
    def split(cls, flat: Array, size: int) -> DecisionSets:
        """Return the sets that lie one after the other in ``flat``; ``size`` labels are shown."""
        return cls(flat[:size], flat[size : 2 * size], flat[2 * size :])


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

    Labels are names where the learner has names, else their indices. A decision equals only itself: compare copies
    by `to_dict`.
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
        vocabulary: LabelVocabulary | None = None,
        row: Any = None,
        n_labels: int | None = None,
    ) -> Self:
        """Return a decision made of these parts, unchecked. (Learners make theirs in compiled code.)

        Args:
            x: the row, as people see it.
            sets: an array of label indices, all `DecisionSets` one after the other; or where ``vocabulary`` is None,
                the three of them, as tuples of labels.
            size: how many are shown.
            eligible: an increasing array of indices, or a tuple of labels; ``None`` for all.
            log_propensity: log of the probability of the set.
            rule: the rule that chose, or its record.
            draw_log: what the rule wrote down: float64 numbers.
            round: the round of the learner or rule; ``None`` for a set that another system chose.
            learner: whose decision it is.
            vocabulary: the labels behind the indices.
            row: the row as compiled code reads it, if that is known.
            n_labels: how many labels there were, if that is known, where ``vocabulary`` is ``None``.
        """
        decision = cls.__new__(cls)
        decision.x, decision.row = x, row
        decision.sets = DecisionSets(*sets) if vocabulary is None else sets
        decision.size, decision._eligible = size, eligible
        decision.log_propensity, decision.n_labels = log_propensity, n_labels
        decision._rule, decision.draw_log, decision.learnt_by = rule, draw_log, ()
        decision.round, decision.learner, decision.vocabulary = round, learner, vocabulary
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
        best = () if top is None else tuple(top)
        candidates = None if eligible is None else tuple(eligible)
        if propensity is not None and not 0.0 < propensity <= 1.0:
            raise InvalidInput.must("propensity", owner, "in (0, 1]", propensity)
        if rule is None and (top is None) != (gamma is None):
            raise InvalidInput.must("top and gamma", owner, "given both or neither", (top, gamma))
        if gamma is not None:
            rule = {"name": "dilute", "gamma": gamma}
        check_sets(DecisionSets(shown, shown, best), candidates, rule, owner)
        row = json_row(x) if is_named_row(x) else None if x is None else as_row(x, None, owner)
        return cls.from_parts(
            x=row,
            sets=(shown, shown, best),
            size=len(shown),
            eligible=candidates,
            log_propensity=nan if propensity is None else log(propensity),
            rule=rule,
        )

    @property
    def _sets(self) -> DecisionSets:
        """Its sets: of labels where ``vocabulary`` is ``None``, else of indices."""
        return DecisionSets.split(self.sets, self.size) if isinstance(self.sets, np.ndarray) else self.sets

    def sets_among(self, vocabulary: LabelVocabulary, owner: str) -> Array:
        """Return its sets as compiled code reads them: the indices of ``vocabulary``, of all three in a row.

        ``owner`` is whose labels they are, for messages.
        """
        if self.vocabulary is not None:
            return self.sets  # type: ignore[no-any-return]
        # it was stored, or another system made it: labels, not indices
        drawn = top = vocabulary.indices(self.sets.drawn, "decision", owner)
        if self.sets.top != self.sets.drawn:
            top = vocabulary.indices(self.sets.top, "decision", owner)
        # an update does not ask in which order they were shown
        return np.array(drawn + drawn + top, np.int64)

    def _decoded(self, labels: Any) -> list[Label]:
        return list(labels) if self.vocabulary is None else self.vocabulary.decode(labels)

    @property
    def labels(self) -> list[Label]:
        return self._decoded(self._sets.labels)

    @property
    def drawn(self) -> list[Label]:
        return self._decoded(self._sets.drawn)

    @property
    def top(self) -> list[Label]:
        return self._decoded(self._sets.top)

    @property
    def eligible(self) -> list[Label] | None:
        return None if self._eligible is None else self._decoded(self._eligible)

    @property
    def candidates(self) -> Sequence[Label] | None:
        """The labels that could be shown: the eligible ones, or all; ``None`` if they are not known."""
        labels = self.vocabulary
        if self._eligible is None and labels is not None:
            return range(labels.count) if labels.names is None else list(labels.names)
        return self.eligible

    @property
    def set_size(self) -> int:
        return int(self.size)

    @property
    def rule(self) -> dict[str, Any] | None:
        rule: Any = self._rule
        if rule is None or isinstance(rule, dict):
            return rule
        labels = self.vocabulary if self._eligible is None else LabelVocabulary(self.eligible or ())
        self._rule = record = rule.record(np.frombuffer(self.draw_log), labels)
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
        candidates, gamma, top = self.candidates, self.gamma, self.top
        n = self.n_labels if candidates is None else len(candidates)
        if n is None or gamma is None or len(top) != self.size:
            return None
        rank = {label: i for i, label in enumerate(top)}
        order = np.array([rank.get(label, len(top)) for label in self.drawn], np.intp)
        return exp(log_order_probability(order, n, gamma))

    def to_dict(self, *, row: bool = True) -> dict[str, Any]:
        """Return the decision as JSON-ready values, of which `from_dict` makes one with the same content.

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
            "n_labels": self.n_labels if self.vocabulary is None else self.vocabulary.count,
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
            sets = DecisionSets(*(tuple(data[name]) for name in DecisionSets._fields))
            eligible = None if data["eligible"] is None else tuple(data["eligible"])
            is_own = data["round"] is not None
            if is_own and (type(data["round"]) is not int or data["round"] < 0):
                raise InvalidInput.must("round", "Decision.from_dict", "a round's number", data["round"])
            log_propensity = nan_if_none(data["log_propensity"])
            if log_propensity > ROUNDING:
                got = data["log_propensity"]
                raise InvalidInput.must("log_propensity", "Decision.from_dict", "at most 0", got)
            check_sets(sets, eligible, data["rule"], "Decision.from_dict", is_own=is_own)
            return cls.from_parts(
                x=x,
                sets=sets,
                size=len(sets.labels),
                eligible=eligible,
                n_labels=None if data["n_labels"] is None else int(data["n_labels"]),
                log_propensity=log_propensity,
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


def check_sets(
    sets: DecisionSets, eligible: Sequence[Label] | None, rule: Any, owner: str, *, is_own: bool = False
) -> None:
    """Refuse sets of labels that no decision has: compiled code relies on them, and checks nothing.

    Args:
        sets: the three sets, of labels.
        eligible: the labels that could be shown; ``None`` for all.
        rule: the record of the rule that chose.
        owner: what was given them, for messages.
        is_own: whether a learner or rule of ours chose them: it knows its top set.
    """
    shown, drawn, top = sets
    if not shown or len(set(shown)) != len(shown):
        raise InvalidInput.must("labels", owner, "distinct and at least one", shown)
    if len(drawn) != len(shown) or set(drawn) != set(shown):
        raise InvalidInput.must("drawn", owner, f"{list(shown)} in the order of the draw", drawn)
    is_dilute = False
    if rule is not None:
        if not isinstance(rule, dict) or not isinstance(rule.get("name"), str):
            raise InvalidInput.must("rule", owner, "a record with the name of a rule", rule)
        is_dilute = rule["name"] == "dilute"
        values = [value for name, value in rule.items() if name != "order"]
        numbers = [n for value in values for n in (value if isinstance(value, list) else [value])]
        if any(isinstance(n, float) and not isfinite(n) for n in numbers):
            raise InvalidInput.must("rule", owner, "a record of finite numbers", rule)
        if is_dilute:
            check_number("gamma", owner, rule.get("gamma"), 0.0, 1.0)
    if is_own or is_dilute or top:
        # the paper's draw is around as many as it shows; other rules may leave labels out
        wanted = f"{len(shown)} distinct labels, as many as shown"
        fits = len(top) == len(shown)
        if rule is not None and not is_dilute:
            wanted, fits = "distinct labels, at least one", bool(top)
        if not fits or len(set(top)) != len(top):
            raise InvalidInput.must("top", owner, wanted, top)
    if eligible is not None and (len(set(eligible)) != len(eligible) or not {*shown, *top} <= set(eligible)):
        wanted = "a list of distinct labels that holds labels and top"
        raise InvalidInput.must("eligible", owner, wanted, eligible)


def _none_if_nan(value: float) -> float | None:
    return None if isnan(value) else value


def nan_if_none(value: float | None) -> float:
    """Return a number, NaN where it is not known."""
    return nan if value is None else float(value)
