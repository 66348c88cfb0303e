"""PythonRule: a rule in plain Python (explore/plain.py), as compiled code calls it: with the interpreter.

What goes wrong there must wait until compiled code has come back: then no set is chosen (size 0), and
``error`` says why.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from superarm.native.rule cimport Rule
from superarm.native.types cimport Answer, Draw


cdef class PythonRule(Rule):
    """A `PlainRule` and its numbers.

    Args:
        k: labels.
        seed: of every draw.
        rule: the explore.PlainRule.
    """

    cdef object rule
    cdef readonly object error
    cdef object memory
    cdef Py_ssize_t most, most_log
    cdef bint listens

    def __init__(self, k, seed, rule):
        super().__init__(k, seed)
        self.rule, self.n_draw_state = rule, rule.n_draw_state
        self.draw_state = self.doubles("decided", max(1, rule.n_draw_state))
        self.doubles("memory", max(1, rule.n_memory))
        self.memory = self.arrays["memory"][: rule.n_memory]
        self.listens = rule.listens

    cpdef prepare(self, Py_ssize_t n, Py_ssize_t m):
        self.most, self.most_log = self.rule.largest(n, min(n, m)), self.rule.log_size(n, min(n, m))

    cdef Py_ssize_t largest(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return self.most

    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return self.most_log

    cdef void choose(self, const double* draw_state, const float* s, const Py_ssize_t* eligible, Py_ssize_t n, Py_ssize_t m, int64_t round, Py_ssize_t* drawn, Py_ssize_t* top, double* draw_log, Draw* draw) noexcept nogil:
        draw.size = draw.top_size = draw.n_log = 0
        draw.logp_ordered = draw.logp_set = 0.0
        with gil:
            if self.error is not None:
                return
            try:
                self._choose(draw_state, s, eligible, n, min(n, m), round, drawn, top, draw_log, draw)
            except BaseException as error:
                self.error, draw.size = error, 0

    cdef _choose(self, const double* draw_state, const float* s, const Py_ssize_t* eligible, Py_ssize_t n, Py_ssize_t m, int64_t round, Py_ssize_t* drawn, Py_ssize_t* top, double* draw_log, Draw* draw):
        cdef Py_ssize_t i
        scores = np.empty(n, np.float32)
        cdef float* value = <float*><size_t>scores.ctypes.data
        for i in range(n):
            value[i] = s[eligible[i]]
        chosen, best, ordered, of_set, log = self.rule.checked(
            scores, m, self.seed, round, _array(draw_state, self.n_draw_state), self.memory
        )
        for i in range(len(chosen)):
            drawn[i] = eligible[<Py_ssize_t>chosen[i]]
        for i in range(len(best)):
            top[i] = eligible[<Py_ssize_t>best[i]]
        for i in range(len(log)):
            draw_log[i] = log[i]
        draw.top_size, draw.n_log = len(best), len(log)
        draw.logp_ordered, draw.logp_set = ordered, of_set
        draw.size = len(chosen)

    cdef void on_decided(self, double* draw_state, const double* draw_log, Py_ssize_t n_log) noexcept nogil:
        if self.n_draw_state == 0:
            return
        with gil:
            try:
                moved = _array(draw_state, self.n_draw_state)
                self.rule.on_decided(moved, _array(draw_log, n_log))
                memcpy(draw_state, <const double*><size_t>moved.ctypes.data, self.n_draw_state * sizeof(double))
            except BaseException as error:
                self.error = error

    cdef void on_feedback(self, const double* draw_log, Py_ssize_t n_log, const Answer* answer) noexcept nogil:
        if not self.listens:
            return
        with gil:
            try:
                numbers = self.arrays["decided"][: self.n_draw_state]
                self.rule.on_feedback(numbers, self.memory, _array(draw_log, n_log), bool(answer.hit))
            except BaseException as error:
                self.error = error

    def forget_error(self):
        """The error, which is then over."""
        error, self.error = self.error, None
        return error


cdef _array(const double* numbers, Py_ssize_t n):
    array = np.empty(n)
    if n > 0:
        memcpy(<double*><size_t>array.ctypes.data, numbers, n * sizeof(double))
    return array
