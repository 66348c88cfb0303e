"""Changes by an operator while a service runs: each change is an event, and a replay makes it again.

The body of the event is the change itself; ``what`` names it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Annotated, Any

from msgspec import Meta, MsgspecError, Struct, convert, to_builtins

from superarm._types import JsonObject
from superarm.data.labels import MAX_NAME
from superarm.decisions.ids import ID_PATTERN
from superarm.errors import InvalidInput
from superarm.journal.errors import JournalDamaged
from superarm.journal.events import Event
from superarm.journal.snapshots import learner_from_bytes
from superarm.journal.store import JournalStore
from superarm.learners import Learner

EXPLORE_PARAMS = ("explore", "uniform")  # what `SetExplore` sets

Labels = Annotated[list[Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]], Meta(min_length=1)]
Ids = Annotated[list[Annotated[str, Meta(pattern=ID_PATTERN)]], Meta(min_length=1)]


class OperatorSettings(Struct):
    """What changes have set, beside the learner: disabled labels, and when learning was frozen."""

    disabled: tuple[str, ...] = ()
    freeze_toggles: list[int] = []  # the events at which learning was frozen, unfrozen, frozen, …

    @property
    def frozen(self) -> bool:
        return len(self.freeze_toggles) % 2 == 1

    def was_frozen_at(self, seq: int) -> bool:
        return bisect_right(self.freeze_toggles, seq) % 2 == 1

    def set_frozen(self, frozen: bool, seq: int) -> bool:
        """Freeze or unfreeze learning with event ``seq``; return whether that changes anything."""
        if frozen == self.frozen:
            return False
        self.freeze_toggles.append(seq)
        return True


class OperatorRequest(Struct, forbid_unknown_fields=True, tag_field="what", omit_defaults=True):
    """What an operator asks for: a change, or to erase something."""

    @property
    def what(self) -> str:
        return str(self.__struct_config__.tag)

    def to_dict(self) -> JsonObject:
        """Return the body of its event."""
        return to_builtins(self)  # type: ignore[no-any-return]


class Change(OperatorRequest):
    """A change of the learner, or of the settings."""

    def apply(
        self, settings: OperatorSettings, learner: Learner, seq: int, store: JournalStore
    ) -> Learner | None:
        """Make the change, event ``seq``: return the learner that goes on, or None if there is nothing to do.

        What cannot be made is refused (InvalidInput), before anything has changed.
        """
        raise NotImplementedError


class AddLabels(Change, tag="add_labels"):
    """New labels, to be shown from now on; disabled ones come back."""

    labels: Labels

    def apply(self, settings: OperatorSettings, learner: Learner, seq: int, store: JournalStore) -> Learner:
        _check_labels(self.labels)
        for label in self.labels:
            if label in (learner.labels or ()) and label not in settings.disabled:
                raise InvalidInput.must("labels", "change", "new, or disabled", label)
        if new := [label for label in self.labels if label not in settings.disabled]:
            learner.add_labels(new)
        settings.disabled = tuple(label for label in settings.disabled if label not in self.labels)
        return learner


class DisableLabels(Change, tag="disable_labels"):
    """Labels that are never shown again; outcomes about them are still accepted."""

    labels: Labels

    def apply(self, settings: OperatorSettings, learner: Learner, seq: int, store: JournalStore) -> Learner:
        _check_labels(self.labels)
        for label in self.labels:
            if label not in (learner.labels or ()) or label in settings.disabled:
                raise InvalidInput.must("labels", "change", "known, and not disabled yet", label)
        # a promise chooses among those that are left
        shown = learner.set_size if learner.coverage is None else 0
        if len({*learner.inputs.showable_labels} - {*settings.disabled, *self.labels}) <= shown:
            wanted = f"few enough to leave more than the {shown} shown" if shown else "fewer than all"
            raise InvalidInput.must("labels", "change", wanted, self.labels)
        settings.disabled = (*settings.disabled, *self.labels)
        return learner


class Freeze(Change, tag="freeze"):
    """Outcomes are kept, and not learnt."""

    def apply(
        self, settings: OperatorSettings, learner: Learner, seq: int, store: JournalStore
    ) -> Learner | None:
        return learner if settings.set_frozen(True, seq) else None


class Unfreeze(Change, tag="unfreeze"):
    """Learn again, from the outcomes that come from now on."""

    def apply(
        self, settings: OperatorSettings, learner: Learner, seq: int, store: JournalStore
    ) -> Learner | None:
        return learner if settings.set_frozen(False, seq) else None


class SetExplore(Change, tag="set_explore"):
    """Explore more or less: new values of the learner's parameters of these names."""

    explore: Annotated[str | float | None, Meta(examples=["balanced", 0.5])] = None
    uniform: Annotated[float, Meta(ge=0, le=1)] | None = None

    def apply(self, settings: OperatorSettings, learner: Learner, seq: int, store: JournalStore) -> Learner:
        given = {name: value for name in EXPLORE_PARAMS if (value := getattr(self, name)) is not None}
        if not given:
            raise InvalidInput.must("explore", "change", "given, or uniform", None)
        return learner.with_params(**given)


class Rollback(Change, tag="rollback"):
    """The weights as they were in a kept snapshot; nothing else is undone."""

    to: Annotated[int, Meta(description="The event of the snapshot.", ge=0, le=2**63 - 1)]

    def apply(self, settings: OperatorSettings, learner: Learner, seq: int, store: JournalStore) -> Learner:
        if self.to not in [info.seq for info in store.snapshots()]:
            raise self.no_snapshot()
        old = learner_from_bytes(store.snapshot(self.to).parts["model"])
        exploring = {name: learner.params[name] for name in EXPLORE_PARAMS if name in learner.params}
        return learner.resume_from_snapshot(old).with_params(**exploring)

    def no_snapshot(self) -> InvalidInput:
        """Return the error for an event without a kept snapshot."""
        return InvalidInput.must("to", "change", "the event of a kept snapshot", self.to)


class Erase(OperatorRequest, tag="erase"):
    """Erase features and context of decisions, either by id, or of all made before a time."""

    ids: Ids | None = None
    before: Annotated[float, Meta(description="Seconds since 1970.")] | None = None


AnyChange = AddLabels | DisableLabels | Freeze | Unfreeze | SetExplore | Rollback
AnyOperatorRequest = AnyChange | Erase


def change_of(event: Event) -> Change:
    """Return the change that is the body of an event."""
    return _body_as(AnyChange, event)  # type: ignore[no-any-return]


def erasure_of(event: Event) -> Erase:
    """Return the erasure that is the body of an event."""
    return _body_as(Erase, event)  # type: ignore[no-any-return]


def _body_as(kind: Any, event: Event) -> Any:
    try:
        return convert(event.body, kind)
    except MsgspecError as error:
        raise JournalDamaged(f"event {event.seq} cannot be read: {error}", event=event.seq) from error


def _check_labels(labels: list[str]) -> None:
    lengths_fit = all(0 < len(label) <= MAX_NAME for label in labels)
    if not labels or not lengths_fit or len(set(labels)) != len(labels):
        raise InvalidInput.must("labels", "change", "distinct names, at least one", labels)
