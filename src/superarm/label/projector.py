"""Projector: applies the events of a journal to the state and the plan, in their order.

State, plan and the item that each person is at are functions of the events alone: whoever opens a journal is told the
same numbers and asked the same question as whoever closed it, or was killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from superarm._types import JsonObject
from superarm.journal.events import ANSWER, CHANGE, CORRECTION, AnswerBody, Event
from superarm.label.belief import Answer
from superarm.label.names import FILE
from superarm.label.plan import Plan
from superarm.label.state import State


class Projector:
    """Applies events.

    Args:
        item_of_key: the item that the id of an event means.
        state: what answers say.
        plan: what is asked next.

    Attributes:
        last_item: that each person answered about.
        undone: people who took their last answer back, and have not answered since.
    """

    def __init__(self, item_of_key: Mapping[str, int], state: State, plan: Plan) -> None:
        self._item_of_key, self.state, self.plan = item_of_key, state, plan
        self.last_item: dict[str, int] = {}
        self.undone: set[str] = set()
        self._has_begun = False

    def apply(self, events: list[Event]) -> None:
        """Apply all of these events. While many clicks are ahead, the plan does only what they will not do anew."""
        n_ahead = sum(self._is_click(event) for event in events)
        if not self._has_begun:
            self._has_begun = True
            if not (events and _moves_all(events[0])):
                self.plan.begin_round(n_ahead)
        for event, next_event in zip_longest(events, events[1:]):
            self._apply(event)
            if self._is_click(event):
                n_ahead -= 1
                self.plan.on_click(n_ahead)
            elif _moves_all(event) and not (next_event and _moves_all(next_event)):
                self.plan.begin_round(n_ahead)

    def _is_click(self, event: Event) -> bool:
        if event.kind != ANSWER or event.id not in self._item_of_key:
            return False
        return event.body.hit is not None and not event.body.final

    def _apply(self, event: Event) -> None:
        item = self._item_of_key.get(event.id)
        if event.kind == CHANGE:
            self._apply_change(event.body)
        elif item is None:
            return  # the table does not have it any more
        elif event.kind == CORRECTION:
            self.state.take_back(item, event.body.about)
            self.last_item[event.body.by] = item
            self.undone.add(event.body.by)
        elif event.kind == ANSWER:
            self._apply_answer(item, event.seq, event.body)

    def _apply_answer(self, item: int, seq: int, body: AnswerBody) -> None:
        numbers = self.state.label_set.numbers
        shown = tuple(numbers[name] for name in body.labels or ())
        label = -1 if body.label is None else numbers[body.label]
        hit = True if body.final else body.hit
        self.state.add_answer(item, Answer(seq, body.by, shown, hit, label, body.audit, body.final))
        if not body.final:
            self.last_item[body.by] = item
            self.undone.discard(body.by)

    def _apply_change(self, change: JsonObject) -> None:
        """A change of labels or people; changes of rows and targets change nothing here."""
        state = self.state
        match change:
            case {"what": "add label", "label": name}:
                state.add_label(name)
            case {"what": "rename label", "label": old, "to": new}:
                state.label_set.rename(old, new)
            case {"what": "merge label", "label": name, "to": into}:
                state.merge_label(name, into)
            case {"what": "retire label", "label": name}:
                state.retire_label(name)
            case {"what": "leave out", "person": person}:
                state.exclude(person)
            case {"what": "take in", "person": person}:
                state.include(person)


def _moves_all(event: Event) -> bool:
    """Whether it may move the scores of all items at once: labels and people that change, labels of the table."""
    return event.kind == CHANGE or (event.kind == ANSWER and event.body.by == FILE)
