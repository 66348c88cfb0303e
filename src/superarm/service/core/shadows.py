"""Shadows: other learners that learn from the same sets and answers, and are never shown.

How good a shadow is, is estimated before it learns from an answer: it would have shown its top set T for that
row; the set S that was shown had the probability p(S). With w = 1 if S = T, else 0, divided by
p(S), the mean of w hit over the mean of w estimates its hit rate (logs/estimates.py: snips). The model
itself is judged by the same rule, as if it always showed its own top set. A shadow needs no events: it is
rebuilt from the journal, and kept with the snapshots to make that quick.
"""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, isnan, nan
from typing import Any

import numpy as np

from superarm.decision import Decision
from superarm.errors import FeedbackError, InvalidInput, SuperarmError
from superarm.learners import Learner
from superarm.learners.registry import make
from superarm.logs.estimates import Sums
from superarm.logs.weights import Weights
from superarm.service.core.events import CHANGE, DECISION, TIMEOUT, to_decision
from superarm.service.core.journal import Journal
from superarm.service.core.snapshots import learner_from, model_bytes, some_row

__all__ = ["Judge", "Shadow", "ShadowReport", "make_shadows", "rebuild"]

AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """How good a learner is, had it shown its top sets.

    Attributes:
        spec: as it was asked for; the model itself comes first.
        rate, low, high: its hit rate, with an interval of 95 %; NaN while nothing can be said.
        rows: answers that say something about it.
        learnt: answers it has learnt from.
        problem: why not to believe it; empty if nothing speaks against it.
    """

    spec: str
    rate: float
    low: float
    high: float
    rows: int
    learnt: int
    problem: str


class Judge:
    """The estimated hit rate of somebody's top sets."""

    def __init__(self) -> None:
        self._sums = Sums("set")
        self._waiting: list[tuple[float, float]] = []

    def add(self, top: Sequence[str], shown: Sequence[str], log_propensity: float | None, hit: bool) -> None:
        if log_propensity is None:
            weight = nan
        else:
            weight = exp(-log_propensity) if top == shown or set(top) == set(shown) else 0.0
        self._waiting.append((weight, float(hit)))
        if len(self._waiting) >= AT_ONCE:
            self._count()

    def _count(self) -> None:
        if self._waiting:
            w, f = np.array(self._waiting).T
            none, unknown = np.zeros(len(w)), np.full(len(w), np.nan)
            self._sums.add(Weights(w, unknown, unknown), f, none, none, none + 1.0, ~np.isnan(w))
            self._waiting.clear()

    def report(self, spec: str, learnt: int) -> ShadowReport:
        self._count()
        found = next(estimate for estimate in self._sums.estimates() if estimate.name == "snips")
        return ShadowReport(spec, found.rate, found.low, found.high, found.rows, learnt, found.problem)

    def to_dict(self) -> dict[str, Any]:
        self._count()
        return self._sums.to_dict()

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Judge:
        judge = cls()
        judge._sums = Sums.from_dict(data)
        return judge


class Shadow:
    """One such learner."""

    def __init__(self, spec: str, learner: Learner) -> None:
        self.spec, self.learner, self.judge = spec, learner, Judge()
        self.learnt = 0
        self.broken = ""  # why it has stopped

    def outcome(self, decision: Decision, body: dict[str, Any], *, timeout: bool) -> None:
        """An answer of the world's, or the default of a timeout: judge, then learn."""
        if self.broken or body["hit"] is None:
            return
        try:
            if not timeout:
                among = decision.eligible
                ranked = self.learner.rank(decision.x)
                top = [label for label in ranked if among is None or label in among]
                log = None if isnan(decision.log_propensity) else decision.log_propensity
                self.judge.add(top[: decision.set_size], decision.labels, log, body["hit"])
                if body["late"] and body["default"] is not None:
                    return  # the default has been learnt already
            self._learn(decision, body)
        except SuperarmError as error:
            if not isinstance(error, ArithmeticError | FeedbackError):
                self.broken = str(error)
        except Exception as error:  # nothing that a shadow does may disturb the service
            self.broken = repr(error)

    def _learn(self, decision: Decision, body: dict[str, Any]) -> None:
        given = Decision.given(
            decision.x,
            decision.drawn,
            decision.propensity or None,
            top=decision.top,
            eligible=decision.eligible,
            rule=decision.rule,
        )
        label = body["label"]
        among = decision.eligible is None or label in decision.eligible
        if label is not None and among and "label" in self.learner.feedback:
            self.learner.update(given, label=label)
        else:
            self.learner.update(given, hit=body["hit"])
        self.learnt += 1

    def change(self, change: dict[str, Any]) -> None:
        if change["what"] == "add_labels" and not self.broken:
            new = [label for label in change["labels"] if label not in (self.learner.labels or ())]
            try:
                if new:
                    self.learner.add_labels(new)
            except SuperarmError as error:
                self.broken = str(error)

    def report(self) -> ShadowReport:
        told = self.judge.report(self.spec, self.learnt)
        return replace(told, problem=self.broken) if self.broken else told

    # ------------------------------------------------------------ in snapshots

    def to_bytes(self) -> bytes:
        notes = {"judge": self.judge.to_dict(), "learnt": self.learnt, "broken": self.broken}
        model = np.frombuffer(model_bytes(self.learner), np.uint8)
        out = io.BytesIO()
        np.savez(out, notes=np.frombuffer(json.dumps(notes).encode(), np.uint8), model=model)
        return out.getvalue()

    @classmethod
    def from_bytes(cls, spec: str, data: bytes) -> Shadow:
        with np.load(io.BytesIO(data)) as file:
            notes, model = json.loads(file["notes"].tobytes()), file["model"].tobytes()
        shadow = cls(spec, learner_from(model))
        shadow.judge = Judge.from_dict(notes["judge"])
        shadow.learnt, shadow.broken = notes["learnt"], notes["broken"]
        return shadow


def make_shadows(specs: Sequence[str], model: Learner) -> dict[str, Shadow]:
    """New shadows of a model, by the name of their part of a snapshot."""
    common = {name: model.params[name] for name in ("labels", "n_features", "set_size", "seed")}
    made = {}
    for spec in specs:
        learner = make(spec, **common)
        some = copy.deepcopy(model).decide(some_row(model))
        given = Decision.given(some.x, some.drawn, some.propensity, top=some.top, rule=some.rule)
        if "hit" not in learner.feedback or not learner.learns_from(given):
            wanted = "a learner that learns from sets that somebody else chose, such as set-logit"
            raise InvalidInput.must("shadow", "superarm serve", wanted, spec)
        made[f"shadow:{spec}"] = Shadow(spec, learner)
    return made


def rebuild(shadows: dict[str, Shadow], journal: Journal, until: int) -> None:
    """Let new shadows learn from all that the journal has, up to an event; erased rows teach nothing."""
    decisions: dict[int, Decision | None] = {}
    frozen = False
    for event in journal.events(0, until):
        if event.kind == DECISION:
            decisions[event.seq] = None if event.erased else to_decision(event.x, event.body, "")
        elif event.kind == CHANGE:
            body = event.body
            frozen = body["what"] == "freeze" or (frozen and body["what"] != "resume")
            for shadow in shadows.values():
                shadow.change(body)
        else:
            body = event.body
            timeout = event.kind == TIMEOUT
            decision = decisions.get(body["of"]) if timeout else decisions.pop(body["of"])
            if decision is not None and not frozen:
                for shadow in shadows.values():
                    shadow.outcome(decision, body, timeout=timeout)
