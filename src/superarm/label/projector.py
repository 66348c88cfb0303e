"""LabelProjector: applies the events of a journal to the state and the planner, in their order.

State, planner and the item that each person is at are functions of the events alone: whoever opens a journal is told
the same numbers and asked the same question as whoever closed it, or was killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from superarm._types import JsonObject
from superarm.journal.events import ANSWER, CHANGE, CORRECTION, Event
from superarm.label.answers import TABLE_AS_PERSON, Answer
from superarm.label.planner import QuestionPlanner
from superarm.label.state import LabellingState


class LabelProjector:
    """Applies events.

    Args:
        item_of_key: the item that the id of an event means.
        state: what answers say.
        planner: what is asked next.

    Attributes:
        last_item: the item that each person answered about last.
        people_who_undid: people who took their last answer back, and have not answered since.
    """

    def __init__(
        self, item_of_key: Mapping[str, int], state: LabellingState, planner: QuestionPlanner
    ) -> None:
        self._item_of_key, self.state, self.planner = item_of_key, state, planner
        self.last_item: dict[str, int] = {}
        self.people_who_undid: set[str] = set()
        self._has_begun = False

    def apply(self, events: list[Event]) -> None:
        """Apply all of these events. While many clicks are ahead, the planner does only what they will not do anew."""
        n_ahead = sum(self._is_click(event) for event in events)
        if not self._has_begun:
            self._has_begun = True
            if not (events and _invalidates_scores(events[0])):
                self.planner.begin_round(n_ahead)
        for event, next_event in zip_longest(events, events[1:]):
            self._apply(event)
            if self._is_click(event):
                n_ahead -= 1
                self.planner.on_click(n_ahead)
            elif _invalidates_scores(event) and not (next_event and _invalidates_scores(next_event)):
                self.planner.begin_round(n_ahead)

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
            self.state.take_back(item, event.body.target_seq)
            self.last_item[event.body.by] = item
            self.people_who_undid.add(event.body.by)
        elif event.kind == ANSWER:
            answer = Answer.from_body(event.body, self.state.label_set.numbers, event.seq)
            self.state.add_answer(item, answer)
            if not answer.final:
                self.last_item[answer.by] = item
                self.people_who_undid.discard(answer.by)

    def _apply_change(self, change: JsonObject) -> None:
        """Apply a change of labels or people; changes of rows and settings change nothing here."""
        state, labels = self.state, self.state.label_set
        match change:
            case {"what": "add label", "label": name}:
                return state.add_label(name)
            case {"what": "rename label", "label": old, "to": new}:
                return labels.rename(old, new)
            case {"what": "merge label", "label": name, "to": into}:
                labels.merge(name, into)
            case {"what": "disable label", "label": name}:
                labels.disable(name)
            case {"what": "exclude person", "person": person}:
                state.excluded_people.add(person)
            case {"what": "include person", "person": person}:
                state.excluded_people.discard(person)
            case _:
                return None
        return state.update_items(state.answers)


def _invalidates_scores(event: Event) -> bool:
    """Return whether an event may change the scores of all items: changes of labels and people, labels of the table."""
    return event.kind == CHANGE or (event.kind == ANSWER and event.body.by == TABLE_AS_PERSON)
