"""What each event does to the model, one after another in the one order.

The process that learns and a replay run the same lines: a replay is identical because there is nothing
else. A decision moves the rule's numbers and the totals; an answer is learnt, once; a timeout closes what
is open; a change is made, or refused. What was out of the usual is noted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from math import exp, nan
from operator import add
from typing import Any

import numpy as np

from superarm.decision import Decision
from superarm.errors import InvalidInput, SuperarmError
from superarm.service.core import operating
from superarm.service.core.events import CHANGE, DECISION, OUTCOME, Event, to_decision, unpack_row
from superarm.service.core.faults import JournalDamaged, Refused
from superarm.service.core.journal import Snapshot
from superarm.service.core.model import Model
from superarm.service.core.postgres.answers import Known, Usual, counted, learn_together
from superarm.service.core.postgres.moments import begin, move
from superarm.service.core.postgres.tables import SHIFT, Kept, Row

__all__ = ["ErasedPast", "Ordered"]

REMEMBERED = 64 << 20  # bytes of decisions that wait for an answer; older ones are read again
OVERHEAD, LARGER = 1_000, 4  # bytes of one beside its row and its text, which takes more room once it is read


class ErasedPast(Exception):
    """What an event did cannot be done again: the features it needs were erased since."""


class Ordered(Model):
    """The model of a shared journal after some event.

    Args:
        journal: gives ``snapshot(seq)``, ``snapshots()`` and, for a past that was moved here, ``event(seq)``.
        snapshot: where it begins.
        lookup: decisions by their ids, with answers and timeouts.
    """

    def __init__(
        self, journal: Any, snapshot: Snapshot, lookup: Callable[[Sequence[str]], dict[str, Kept]]
    ) -> None:
        self.lookup = lookup
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._bytes = 0
        self._moved: Sequence[Sequence[float]] | None = None  # by the batch's decisions so far
        super().__init__(journal, snapshot)

    def _take(self, snapshot: Snapshot) -> None:
        super()._take(snapshot)
        self.positions = {int(key): value for key, value in snapshot.totals.get("positions", {}).items()}
        self.erasures = snapshot.totals.get("erasures", 0)
        self.forget()

    def totals(self) -> dict[str, Any]:
        positions = {str(writer): number for writer, number in sorted(self.positions.items())}
        own = self.judge.report("", self.stats.learnt)
        reports = [asdict(one) for one in (own, *(shadow.report() for shadow in self.shadows.values()))]
        return {**super().totals(), "positions": positions, "erasures": self.erasures, "shadows": reports}

    @property
    def known(self) -> frozenset[str]:
        return frozenset(self.stats.labels)

    @property
    def retired(self) -> frozenset[str]:
        return frozenset(self.settings.retired)

    @property
    def frozen(self) -> bool:
        return self.settings.frozen

    # ------------------------------------------------------------ a batch

    def take(self, rows: Sequence[Row], taken: Iterable[Sequence[int]]) -> dict[int, dict[str, Any]]:
        """Make all that these events, in order, do; what was out of the usual, by their numbers."""
        self._remember_all(rows)
        notes: dict[int, dict[str, Any]] = {}
        run: list[Usual] = []  # answers that can be learnt together
        for row in rows:
            if row.kind == DECISION and row.number >> SHIFT:
                self._decided(row)
                continue
            self._move()  # all of a batch's decisions come before its answers
            usual = self._usual(row) if row.kind == OUTCOME and row.number >> SHIFT else None
            if run and (usual is None or not usual.like(run[0])):
                self._learn(run, notes)
                run = []
            if usual is not None:
                run.append(usual)
            else:
                self._note(row, notes)
        self._learn(run, notes)
        self._move()
        for _, until in taken:
            self.positions[until >> SHIFT] = until
        self._trim()
        return notes

    def _note(self, row: Row, notes: dict[int, dict[str, Any]]) -> None:
        """What an event does; it is noted, if that is out of the usual."""
        note = None
        if row.number >> SHIFT == 0:
            self._redo(row)
        else:
            counted(self.learner)
            note = self._changed(row) if row.kind == CHANGE else self._closed(row)
        if note is not None:
            notes[row.number] = note
        self.seq += 1

    def _redo(self, row: Row) -> None:
        """An event that was moved here from the journal of a single process."""
        seq = self.seq
        if not self.redo(Event(*row, b"")):
            raise ErasedPast
        self.seq = seq

    def _decided(self, row: Row) -> None:
        known, learner = Known(row), self.learner
        made, before = known.made, self._moved
        if learner.state is None:
            if row.x is None:
                raise ErasedPast
            begin(learner, unpack_row(row.x, made.width))
        # all of a batch's decisions come before its answers: their moves are added up first
        pairs = None if before is None else zip(before, made.moved, strict=True)
        self._moved = made.moved if pairs is None else [tuple(map(add, *pair)) for pair in pairs]
        learner.round = max(learner.round, made.round + 1)
        odds = made.log_propensity
        self.stats.decision(row.time, made.labels, made.top, None if odds is None else exp(odds))
        self._remember(row.id, known)
        self.seq += 1

    def _changed(self, row: Row) -> dict[str, Any]:
        change, note = row.body, {"seq": self.seq + 1}
        try:
            if operating.check(change, self):
                self.change(change)
        except (InvalidInput, Refused) as error:
            return {**note, "refused": str(error), "field": error.field}
        except JournalDamaged as error:  # the snapshot to go back to is gone
            return {**note, "refused": str(error), "field": "seq"}
        if change["what"] == "erase":
            self.erasures += 1  # whose features go with the commit of this batch: forget() comes after it
        return note

    def _closed(self, row: Row) -> dict[str, Any] | None:
        """An answer or a timeout."""
        told, known = row.body, self._known[row.id]
        hit, label, timeout = told["hit"], told.get("label"), row.kind != OUTCOME
        if timeout and (known.answered or known.expired is not None):
            return {"void": True}  # the answer came before it
        expired = None if timeout else known.expired
        late = expired is not None
        body = {
            "hit": hit,
            "label": label,
            "late": late,
            "default": None if expired is None else expired["hit"],
        }
        shown = known.body
        decision = None if known.x is None else self._decision(known.x, self._body_for(shown))
        if hit is None or (expired is not None and expired["learnt"]):
            body |= {"learnt": False, "taught": None}
        else:
            body |= self.teach(decision, shown, hit, label)
        if timeout:
            known.expired = {"hit": hit, "learnt": body["learnt"]}
            self.stats.timeout(body)
        else:
            known.answered = True
            self.stats.outcome(row.time, max(0.0, row.time - known.time), shown["labels"], body)
        if decision is not None:
            self.judged(decision, shown, body, timeout=timeout)
        usual = body["learnt"] or (timeout and hit is None)
        return (
            None if usual and not late else {name: body.get(name) for name in ("learnt", "late", "refused")}
        )

    # ------------------------------------------------------------ many answers at once

    def _usual(self, row: Row) -> Usual | None:
        """An answer that has nothing about it but itself; None for any other."""
        known, learner = self._known[row.id], self.learner
        if self.frozen or known.expired is not None or learner.growth or not known.is_plain(learner):
            return None
        told = row.body
        named = told["label"] is not None and "label" in learner.feedback
        return Usual(row, known, told, named, len(known.made.top))

    def _learn(self, run: Sequence[Usual], notes: dict[int, dict[str, Any]]) -> None:
        """Learn such answers in one call, which gives the bits of one by one; and those, if it stops, so."""
        done = learn_together(self.learner, self.stats.places, run)
        for row, known, told, *_ in run[:done]:
            made, body = known.made, {**told, "late": False, "default": None, "learnt": True}
            known.answered = True
            self.stats.outcome(row.time, max(0.0, row.time - known.time), made.labels, body)
            if self.shadows and known.x is not None:
                shown = known.body
                self.judged(self._decision(known.x, shown), shown, body, timeout=False)
            else:
                self.judge.add(made.top, made.labels, made.log_propensity, body["hit"])
        self.seq += done
        for one in run[done:]:
            self._note(one.row, notes)

    def _decision(self, x: bytes, body: dict[str, Any]) -> Decision:
        """The decision of a record: `to_decision`, and for a dense row the same at a third of the cost."""
        learner, top = self.learner, body["top"]
        if learner.sparse is not False or learner.names is not None or body["width"] is not None or not top:
            return to_decision(x, body, learner.id)
        row, place = np.frombuffer(x, "<f4").astype(np.float32), self.stats.places
        if len(row) != learner.n_features:
            return to_decision(x, body, learner.id)
        sets = np.array([[place[label] for label in one] for one in (body["labels"], body["drawn"], top)])
        among = body["eligible"]
        if among is not None:
            among = np.array(sorted(place[label] for label in among))
        odds = body["log_ordered_propensity"], body["log_propensity"]
        ordered, of_set = (nan if value is None else value for value in odds)
        rest = body["belief"], body["rule"], body["round"], learner.id, learner.known
        return Decision(row, sets, among, (ordered, of_set), *rest)

    def _body_for(self, body: dict[str, Any]) -> dict[str, Any]:
        """Rounds come in blocks and tell no time here: which labels there were, the record itself tells."""
        if body["eligible"] is None and self.learner.growth and "k" in body:
            return {**body, "eligible": list(self.stats.labels[: body["k"]])}
        return body

    def teach(
        self, decision: Decision | None, shown: dict[str, Any], hit: bool, label: str | None
    ) -> dict[str, Any]:
        try:
            return super().teach(decision, shown, hit, label)
        except SuperarmError as error:  # it is acknowledged, and kept all the same
            return {"learnt": False, "taught": None, "refused": str(error)}

    def _move(self) -> None:
        if self._moved is not None:
            move(self.learner, self._moved)
            self._moved = None

    # ------------------------------------------------------------ what is remembered

    def has(self, id_: str) -> bool:
        """Whether a decision was taken and is remembered."""
        return id_ in self._known

    def forget(self) -> None:
        """Read decisions anew when they are answered."""
        self._known.clear()
        self._bytes = 0

    def _remember(self, id_: str, known: Known) -> None:
        self._known[id_] = known
        self._bytes += _size(known)

    def _trim(self) -> None:
        while self._bytes > REMEMBERED and self._known:
            _, old = self._known.popitem(last=False)
            self._bytes -= _size(old)

    def _remember_all(self, rows: Sequence[Row]) -> None:
        """Have all decisions at hand that are answered here and were made earlier."""
        here = {row.id for row in rows if row.kind == DECISION}
        wanted = [row.id for row in rows if row.kind not in (DECISION, CHANGE) and row.number >> SHIFT]
        missing = [id_ for id_ in dict.fromkeys(wanted) if id_ not in here and id_ not in self._known]
        found = self.lookup(missing) if missing else {}
        for id_ in missing:
            if id_ not in found:
                raise JournalDamaged(f"decision {id_}, which was answered, is missing")
        for id_ in missing:
            self._remember(id_, self._as_of_now(found[id_]))

    def _as_of_now(self, kept: Kept) -> Known:
        known = Known(kept.decision)
        for closing in (kept.timeout, kept.outcome):
            if closing is None:
                continue
            row, _, note = closing
            if row.number > self.positions.get(row.writer, row.writer << SHIFT) or (note or {}).get("void"):
                continue  # in this order it has not happened yet
            if closing is kept.outcome:
                known.answered = True
            else:
                told = row.body
                learnt = told.get("learnt", told["hit"] is not None and (note is None or note["learnt"]))
                known.expired = {"hit": told["hit"], "learnt": learnt}
        return known


def _size(known: Known) -> int:
    return OVERHEAD + LARGER * len(known.text) + len(known.x or b"")
