"""Compiled code: rows, scaling, weights, rules, and the core of every learner. The .pxd files are its contract."""

__all__ = ["cpu_level"]


def cpu_level() -> str:
    """The level of processor that the vectorised loops are made for: base, v3 or v4."""
    from superarm.native.cpu import LEVEL

    return LEVEL
