"""Which rounds have been answered, in next to no memory."""

import numpy as np


cdef class Ledger:
    """Which rounds have been answered: all below ``low``, and those in ``later``.

    Answers that come in order take no memory; each round after the oldest open one takes a bit.

    >>> ledger = Ledger()
    >>> ledger.add(1)
    >>> 0 in ledger, 1 in ledger
    (False, True)
    >>> ledger.add(0)
    >>> ledger.low
    2
    """

    def __init__(self, low=0, later=b""):
        self.restore(low, later)

    def restore(self, low, later):
        """Stand where a ledger with this ``low`` and ``later`` stood."""
        self.low = low
        self.later = bytearray(later)  # bit i stands for round low' + i, low' = low rounded to bytes
        self._advance()

    cdef bint has(self, int64_t round) except -1:
        if round < self.low:
            return True
        cdef int64_t at = round - (self.low & ~7)
        cdef int64_t byte = at >> 3
        return byte < len(self.later) and (<int>self.later[byte] >> (at & 7)) & 1

    def __contains__(self, round):
        return self.has(round)

    @property
    def count(self):
        """How many rounds have been answered."""
        return self.low + int.from_bytes(self.later, "little").bit_count()

    cdef int mark(self, int64_t round) except -1:
        if round == self.low and not self.later:
            self.low += 1
        elif round >= self.low:
            self._set(round)
        return 0

    def add(self, round):
        """Mark a round as answered."""
        self.mark(round)

    def _set(self, int64_t round):
        cdef int64_t at = round - (self.low & ~7)
        byte, bit = at >> 3, at & 7
        if byte >= len(self.later):
            self.later.extend(bytes(byte + 1 - len(self.later)))
        self.later[byte] |= 1 << bit
        self._advance()

    def add_range(self, int64_t start, int64_t stop):
        """Mark rounds that were decided and answered in one go."""
        if start == self.low and not self.later:
            self.low = stop
        else:
            self.add_many(np.arange(start, stop))

    def add_many(self, rounds):
        """Mark rounds, all different, as answered."""
        rounds = rounds[rounds >= self.low]
        if not len(rounds):
            return
        first, last = int(rounds.min()), int(rounds.max())
        if first == self.low and not self.later and last - first == len(rounds) - 1:
            self.low = last + 1
            return
        bits = rounds - (self.low & ~7)
        self.later.extend(bytes(max(0, int(bits.max()) // 8 + 1 - len(self.later))))
        np.bitwise_or.at(np.frombuffer(self.later, np.uint8), bits >> 3, (1 << (bits & 7)).astype(np.uint8))
        self._advance()

    def first_of(self, rounds):
        """The first of these rounds that has been answered; ``None`` if none has."""
        answered = rounds < self.low
        if self.later:
            bits = np.maximum(rounds - (self.low & ~7), 0)
            later = np.frombuffer(self.later, np.uint8)
            answered |= (later[np.minimum(bits >> 3, len(later) - 1)] >> (bits & 7) & 1 > 0) & (bits < 8 * len(later))
        return int(rounds[answered.argmax()]) if answered.any() else None

    def _advance(self):
        """Let ``low`` pass what has been answered, and forget it."""
        if self.later and self.later[0] | self._below == 0xFF:
            rest = self.later[1:].lstrip(b"\xff")
            self.low = (self.low & ~7) + 8 * (len(self.later) - len(rest))
            self.later = rest
        while self.later and self.later[0] >> (self.low & 7) & 1:
            self.low += 1
        if self.later:
            self.later[0] &= ~self._below
            if self.later == b"\0":
                self.later.clear()

    @property
    def _below(self):
        """The bits of the first byte that stand for rounds below ``low``; they are kept at 0."""
        return (1 << (self.low & 7)) - 1

    def __reduce__(self):
        return Ledger, (self.low, bytes(self.later))
