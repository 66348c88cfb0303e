from libc.stdint cimport uint64_t

from superarm.native.stage cimport Stage
from superarm.native.types cimport Answer, Draw, DrawContext


cdef class RuleKernel(Stage):
    """How a set is chosen from scores; a rule of superarm.explore has its parameters and its distribution."""

    cdef readonly Py_ssize_t k  # labels it has room for
    cdef public uint64_t seed
    cdef double* draw_state  # what deciding moves: a Cursor may stand in for it
    cdef readonly Py_ssize_t n_draw_state
    cdef bint failed  # a rule or a learner in plain Python has raised `error`, which `Core.raise_pending` raises
    cdef object error

    # What must be known about sets of (at most) m out of n labels is made here, with the interpreter, before `choose`.
    cpdef prepare(self, Py_ssize_t n, Py_ssize_t m)
    # The most numbers that `choose` may write to draw_log.
    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil
    # Fill in the draw; moves nothing. This one shows the top set.
    cdef void choose(self, const DrawContext* context, Draw* draw) noexcept nogil
    # The positions of the best ``count`` scores, best first; of equal ones, the first comes first.
    cdef void best_positions(
        self, const DrawContext* context, Py_ssize_t* positions, Py_ssize_t count
    ) noexcept nogil
    # A decision was made: move ``draw_state`` by what draw_log says.
    cdef void on_decided(self, double* draw_state, const double* draw_log, Py_ssize_t n_log) noexcept nogil
    # An answer has come and was learnt from. draw_log is the decision's own (n_log 0 for a set that another system
    # chose).
    cdef void on_feedback(self, const double* draw_log, Py_ssize_t n_log, const Answer* answer) noexcept nogil
