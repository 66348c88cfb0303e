"""Decisions that may be answered, and answers that are learnt in one call.

Most answers have nothing about them but themselves: a dense row, all labels eligible, in time. Those are
learnt together (`Learner.update_many`), which gives the bits of one by one, in a third of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.json import Decoder
from orjson import loads

from superarm.decisions import Decisions
from superarm.errors import SuperarmError
from superarm.learners import Learner
from superarm.learners.answered import Answered
from superarm.rows import Dense
from superarm.service.core.postgres.tables import Row

__all__ = ["FEW", "Known", "Usual", "counted", "learn_together"]

FEW = 4  # answers that one by one cost less


class Made(Struct, gc=False):
    """What most answers need to know of a decision's record; the rest of it is not even read."""

    labels: tuple[str, ...]
    drawn: tuple[str, ...]
    top: tuple[str, ...]
    eligible: tuple[str, ...] | None
    width: int | str | None
    log_ordered_propensity: float | None
    log_propensity: float | None
    belief: float
    round: int
    moved: tuple[tuple[float, ...], ...] = ()  # none in a past that was moved here


_read = Decoder(Made).decode


class Known:
    """A decision that may be answered."""

    __slots__ = ("answered", "expired", "made", "text", "time", "x")

    def __init__(self, row: Row) -> None:
        self.time, self.text, self.x = row.time, row.text, row.x
        self.made = _read(row.text)
        self.expired: dict[str, Any] | None = None  # what the timeout came to: hit, learnt
        self.answered = False

    @property
    def body(self) -> dict[str, Any]:
        """The whole record."""
        return loads(self.text)  # type: ignore[no-any-return]

    def is_plain(self, learner: Learner) -> bool:
        """Whether it is about a dense row, as the learner's own are, and all labels."""
        made = self.made
        dense = learner.sparse is False and learner.names is None and made.width is None
        if not dense or self.x is None or len(self.x) != 4 * learner.n_features:
            return False
        return made.eligible is None and bool(made.top)


class Usual(NamedTuple):
    """An answer that may be learnt together with others."""

    row: Row
    known: Known
    told: dict[str, Any]
    named: bool  # it teaches the label, not the bit
    m: int  # labels that were shown

    def like(self, other: Usual) -> bool:
        return self.named == other.named and self.m == other.m


class Unkept(Answered):
    """Which rounds are answered is the database's to know: each id is answered once."""

    __slots__ = ("learnt",)

    def __init__(self) -> None:
        super().__init__()
        self.learnt = 0  # how many there were

    def __contains__(self, round_: int) -> bool:
        return False

    def first_of(self, rounds: Any) -> None:
        return None

    def add(self, round_: int) -> None:
        self.learnt += 1

    def add_many(self, rounds: Any) -> None:
        self.learnt += len(rounds)


def counted(learner: Learner) -> Unkept:
    """Let a learner count answers, and not keep which they were."""
    if not isinstance(learner.answered, Unkept):
        learner.answered = Unkept()
    return learner.answered


def learn_together(learner: Learner, places: Mapping[str, int], run: Sequence[Usual]) -> int:
    """Learn from such answers that are alike, up to one that is refused; how many. Few are not worth it."""
    if len(run) < FEW:
        return 0
    all_made = [one.known.made for one in run]
    rows = np.frombuffer(bytearray().join(one.known.x or b"" for one in run), "<f4")
    sets = [places[label] for made in all_made for label in (*made.labels, *made.drawn, *made.top)]
    odds = [(made.log_ordered_propensity, made.log_propensity, made.belief) for made in all_made]
    decisions = Decisions(
        Dense(rows.reshape(len(run), -1)),
        np.array(sets).reshape(len(run), 3, -1),
        None,
        np.array(odds, np.float64),  # None is NaN
        None,
        None,
        np.array([made.round for made in all_made]),
        learner.id,
        learner.known,
    )
    count = counted(learner)
    before = count.learnt
    try:
        if run[0].named:
            learner.update_many(decisions, labels=[one.told["label"] for one in run])
        else:
            learner.update_many(decisions, np.array([one.told["hit"] for one in run]))
    except SuperarmError:  # at one of them: all before it are learnt
        pass
    return count.learnt - before
