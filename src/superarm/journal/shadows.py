"""Shadows: other learners that learn from the same sets and outcomes, and are never shown.

The hit rate of a shadow is estimated by the top set T that it would have shown at the time of the decision, before it
learnt from any later outcome, as the model's is; the set S that was shown had the probability p(S). With w = 1 if
S = T, else 0, divided by p(S), the mean of w hit over the mean of w estimates its hit rate (logs/hit_rates.py: snips).
The model itself is estimated by the same rule, as if it always showed its own top set. A shadow needs no events: it is
rebuilt from the journal, and kept with the snapshots to make that quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
from msgspec import msgpack

from superarm._types import JsonObject
from superarm.decisions import Decision
from superarm.errors import FeedbackError, InvalidInput, SuperarmError
from superarm.journal.events import Event
from superarm.journal.records import DecisionRecord
from superarm.journal.snapshots import learner_from_bytes, model_bytes
from superarm.journal.totals import TopSetEstimate
from superarm.learners import Learner
from superarm.learners.answers import label_to_learn
from superarm.learners.registry import make, parse

MAX_TOPS = 100_000  # decisions without an outcome, the newest, whose top sets are kept


class Shadow:
    """A learner beside the one that is served."""

    def __init__(self, spec: str, learner: Learner) -> None:
        self.spec, self.learner, self.estimate = spec, learner, TopSetEstimate()
        self.n_learnt = 0
        self.stop_reason = ""  # why it has stopped
        self.tops: dict[int, bytes] = {}  # by the event of a decision: the labels of its top set, as int32

    def on_decision(self, event: Event) -> None:
        """Keep the top set that the shadow would have shown, until the outcome comes."""
        if self.stop_reason:
            return
        body = event.body
        try:
            labels = self.learner.vocabulary
            eligible = set(labels.all()[: body.n_labels] if body.eligible is None else body.eligible)
            ranked = (label for label in self.learner.rank(event.row()) if label in eligible)
            top = list(islice(ranked, len(body.top)))
            self.tops[event.seq] = labels.encode(top, "top", "shadow").astype(np.int32).tobytes()
        except Exception as error:  # nothing that a shadow does may disturb the service
            self._stop(error)
        if len(self.tops) > MAX_TOPS:
            del self.tops[next(iter(self.tops))]

    def take_top(self, seq: int) -> list[str] | None:
        """Return the top set that was kept for a decision, and forget it; None if there is none."""
        top = self.tops.pop(seq, None)
        return None if top is None else list(self.learner.vocabulary.decode(np.frombuffer(top, np.int32)))

    def _stop(self, error: Exception) -> None:
        """Learn and estimate no more, unless a single answer could not be learnt."""
        if isinstance(error, SuperarmError):
            if not isinstance(error, ArithmeticError | FeedbackError):
                self.stop_reason = str(error)
        else:
            self.stop_reason = repr(error)

    def on_outcome(
        self,
        event: Event,
        record: DecisionRecord,
        given: Decision,
        top: Sequence[str] | None,
        learnt_default: bool | None,
    ) -> None:
        """Estimate the hit rate with an outcome, then learn it; the default of a timeout is learnt only.

        Args:
            event: the outcome or the timeout.
            record: all about its decision.
            given: that decision, as a set that another learner chose.
            top: what `take_top` gave for an outcome; None if there is none.
            learnt_default: the default that was learnt before a late outcome; None if none was.
        """
        hit, label = event.body.hit, event.body.label
        if self.stop_reason or hit is None:
            return
        try:
            if top is not None:
                self.estimate.add(
                    top=top, shown=given.labels, log_propensity=record.body.log_propensity, hit=hit
                )
            label = label_to_learn(self.learner, label, given.eligible)
            if label is not None or hit != learnt_default:
                answer: JsonObject = {"hit": hit} if label is None else {"label": label}
                self.learner.update(given, **answer)
                self.n_learnt += 1
        except Exception as error:  # nothing that a shadow does may disturb the service
            self._stop(error)

    def follow(self, model: Learner) -> None:
        """Give the shadow all labels of the model, and the model's columns where the shadow has had no row yet."""
        new = [label for label in model.labels or () if label not in (self.learner.labels or ())]
        if self.stop_reason:
            return
        try:
            if new:
                self.learner.add_labels(new)
            if model.columns is not None and self.learner.inputs.layout is None:
                self.learner.use_columns(model.columns)
        except SuperarmError as error:
            self.stop_reason = str(error)

    def report(self) -> JsonObject:
        return self.estimate.report(self.spec, self.n_learnt, self.stop_reason)

    # ------------------------------------------------------------ in snapshots

    def to_bytes(self) -> bytes:
        fields = {"estimate": self.estimate.to_dict(), "learnt": self.n_learnt}
        fields |= {"stop_reason": self.stop_reason, "tops": self.tops, "model": model_bytes(self.learner)}
        return msgpack.encode(fields)

    @classmethod
    def from_bytes(cls, spec: str, data: bytes) -> Shadow:
        fields = msgpack.decode(data)
        shadow = cls(spec, learner_from_bytes(fields["model"]))
        shadow.estimate = TopSetEstimate.from_dict(fields["estimate"])
        shadow.n_learnt, shadow.stop_reason = fields["learnt"], fields["stop_reason"]
        shadow.tops = fields["tops"]
        return shadow


def make_shadows(specs: Sequence[str], model: Learner) -> dict[str, Shadow]:
    """Return new shadows of a model, by the name of their part of a snapshot."""
    if not specs:
        return {}
    common = {name: model.params[name] for name in ("labels", "n_features", "seed")}
    example = model.inputs.example_row()
    if isinstance(example, dict):  # rows with names: the columns, or the first row, fix it
        common["n_features"] = None
    shadows = {}
    for spec in specs:
        size = {} if "coverage" in parse(spec)[1] else {"set_size": min(model.set_size, model.n_labels - 1)}
        learner = make(spec, **common, **size)
        if model.columns is not None:
            learner.use_columns(model.columns)
        shown = model.decide(example, cursor=model.cursor())
        given = Decision.given(shown.x, shown.drawn, shown.propensity or None, top=shown.top, rule=shown.rule)
        if "hit" not in learner.feedback or not learner.learns_from(given):
            wanted = "a learner that learns from sets that another learner chose, such as set-logit"
            raise InvalidInput.must("shadow", "superarm serve", wanted, spec)
        shadows[f"shadow:{spec}"] = Shadow(spec, learner)
    return shadows
