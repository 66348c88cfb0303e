"""Scores that come from elsewhere: a core that scores nothing and learns nothing, for a rule alone.

The row is the scores: one for each label.
"""

from libc.string cimport memcpy

from superarm.native.core cimport Core
from superarm.native.rule cimport RuleKernel
from superarm.native.scaling cimport Scaling
from superarm.native.types cimport Features, Round


cdef class ScoresCore(Core):
    def __init__(self, Py_ssize_t k, RuleKernel rule):
        Core.__init__(self, k, Scaling(k, 0), rule)

    cdef void score(self, const Features* x, float* s) noexcept nogil:
        memcpy(s, x.x, self.k * sizeof(float))

    cdef bint reads_scores(self, const Round* round) noexcept nogil:
        return False  # nothing is learnt; and an old row may know fewer labels
