"""Many rounds in one loop: the decide step and the learn step of core.pyx, over rows that lie side by side.

They give the same bits as single calls: the steps are the same machine code.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

cimport numpy as np

from superarm.native.arrays cimport double_data, int64_data, intp_data
from superarm.native.core cimport Core, Cursor
from superarm.native.ranking cimport best_first, contains
from superarm.native.rows cimport RowBlock
from superarm.native.rule cimport advance
from superarm.native.types cimport Answer, Draw, Round, Row

import numpy as np

np.import_array()

cdef Py_ssize_t CHUNK = 2**14  # numbers


cdef class GrowingArray:
    """Numbers of 8 bytes that are written one after the other, into chunks."""

    cdef object dtype, chunk
    cdef list chunks
    cdef void* data  # the chunk at hand
    cdef Py_ssize_t used, capacity  # of it

    def __init__(self, dtype):
        self.dtype, self.chunks, self.chunk = dtype, [], np.empty(0, dtype)

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Make room for n more numbers side by side."""
        self.chunks.append(self.chunk[: self.used])
        self.capacity, self.used = max(n, CHUNK), 0
        self.chunk = np.empty(self.capacity, self.dtype)
        self.data = np.PyArray_DATA(self.chunk)
        return 0

    def whole(self):
        return np.concatenate([*self.chunks, self.chunk[: self.used]])


def run(Core core, RowBlock rows, np.ndarray y, np.ndarray visit, np.ndarray counts, signed_sizes=None):
    """Run rounds over rows[visit], answered from y. Return how many were done, and why it stopped (0: at the end).

    Args:
        core: of the learner.
        rows: the rows.
        y: label numbers (intp).
        visit: row numbers (intp).
        counts: gets errors, misses, shown misses, and labels shown.
        signed_sizes: gets (intp) how many labels each round showed, less than 0 if the right one was not among them.
    """
    cdef Py_ssize_t i, at, following, n = visit.shape[0], m = core.set_size, n_eligible
    cdef const Py_ssize_t* order = intp_data(visit)
    cdef const Py_ssize_t* label = intp_data(y)
    cdef const Py_ssize_t* eligible = intp_data(core.showable)
    cdef int64_t* count = int64_data(counts)
    cdef Py_ssize_t* size = NULL if signed_sizes is None else intp_data(signed_sizes)
    cdef Row row, ahead
    cdef Draw draw
    cdef Round round
    cdef Answer answer
    cdef int status = 0
    n_eligible = len(core.showable)
    core.ensure_prepared(n_eligible, m)
    core.last_decision = None
    round.row, round.eligible, round.n, round.given = &row, eligible, n_eligible, False
    round.drawn, round.top = core.drawn, core.top
    answer.likelihood, answer.label = NULL, -1
    i = 0
    with nogil:
        while i < n:
            at, following = order[i], order[min(i + 1, n - 1)]
            rows.at(at, &row)
            rows.prefetch_row(following)
            status = core.decide_step(
                &row, eligible, n_eligible, m, core.round, core.rule.draw_state, core.draw_log, &draw
            )
            if status:
                break
            status = core.move_rule(core.rule.draw_state, core.draw_log, draw.n_log)
            if status:
                break
            core.round += 1
            rows.at(following, &ahead)
            core.prefetch_weights(&ahead)
            round.m, round.top_size = draw.size, draw.top_size
            round.log_propensity, round.draw_log, round.n_log = draw.log_propensity, core.draw_log, draw.n_log
            answer.hit = contains(core.drawn, draw.size, label[at])
            if core.sees_label:
                answer.label = label[at]
            status = core.learn_step(&round, &answer, True)
            if status:
                break
            count[0] += core.top[0] != label[at]
            count[1] += not contains(core.top, draw.top_size, label[at])
            count[2] += not answer.hit
            count[3] += draw.size
            if size != NULL:
                size[i] = draw.size if answer.hit else -draw.size
            i += 1
    return i, status


