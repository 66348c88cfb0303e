"""Many rounds in one loop: the decide step and the learn step of core.pyx, over rows that lie side by side.

They give the same bits as single calls: the steps are the same machine code.
"""

from libc.stdint cimport int64_t

cimport numpy as np

from superarm.native.arrays cimport GrowingArray, double_data, int64_data, intp_data
from superarm.native.core cimport Core
from superarm.native.cursor cimport Cursor
from superarm.native.ranking cimport contains, write_sets
from superarm.native.rows cimport RowBlock
from superarm.native.types cimport Answer, Draw, DrawContext, Round, Row

import numpy as np

np.import_array()

cdef struct RunCounts:  # of the rounds of `run`
    int64_t errors
    int64_t misses
    int64_t shown_misses
    int64_t shown  # labels


cdef struct LabelLists:  # the labels that may be shown, for many rows
    const Py_ssize_t* indices
    const Py_ssize_t* starts  # of each row's list; NULL where one list of n is for all
    Py_ssize_t n


cdef LabelLists label_lists(eligible) except *:
    """Return the lists of an `EligibleLabels` (decisions/decisions.py), which must live as long."""
    cdef LabelLists lists
    indices, starts = eligible
    lists.indices, lists.n = intp_data(indices), len(indices)
    lists.starts = NULL
    if starts is not None:
        lists.starts = intp_data(starts)
    return lists


cdef inline const Py_ssize_t* labels_of_row(
    const LabelLists* lists, Py_ssize_t i, Py_ssize_t* n
) noexcept nogil:
    """Return the labels that may be shown for row i; ``n`` gets how many there are."""
    if lists.starts == NULL:
        n[0] = lists.n
        return lists.indices
    n[0] = lists.starts[i + 1] - lists.starts[i]
    return lists.indices + lists.starts[i]


cdef class DecisionBlock:
    """Many decisions, as compiled code learns from them.

    Args:
        rows: their rows.
        eligible: the labels that could be shown (decisions/decisions.py: EligibleLabels).
        draws: the sets (DrawnSets).
        rounds: numbers of rounds (int64); -1 where another system chose the set.
    """

    cdef readonly RowBlock rows
    cdef readonly object eligible, draws, rounds
    cdef LabelLists lists
    cdef const Py_ssize_t* sets
    cdef const Py_ssize_t* set_starts
    cdef const Py_ssize_t* sizes
    cdef const double* log_probs
    cdef const double* draw_logs
    cdef const Py_ssize_t* draw_log_starts
    cdef const int64_t* round_numbers

    def __init__(self, RowBlock rows, eligible, draws, rounds):
        self.rows, self.eligible, self.draws, self.rounds = rows, eligible, draws, rounds
        self.lists = label_lists(eligible)
        self.sets, self.set_starts = intp_data(draws.flat), intp_data(draws.starts)
        self.sizes, self.round_numbers = intp_data(draws.sizes), int64_data(rounds)
        self.log_probs = double_data(draws.log_probs)
        self.draw_logs, self.draw_log_starts = double_data(draws.draw_logs), intp_data(draws.draw_log_starts)

    cdef void at(self, Py_ssize_t i, Row* row, Round* round) noexcept nogil:
        """Fill in decision number i, and its row."""
        cdef Py_ssize_t start = self.set_starts[i], m = self.sizes[i]
        self.rows.at(i, row)
        round.row = row
        round.eligible = labels_of_row(&self.lists, i, &round.n)
        round.drawn, round.m = self.sets + start + m, m
        round.top, round.top_size = self.sets + start + 2 * m, self.set_starts[i + 1] - start - 2 * m
        round.log_propensity = self.log_probs[i]
        round.draw_log = self.draw_logs + self.draw_log_starts[i]
        round.n_log = self.draw_log_starts[i + 1] - self.draw_log_starts[i]
        round.given = self.round_numbers[i] < 0


def run(
    Core core, RowBlock rows, np.ndarray y, np.ndarray order, np.ndarray counts, signed_sizes=None
) -> tuple[int, int]:
    """Run rounds over rows[order], answered from y. Return how many were done, and why it stopped (0: at the end).

    It leaves what plain Python has raised to its caller, who calls `Core.raise_pending`.

    Args:
        core: the learner's core.
        rows: the rows.
        y: label indices (intp).
        order: row indices (intp).
        counts: gets `RunCounts` (four int64).
        signed_sizes: gets (intp) how many labels each round showed, less than 0 if the right one was not among them.
    """
    cdef Py_ssize_t i = 0, at, following, n = order.shape[0], m = core.set_size
    cdef int64_t first_round = core.round
    cdef const Py_ssize_t* row_index = intp_data(order)
    cdef const Py_ssize_t* label = intp_data(y)
    cdef RunCounts* count = <RunCounts*>int64_data(counts)
    cdef Py_ssize_t* size = NULL if signed_sizes is None else intp_data(signed_sizes)
    cdef Row row, ahead
    cdef Draw draw
    cdef DrawContext context
    cdef Round round
    cdef Answer answer
    cdef int status = 0
    round.row = &row
    round.eligible, round.n = intp_data(core.showable), len(core.showable)
    round.given = False
    round.drawn, round.top = core.drawn, core.top
    answer.likelihood, answer.label = NULL, -1
    core.ensure_prepared(round.n, m)
    context.eligible, context.n, context.m = round.eligible, round.n, m
    context.draw_state, context.coverage = core.kernel.draw_state, 0.0
    draw.draw_log = core.draw_log
    core.last_decision = None
    with nogil:
        while i < n:
            at, following = row_index[i], row_index[min(i + 1, n - 1)]
            rows.at(at, &row)
            rows.prefetch_row(following)
            context.round = core.round
            status = core.decide_step(&row, &context, &draw)
            if status:
                break
            status = core.move_rule(core.kernel.draw_state, core.draw_log, draw.n_log)
            if status:
                break
            core.round += 1
            rows.at(following, &ahead)
            core.prefetch_weights(&ahead)
            round.m, round.top_size = draw.size, draw.top_size
            round.log_propensity = draw.log_propensity
            round.draw_log, round.n_log = core.draw_log, draw.n_log
            answer.hit = contains(core.drawn, draw.size, label[at])
            if core.sees_label:
                answer.label = label[at]
            status = core.learn_step(&round, &answer, True)
            if status:
                break
            count.errors += core.top[0] != label[at]
            count.misses += not contains(core.top, draw.top_size, label[at])
            count.shown_misses += not answer.hit
            count.shown += draw.size
            if size != NULL:
                size[i] = draw.size if answer.hit else -draw.size
            i += 1
    core.answered.add_many(np.arange(first_round, first_round + i))
    return i, status


