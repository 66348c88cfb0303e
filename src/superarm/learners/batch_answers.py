"""Many answers at once: checked as a whole, then learnt from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm._types import Array
from superarm.decisions import Decision, Decisions
from superarm.decisions.decisions import EligibleLabels
from superarm.errors import FeedbackError, Unquoted
from superarm.learners.answers import check_own, checked_answer, ineligible_label, learn
from superarm.learners.failures import update_error
from superarm.learners.locking import takes_turns
from superarm.native import loops
from superarm.native.loops import DecisionBlock
from superarm.parameters import as_bit

if TYPE_CHECKING:
    from superarm.learners.learner import Learner


class AnswerColumns(NamedTuple):
    """Answers to some of many decisions."""

    answered: Array  # the indices of the decisions that were answered
    hits: Array  # whether the right label was shown
    labels: Array  # the indices of the right labels; -1 where only a bit came


@takes_turns
def update_many(learner: Learner, decisions: Any, hits: Any, labels: Any) -> int:
    """Learn from the answers to many decisions; return how many there were."""
    is_list = isinstance(decisions, Sequence) and not isinstance(decisions, str)
    if not is_list and not isinstance(decisions, Decisions):
        wanted = "Decisions, as decide_many gives them"
        raise FeedbackError.must("decisions", learner.owner, wanted, decisions)
    answers = _answers(learner, len(decisions), hits, labels)
    if not len(answers.answered):
        return 0
    done = (_learn_from_list if is_list else _learn_from_columns)(learner, decisions, answers)
    learner.rule.warn_of_promise(learner.ensure_core().kernel)
    return done


def _learn_from_columns(learner: Learner, decisions: Decisions, answers: AnswerColumns) -> int:
    """Learn from decisions of `decide_many`, in one compiled loop."""
    rounds = decisions.round[answers.answered]
    check_own(learner, "decisions", decisions.learner, rounds.min(), rounds.max())
    _check_rounds(learner, rounds)
    rows = decisions.rows
    if rows is None or not learner.inputs.accepts_layout(rows.layout):
        wanted = f"those of rows with {learner.n_features} features"
        raise FeedbackError.must("decisions", learner.owner, wanted, rows)
    eligible = _eligible(learner, decisions)
    if answers.labels[0] >= 0:
        if decisions.eligible is not None or learner.inputs.label_additions:
            _check_labels(learner, eligible, answers)
        answers = answers._replace(hits=_hits(decisions, answers))
    block = DecisionBlock(rows, eligible, decisions.draws_of(learner.rule), decisions.round)
    done, status = loops.update_many(learner.ensure_core(), block, answers)
    if status:
        at = answers.answered[done]
        raise update_error(learner, status, rows.row(at), int(decisions.round[at]))
    return done


def _learn_from_list(learner: Learner, decisions: Sequence[Decision], answers: AnswerColumns) -> int:
    """Learn from Decision objects, live, stored or given ones, after all of them were checked."""
    answered = [decisions[i] for i in answers.answered]
    hits, labels = answers.hits.tolist(), [None] * len(answered)
    if answers.labels[0] >= 0:
        hits, labels = labels, learner.vocabulary.decode(answers.labels)
    triples = zip(answered, hits, labels, strict=True)
    checked = [checked_answer(learner, decision, hit, label) for decision, hit, label in triples]
    _check_distinct(learner, answered)
    for answer in checked:
        learn(learner, answer)
    return len(checked)


def _answers(learner: Learner, count: int, hits: Any, labels: Any) -> AnswerColumns:
    """Return the ``hits`` or ``labels`` to ``count`` decisions, checked; missing ones are left out."""
    owner = learner.owner
    kind, values = ("hit", hits) if labels is None else ("label", labels)
    if (hits is None) == (labels is None) or kind not in learner.feedback:
        names = [name for name in learner.feedback if name != "likelihood"]
        wanted = " or ".join(f"{name}s" for name in names)
        kinds = [name for name, value in (("hits", hits), ("labels", labels)) if value is not None]
        raise FeedbackError.must("answers", owner, wanted, Unquoted(" and ".join(kinds) or "neither"))
    # of a mapping or a set the keys would be taken, in any order
    if not np.iterable(values) or isinstance(values, Mapping | Set):
        raise FeedbackError.must(f"{kind}s", owner, "a list with one for each decision", values)
    column = np.asarray(values) if kind == "hit" else None
    given: Any
    numbers: Any
    if column is not None and column.dtype == bool and column.ndim == 1:  # the usual case, without detours
        given = numbers = column
        which = np.arange(len(column))
    else:
        given = values.tolist() if isinstance(values, np.ndarray) else list(values)
        missing = [a is None or type(a).__name__ == "NAType" or a != a for a in given]
        which = np.flatnonzero(~np.array(missing, bool))
        number_of = as_bit if kind == "hit" else learner.vocabulary.index
        numbers = [number_of(given[i]) for i in which]
        if None in numbers:
            wanted = "True, False or None" if kind == "hit" else "known labels or None"
            raise FeedbackError.must(f"{kind}s", owner, wanted, given[which[numbers.index(None)]])
    if len(given) != count:
        got = Unquoted(f"{len(given)} answers to {count} decisions")
        raise FeedbackError.must("answers", owner, "one for each decision, None where none came", got)
    if kind == "hit":
        return AnswerColumns(which, np.array(numbers, bool), np.full(len(which), -1, np.intp))
    return AnswerColumns(which, np.zeros(len(which), bool), np.array(numbers, np.intp))


def _check_distinct(learner: Learner, decisions: Sequence[Decision]) -> None:
    """Refuse two answers to one decision in one call."""
    seen = set[int]()
    for decision in decisions:
        key = -1 - id(decision) if decision.round is None else decision.round
        if key in seen:
            raise FeedbackError.answered_before(learner.owner, decision.round)
        seen.add(key)


def _check_rounds(learner: Learner, rounds: Array) -> None:
    again = None if learner.core is None else learner.core.answered.first_of(rounds)
    if again is None and not (np.diff(rounds) > 0).all() and len(np.unique(rounds)) != len(rounds):
        values, counts = np.unique(rounds, return_counts=True)
        again = int(values[counts > 1][0])
    if again is not None:
        raise FeedbackError.answered_before(learner.owner, again)


def _eligible(learner: Learner, decisions: Decisions) -> EligibleLabels:
    """Return the labels that could be shown at the time of each decision."""
    if decisions.eligible is not None:
        return decisions.eligible
    inputs = learner.inputs
    if not inputs.label_additions:
        return EligibleLabels(inputs.all_labels)
    return EligibleLabels.by_row([inputs.labels_at(int(round_)) for round_ in decisions.round])


def _check_labels(learner: Learner, eligible: EligibleLabels, answers: AnswerColumns) -> None:
    for i, index in zip(answers.answered, answers.labels, strict=True):
        if not learner.inputs.may_be_right(index, eligible.of_row(i)):
            wrong = learner.vocabulary.decode([index])[0]
            raise ineligible_label(learner, "labels", wrong)


def _hits(decisions: Decisions, answers: AnswerColumns) -> Array:
    """Return whether each named label was among the shown ones."""
    flat, (first, sizes) = decisions.draws.flat, decisions.draws.spans("drawn")
    pairs = zip(answers.answered, answers.labels, strict=True)
    return np.array([index in flat[first[i] : first[i] + sizes[i]] for i, index in pairs])
