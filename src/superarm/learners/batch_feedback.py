"""Many answers at once: checked as a whole, then learnt from in compiled batches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._types import Array
from superarm.data.rows import stack
from superarm.decisions import Decision, Decisions
from superarm.decisions.decisions import EligibleLabels
from superarm.errors import FeedbackError
from superarm.learners.algorithm import Algorithm
from superarm.learners.feedback import (
    answered_before,
    check_feedback,
    core_inputs,
    label_number,
    update_error,
)
from superarm.native import loops
from superarm.parameters import as_bit

if TYPE_CHECKING:
    from superarm.learners.learner import Learner


def update_many(learner: Learner, decisions: Any, hits: Any, labels: Any) -> int:
    """Learn from the answers to many decisions; how many there were."""
    if isinstance(decisions, Sequence) and not isinstance(decisions, str):
        return _update_list(learner, decisions, hits, labels)
    if not isinstance(decisions, Decisions):
        wanted = "Decisions, as decide_many gives them"
        raise FeedbackError.must("decisions", learner.owner, wanted, decisions)
    which, bits, label_numbers = _answers(learner, len(decisions), hits, labels)
    rounds = decisions.round[which]
    if len(which) and (decisions.learner != learner.id or rounds.max() >= learner.round or rounds.min() < 0):
        whose = f"those of learner {decisions.learner}"
        raise FeedbackError.must("decisions", learner.owner, f"its own (learner {learner.id})", whose)
    _check_rounds(learner, rounds)
    if not len(which):
        return 0
    among = _eligible(learner, decisions)
    if labels is not None:
        if decisions.eligible is not None or learner.inputs.growth:
            _check_labels(learner, among, which, label_numbers)
        bits = _hits(decisions, which, label_numbers)
    return _learn(learner, decisions, among, which, bits, label_numbers)


def _learn(
    learner: Learner,
    decisions: Decisions,
    among: EligibleLabels,
    which: Array,
    bits: Array,
    label_numbers: Array,
    given: Sequence[Decision] = (),
) -> int:
    """Learn from one row after the other; those that were learnt are marked, also if a later one fails.

    ``given`` are the decisions as objects, where these remember who has learnt from them.
    """
    own, rows = bool(decisions.round[which[0]] >= 0), decisions.rows
    assert rows is not None
    done, status = loops.update_many(
        learner.core,
        rows,
        which,
        *among,
        *decisions.columns,
        bits.view(np.uint8),
        label_numbers,
        not own,
    )
    if own:
        learner.core.ledger.add_many(decisions.round[which[:done]])
    for decision in given[:done]:
        decision.taught = (*decision.taught, learner.id)
    if status:
        at = which[done]
        round_ = int(decisions.round[at]) if own else None
        raise update_error(learner, status, rows.row(at), round_)
    return int(done)


def _update_list(learner: Learner, decisions: Sequence[Decision], hits: Any, labels: Any) -> int:
    """Decision objects, live, restored or given: checked one by one, learnt from in compiled batches."""
    which, bits, label_numbers = _answers(learner, len(decisions), hits, labels)
    rows, sets, among, answered = [], [], [], []
    seen = set[Any]()
    for at, i in enumerate(which):
        decision = decisions[i]
        label = None if labels is None else learner.known.public([label_numbers[at]])[0]
        check_feedback(learner, decision, bool(bits[at]) if labels is None else None, label, None)
        key = id(decision) if decision.round is None else decision.round
        if key in seen:
            raise answered_before(learner, decision.round)
        seen.add(key)
        row, numbers, could_be_shown = core_inputs(learner, decision)
        if label is not None:
            label_number(learner, decision, label, could_be_shown)
            bits[at] = label_numbers[at] in numbers[decision.size : 2 * decision.size]
        rows.append(row)
        sets.append(numbers)
        among.append(could_be_shown)
        answered.append(decision)
    if not answered:
        return 0
    batch = Decisions.from_list(answered, sets, stack(rows, learner.inputs.layout), learner.known)
    everything = learner.inputs.everything
    alike = all(labels is everything for labels in among)
    eligible = EligibleLabels(everything) if alike else EligibleLabels.by_row(among)
    given_one_by_one = type(learner).given_log_probs is not Algorithm.given_log_probs
    for own, run in groupby(range(len(answered)), lambda at: answered[at].round is not None):
        places = np.array(list(run))
        if own or not given_one_by_one:
            given = [] if own else [answered[at] for at in places]
            _learn(learner, batch, eligible, places, bits[places], label_numbers[places], given)
            continue
        for at in places:
            label = None if labels is None else learner.known.public([label_numbers[at]])[0]
            learner.update(answered[at], hit=bool(bits[at]) if label is None else None, label=label)
    return len(answered)


def _answers(learner: Learner, count: int, hits: Any, labels: Any) -> tuple[Array, Array, Array]:
    """The rows that were answered, their bits, and their labels' numbers (-1 where only a bit came)."""
    owner = learner.owner
    kind = "hit" if labels is None else "label"
    if (hits is None) == (labels is None) or kind not in learner.feedback:
        names = [name for name in learner.feedback if name != "likelihood"]
        wanted = " or ".join(f"{name}s" for name in names)
        kinds = [name for name, value in (("hits", hits), ("labels", labels)) if value is not None]
        raise FeedbackError.must("answers", owner, wanted, " and ".join(kinds) or "neither")
    given = hits if labels is None else labels
    column = np.asarray(given) if labels is None else np.empty(0)
    numbers: Any
    if column.dtype == bool:  # the usual case, without detours
        which, n, numbers = np.arange(len(column)), len(column), column
    else:
        answers = list(given.tolist() if isinstance(given, np.ndarray) else given)
        missing = [a is None or type(a).__name__ == "NAType" or a != a for a in answers]
        which, n = np.flatnonzero(~np.array(missing, bool)), len(answers)
        numbers = [as_bit(answers[i]) if labels is None else learner.known.number(answers[i]) for i in which]
        if None in numbers:
            wrong = answers[which[numbers.index(None)]]
            wanted = "True, False or None" if labels is None else "known labels or None"
            raise FeedbackError.must(f"{kind}s", owner, wanted, wrong)
    if n != count:
        got = f"{n} answers to {count} decisions"
        raise FeedbackError.must("answers", owner, "one for each decision, None where none came", got)
    label_numbers = np.full(len(which), -1, np.intp) if labels is None else np.array(numbers, np.intp)
    bits = np.array(numbers, bool) if labels is None else np.zeros(len(which), bool)
    return which, bits, label_numbers