def decide_many(
    Core core, RowBlock rows, eligible, Py_ssize_t m, Cursor cursor, double coverage
) -> tuple[int, dict[str, NDArray[Any]]]:
    """Decide for every row, at a cursor.

    Args:
        core: the core of a learner or a rule; it stays as it is.
        rows: the rows.
        eligible: the labels that may be shown (decisions/decisions.py: EligibleLabels).
        m: how many to show.
        cursor: where to begin; it is moved.
        coverage: the coverage to keep; 0 for the rule's own.

    Returns:
        How many rows could be decided, and the fields of `superarm.decisions.decisions.DrawnSets`, by name.
    """
    cdef Py_ssize_t i = 0, n = rows.n, length
    cdef LabelLists lists = label_lists(eligible)
    cdef Row row, ahead
    cdef Draw draw
    cdef DrawContext context
    starts, draw_log_starts = np.zeros(n + 1, np.intp), np.zeros(n + 1, np.intp)
    sizes, log_probs = np.zeros(n, np.intp), np.empty(n)
    cdef Py_ssize_t* set_start = intp_data(starts)
    cdef Py_ssize_t* log_start = intp_data(draw_log_starts)
    cdef Py_ssize_t* size = intp_data(sizes)
    cdef double* log_prob = double_data(log_probs)
    cdef GrowingArray sets = GrowingArray(np.intp), logs = GrowingArray(np.float64)
    cdef Py_ssize_t* flat
    cdef double* log
    core.last_decision = None
    context.draw_state, context.coverage = cursor.draw_state_data, coverage
    with nogil:
        while i < n:
            context.eligible = labels_of_row(&lists, i, &context.n)
            core.ensure_prepared(context.n, m)
            flat = <Py_ssize_t*>sets.end(3 * min(context.n, m))
            log = <double*>logs.end(core.kernel.log_size(context.n, m))
            rows.at(i, &row)
            context.round, context.m = cursor.round, m
            draw.draw_log = log
            if core.decide_step(&row, &context, &draw) or core.move_rule(
                cursor.draw_state_data, log, draw.n_log
            ):
                break
            cursor.round += 1
            rows.at(min(i + 1, n - 1), &ahead)
            core.prefetch_weights(&ahead)
            rows.prefetch_row(min(i + 2, n - 1))  # the next one is on its way: rows come in order
            length = write_sets(core.s, &draw, flat)
            sets.used += length
            logs.used += draw.n_log
            log_prob[i], size[i] = draw.log_propensity, draw.size
            set_start[i + 1], log_start[i + 1] = set_start[i] + length, log_start[i] + draw.n_log
            i += 1
    core.raise_pending()
    return i, {
        "flat": sets.numbers(), "starts": starts, "sizes": sizes, "log_probs": log_probs,
        "draw_logs": logs.numbers(), "draw_log_starts": draw_log_starts,
    }


def update_many(Core core, DecisionBlock decisions, answers) -> tuple[int, int]:
    """Learn from answers to decisions, in their order, and mark their rounds as answered.

    Args:
        core: the learner's core.
        decisions: the decisions.
        answers: answers to some of the decisions (learners/batch_answers.py: AnswerColumns).

    Returns:
        How many answers were learnt from, and why it stopped there (0: at the end).
    """
    cdef Py_ssize_t i = 0, n = len(answers.answered)
    cdef const Py_ssize_t* order = intp_data(answers.answered)
    cdef const unsigned char* hit = <const unsigned char*>np.PyArray_DATA(answers.hits)
    cdef const Py_ssize_t* label = intp_data(answers.labels)
    cdef RowBlock rows = decisions.rows
    cdef Row row, ahead
    cdef Round round
    cdef Answer answer
    cdef int status = 0
    core.last_decision = None
    answer.likelihood = NULL
    with nogil:
        while i < n:
            decisions.at(order[i], &row, &round)
            core.ensure_prepared(round.n, round.m)
            answer.hit, answer.label = hit[i], label[i]
            if i + 1 < n:
                rows.prefetch_row(order[min(i + 2, n - 1)])
                rows.at(order[i + 1], &ahead)
                core.prefetch_weights(&ahead)
            status = core.learn_step(&round, &answer, False)
            if status:
                break
            i += 1
    rounds = decisions.rounds[answers.answered[:i]]
    core.answered.add_many(rounds[rounds >= 0])
    core.raise_pending()
    return i, status
