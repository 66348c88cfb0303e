"""Learners and rules in a user's own file (``file.py:Class``): code that is run only where the user names it."""

from __future__ import annotations

from superarm._types import JsonObject
from superarm.errors import Description, InvalidInput
from superarm.journal.errors import JournalMismatch
from superarm.learners.registry import is_file_spec, make_rule, parse


def check_is_service_journal(meta: JsonObject) -> None:
    """Refuse a journal that is not a service's."""
    if meta["kind"] != "service":
        got = Description(f"that of a {meta['kind']}")
        raise JournalMismatch.must(
            "journal", "superarm", "that of a service (superarm labels reads others)", got
        )


def is_user_class(spec: str) -> bool:
    """Return whether a spec names a user's own file: ``file.py:Class``, ``name:explore=file.py:Class``."""
    return ".py:" in spec


def import_user_classes(spec: str) -> JsonObject:
    """Import the learner and the rule that a spec names; return its parameters but for such a rule."""
    _, params = parse(spec)
    if is_file_spec(params.get("explore")):
        make_rule(params.pop("explore"))
    return params


def import_user_learner(meta: JsonObject, learner: str | None) -> None:
    """Import the learner of a journal, if it is in a user's own file, and only if the user names it."""
    check_is_service_journal(meta)
    spec = str(meta["learner"])
    if is_user_class(spec):
        if learner is None:
            wanted = f"given: it is in a file ({spec}), and code is only run if you name its file"
            raise InvalidInput.must("--learner", "superarm", wanted, None)
        import_user_classes(learner)