def decide_many(Core core, RowBlock rows, eligible, Py_ssize_t m, Cursor cursor):
    """Decide for every row, at a cursor.

    Args:
        core: of the learner, which stays as it is.
        rows: the rows.
        eligible: the labels that may be shown (decisions/decisions.py: EligibleLabels).
        m: how many to show.
        cursor: where to begin; it is moved.

    Returns:
        How many rows could be decided, and the fields of `superarm.decisions.decisions.DrawnSets`.
    """
    cdef Py_ssize_t i = 0, n = rows.n, n_eligible = len(eligible.numbers), length
    cdef const Py_ssize_t* all_lists = intp_data(eligible.numbers)
    cdef const Py_ssize_t* labels = all_lists
    cdef const Py_ssize_t* start = NULL if eligible.starts is None else intp_data(eligible.starts)
    cdef Row row, ahead
    cdef Draw draw
    set_starts, log_starts, sizes = np.zeros(n + 1, np.intp), np.zeros(n + 1, np.intp), np.zeros(n, np.intp)
    log_probs = np.empty(n)
    cdef Py_ssize_t* set_start = intp_data(set_starts)
    cdef Py_ssize_t* log_start = intp_data(log_starts)
    cdef Py_ssize_t* size = intp_data(sizes)
    cdef double* log_prob = double_data(log_probs)
    cdef GrowingArray sets = GrowingArray(np.intp), logs = GrowingArray(np.float64)
    cdef Py_ssize_t* shown
    cdef double* log
    core.last_decision = None
    with nogil:
        while i < n:
            if start != NULL:
                labels, n_eligible = all_lists + start[i], start[i + 1] - start[i]
            if n_eligible != core.prepared_n or m != core.prepared_m:
                with gil:
                    core.ensure_prepared(n_eligible, m)
            if sets.used + 3 * min(n_eligible, m) > sets.capacity:
                with gil:
                    sets.reserve(3 * min(n_eligible, m))
            if logs.used + core.rule.log_size(n_eligible, m) > logs.capacity:
                with gil:
                    logs.reserve(core.rule.log_size(n_eligible, m))
            shown, log = <Py_ssize_t*>sets.data + sets.used, <double*>logs.data + logs.used
            rows.at(i, &row)
            if core.decide_step(&row, labels, n_eligible, m, cursor.round, cursor.draw_state_data, log, &draw):
                break
            if core.move_rule(cursor.draw_state_data, log, draw.n_log):
                break
            cursor.round += 1
            rows.at(min(i + 1, n - 1), &ahead)
            core.prefetch_weights(&ahead)
            rows.prefetch_row(min(i + 2, n - 1))  # the next one is on its way: rows come in order
            best_first(core.s, draw.drawn, draw.size, shown)
            memcpy(shown + draw.size, draw.drawn, draw.size * sizeof(Py_ssize_t))
            memcpy(shown + 2 * draw.size, draw.top, draw.top_size * sizeof(Py_ssize_t))
            length = 2 * draw.size + draw.top_size
            sets.used += length
            logs.used += draw.n_log
            log_prob[i], size[i] = draw.log_propensity, draw.size
            set_start[i + 1], log_start[i + 1] = set_start[i] + length, log_start[i] + draw.n_log
            i += 1
    return i, sets.whole(), set_starts, sizes, log_probs, logs.whole(), log_starts


def update_many(Core core, batch, answers, between=None):
    """Learn from answers to decisions, in the order of the answers. Return how many were done, and why it stopped.

    Args:
        core: of the learner.
        batch: the decisions (learners/batch_feedback.py: DecisionColumns).
        answers: to some of them (AnswerColumns).
        between: decisions that were made between the answers, which move the rule (DecisionsBetween), or ``None``.
    """
    cdef RowBlock rows = batch.rows
    cdef Py_ssize_t i = 0, at, begin, n = len(answers.which), m, counted = 0
    cdef const Py_ssize_t* before = NULL
    cdef const Py_ssize_t* decided_end = NULL
    cdef const double* decided_log = NULL
    if between is not None:
        decided_log, decided_end = double_data(between.draw_logs), intp_data(between.draw_log_starts)
        counted, before = between.n_counted, intp_data(between.before_answer)
    cdef const Py_ssize_t* order = intp_data(answers.which)
    cdef const unsigned char* hit = <const unsigned char*>np.PyArray_DATA(answers.hits)
    cdef const Py_ssize_t* label = intp_data(answers.labels)
    cdef const Py_ssize_t* all_lists = intp_data(batch.eligible.numbers)
    cdef const Py_ssize_t* start = NULL if batch.eligible.starts is None else intp_data(batch.eligible.starts)
    cdef const Py_ssize_t* labels = all_lists
    cdef Py_ssize_t n_eligible = len(batch.eligible.numbers)
    cdef const Py_ssize_t* sets = intp_data(batch.draws.flat)
    cdef const Py_ssize_t* set_start = intp_data(batch.draws.starts)
    cdef const Py_ssize_t* size = intp_data(batch.draws.sizes)
    cdef const double* log_prob = double_data(batch.draws.log_probs)
    cdef const double* logs = double_data(batch.draws.draw_logs)
    cdef const Py_ssize_t* log_start = intp_data(batch.draws.draw_log_starts)
    cdef const int64_t* round_number = int64_data(batch.rounds)
    cdef Row row, ahead
    cdef Round round
    cdef Answer answer
    cdef int status = 0
    core.last_decision = None
    round.row, answer.likelihood = &row, NULL
    with nogil:
        while i < n:
            at = order[i]
            begin, m = set_start[at], size[at]
            if start != NULL:
                labels, n_eligible = all_lists + start[at], start[at + 1] - start[at]
            if n_eligible != core.prepared_n or m != core.prepared_m:
                with gil:
                    core.ensure_prepared(n_eligible, m)
            rows.at(at, &row)
            round.eligible, round.n = labels, n_eligible
            round.drawn, round.m = sets + begin + m, m
            round.top, round.top_size = sets + begin + 2 * m, set_start[at + 1] - begin - 2 * m
            round.log_propensity = log_prob[at]
            round.draw_log, round.n_log = logs + log_start[at], log_start[at + 1] - log_start[at]
            round.given = round_number[at] < 0
            answer.hit, answer.label = hit[i], label[i]
            if i + 1 < n:
                rows.prefetch_row(order[min(i + 2, n - 1)])
                rows.at(order[i + 1], &ahead)
                core.prefetch_weights(&ahead)
            if before != NULL:
                advance(core.rule, decided_log, decided_end, counted, before[i])
                counted = before[i]
            status = core.learn_step(&round, &answer, False)
            if status:
                break
            i += 1
    return i, status
