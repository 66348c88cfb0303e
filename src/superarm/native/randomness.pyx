"""The same uniforms, for Python to call (naive versions, rules in plain Python)."""


def uniform_number(uint64_t seed, uint64_t round, uint64_t draw) -> float:
    """Return a number in [0, 1) that is a pure function of (seed, round, draw)."""
    return uniform(seed, round, draw)
