"""Every array of a core starts on a cache line of its own."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import superarm as sa
from superarm.learners.registry import learners_by_name, make

LINE = 64  # bytes


@pytest.mark.parametrize("name", sorted(learners_by_name()))
@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed", "named"])
def test_no_two_arrays_share_a_cache_line(name: str, kind: str) -> None:
    """Else what one stage writes would slow down, or change the way through, another."""
    rows = {
        "dense": np.ones(3),
        "sparse": ([0], [1.0]),
        "mixed": sa.Row(dense=np.ones(3), sparse=([0], [1.0]), width=4),
        "named": {"a": 1.0},
    }
    learner = make(name, n_labels=4)
    learner.decide(rows[kind])
    arrays = [array for array in learner.core.state().values() if array.size]
    starts = sorted((array.__array_interface__["data"][0], array.nbytes) for array in arrays)
    assert len(starts) > 0
    assert all(start % LINE == 0 for start, _ in starts)
    for (start, size), (following, _) in pairwise(starts):
        assert following >= start + size
