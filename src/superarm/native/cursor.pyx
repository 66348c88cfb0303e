"""Cursor: where a learner or a rule stands, to decide there without moving it."""

from libc.string cimport memcpy

import numpy as np

from superarm.native.arrays cimport double_data


cdef class Cursor:
    """The position of a learner: its next round, and the part of its rule's state that deciding moves.

    Args:
        round: the next round.
        draw_state: what deciding moves in the rule.
    """

    def __init__(self, int64_t round, draw_state=()):
        self.round = round
        self.draw_state = np.array(draw_state, np.float64)
        self.draw_state_data = double_data(self.draw_state)

    @staticmethod
    def of(RuleKernel kernel, int64_t round) -> Cursor:
        """Return the position of a learner with this ``kernel`` at a ``round``."""
        cdef Cursor cursor = Cursor(round, np.zeros(kernel.n_draw_state))
        memcpy(cursor.draw_state_data, kernel.draw_state, kernel.n_draw_state * sizeof(double))
        return cursor

    def __eq__(self, other):
        return isinstance(other, Cursor) and repr(self) == repr(other)

    def __repr__(self):
        return f"Cursor(round={self.round}, draw_state={self.draw_state.tolist()})"

    def __reduce__(self):
        return Cursor, (self.round, self.draw_state)
