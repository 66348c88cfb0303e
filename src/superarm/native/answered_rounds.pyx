"""Which rounds have been answered, in next to no memory."""

from cpython.bytearray cimport PyByteArray_AS_STRING

import numpy as np

from superarm.native.arrays cimport int64_data


cdef class AnsweredRounds:
    """A set of round numbers: all below ``start``, and those whose bit is set in ``bits``, counted from ``start``.

    Answers that come in order take no memory; each round after the oldest open one takes a bit.

    >>> answered = AnsweredRounds()
    >>> answered.add(1)
    >>> 0 in answered, 1 in answered, answered.count
    (False, True, 1)
    """

    def __init__(self, start=0, bits=b""):
        self.start, self.bits = start, bytearray(bits)

    cdef bint has(self, int64_t round) except -1:
        cdef int64_t at = round - self.start
        return at < 0 or (at >> 3 < len(self.bits) and (self.bits[at >> 3] >> (at & 7)) & 1)

    def __contains__(self, round):
        return self.has(round)

    @property
    def count(self):
        """How many rounds have been answered."""
        return self.start + int.from_bytes(self.bits, "little").bit_count()

    cpdef make_room(self, int64_t round):
        """Take the memory that ``add`` needs, which may fail, before anything is learnt."""
        if round >= self.start:
            self._extend(round - self.start)

    cpdef add(self, int64_t round):
        """Mark a round as answered."""
        cdef int64_t at = round - self.start
        if at >= 0:
            self._extend(at)
            self.bits[at >> 3] |= 1 << (at & 7)
            self._trim()

    def add_many(self, rounds):
        """Mark an array of rounds as answered."""
        rounds = np.ascontiguousarray(rounds, np.int64)
        cdef const int64_t* round = int64_data(rounds)
        cdef int64_t i, at
        cdef unsigned char* byte
        if len(rounds) and rounds.max() >= self.start:
            self._extend(rounds.max() - self.start)
            byte = <unsigned char*>PyByteArray_AS_STRING(self.bits)
            for i in range(len(rounds)):
                at = round[i] - self.start
                if at >= 0:
                    byte[at >> 3] |= 1 << (at & 7)
            self._trim()

    def first_of(self, rounds):
        """Return the first of these rounds that has been answered; ``None`` if none has."""
        at = rounds - self.start
        answered = at < 0
        known = (at >= 0) & (at < 8 * len(self.bits))
        answered[known] = np.frombuffer(self.bits, np.uint8)[at[known] >> 3] >> (at[known] & 7) & 1 > 0
        return int(rounds[answered.argmax()]) if answered.any() else None

    cdef int _extend(self, int64_t at) except -1:
        """Make room for bit number ``at``."""
        if at >> 3 >= len(self.bits):
            self.bits.extend(bytes((at >> 3) + 1 - len(self.bits)))
        return 0

    cdef int _trim(self) except -1:
        """Let ``start`` pass the whole bytes that have been answered."""
        if self.bits[0] == 0xFF:
            rest = self.bits.lstrip(b"\xff")
            self.start += 8 * (len(self.bits) - len(rest))
            self.bits = rest
        return 0

    def __reduce__(self):
        return AnsweredRounds, (self.start, bytes(self.bits))
