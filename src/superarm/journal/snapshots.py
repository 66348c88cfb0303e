"""Learners to bytes and back, and snapshots of a projector."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING

from superarm.journal.store import Snapshot
from superarm.learners import Learner, load
from superarm.native import cpu_level

if TYPE_CHECKING:
    from superarm.journal.projector import Projector


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
