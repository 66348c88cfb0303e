"""Which rounds have been answered, in next to no memory."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Answered"]


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

    def __contains__(self, round_: int) -> bool:
        if round_ < self.low:
            return True
        byte, bit = divmod(round_ - (self.low & ~7), 8)
        return byte < len(self.later) and bool(self.later[byte] >> bit & 1)

    @property
    def count(self) -> int:
        """How many rounds have been answered."""
        if not self.later:
            return self.low
        below = (1 << (self.low & 7)) - 1  # bits of the first byte that stand for rounds below `low`
        return self.low + sum(byte.bit_count() for byte in self.later) - (self.later[0] & below).bit_count()

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
            for round_ in range(start, stop):
                self.add(round_)

    def add_many(self, rounds: Any) -> None:
        """Mark rounds, all different, as answered."""
        if len(rounds) and (np.diff(rounds) == 1).all():
            self.add_range(int(rounds[0]), int(rounds[-1]) + 1)
        else:
            for round_ in rounds:
                self.add(int(round_))

    def first_of(self, rounds: Any) -> int | None:
        """The first of these rounds that has been answered; ``None`` if none has."""
        if not self.later and (not len(rounds) or rounds.min() >= self.low):
            return None
        return next((int(round_) for round_ in rounds if int(round_) in self), None)

    def _advance(self) -> None:
        while self.later and self.later[0] >> (self.low & 7) & 1:
            self.low += 1
            if self.low & 7 == 0:
                del self.later[0]
        if len(self.later) == 1 and not self.later[0] >> (self.low & 7):
            self.later.clear()
