from libc.stdint cimport int32_t, int64_t, uint64_t

from superarm.native.answered_rounds cimport AnsweredRounds
from superarm.native.call_lock cimport CallLock
from superarm.native.cursor cimport Cursor
from superarm.native.linear cimport Weights
from superarm.native.rows cimport RowBlock
from superarm.native.rule cimport RuleKernel
from superarm.native.scaling cimport Scaling
from superarm.native.stage cimport Stage
from superarm.native.types cimport Answer, Draw, DrawContext, Round, Row, ScaledRow


cdef class DecisionBase:
    """What compiled code keeps of one decision; decisions/decision.py says it in words."""

    cdef public object x  # the row as people see it
    # the row as compiled code reads it: an array, or a data.Row; None until it is known
    cdef public object row
    # DecisionSets of labels, or of label indices: an array of all three, one after the other
    cdef public object sets
    cdef public Py_ssize_t size  # how many are shown
    cdef public object _eligible  # array of label indices, a tuple of labels, or None for all
    cdef public double log_propensity
    cdef public object n_labels  # how many there were, where sets hold labels and it is known; else None
    cdef public object draw_log  # bytes of float64
    cdef public object _rule  # the explore.Rule that chose, a dict (a record), or None
    cdef public object round  # an int, or None
    cdef public object learner  # the learner's id, or None
    cdef public object learnt_by  # ids of the learners that learnt from it, if another system made it
    cdef public object vocabulary  # the LabelVocabulary behind the indices; None if sets already hold labels


cdef class Core(Stage):
    cdef readonly Py_ssize_t k
    cdef readonly Scaling scaling
    cdef readonly RuleKernel kernel
    cdef readonly AnsweredRounds answered
    cdef public int64_t round  # the next one
    cdef list skipped  # pairs (first, end): rounds before it that are still to be counted (`count_round`)
    cdef float* s  # scores of all labels
    cdef float* eligible_scores
    # the decision whose scaled row and scores are still in scaled_row and s; None for none
    cdef object last_decision
    cdef ScaledRow scaled_row  # the row at hand
    cdef double* draw_log  # scratch for what a rule writes down, of draw_log_capacity numbers
    cdef Py_ssize_t draw_log_capacity
    cdef Py_ssize_t* drawn  # room for k labels each
    cdef Py_ssize_t* top
    cdef Py_ssize_t prepared_n, prepared_m  # what was prepared last
    cdef readonly int64_t n_updates  # since the core was made
    # what `bind` takes
    cdef readonly object decision_class, vocabulary, rule
    cdef public object id
    cdef readonly object all_labels, showable  # arrays of label indices
    cdef public Py_ssize_t set_size
    cdef public CallLock lock
    cdef readonly bint takes_hit  # it learns from bits
    cdef readonly bint sees_label  # in the fused loop

    # ---- what an algorithm defines
    cdef void score(self, const ScaledRow* x, float* s) noexcept nogil
    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil
    cdef bint reads_scores(self, const Round* round) noexcept nogil
    cdef void prefetch_weights(self, const Row* row) noexcept nogil
    cpdef prepare(self, Py_ssize_t n, Py_ssize_t m)

    cpdef raise_pending(self)
    cdef bint is_prepared(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil
    cdef int ensure_prepared(self, Py_ssize_t n, Py_ssize_t m) except -1 nogil

    # ---- the two steps
    # The caller fills in ``context`` but for the scores (m may be too many), and ``draw.draw_log``.
    cdef int decide_step(self, const Row* row, DrawContext* context, Draw* draw) noexcept nogil
    cdef int move_rule(self, double* draw_state, const double* draw_log, Py_ssize_t n_log) noexcept nogil
    cdef object _decide(
        self, DecisionBase decision, row, x, eligible, Py_ssize_t m, Cursor cursor, double coverage
    )
    cdef int learn_step(self, Round* round, const Answer* answer, bint scores_ready) noexcept nogil


cdef class LinearCore(Core):
    cdef readonly Weights weights
    cdef Py_ssize_t* touched
    cdef double* c
