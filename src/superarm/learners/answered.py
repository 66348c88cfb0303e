"""Which rounds have been answered, in next to no memory."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Answered"]

Array = np.ndarray[Any, Any]


class Answered:
    """Which rounds have been answered: all below ``low``, and those in ``later``.

    Answers that come in order take no memory; each round after the oldest open one takes a bit.

    >>> answered = Answered()
    >>> answered.add(1)
    >>> 0 in answered, 1 in answered
    (False, True)
    >>> answered.add(0)
    >>> answered.low
    2
    """

    __slots__ = ("later", "low")

    def __init__(self, low: int = 0, later: bytes = b"") -> None:
        self.low = low
        self.later = bytearray(later)  # bit i stands for round low' + i, low' = low rounded to bytes
        self._advance()

    def __contains__(self, round_: int) -> bool:
        if round_ < self.low:
            return True
        byte, bit = divmod(round_ - (self.low & ~7), 8)
        return byte < len(self.later) and bool(self.later[byte] >> bit & 1)

    @property
    def count(self) -> int:
        """How many rounds have been answered."""
        return self.low + int.from_bytes(self.later, "little").bit_count()

    def add(self, round_: int) -> None:
        """Mark a round as answered."""
        if round_ == self.low and not self.later:
            self.low += 1
        elif round_ >= self.low:
            byte, bit = divmod(round_ - (self.low & ~7), 8)
            if byte >= len(self.later):
                self.later.extend(bytes(byte + 1 - len(self.later)))
            self.later[byte] |= 1 << bit
            self._advance()

    def add_range(self, start: int, stop: int) -> None:
        """Mark rounds that were decided and answered in one go."""
        if start == self.low and not self.later:
            self.low = stop
        else:
            self.add_many(np.arange(start, stop))

    def add_many(self, rounds: Array) -> None:
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

    def first_of(self, rounds: Array) -> int | None:
        """The first of these rounds that has been answered; ``None`` if none has."""
        found = rounds < self.low
        if self.later:
            bits = np.maximum(rounds - (self.low & ~7), 0)
            later = np.frombuffer(self.later, np.uint8)
            found |= (later[np.minimum(bits >> 3, len(later) - 1)] >> (bits & 7) & 1 > 0) & (
                bits < 8 * len(later)
            )
        return int(rounds[found.argmax()]) if found.any() else None

    def _advance(self) -> None:
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
    def _below(self) -> int:
        """The bits of the first byte that stand for rounds below ``low``; they are kept at 0."""
        return (1 << (self.low & 7)) - 1
