"""PlainCore: `score` and `learn` are functions in Python. Everything around them is as for the compiled learners.

An exception of theirs stops the loop, and `Core.raise_pending` raises it.
"""

from libc.math cimport NAN
from libc.string cimport memcpy

from superarm.native.arrays cimport float_data
from superarm.native.core cimport Core
from superarm.native.cpu cimport kernels
from superarm.native.rule cimport RuleKernel
from superarm.native.scaling cimport Scaling
from superarm.native.types cimport Answer, Round, ScaledRow

import numpy as np


cdef class PlainCore(Core):
    """A core that calls Python for scores and for learning.

    Args:
        k: labels.
        scaling: how rows reach the functions.
        kernel: how sets are chosen.
        score: called with a row, an array that is the callee's own: the dense columns, then the sparse ones
            with their zeros. Returns the scores of all labels.
        learn: called with a row, the shown labels as drawn, and the bit. Returns whether it learnt.
        memory: what was learnt: a dict whose arrays belong to the state.
    """

    cdef object score_row, learn_row
    cdef public dict memory
    cdef object scores_row  # an array, and where its numbers lie
    cdef float* scores_data

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel kernel, *, score, learn, dict memory):
        Core.__init__(self, k, scaling, kernel)
        self.score_row, self.learn_row, self.memory = score, learn, memory
        self.scores_data = self.scratch_floats("scores", k)
        self.scores_row = self._scratch["scores"]

    cdef object as_array(self, const ScaledRow* x):
        """Return the row as an array of its own."""
        cdef Py_ssize_t i
        row = np.zeros(self.scaling.d + self.scaling.width, np.float32)
        cdef float* numbers = float_data(row)
        if x.d > 0:
            memcpy(numbers, x.dense, x.d * sizeof(float))
            kernels.multiply(numbers, x.factor, x.d)
        for i in range(x.n):
            numbers[x.d + x.indices[i]] = x.sparse_factor * x.values[i]
        return row

    cdef void score(self, const ScaledRow* x, float* s) noexcept nogil:
        s[0] = NAN  # which tells the loop to stop
        if kernels.all_finite(x.dense, x.d) and kernels.all_finite(x.values, x.n):
            with gil:
                if not self.kernel.failed:
                    try:
                        self.scores_row[:] = self.score_row(self.as_array(x))
                        memcpy(s, self.scores_data, self.k * sizeof(float))
                    except BaseException as error:
                        self.kernel.error, self.kernel.failed = error, True

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        cdef Py_ssize_t i
        cdef bint learnt = False
        with gil:
            if not self.kernel.failed:
                try:
                    shown = np.array([round.drawn[i] for i in range(round.m)], np.intp)
                    learnt = self.learn_row(self.as_array(round.x), shown, answer.hit)
                except BaseException as error:
                    self.kernel.error, self.kernel.failed = error, True
        return learnt

    cdef bint reads_scores(self, const Round* round) noexcept nogil:
        return False

    # ------------------------------------------------------------ the state

    def state(self) -> dict[str, NDArray[Any]]:
        kept = {name: value for name, value in self.memory.items() if isinstance(value, np.ndarray)}
        return Core.state(self) | {f"memory.{name}": array for name, array in kept.items()}

    def restore(self, state) -> None:
        """As for every stage; arrays of the memory that are new since it began are taken as they are."""
        own = self.state()
        for name, saved in state.items():
            if name.startswith("memory.") and name not in own:
                self.memory[name.removeprefix("memory.")] = saved.copy()
        Core.restore(self, state)
