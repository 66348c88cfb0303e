"""Learners to bytes and back, and snapshots of a projector."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING

from superarm._types import JsonObject
from superarm.errors import Description, InvalidInput
from superarm.journal.errors import JournalMismatch
from superarm.journal.store import Snapshot
from superarm.learners import Learner, load
from superarm.learners.registry import is_file_spec, make_rule, parse
from superarm.native import cpu_level

if TYPE_CHECKING:
    from superarm.journal.projector import Projector


def check_kind(meta: JsonObject) -> None:
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
    check_kind(meta)
    spec = str(meta["learner"])
    if is_user_class(spec):
        if learner is None:
            wanted = f"given: it is in a file ({spec}), and code is only run if you name its file"
            raise InvalidInput.must("--learner", "superarm", wanted, None)
        import_user_classes(learner)


def model_bytes(learner: Learner) -> bytes:
    """Return what `Learner.save` writes."""
    file = BytesIO()
    learner.save(file)
    return file.getvalue()


def learner_from_bytes(data: bytes) -> Learner:
    """Return the learner whose `model_bytes` these are."""
    return load(BytesIO(data))


@lru_cache(maxsize=1)
def made_by() -> dict[str, str]:
    """Return the version and the level of processor: they decide the last bits of a model."""
    from superarm import __version__

    return {"superarm": __version__, "cpu": cpu_level()}


def take_snapshot(projector: Projector, time: float) -> Snapshot:
    """Return a snapshot of what was projected; another thread may take it of a `Projector.copy`."""
    parts = {"model": model_bytes(projector.learner)}
    parts |= {name: shadow.to_bytes() for name, shadow in projector.shadows.items()}
    return Snapshot(projector.seq, time, parts, projector.totals.to_dict(), made_by())
