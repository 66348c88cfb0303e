"""Counter-based uniforms: a pure function of (seed, round, draw). Kernels own no generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm.kernels.compiling import entry, kernel

__all__ = ["uniform", "uniform_number"]


@kernel
def _mix(z: Any) -> Any:
    """The finaliser of SplitMix64: a bijection of 64 bits in which every bit depends on every bit."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def uniform(seed: int, round_: int, draw: int) -> float:
    """A number in [0, 1) that is a pure function of (seed, round, draw)."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    z = _mix(np.uint64(seed) * golden + golden)
    z = _mix(z + np.uint64(round_) * golden + golden)
    z = _mix(z + np.uint64(draw) * golden + golden)
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@entry
def uniform_number(seed: int, round_: int, draw: int) -> float:
    """The same, for Python to call."""
    return uniform(seed, round_, draw)
