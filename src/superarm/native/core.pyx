"""One decide step and one learn step; loops.pyx goes over many rows with them.

    decide   x~ = scale(x);  s = score(x~);  choose(s) -> a set, its probability, what the rule wrote down
    learn    learn(round, answer);  update_stats(x);  on_feedback(answer)

An algorithm adds `score` and `learn`. Single calls, batches and the fused loop run these two steps, and nothing
else: they give the same bits because they are the same machine code. The contract is core.pxd.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy

cimport numpy as np

from superarm.native.arrays cimport double_data, float_data, intp_data
from superarm.native.cpu cimport kernels
from superarm.native.ranking cimport write_sets
from superarm.native.rows cimport read_row

import numpy as np

np.import_array()

cpdef enum:  # why a step was not made; 0: it was
    NOT_FAST = -1  # `Learner.update` must look
    SCORE_FAILED = 1
    UPDATE_REFUSED = 2


cdef class DecisionBase:
    pass


cdef class Core(Stage):
    """An algorithm with its scaling and its rule: two steps, and what single calls need around them.

    Args:
        k: labels.
        scaling: how rows reach the weights.
        kernel: how sets are chosen.
    """

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel kernel):
        self.k, self.scaling, self.kernel = k, scaling, kernel
        self.stages |= {"scaling": scaling, "rule": kernel}
        self.answered, self.skipped, self.round, self.set_size = AnsweredRounds(), [], 0, 1
        self.s = self.scratch_floats("s", k)
        self.eligible_scores = self.scratch_floats("eligible_scores", k)
        self.drawn, self.top = self.scratch_intp("drawn", k), self.scratch_intp("top", k)
        self.all_labels = self.showable = np.arange(k)
        self.prepared_n, self.prepared_m, self.takes_hit = -1, -1, True

    def bind(
        self, *, decision_class, rule, vocabulary, str id, all_labels=None, showable=None,
        Py_ssize_t set_size=1, tuple feedback=("hit",), CallLock lock=None,
    ) -> None:
        """Take what every decision carries, and what `decide_fast` and `update_fast` must know.

        Args:
            decision_class: superarm.decisions.Decision.
            rule: the rule of superarm.explore.
            vocabulary: the LabelVocabulary behind the indices.
            id: the learner's id, or the id of a rule that is used alone.
            all_labels: an array of the k label indices; ``None`` to keep the core's own.
            showable: an array of the label indices that may be shown; ``None`` for all.
            set_size: how many to show, in the fast paths and in the fused loop.
            feedback: what the learner takes: some of hit, label, likelihood.
            lock: the learner's lock, where the fast paths serve: dense rows without names, no label added, no plain Python.
        """
        self.decision_class, self.rule, self.vocabulary, self.id = decision_class, rule, vocabulary, id
        if all_labels is not None:
            self.all_labels = all_labels
        self.showable = self.all_labels if showable is None else showable
        self.set_size, self.lock = set_size, lock
        self.takes_hit, self.sees_label = "hit" in feedback, feedback == ("label",)

    # ------------------------------------------------------------ what an algorithm defines

    cdef void score(self, const ScaledRow* x, float* s) noexcept nogil:
        """Fill s with the scores that rank the labels."""

    cdef bint learn(self, const Round* round, const Answer* answer) noexcept nogil:
        """Update the state. Return False, and do nothing, if a weight might overflow."""
        return True

    cdef bint reads_scores(self, const Round* round) noexcept nogil:
        """Return whether `learn` looks at the scores; where it does not, a late update computes none."""
        return True

    cdef void prefetch_weights(self, const Row* row) noexcept nogil:
        """Ask early for the memory of the weights that a row will want."""

    cpdef prepare(self, Py_ssize_t n, Py_ssize_t m):
        """Make what depends on how many labels are eligible and shown; with the interpreter, before the loop."""

    cpdef raise_pending(self):
        """Raise what a learner or a rule in plain Python has raised in compiled code."""
        if self.kernel.failed:
            error, self.kernel.error, self.kernel.failed = self.kernel.error, None, False
            raise error

    def on_labels_added(self, Py_ssize_t before) -> None:
        """Set what is not to begin as in a new core, for labels from index ``before`` on, which are new."""

    # ------------------------------------------------------------ the two steps

    cdef int decide_step(self, const Row* row, DrawContext* context, Draw* draw) noexcept nogil:
        cdef Py_ssize_t i, n = context.n
        cdef const Py_ssize_t* eligible = context.eligible
        cdef bint all_eligible = eligible[n - 1] == n - 1  # as they are increasing
        self.scaling.scale(row, &self.scaled_row)
        self.score(&self.scaled_row, self.s)
        if not kernels.all_finite(self.s, self.k):
            return SCORE_FAILED
        context.m = min(n, context.m)
        context.scores = context.all_scores = self.s
        if not all_eligible:
            for i in range(n):
                self.eligible_scores[i] = self.s[eligible[i]]
            context.scores = self.eligible_scores
        draw.drawn, draw.top = self.drawn, self.top
        draw.size = draw.top_size = context.m
        draw.n_log, draw.log_propensity = 0, 0.0
        self.kernel.choose(context, draw)
        if not all_eligible:
            for i in range(draw.size):
                draw.drawn[i] = eligible[draw.drawn[i]]
            for i in range(draw.top_size):
                draw.top[i] = eligible[draw.top[i]]
        return SCORE_FAILED if draw.size == 0 else 0  # a rule in plain Python has raised

    cdef int move_rule(self, double* draw_state, const double* draw_log, Py_ssize_t n_log) noexcept nogil:
        """Let the rule move ``draw_state`` after a decision. Return SCORE_FAILED if a rule in plain Python raises."""
        self.kernel.on_decided(draw_state, draw_log, n_log)
        return SCORE_FAILED if self.kernel.failed else 0

    cdef int learn_step(self, Round* round, const Answer* answer, bint scores_ready) noexcept nogil:
        round.x, round.s = &self.scaled_row, self.s
        if not scores_ready:
            self.scaling.scale(round.row, &self.scaled_row)
            if self.reads_scores(round):
                self.score(&self.scaled_row, self.s)
                if not kernels.all_finite(self.s, self.k):
                    return SCORE_FAILED
            elif self.scaled_row.squared_norm == INFINITY:  # what the scores would have shown
                return UPDATE_REFUSED
        if not self.learn(round, answer):
            return UPDATE_REFUSED
        self.n_updates += 1
        self.scaling.update_stats(round.row)
        self.kernel.on_feedback(round.draw_log, round.n_log, answer)
        return 0

    cdef bint is_prepared(self, Py_ssize_t n, Py_ssize_t m) noexcept nogil:
        return n == self.prepared_n and m == self.prepared_m

    cdef int ensure_prepared(self, Py_ssize_t n, Py_ssize_t m) except -1 nogil:
        """Make sure that tables and scratch arrays serve sets of m out of n labels. (It may run Python: not lock-free.)"""
        cdef Py_ssize_t capacity
        if self.is_prepared(n, m):
            return 0
        with gil:
            self.kernel.prepare(n, m)
            self.prepare(n, m)
            capacity = self.kernel.log_size(n, m)
            if capacity > self.draw_log_capacity:
                self.draw_log, self.draw_log_capacity = self.scratch_doubles("draw_log", capacity), capacity
            self.prepared_n, self.prepared_m = n, m
        return 0

    # ------------------------------------------------------------ one decision

    def cursor(self) -> Cursor:
        """Return the present position: a copy."""
        return Cursor.of(self.kernel, self.round)

    def move_to(self, Cursor cursor) -> None:
        """Move to the position of a cursor of this core."""
        self.round = cursor.round
        memcpy(self.kernel.draw_state, cursor.draw_state_data, self.kernel.n_draw_state * sizeof(double))

    def decide_fast(self, x, cursor=None):
        """Return the decision for a plain dense row, with all labels eligible; ``None`` if `Learner.decide` must look."""
        if self.lock is None or not np.PyArray_CheckExact(x) or np.PyArray_TYPE(x) != np.NPY_FLOAT32:
            return None
        if np.PyArray_NDIM(x) != 1 or np.PyArray_DIM(x, 0) != self.scaling.d or not np.PyArray_ISCARRAY_RO(x):
            return None
        cdef np.npy_intp d = self.scaling.d
        row = np.PyArray_EMPTY(1, &d, np.NPY_FLOAT32, 0)
        memcpy(np.PyArray_DATA(row), np.PyArray_DATA(x), d * sizeof(float))
        if not (cursor is None or type(cursor) is Cursor and len(cursor.draw_state) == self.kernel.n_draw_state):
            return None
        decision = self.decision_class.__new__(self.decision_class)
        # from here on the GIL is kept: no other thread comes in between
        if self.lock is None or self.lock.depth:
            return None
        if not self.is_prepared(np.PyArray_DIM(self.showable, 0), self.set_size):
            return None
        return self._decide(<DecisionBase>decision, row, row, self.showable, self.set_size, cursor, 0.0)

    def decide(self, row, x, eligible, Py_ssize_t m, Cursor cursor=None, double coverage=0.0):
        """Return a decision of m of the ``eligible`` labels (an increasing array); ``None`` if scores are not finite.

        Args:
            row: the row as compiled code reads it: a dense row, or with ``dense``, ``indices`` and ``values``.
            x: the row as people see it.
            eligible: the indices of the labels that may be shown.
            m: how many to show.
            cursor: where to decide; it is moved. ``None``: at the position of the core, which is moved.
            coverage: the coverage to keep; 0 for the rule's own.
        """
        decision = self.decision_class.__new__(self.decision_class)
        return self._decide(<DecisionBase>decision, row, x, eligible, m, cursor, coverage)

    cdef object _decide(
        self, DecisionBase decision, row, x, eligible, Py_ssize_t m, Cursor cursor, double coverage
    ):
        """Fill in an empty decision: made before, as a collection of garbage may let another thread in."""
        cdef Row read
        cdef Draw draw
        cdef DrawContext context
        cdef double* draw_state = self.kernel.draw_state if cursor is None else cursor.draw_state_data
        read_row(row, &read)
        context.eligible, context.n, context.m = intp_data(eligible), np.PyArray_DIM(eligible, 0), m
        context.round = self.round if cursor is None else cursor.round
        context.draw_state, context.coverage = draw_state, coverage
        self.ensure_prepared(context.n, m)
        draw.draw_log = self.draw_log
        self.last_decision = None
        if self.decide_step(&read, &context, &draw) or self.move_rule(draw_state, self.draw_log, draw.n_log):
            self.raise_pending()
            return None
        if cursor is None:
            self.round += 1
        else:
            cursor.round += 1
        cdef np.npy_intp length = 2 * draw.size + draw.top_size
        sets = np.PyArray_EMPTY(1, &length, np.NPY_INTP, 0)
        write_sets(self.s, &draw, intp_data(sets))
        _freeze(row)
        decision.x, decision.row = x, row
        decision.sets, decision.size = sets, draw.size
        decision._eligible = None if eligible is self.all_labels else eligible
        decision.log_propensity, decision.learnt_by = draw.log_propensity, ()
        decision.draw_log = (<char*>self.draw_log)[: draw.n_log * sizeof(double)] if draw.n_log else b""
        decision._rule, decision.vocabulary = self.rule, self.vocabulary
        decision.round, decision.learner = context.round, self.id
        self.last_decision = decision
        return decision

    def count_round(self, int64_t round) -> bool:
        """Count in a round that was decided elsewhere, in any order. Return False if it was counted before."""
        if round >= self.round:
            if round > self.round:
                self.skipped.append((self.round, round))
            self.round = round + 1
            return True
        for i, (first, end) in enumerate(self.skipped):
            if first <= round < end:
                self.skipped[i : i + 1] = [(a, b) for a, b in ((first, round), (round + 1, end)) if a < b]
                return True
        return False

    def rounds(self) -> dict[str, Any]:
        """Return which rounds were decided and answered, JSON-ready."""
        return {
            "round": self.round,
            "skipped_rounds": list(self.skipped),
            "answered": (self.answered.start, self.answered.bits.hex()),
        }

    def restore_rounds(self, rounds) -> None:
        """Take over the ``rounds()`` of another core."""
        start, bits = rounds["answered"]
        self.answered = AnsweredRounds(start, bytes.fromhex(bits))
        self.round, self.skipped = rounds["round"], [(first, end) for first, end in rounds["skipped_rounds"]]

    def advance(self, np.ndarray draw_log) -> None:
        """Move the rule as if it had made the decision for which it wrote ``draw_log``."""
        self.kernel.on_decided(self.kernel.draw_state, double_data(draw_log), np.PyArray_DIM(draw_log, 0))
        self.raise_pending()

    # ------------------------------------------------------------ one answer

    def update_fast(self, decision, hit) -> int:
        """Learn from a bit about a decision of this core. Return 0, or why not, or NOT_FAST."""
        if self.lock is None or self.lock.depth:
            return NOT_FAST
        if not (self.takes_hit and (hit is True or hit is False) and type(decision) is self.decision_class):
            return NOT_FAST
        cdef DecisionBase own = <DecisionBase>decision
        # a decision that was stored, or that another rule made, has not been checked
        if own._rule is not self.rule or own.vocabulary is not self.vocabulary or own.learner != self.id:
            return NOT_FAST
        if type(own.row) is not np.ndarray or own.round >= self.round or self.answered.has(own.round):
            return NOT_FAST
        eligible = self.all_labels if own._eligible is None else own._eligible
        if not self.is_prepared(np.PyArray_DIM(eligible, 0), own.size):
            return NOT_FAST
        return self.update(own, own.row, eligible, own.sets, own.draw_log, hit, -1, None)

    def update(
        self, DecisionBase decision, row, eligible, sets, bytes draw_log, bint hit, Py_ssize_t label,
        likelihood,
    ) -> int:
        """Learn from an answer about a checked decision, and remember that it was answered. Return 0, or why not.

        Args:
            decision: the decision.
            row: the row as compiled code reads it.
            eligible: label indices that could be shown, increasing.
            sets: an array of label indices: DecisionSets (decisions/decision.py), one after the other.
            draw_log: what the rule wrote down.
            hit: the bit.
            label: the label's index, or -1.
            likelihood: float64 numbers, one for each label; or ``None``.
        """
        cdef Row read
        cdef Round round
        cdef Answer answer
        cdef Py_ssize_t size = decision.size
        read_row(row, &read)
        round.row = &read
        round.eligible, round.n = intp_data(eligible), np.PyArray_DIM(eligible, 0)
        round.drawn, round.m = intp_data(sets) + size, size
        round.top, round.top_size = intp_data(sets) + 2 * size, np.PyArray_DIM(sets, 0) - 2 * size
        round.log_propensity = decision.log_propensity
        round.draw_log = <const double*><const char*>draw_log
        round.n_log = len(draw_log) // sizeof(double)
        round.given = decision.round is None
        answer.hit, answer.label = hit, label
        answer.likelihood = NULL if likelihood is None else double_data(likelihood)
        self.ensure_prepared(round.n, size)
        cdef bint scores_ready = decision is self.last_decision and decision.row is row
        self.last_decision = None
        if not round.given:
            self.answered.make_room(decision.round)
        cdef int status = self.learn_step(&round, &answer, scores_ready)
        if status == 0 and round.given:
            decision.learnt_by = (*decision.learnt_by, self.id)
        elif status == 0:
            self.answered.add(decision.round)
        self.raise_pending()
        return status

    def scores(self, RowBlock rows, np.ndarray out) -> None:
        """Write the scores of all labels for every row to ``out``, a float32 matrix."""
        cdef Py_ssize_t i
        cdef Row row
        cdef float* s = float_data(out)
        self.last_decision = None
        with nogil:
            for i in range(rows.n):
                rows.at(i, &row)
                self.scaling.scale(&row, &self.scaled_row)
                self.score(&self.scaled_row, s + i * self.k)
        self.raise_pending()


cdef _freeze(row):
    """Let nobody write to a row from which is learnt later, without another look."""
    for part in (row,) if type(row) is np.ndarray else (row.dense, row.indices, row.values):
        np.PyArray_CLEARFLAGS(part, np.NPY_ARRAY_WRITEABLE)


cdef class LinearCore(Core):
    """A core with one matrix of weights, scored as it is, and room for a step on some labels."""

    def __init__(self, Py_ssize_t k, Scaling scaling, RuleKernel kernel):
        Core.__init__(self, k, scaling, kernel)
        self.weights = Weights(k, scaling.d, scaling.width)
        self.stages["weights"] = self.weights
        self.touched = self.scratch_intp("touched", k + 1)
        self.c = self.scratch_doubles("c", k + 1)

    cdef void score(self, const ScaledRow* x, float* s) noexcept nogil:
        self.weights.scores(x, s)

    cdef void prefetch_weights(self, const Row* row) noexcept nogil:
        self.weights.prefetch(row)


cdef class ScoresCore(Core):
    """A core whose rows are scores, one for each label, that come from elsewhere: only its rule learns."""

    def __init__(self, Py_ssize_t k, RuleKernel kernel):
        Core.__init__(self, k, Scaling(k, 0), kernel)

    cdef void score(self, const ScaledRow* x, float* s) noexcept nogil:
        memcpy(s, x.dense, self.k * sizeof(float))

    cdef bint reads_scores(self, const Round* round) noexcept nogil:
        return False  # a row of an earlier time may have scores of fewer labels