def _check_rounds(learner: Learner, rounds: Array) -> None:
    again = None if learner.core is None else learner.core.ledger.first_of(rounds)
    if again is None and not (np.diff(rounds) > 0).all() and len(np.unique(rounds)) != len(rounds):
        values, counts = np.unique(rounds, return_counts=True)
        again = int(values[counts > 1][0])
    if again is not None:
        raise answered_before(learner, again)


def _eligible(learner: Learner, decisions: Decisions) -> EligibleLabels:
    """The labels that could be shown, those of the time of each decision."""
    if decisions.eligible is not None:
        return decisions.eligible
    inputs = learner.inputs
    if not inputs.growth:
        return EligibleLabels(inputs.everything)
    return EligibleLabels.by_row([inputs.labels_at(int(round_)) for round_ in decisions.round])


def _check_labels(learner: Learner, among: EligibleLabels, which: Array, label_numbers: Array) -> None:
    none = learner.inputs.none
    for i, number in zip(which, label_numbers, strict=True):
        if number != none and number not in among.of_row(i):
            wrong = learner.known.public([number])[0]
            raise FeedbackError.must("labels", learner.owner, "eligible labels", wrong)


def _hits(decisions: Decisions, which: Array, label_numbers: Array) -> Array:
    """Whether each label was among the shown ones."""
    drawn = decisions.columns
    hits = np.zeros(len(which), bool)
    starts, sizes = drawn.ends[:-1] + drawn.sizes, drawn.sizes
    for at, (i, number) in enumerate(zip(which, label_numbers, strict=True)):
        hits[at] = number in drawn.flat[starts[i] : starts[i] + sizes[i]]
    return hits


# ---------------------------------------------------------------- runs


def check_run(learner: Learner, n: int, y: Any, visit: Any) -> tuple[Array, Array]:
    """Label and row numbers that compiled code can trust."""
    try:
        y = np.ascontiguousarray(y, np.int64)
    except (TypeError, ValueError) as error:
        raise learner.invalid("y", "label numbers from 0 (run counts; it knows no names)", y) from error
    visit = np.arange(n) if visit is None else np.ascontiguousarray(visit, np.int64)
    k = learner.n_labels
    if y.shape != (n,) or (n and not 0 <= y.min() <= y.max() < k):
        raise learner.invalid("y", f"{n} label numbers below n_labels = {k}", y)
    if visit.ndim != 1 or (len(visit) and not 0 <= visit.min() <= visit.max() < n):
        raise learner.invalid("visit", f"row numbers below {n}", visit)
    return y, visit
