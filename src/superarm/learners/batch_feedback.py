"""Many answers at once: checked as a whole, then learnt from in compiled batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm._types import Array
from superarm.data.rows import AnyRow, Rows, stack
from superarm.decisions import Decision, Decisions
from superarm.decisions.decisions import DrawnSets, EligibleLabels
from superarm.errors import Description, FeedbackError
from superarm.learners.feedback import (
    CheckedAnswer,
    answered_before,
    checked_answer,
    ineligible_label,
    mark_answered,
    update_error,
)
from superarm.learners.inputs import InputSchema
from superarm.native import loops
from superarm.parameters import as_bit

if TYPE_CHECKING:
    from superarm.learners.learner import Learner


class DecisionColumns(NamedTuple):
    """Decisions as compiled code learns from them, in columns."""

    rows: Rows
    eligible: EligibleLabels
    draws: DrawnSets
    rounds: Array  # -1 where another system chose the set

    @classmethod
    def from_lists(
        cls,
        inputs: InputSchema,
        rows: Sequence[AnyRow],
        eligible: Sequence[Array],
        rounds: Sequence[int | None],
        draws: DrawnSets,
    ) -> DecisionColumns:
        """Return the columns of decisions one by one: their rows, eligible labels and rounds; and of their draws."""
        all_labels = inputs.all_labels
        one_list = all(numbers is all_labels for numbers in eligible)
        return cls(
            stack(rows, inputs.layout),
            EligibleLabels(all_labels) if one_list else EligibleLabels.by_row(eligible),
            draws,
            np.array([-1 if round_ is None else round_ for round_ in rounds], np.int64),
        )


class AnswerColumns(NamedTuple):
    """Answers to some of many decisions."""

    which: Array  # the numbers of the decisions that were answered
    hits: Array  # whether the right label was shown
    labels: Array  # the numbers of the right labels; -1 where only a bit came


class DecisionsBetween(NamedTuple):
    """Decisions that were made between answers: they move the rule, and nothing else."""

    draw_logs: Array  # what the rule wrote down, one decision after the other
    draw_log_starts: Array
    n_counted: int  # the first ones, which have moved the rule before
    before_answer: Array  # for each answer, how many of the decisions came before it


def learn_batch(
    learner: Learner,
    batch: DecisionColumns,
    answers: AnswerColumns,
    between: DecisionsBetween | None = None,
) -> tuple[int, int]:
    """Learn from one answer after the other, and mark the rounds that were learnt.

    Args:
        learner: the learner.
        batch: the decisions.
        answers: to some of them, in this order.
        between: decisions that were made between the answers.

    Returns:
        How many were learnt, and why it stopped there (0 if it went to the end).
    """
    core = learner.core
    done, status = loops.update_many(core, batch, answers, between)
    rounds = batch.rounds[answers.which[:done]]
    core.answered.add_many(rounds[rounds >= 0])
    return done, status


def update_many(learner: Learner, decisions: Any, hits: Any, labels: Any) -> int:
    """Learn from the answers to many decisions; return how many there were."""
    is_list = isinstance(decisions, Sequence) and not isinstance(decisions, str)
    if not is_list and not isinstance(decisions, Decisions):
        wanted = "Decisions, as decide_many gives them"
        raise FeedbackError.must("decisions", learner.owner, wanted, decisions)
    answers = _answers(learner, len(decisions), hits, labels)
    if not len(answers.which):
        return 0
    learn = _learn_from_list if is_list else _learn_from_columns
    return learn(learner, decisions, answers)


def _learn_from_columns(learner: Learner, decisions: Decisions, answers: AnswerColumns) -> int:
    """Learn from decisions of `decide_many`."""
    rounds = decisions.round[answers.which]
    if decisions.learner != learner.id or rounds.max() >= learner.round or rounds.min() < 0:
        whose = Description(f"those of learner {decisions.learner}")
        raise FeedbackError.must("decisions", learner.owner, f"its own (learner {learner.id})", whose)
    _check_rounds(learner, rounds)
    rows = decisions.rows
    if rows is None or not learner.inputs.could_have_encoded(rows.layout):
        wanted = f"those of rows with {learner.n_features} features"
        raise FeedbackError.must("decisions", learner.owner, wanted, rows)
    eligible = _eligible(learner, decisions)
    if answers.labels[0] >= 0:
        if decisions.eligible is not None or learner.inputs.label_additions:
            _check_labels(learner, eligible, answers)
        answers = answers._replace(hits=_hits(decisions, answers))
    draws = decisions.draws
    if decisions.rule is not None and decisions.rule.name != learner.rule.name:  # as `draw_log_of` does
        draws = draws._replace(
            draw_logs=draws.draw_logs[:0], draw_log_starts=np.zeros_like(draws.draw_log_starts)
        )
    batch = DecisionColumns(rows, eligible, draws, decisions.round)
    done, status = learn_batch(learner, batch, answers)
    _raise_if_stopped(learner, batch, answers, done, status)
    return done


def _learn_from_list(learner: Learner, decisions: Sequence[Decision], answers: AnswerColumns) -> int:
    """Learn from Decision objects: live, stored or given ones."""
    answered = [decisions[i] for i in answers.which]
    hits, labels = answers.hits.tolist(), [None] * len(answered)
    if answers.labels[0] >= 0:
        hits, labels = labels, learner.label_set.decode(answers.labels)
    triples = list(zip(answered, hits, labels, strict=True))
    checked = [checked_answer(learner, decision, hit, label) for decision, hit, label in triples]
    _check_distinct(learner, answered)
    batch = _stack(learner, checked)
    each = AnswerColumns(np.arange(len(checked)), np.array([one.hit for one in checked]), answers.labels)
    done, status = learn_batch(learner, batch, each)
    for decision in answered[:done]:
        if decision.round is None:
            mark_answered(learner, decision)
    _raise_if_stopped(learner, batch, each, done, status)
    return done


def _stack(learner: Learner, checked: Sequence[CheckedAnswer]) -> DecisionColumns:
    """Return checked decisions, one by one, as columns."""
    decisions = [one.decision for one in checked]
    draws = DrawnSets.from_lists(
        [one.sets for one in checked],
        [decision.size for decision in decisions],
        [decision.log_propensity for decision in decisions],
        [np.frombuffer(one.draw_log) for one in checked],
    )
    rows, eligible = [one.row for one in checked], [one.eligible for one in checked]
    rounds = [decision.round for decision in decisions]
    return DecisionColumns.from_lists(learner.inputs, rows, eligible, rounds, draws)


def _raise_if_stopped(
    learner: Learner, batch: DecisionColumns, answers: AnswerColumns, done: int, status: int
) -> None:
    if status:
        at = answers.which[done]
        round_ = int(batch.rounds[at])
        raise update_error(learner, status, batch.rows.row(at), None if round_ < 0 else round_)


def _answers(learner: Learner, count: int, hits: Any, labels: Any) -> AnswerColumns:
    """Return the ``hits`` or ``labels`` to ``count`` decisions, checked; missing ones are left out."""
    owner = learner.owner
    kind = "hit" if labels is None else "label"
    if (hits is None) == (labels is None) or kind not in learner.feedback:
        names = [name for name in learner.feedback if name != "likelihood"]
        wanted = " or ".join(f"{name}s" for name in names)
        kinds = [name for name, value in (("hits", hits), ("labels", labels)) if value is not None]
        raise FeedbackError.must("answers", owner, wanted, Description(" and ".join(kinds) or "neither"))
    values = hits if labels is None else labels
    column = np.asarray(values) if labels is None else np.empty(0)
    numbers: Any
    if column.dtype == bool and column.ndim == 1:  # the usual case, without detours
        which, n, numbers = np.arange(len(column)), len(column), column
    else:
        if not np.iterable(values):
            raise FeedbackError.must(f"{kind}s", owner, "a list with one for each decision", values)
        values = list(values.tolist() if isinstance(values, np.ndarray) else values)
        missing = [a is None or type(a).__name__ == "NAType" or a != a for a in values]
        which, n = np.flatnonzero(~np.array(missing, bool)), len(values)
        numbers = [
            as_bit(values[i]) if labels is None else learner.label_set.number(values[i]) for i in which
        ]
        if None in numbers:
            wrong = values[which[numbers.index(None)]]
            wanted = "True, False or None" if labels is None else "known labels or None"
            raise FeedbackError.must(f"{kind}s", owner, wanted, wrong)
    if n != count:
        got = Description(f"{n} answers to {count} decisions")
        raise FeedbackError.must("answers", owner, "one for each decision, None where none came", got)
    if labels is None:
        return AnswerColumns(which, np.array(numbers, bool), np.full(len(which), -1, np.intp))
    return AnswerColumns(which, np.zeros(len(which), bool), np.array(numbers, np.intp))


def _check_distinct(learner: Learner, decisions: Sequence[Decision]) -> None:
    """Refuse two answers to one decision in one call."""
    seen = set[int]()
    for decision in decisions:
        key = -1 - id(decision) if decision.round is None else decision.round
        if key in seen:
            raise answered_before(learner, decision.round)
        seen.add(key)


def _check_rounds(learner: Learner, rounds: Array) -> None:
    again = None if learner.core is None else learner.core.answered.first_of(rounds)
    if again is None and not (np.diff(rounds) > 0).all() and len(np.unique(rounds)) != len(rounds):
        values, counts = np.unique(rounds, return_counts=True)
        again = int(values[counts > 1][0])
    if again is not None:
        raise answered_before(learner, again)


def _eligible(learner: Learner, decisions: Decisions) -> EligibleLabels:
    """Return the labels that could be shown at the time of each decision."""
    if decisions.eligible is not None:
        return decisions.eligible
    inputs = learner.inputs
    if not inputs.label_additions:
        return EligibleLabels(inputs.all_labels)
    return EligibleLabels.by_row([inputs.labels_at(int(round_)) for round_ in decisions.round])


def _check_labels(learner: Learner, eligible: EligibleLabels, answers: AnswerColumns) -> None:
    none = learner.inputs.none_number
    for i, number in zip(answers.which, answers.labels, strict=True):
        if number != none and number not in eligible.of_row(i):
            wrong = learner.label_set.decode([number])[0]
            raise ineligible_label(learner, "labels", wrong)


def _hits(decisions: Decisions, answers: AnswerColumns) -> Array:
    """Return whether each label was among the shown ones."""
    drawn = decisions.draws
    starts, sizes = drawn.starts[:-1] + drawn.sizes, drawn.sizes
    pairs = zip(answers.which, answers.labels, strict=True)
    return np.array([number in drawn.flat[starts[i] : starts[i] + sizes[i]] for i, number in pairs])


# ---------------------------------------------------------------- runs


def _whole_numbers(learner: Learner, parameter: str, wanted: str, values: Any) -> Array:
    """Return values as an array of int64; those that are not whole are refused."""
    try:
        with np.errstate(invalid="ignore"):  # NaN is not whole
            numbers = np.ascontiguousarray(values, np.int64)
        whole = bool((numbers == np.asarray(values)).all())
    except (TypeError, ValueError) as error:
        raise learner.invalid(parameter, wanted, values) from error
    if not whole:
        raise learner.invalid(parameter, wanted, values)
    return numbers


def check_run(learner: Learner, n: int, y: Any, visit: Any, signed_sizes: Any) -> tuple[Array, Array]:
    """Return label and row numbers, checked for compiled code; check ``signed_sizes``, which it fills."""
    y = _whole_numbers(learner, "y", "label numbers from 0 (run counts; it knows no names)", y)
    visit = np.arange(n) if visit is None else _whole_numbers(learner, "visit", "row numbers", visit)
    k = learner.n_labels
    if y.shape != (n,) or (n and not 0 <= y.min() <= y.max() < k):
        raise learner.invalid("y", f"{n} label numbers below n_labels = {k}", y)
    if visit.ndim != 1 or (len(visit) and not 0 <= visit.min() <= visit.max() < n):
        raise learner.invalid("visit", f"row numbers below {n}", visit)
    if signed_sizes is not None and not (
        isinstance(signed_sizes, np.ndarray)
        and (signed_sizes.dtype, signed_sizes.shape) == (np.intp, visit.shape)
        and signed_sizes.flags.carray
    ):
        raise learner.invalid("signed_sizes", f"a writable array of {len(visit)} intp numbers", signed_sizes)
    return y, visit
