"""Many rounds in one loop: the decide step and the learn step of core.pyx, over rows that lie side by side.

They give the same bits as single calls: the steps are the same machine code.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

cimport numpy as np

from superarm.native.arrays cimport intp_data
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


def run(Core core, RowBlock rows, np.ndarray y, np.ndarray visit, np.ndarray counts, sizes=None):
    """Run rounds over rows[visit], answered from y. Return how many were done, and why it stopped (0: at the end).

    Args:
        core: of the learner.
        rows: the rows.
        y: label numbers (intp).
        visit: row numbers (intp).
        counts: gets errors, misses, shown misses, and labels shown.
        sizes: gets (intp) how many labels each round showed, less than 0 if the right one was not among them.
    """
    cdef Py_ssize_t i, at, following, n = visit.shape[0], m = core.set_size, n_eligible
    cdef const Py_ssize_t* order = intp_data(visit)
    cdef const Py_ssize_t* label = intp_data(y)
    cdef const Py_ssize_t* eligible = intp_data(core.showable)
    cdef int64_t* count = <int64_t*>np.PyArray_DATA(counts)
    cdef Py_ssize_t* size = NULL if sizes is None else <Py_ssize_t*>np.PyArray_DATA(sizes)
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
            core.rule.on_decided(core.rule.draw_state, core.draw_log, draw.n_log)
            rows.at(following, &ahead)
            core.prefetch_weights(&ahead)
            round.m, round.top_size = draw.size, draw.top_size
            round.logp_ordered, round.logp_set = draw.logp_ordered, draw.logp_set
            answer.hit = contains(core.drawn, draw.size, label[at])
            if core.sees_label:
                answer.label = label[at]
            status = core.learn_step(&round, &answer, True, core.draw_log, draw.n_log)
            if status:
                break
            core.round += 1
            count[0] += core.top[0] != label[at]
            count[1] += not contains(core.top, draw.top_size, label[at])
            count[2] += not answer.hit
            count[3] += draw.size
            if size != NULL:
                size[i] = draw.size if answer.hit else -draw.size
            i += 1
    return i, status


def decide_many(Core core, RowBlock rows, np.ndarray eligible, starts, Py_ssize_t m, Cursor cursor):
    """Decide for every row, at a cursor.

    Args:
        core: of the learner, which stays as it is.
        rows: the rows.
        eligible: label numbers, increasing; for all rows, or one list after the other.
        starts: where the list of each row begins, and the end of the last; ``None`` if there is one list.
        m: how many to show.
        cursor: where to begin; it is moved.

    Returns:
        How many rows could be decided, and the fields of `superarm.decisions.decisions.DrawnSets`.
    """
    cdef Py_ssize_t i = 0, n = rows.n, n_eligible = eligible.shape[0], length
    cdef const Py_ssize_t* all_lists = intp_data(eligible)
    cdef const Py_ssize_t* labels = all_lists
    cdef const Py_ssize_t* start = NULL if starts is None else intp_data(starts)
    cdef Row row, ahead
    cdef Draw draw
    set_starts, log_starts, sizes = np.zeros(n + 1, np.intp), np.zeros(n + 1, np.intp), np.zeros(n, np.intp)
    log_probs = np.empty((n, 2))
    cdef Py_ssize_t* set_start = <Py_ssize_t*>np.PyArray_DATA(set_starts)
    cdef Py_ssize_t* log_start = <Py_ssize_t*>np.PyArray_DATA(log_starts)
    cdef Py_ssize_t* size = <Py_ssize_t*>np.PyArray_DATA(sizes)
    cdef double* log_prob = <double*>np.PyArray_DATA(log_probs)
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
            if sets.used + 3 * core.rule.largest(n_eligible, m) > sets.capacity:
                with gil:
                    sets.reserve(3 * core.rule.largest(n_eligible, m))
            if logs.used + core.rule.log_size(n_eligible, m) > logs.capacity:
                with gil:
                    logs.reserve(core.rule.log_size(n_eligible, m))
            shown, log = <Py_ssize_t*>sets.data + sets.used, <double*>logs.data + logs.used
            rows.at(i, &row)
            if core.decide_step(&row, labels, n_eligible, m, cursor.round, cursor.draw_state_data, log, &draw):
                break
            core.rule.on_decided(cursor.draw_state_data, log, draw.n_log)
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
            log_prob[2 * i], log_prob[2 * i + 1], size[i] = draw.logp_ordered, draw.logp_set, draw.size
            set_start[i + 1], log_start[i + 1] = set_start[i] + length, log_start[i] + draw.n_log
            i += 1
    return i, sets.whole(), set_starts, sizes, log_probs, logs.whole(), log_starts


def update_many(
    Core core, RowBlock rows, np.ndarray which, np.ndarray eligible, starts, np.ndarray flat, np.ndarray set_starts,
    np.ndarray sizes, np.ndarray log_probs, np.ndarray log, np.ndarray log_starts, np.ndarray rounds, np.ndarray hits,
    np.ndarray right_labels, interleaved=None,
):
    """Learn from the answers to the decisions ``which``, in this order. Return how many were done, and why it stopped.

    Args:
        core: of the learner.
        rows: of all decisions.
        which: row numbers.
        eligible, starts: as in `decide_many`.
        flat, set_starts, sizes, log_probs, log, log_starts: what `decide_many` gave.
        rounds: of all decisions (int64); below 0 where somebody else chose the set.
        hits: a bit (uint8) for each of ``which``.
        right_labels: a label's number for each of ``which``, or -1.
        interleaved: decisions that were made between the answers: (log, log_starts, the first, and how many come before each
            answer), or ``None``.
    """
    cdef Py_ssize_t i = 0, at, begin, n = which.shape[0], n_eligible = eligible.shape[0], m, counted = 0
    cdef const Py_ssize_t* before = NULL
    cdef const Py_ssize_t* decided_end = NULL
    cdef const double* decided_log = NULL
    if interleaved is not None:
        decided_log, decided_end = <const double*>np.PyArray_DATA(interleaved[0]), intp_data(interleaved[1])
        counted, before = interleaved[2], intp_data(interleaved[3])
    cdef const Py_ssize_t* order = intp_data(which)
    cdef const Py_ssize_t* start = NULL if starts is None else intp_data(starts)
    cdef const Py_ssize_t* set_start = intp_data(set_starts)
    cdef const Py_ssize_t* log_start = intp_data(log_starts)
    cdef const Py_ssize_t* size = intp_data(sizes)
    cdef const Py_ssize_t* sets = intp_data(flat)
    cdef const Py_ssize_t* label = intp_data(right_labels)
    cdef const Py_ssize_t* all_lists = intp_data(eligible)
    cdef const Py_ssize_t* labels = all_lists
    cdef const double* log_prob = <const double*>np.PyArray_DATA(log_probs)
    cdef const double* logs = <const double*>np.PyArray_DATA(log)
    cdef const int64_t* round_number = <const int64_t*>np.PyArray_DATA(rounds)
    cdef const unsigned char* hit = <const unsigned char*>np.PyArray_DATA(hits)
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
            round.logp_ordered, round.logp_set = log_prob[2 * at], log_prob[2 * at + 1]
            round.given = round_number[at] < 0
            answer.hit, answer.label = hit[i], label[i]
            if i + 1 < n:
                rows.prefetch_row(order[min(i + 2, n - 1)])
                rows.at(order[i + 1], &ahead)
                core.prefetch_weights(&ahead)
            if before != NULL:
                advance(core.rule, decided_log, decided_end, counted, before[i])
                counted = before[i]
            status = core.learn_step(&round, &answer, False, logs + log_start[at], log_start[at + 1] - log_start[at])
            if status:
                break
            i += 1
    return i, status
