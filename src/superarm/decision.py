"""Decision: what was shown, with what probability, and all that its update needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log, nan
from typing import Any

import numpy as np

from superarm.errors import InvalidInput
from superarm.rows import Row, is_sparse

__all__ = ["Answered", "Decision"]

Label = Any  # an int, or a name if the learner was given names
Labels = Sequence[Label]


class Decision:
    """One round: a set of labels that was shown for a row x.

    Attributes:
        x: the row, as the learner read it.
        labels: the shown set, best first.
        drawn: the same set in the order of the draw.
        top: the top set Y^, best first.
        set_size, eligible, gamma, rho: what the draw used (``None`` where it does not apply).
        propensity: the probability of the *set*.
        ordered_propensity: the probability of the ordered draw (the paper's Z).
        round: the learner's round; ``None`` for a set that somebody else chose.
        learner: the id of the learner it belongs to, or ``None``.

    Labels are names where the learner has names, else numbers.
    """

    __slots__ = (
        "_eligible",
        "_names",
        "_sets",
        "gamma",
        "learner",
        "odds",
        "rho",
        "round",
        "taught",
        "x",
    )

    def __init__(
        self,
        x: Row,
        sets: Any,
        eligible: Any,
        odds: Any,
        gamma: float | None,
        rho: float | None,
        round_: int | None,
        learner: str | None,
        names: tuple[Label, ...] | None,
    ) -> None:
        self.x = x
        self._sets = sets  # the shown set, as drawn, and the top set
        self._eligible = eligible
        self.odds = odds  # log ordered propensity, log set propensity, the learner's own number
        self.gamma = gamma
        self.rho = rho
        self.round = round_
        self.learner = learner
        self._names = names  # the names behind the numbers; () if these already are labels
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
    ) -> Decision:
        """A set that somebody else chose, with the probability of that set if it is known.

        Args:
            x: the row.
            labels: the shown labels; in the order of the draw, where there was one.
            propensity: the probability of the set.
            top, gamma: how it was drawn, if as in the paper's eq. 5: the top set it was drawn
                around, and the share of exploration. The unbiased learners need both.
            eligible: the only labels that could have been shown.

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
        if (top is None) != (gamma is None):
            raise InvalidInput.must("top and gamma", of, "given both or neither", (top, gamma))
        if top is not None and (len(set(best)) != len(best) or len(best) != len(shown)):
            raise InvalidInput.must("top", of, f"{len(shown)} distinct labels, as many as shown", best)
        if gamma is not None and not 0.0 < gamma <= 1.0:
            raise InvalidInput.must("gamma", of, "in (0, 1]", gamma)
        among = None if eligible is None else tuple(eligible)
        if among is not None and not {*shown, *best} <= set(among):
            raise InvalidInput.must("eligible", of, "a list that holds labels and top", among)
        row = x if is_sparse(x) else np.array(x, np.float32)
        odds = np.array([nan, nan if propensity is None else log(propensity), 0.0])
        return cls(row, (shown, shown, best), among, odds, gamma, None, None, None, ())

    def _public(self, indices: Any) -> list[Label]:
        if self._names is None:
            return [int(i) for i in indices]
        if not self._names:
            return list(indices)
        return [self._names[i] for i in indices]

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
    def set_size(self) -> int:
        return len(self._sets[0])

    @property
    def log_propensity(self) -> float:
        return float(self.odds[1])

    @property
    def log_ordered_propensity(self) -> float:
        return float(self.odds[0])

    @property
    def propensity(self) -> float | None:
        """The probability of the set; ``None`` if nobody knows it."""
        return None if np.isnan(self.odds[1]) else exp(self.odds[1])

    @property
    def ordered_propensity(self) -> float | None:
        """The probability of the ordered draw, the paper's Z."""
        return None if np.isnan(self.odds[0]) else exp(self.odds[0])

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON-ready values; `from_dict` gives the same Decision back."""
        if isinstance(self.x, tuple):
            x: Any = {"indices": self.x[0].tolist(), "values": self.x[1].tolist()}
        else:
            x = self.x.tolist()
        return {
            "x": x,
            "labels": self.labels,
            "drawn": self.drawn,
            "top": self.top,
            "eligible": self.eligible,
            "gamma": self.gamma,
            "rho": self.rho,
            "odds": [None if np.isnan(value) else float(value) for value in self.odds],
            "round": self.round,
            "learner": self.learner,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Decision:
        """The Decision that `to_dict` described."""
        try:
            x: Any = data["x"]
            if isinstance(x, dict):
                x = np.array(x["indices"], np.int32), np.array(x["values"], np.float32)
            else:
                x = np.array(x, np.float32)
            odds = np.array([nan if value is None else value for value in data["odds"]], np.float64)
            sets = tuple(tuple(data[key]) for key in ("labels", "drawn", "top"))
            eligible = None if data["eligible"] is None else tuple(data["eligible"])
            gamma, rho, round_, learner = (data[key] for key in ("gamma", "rho", "round", "learner"))
            shown, drawn, top = sets
            if odds.shape != (3,) or set(shown) != set(drawn) or len(top) not in (0, len(drawn)):
                raise ValueError("sets or odds")
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput.must("data", "Decision.from_dict", "what to_dict gave", data) from error
        return cls(x, sets, eligible, odds, gamma, rho, round_, learner, ())

    def __repr__(self) -> str:
        return f"Decision(labels={self.labels}, propensity={self.propensity}, round={self.round})"


class Answered:
    """Which rounds have been answered: all below ``low``, and those in ``later``.

    Answers that come in order take no memory; each round after the oldest open one takes a bit.

    >>> answered = Answered()
    >>> answered.add(1)
    >>> 0 in answered, 1 in answered
    (False, True)
    >>> answered.add(0)
    >>> answered.low
    2
    """

    __slots__ = ("later", "low")

    def __init__(self, low: int = 0, later: bytes = b"") -> None:
        self.low = low
        self.later = bytearray(later)  # bit i stands for round low' + i, low' = low rounded to bytes

    def __contains__(self, round_: int) -> bool:
        if round_ < self.low:
            return True
        byte, bit = divmod(round_ - (self.low & ~7), 8)
        return byte < len(self.later) and bool(self.later[byte] >> bit & 1)

    def add(self, round_: int) -> None:
        """Mark a round as answered."""
        if round_ == self.low and not self.later:
            self.low += 1
        elif round_ >= self.low:
            byte, bit = divmod(round_ - (self.low & ~7), 8)
            if byte >= len(self.later):
                self.later.extend(bytes(byte + 1 - len(self.later)))
            self.later[byte] |= 1 << bit
            self._advance()

    def add_range(self, start: int, stop: int) -> None:
        """Mark rounds that were decided and answered in one go."""
        if start == self.low and not self.later:
            self.low = stop
        else:
            for round_ in range(start, stop):
                self.add(round_)

    def _advance(self) -> None:
        while self.later and self.later[0] >> (self.low & 7) & 1:
            self.low += 1
            if self.low & 7 == 0:
                del self.later[0]
        if len(self.later) == 1 and not self.later[0] >> (self.low & 7):
            self.later.clear()
