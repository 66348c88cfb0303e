"""A learner, its totals and its settings, moved on by the events of a journal: the same bits again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from superarm.decision import Decision
from superarm.errors import WeightsOverflow
from superarm.learners.registry import parse
from superarm.service.core.changes import Settings
from superarm.service.core.compare import BITS, ODDS, SAME, SETS, compare
from superarm.service.core.events import CHANGE, DECISION, OUTCOME, TIMEOUT, Event, to_decision, unpack_row
from superarm.service.core.faults import JournalDamaged, JournalForeign
from superarm.service.core.journal import Journal, Snapshot
from superarm.service.core.shadows import Judge, Shadow
from superarm.service.core.snapshots import learner_from
from superarm.service.core.stats import Stats

__all__ = ["Model", "load_class", "totals"]


def load_class(meta: dict[str, Any], learner: str | None) -> None:
    """A learner in a user's own file must be imported before it can be loaded, by the user's word alone."""
    spec = str(meta["learner"])
    if spec.partition(":")[0].endswith(".py"):
        if learner is None:
            wanted = f"given: it is in a file ({spec}), and a journal's word is not enough to run one"
            raise JournalForeign.must("--learner", "superarm", wanted, None)
        parse(learner)


def totals(stats: Stats, settings: Settings, judge: Judge) -> dict[str, Any]:
    """What a snapshot keeps beside the learner."""
    return {"stats": stats.to_dict(), "settings": settings.to_dict(), "judge": judge.to_dict()}


class Model:
    """What the events of a journal have made, up to one of them."""

    def __init__(self, journal: Journal, snapshot: Snapshot) -> None:
        self.journal = journal
        self.shadows: dict[str, Shadow] = {}
        self.different = {SETS: 0, ODDS: 0, BITS: 0}  # decisions that did not come out as they were kept
        self.jumps: list[int] = []  # snapshots that were taken over, since events before them were erased
        self._open: dict[int, tuple[float, dict[str, Any], Decision]] = {}
        self._take(snapshot)

    def _take(self, snapshot: Snapshot) -> None:
        self.learner = learner_from(snapshot.parts["model"])
        assert self.learner.labels is not None
        self.stats = Stats.from_dict(self.learner.labels, snapshot.totals["stats"])
        self.settings = Settings.from_dict(snapshot.totals["settings"])
        self.judge = Judge.from_dict(snapshot.totals["judge"])
        self.seq = snapshot.seq
        self._open.clear()

    def totals(self) -> dict[str, Any]:
        """What a snapshot keeps beside the learner."""
        return totals(self.stats, self.settings, self.judge)

    def change(self, change: dict[str, Any]) -> None:
        """Make a change of an operator's."""
        self.learner = self.settings.apply(self.learner, change, self.journal.snapshot)
        assert self.learner.labels is not None
        self.stats.grow(self.learner.labels)
        for shadow in self.shadows.values():
            shadow.change(change)

    def catch_up(self, *, until: int | None = None, tick: Callable[[int], object] | None = None) -> None:
        """Move on to event ``until``, or to the end; over erased events by way of the next snapshot."""
        until = self.journal.seq if until is None else until
        since = 0
        while self.seq < until:
            for event in self.journal.events(self.seq, until):
                if not self.redo(event):
                    self._jump(event.seq, until)
                    break
                since += 1
                if tick is not None and since == 1000:
                    tick(since)
                    since = 0
        if tick is not None:
            tick(since)

    def _jump(self, seq: int, until: int) -> None:
        for later in self.journal.snapshots():
            if seq <= later <= until:
                self._take(self.journal.snapshot(later))
                self.jumps.append(later)
                return
        raise JournalDamaged(f"event {seq} was erased, and no snapshot after it is left", event=seq)

    def redo(self, event: Event) -> bool:
        """What the service did when it wrote this event; False if what that took was erased."""
        body = event.body
        if event.kind == CHANGE:
            try:
                self.change(body)
            except JournalDamaged:  # the snapshot to go back to is gone
                return False
        elif event.kind == DECISION:
            if event.x is None:
                return False
            x = unpack_row(event.x, body["width"])
            made = self.learner.decide(x, eligible=body["eligible"], set_size=body["asked"])
            how = compare(made, body)
            if how != SAME:
                self.different[how] += 1
            # what was shown counts, should it ever differ
            decision = to_decision(event.x, body, self.learner.id)
            self._open[event.seq] = event.time, body, decision
            self.stats.decision(event.time, body["labels"], body["top"], decision.propensity)
        else:
            at, shown, answered = self._taken(body["of"])
            if body["learnt"]:
                if answered is None:
                    return False
                try:
                    self.learner.update(answered, **body["taught"])
                except WeightsOverflow:
                    self.different[SETS] += 1
            if answered is not None:
                self.judged(answered, shown, body, timeout=event.kind == TIMEOUT)
            if event.kind == OUTCOME:
                self.stats.outcome(event.time, event.time - at, shown["labels"], body)
            else:
                self.stats.timeout(body)
                if answered is not None:
                    self._open[body["of"]] = at, shown, answered
        self.seq = event.seq
        return True

    def teach(
        self, decision: Decision | None, shown: dict[str, Any], hit: bool, label: str | None
    ) -> dict[str, Any]:
        """Learn from an answer, if there is anything to learn from; what is to be kept of that."""
        eligible, feedback = shown["eligible"], self.learner.feedback
        # of a label that was retired when the set was made, the learner hears that it was not shown
        named = label is not None and "label" in feedback and (eligible is None or label in eligible)
        nothing: dict[str, Any] = {"learnt": False, "taught": None}
        if self.settings.frozen:
            return nothing
        if decision is None:
            return {**nothing, "refused": "its features were erased"}
        if not named and label is not None and "hit" not in feedback:
            return {**nothing, "refused": "the label is retired"}
        answer: dict[str, Any] = {"label": label} if named else {"hit": hit}
        try:
            self.learner.update(decision, **answer)
        except WeightsOverflow as error:  # the learner is as before; the answer is kept all the same
            return {**nothing, "refused": str(error)}
        return {"learnt": True, "taught": answer}

    def judged(
        self, decision: Decision, shown: dict[str, Any], body: dict[str, Any], *, timeout: bool
    ) -> None:
        """Let an answer count for the estimates of the model and its shadows, and teach the shadows."""
        if not timeout:
            self.judge.add(shown["top"], shown["labels"], shown["log_propensity"], body["hit"])
        if self.shadows and not self.settings.frozen:
            for shadow in self.shadows.values():
                shadow.outcome(decision, body, timeout=timeout)

    def _taken(self, seq: int) -> tuple[float, dict[str, Any], Decision | None]:
        if seq in self._open:
            return self._open.pop(seq)
        event = self.journal.event(seq)
        body = event.body
        return event.time, body, None if event.erased else to_decision(event.x, body, self.learner.id)
