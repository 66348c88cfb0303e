"""RuleKernel: what every rule has in compiled code. The contract is rule.pxd.

`choose` reads and moves nothing; `on_decided` moves what deciding moves (``draw_state``), from the numbers that
`choose` wrote down. So a decision can be made at any cursor, stored, and counted in later, in any process.
"""

from superarm.native.cpu cimport kernels


cdef class RuleKernel(Stage):
    def __init__(self, Py_ssize_t k, uint64_t seed):
        self.k, self.seed = k, seed

    cpdef prepare(self, Py_ssize_t n, Py_ssize_t m):
        pass

    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return 0

    cdef void choose(self, const DrawContext* context, Draw* draw) noexcept nogil:
        cdef Py_ssize_t i
        self.best_positions(context, draw.top, context.m)
        for i in range(context.m):
            draw.drawn[i] = draw.top[i]

    cdef void best_positions(
        self, const DrawContext* context, Py_ssize_t* positions, Py_ssize_t count
    ) noexcept nogil:
        kernels.top_positions(context.scores, context.n, positions, count)

    cdef void on_decided(self, double* draw_state, const double* draw_log, Py_ssize_t n_log) noexcept nogil:
        pass

    cdef void on_feedback(
        self, const double* draw_log, Py_ssize_t n_log, const Answer* answer
    ) noexcept nogil:
        pass
