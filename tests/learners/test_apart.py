"""The same bits wherever arrays lie in memory (kernels/linear.py: set_apart)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from superarm.kernels.linear import ROOM
from superarm.learners.registry import make, names
from superarm.rows import SparseRow


def arrays_in(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, np.ndarray):
        return [value]
    return [array for part in value for array in arrays_in(part)] if isinstance(value, tuple) else []


@pytest.mark.parametrize("name", sorted(names()))
@pytest.mark.parametrize("kind", ["dense", "sparse", "named"])
def test_no_two_arrays_lie_side_by_side(name: str, kind: str) -> None:
    """Else a compiled loop may take another way, which adds up in another order."""
    sparse = SparseRow(np.array([0], np.int32), np.ones(1, np.float32), 3)
    learner = make(name, n_labels=4)
    learner._row({"dense": np.ones(3), "sparse": sparse}.get(kind, {"a": 1.0}))
    arrays = [array for array in arrays_in((learner.state, learner._scratch, learner._s)) if array.size]
    starts = sorted((array.__array_interface__["data"][0], array.nbytes) for array in arrays)
    assert len(starts) > 3
    for (start, size), (following, _) in pairwise(starts):
        assert following - (start + size) >= ROOM
