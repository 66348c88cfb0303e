"""History: what the events of a journal come to, in their order.

State, plan and the row that each person is at are functions of the events alone: whoever opens a journal is told the
same numbers and asked the same question as whoever closed it, or was killed.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from superarm.journal.events import ANSWER, CHANGE, CORRECTION, Event
from superarm.label.belief import Answer
from superarm.label.journal import LabelJournal
from superarm.label.names import FILE
from superarm.label.plan import Plan
from superarm.label.rows import LabelRows
from superarm.label.state import State


class History:
    """Applies events.

    Args:
        journal: where they come from.
        rows: of the table.
        state: what answers say.
        plan: what is asked next.

    Attributes:
        last: the row that each person answered last.
        taken_back: that row, of those who took their last answer back.
    """

    def __init__(self, journal: LabelJournal, rows: LabelRows, state: State, plan: Plan) -> None:
        self.journal, self.state, self.plan = journal, state, plan
        self._rows = rows
        self.last: dict[str, int] = {}
        self.taken_back: dict[str, int] = {}
        self._begun = False

    def follow(self) -> None:
        """Apply the events that have come since: also those of other processes."""
        events = self.journal.news()
        ahead = sum(self._is_click(event) for event in events)
        if not self._begun:
            self._begun = True
            if not (events and _moves_all(events[0])):
                self.plan.begin_round(ahead)
        for event, after in zip_longest(events, events[1:]):
            self._apply(event)
            self.journal.seq = event.seq
            if self._is_click(event):
                ahead -= 1
                self.plan.clicked(ahead)
            elif _moves_all(event) and not (after and _moves_all(after)):
                self.plan.begin_round(ahead)

    def _is_click(self, event: Event) -> bool:
        return (
            event.kind == ANSWER
            and event.id in self._rows.number_of
            and event.body.hit is not None
            and not event.body.final
        )

    def _apply(self, event: Event) -> None:
        if event.kind == CHANGE:
            _change(event.body, self.state)
            return
        row = self._rows.number_of.get(event.id)
        if row is None:
            return  # the table does not have it any more
        state, body = self.state, event.body
        if event.kind == CORRECTION:
            state.take_back(row, body.about)
            self.last[body.by] = self.taken_back[body.by] = row
        elif event.kind == ANSWER:
            shown = tuple(state.numbers[name] for name in body.labels or ())
            label = -1 if body.label is None else state.numbers[body.label]
            hit = True if body.final else body.hit
            state.add(row, Answer(event.seq, body.by, shown, hit, label, body.audit, body.final))
            if not body.final:
                self.last[body.by] = row
                self.taken_back.pop(body.by, None)


def _moves_all(event: Event) -> bool:
    """Whether it may move the scores of all rows at once: labels and people that change, labels of the file."""
    return event.kind == CHANGE or (event.kind == ANSWER and event.body.by == FILE)


def _change(change: dict[str, Any], state: State) -> None:
    what, name = change["what"], str(change.get("label"))
    if what == "add label":
        state.add_label(name)
    elif what == "rename label":
        state.rename(name, change["to"])
    elif what == "merge label":
        state.retire(name, into=change["to"])
    elif what == "retire label":
        state.retire(name)
    elif what in ("leave out", "take in"):
        (state.left_out.add if what == "leave out" else state.left_out.discard)(change["person"])
        state.reconsider()
