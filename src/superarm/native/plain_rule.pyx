"""PlainRuleKernel: a rule in plain Python (explore/plain.py), as compiled code calls it: with the interpreter.

What goes wrong there must wait until compiled code has come back: then the kernel has ``failed``, chooses and moves
nothing, until `Core.raise_pending` raises its ``error``.
"""

from libc.string cimport memcpy

import numpy as np

from superarm.errors import InvalidInput

from superarm.native.arrays cimport double_data, float_data
from superarm.native.rule cimport RuleKernel
from superarm.native.types cimport Answer, Draw, DrawContext


cdef class PlainRuleKernel(RuleKernel):
    """A `PlainRule` and its numbers.

    Args:
        k: labels.
        seed: of every draw.
        rule: the explore.PlainRule.
    """

    cdef object rule
    cdef object memory
    cdef Py_ssize_t max_log
    cdef bint uses_feedback

    def __init__(self, k, seed, rule):
        super().__init__(k, seed)
        self.rule, self.n_draw_state = rule, rule.n_draw_state
        self.draw_state = self.doubles("draw_state", max(1, rule.n_draw_state))
        self.doubles("memory", max(1, rule.n_memory))
        self.memory = self.arrays["memory"][: rule.n_memory]
        self.uses_feedback = rule.uses_feedback

    cpdef prepare(self, Py_ssize_t n, Py_ssize_t m):
        self.max_log = self.rule.log_size(n, min(n, m))

    cdef Py_ssize_t log_size(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return self.max_log

    cdef void choose(self, const DrawContext* context, Draw* draw) noexcept nogil:
        with gil:
            if not self.failed:
                try:
                    self._choose(context, draw)
                except BaseException as error:
                    self.error, self.failed = error, True
            if self.failed:
                draw.size = draw.top_size = 0

    cdef _choose(self, const DrawContext* context, Draw* draw):
        cdef Py_ssize_t i
        scores = np.empty(context.n, np.float32)
        memcpy(float_data(scores), context.scores, context.n * sizeof(float))
        shown, top, draw.log_propensity, log = self.rule.choose_checked(
            scores, context.m, self.seed, context.round, _array(context.draw_state, self.n_draw_state),
            self.memory,
        )
        if len(log) > self.max_log:
            wanted = f"at most {self.max_log} numbers, as log_size said"
            raise InvalidInput.must("draw_log", f"{type(self.rule).__name__}.choose", wanted, log)
        for i in range(len(shown)):
            draw.drawn[i] = shown[i]
        for i in range(len(top)):
            draw.top[i] = top[i]
        for i in range(len(log)):
            draw.draw_log[i] = log[i]
        draw.top_size, draw.size = len(top), len(shown)
        draw.n_log = len(log)

    cdef void on_decided(self, double* draw_state, const double* draw_log, Py_ssize_t n_log) noexcept nogil:
        if self.n_draw_state == 0 or self.failed:
            return
        with gil:
            try:
                moved = _array(draw_state, self.n_draw_state)
                self.rule.on_decided(moved, _array(draw_log, n_log))
                memcpy(draw_state, double_data(moved), self.n_draw_state * sizeof(double))
            except BaseException as error:
                self.error, self.failed = error, True

    cdef void on_feedback(
        self, const double* draw_log, Py_ssize_t n_log, const Answer* answer
    ) noexcept nogil:
        if not self.uses_feedback or self.failed:
            return
        with gil:
            try:
                draw_state = self.arrays["draw_state"][: self.n_draw_state]
                self.rule.on_feedback(draw_state, self.memory, _array(draw_log, n_log), bool(answer.hit))
            except BaseException as error:
                self.error, self.failed = error, True


cdef _array(const double* numbers, Py_ssize_t n):
    array = np.empty(n)
    if n > 0:
        memcpy(double_data(array), numbers, n * sizeof(double))
    return array
