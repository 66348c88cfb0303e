"""Counter-based uniforms: a pure function of (seed, round, draw). Compiled code owns no generator."""

from libc.stdint cimport uint64_t


cdef inline uint64_t _mix(uint64_t z) noexcept nogil:
    # the finaliser of SplitMix64: a bijection of 64 bits in which every bit depends on every bit
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EB
    return z ^ (z >> 31)


cdef inline double uniform(uint64_t seed, uint64_t round, uint64_t draw) noexcept nogil:
    """A number in [0, 1) that is a pure function of (seed, round, draw)."""
    cdef uint64_t golden = <uint64_t>0x9E3779B97F4A7C15
    cdef uint64_t z = _mix(seed * golden + golden)
    z = _mix(z + round * golden + golden)
    z = _mix(z + draw * golden + golden)
    return <double>(z >> 11) * (1.0 / 9007199254740992.0)
