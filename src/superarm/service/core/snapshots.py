"""Taking a snapshot without stopping the service: copy, make the bytes elsewhere, put them piece by piece."""

from __future__ import annotations

import copy
import os
import platform
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm.learners import Learner, load
from superarm.rows import SparseRow
from superarm.service.core.parts import describe, pieces

if TYPE_CHECKING:
    from superarm.service.core.journal import Journal

__all__ = ["SnapshotJob", "learner_from", "made_by", "model_bytes", "some_row"]


def model_bytes(learner: Learner) -> bytes:
    """What `Learner.save` writes."""
    with tempfile.TemporaryDirectory(prefix="superarm-", dir=_memory()) as folder:
        path = Path(folder) / "model.npz"
        learner.save(path)
        return path.read_bytes()


def learner_from(data: bytes) -> Learner:
    with tempfile.TemporaryDirectory(prefix="superarm-", dir=_memory()) as folder:
        path = Path(folder) / "model.npz"
        path.write_bytes(data)
        return load(path)


def some_row(learner: Learner) -> Any:
    """A row that it would take; of a learner that has not been told a width, one with names."""
    d = learner.n_features
    if d is None or learner.names is not None:
        return {}
    if learner.sparse:
        return SparseRow(np.zeros(0, np.int32), np.zeros(0, np.float32), d)
    return np.zeros(d, np.float32)


def _memory() -> str | None:
    """A folder in memory, where there is one: `save` syncs its file, which nobody needs here."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@lru_cache(maxsize=1)
def made_by() -> dict[str, str]:
    """What decides the last bits of a model: our version, the compiler's, and the processor."""
    from superarm import __version__

    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"superarm": __version__, "numba": version("numba"), "cpu": cpu}


class SnapshotJob:
    """One snapshot: made in the turn of the events it stands after, which costs a copy of the model.

    `make` may run in any thread. Then call `step` until it returns False, each time followed by a commit.
    """

    def __init__(
        self, journal: Journal, learner: Learner, shadows: dict[str, Any], totals: dict[str, Any], at: float
    ) -> None:
        self.journal, self.seq, self.time = journal, journal.seq, at
        self._learner, self._shadows = copy.deepcopy(learner), copy.deepcopy(shadows)
        self._totals = copy.deepcopy(totals)
        self._parts: dict[str, bytes] = {}
        self._left: Iterator[tuple[str, int, bytes]] = iter(())

    def make(self) -> SnapshotJob:
        """Make the bytes."""
        self._parts = {"model": model_bytes(self._learner)}
        self._parts |= {name: shadow.to_bytes() for name, shadow in self._shadows.items()}
        self._left = (
            (name, number, piece)
            for name, data in self._parts.items()
            for number, piece in enumerate(pieces(data))
        )
        return self

    def step(self) -> bool:
        """Put one piece; whether there is more to do."""
        piece = next(self._left, None)
        if piece is not None:
            self.journal.put_part(self.seq, *piece)
            return True
        self.journal.put_snapshot(self.seq, self.time, self._totals, made_by(), describe(self._parts))
        return False
