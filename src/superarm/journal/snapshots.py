"""What a snapshot keeps of a learner: its bytes, and what made them."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO

from superarm.learners import Learner, load
from superarm.native import cpu_level


def model_bytes(learner: Learner) -> bytes:
    """Return a model file as bytes, as `Learner.save` writes it."""
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
