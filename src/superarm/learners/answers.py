"""Answers to decisions: which can be taken, and what they mean in indices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm._types import Array
from superarm.decisions import Decision
from superarm.decisions.decision import DecisionSets
from superarm.errors import FeedbackError, Unquoted
from superarm.learners.failures import update_error
from superarm.learners.locking import takes_turns
from superarm.parameters import as_bit

if TYPE_CHECKING:
    from superarm.learners.learner import Learner


class CheckedAnswer(NamedTuple):
    """The arguments of the core's `update`."""

    decision: Decision
    row: Any
    eligible: Array
    sets: Array
    draw_log: bytes
    hit: bool
    label: int
    likelihood: Array | None


@takes_turns
def update(learner: Learner, decision: Decision, hit: Any, label: Any, likelihood: Any) -> None:
    """Learn from an answer to a decision, of whatever kind."""
    learn(learner, checked_answer(learner, decision, hit, label, likelihood))


def checked_answer(
    learner: Learner, decision: Decision, hit: Any = None, label: Any = None, likelihood: Any = None
) -> CheckedAnswer:
    """Return an answer to a decision, checked, in indices."""
    _check_feedback(learner, decision, hit, label, likelihood)
    sets = decision.sets_among(learner.vocabulary, learner.owner)
    eligible = _eligible_indices(learner, decision, sets)
    row, index = _row_for_core(learner, decision), -1
    if label is not None:
        index = _label_index(learner, decision, label, eligible)
        hit = index in DecisionSets.split(sets, decision.size).drawn.tolist()
    likelihood = None if likelihood is None else _likelihood(learner, likelihood)
    log = learner.rule.draw_log_of(decision).tobytes()
    return CheckedAnswer(decision, row, eligible, sets, log, bool(hit), index, likelihood)


def _check_feedback(learner: Learner, decision: Any, hit: Any, label: Any, likelihood: Any) -> None:
    owner = learner.owner
    if not isinstance(decision, Decision):
        raise FeedbackError.must("decision", owner, "a Decision", decision)
    given = {"hit": hit, "label": label, "likelihood": likelihood}
    kinds = [kind for kind in given if given[kind] is not None]
    if len(kinds) != 1 or kinds[0] not in learner.feedback:
        wanted = " or ".join(f"{name}=..." for name in learner.feedback)
        shown = f"hit={hit!r}, label={label!r}"
        if likelihood is not None:
            shown += ", likelihood=..."
        raise FeedbackError.must("feedback", owner, wanted, Unquoted(shown))
    if kinds == ["hit"] and as_bit(hit) is None:
        raise FeedbackError.must("hit", owner, "True or False", hit)
    if decision.round is None:
        if not learner.learns_from(decision):
            wanted = "its own (given sets teach set-logit, and with top= and gamma= mc-dbf)"
            raise FeedbackError.must("decision", owner, wanted, decision)
        again = learner.id in decision.learnt_by
    else:
        check_own(learner, "decision", decision.learner, decision.round, decision.round)
        again = decision.round in learner.answered
    if again:
        raise FeedbackError.answered_before(owner, decision.round)


def check_own(learner: Learner, parameter: str, decided_by: str | None, first: int, last: int) -> None:
    """Refuse decisions of these rounds that are another learner's, or of which this copy does not know."""
    if decided_by != learner.id or first < 0:
        whose = Unquoted(f"one of learner {decided_by}, round {last}")
        raise FeedbackError.must(parameter, learner.owner, f"its own (learner {learner.id})", whose)
    if last >= learner.round:
        got = Unquoted(f"round {last}; the model is at round {learner.round}")
        raise FeedbackError.must(parameter, learner.owner, "made before this model was saved", got)


def _row_for_core(learner: Learner, decision: Decision) -> Any:
    """Return the row of a decision as the core reads it."""
    if decision.vocabulary is not None and decision.row is not None and type(decision.x) is not dict:
        return decision.row
    if learner.core and learner.inputs.is_encoded(decision.x):
        return decision.x  # compiled code looks whether scores are finite
    row = learner.inputs.encode_row(decision.x)
    learner.ensure_core()
    return row


def _eligible_indices(learner: Learner, decision: Decision, sets: Array) -> Array:
    """Return the labels that could be shown: the eligible ones, or all that there were then."""
    inputs, eligible = learner.inputs, decision._eligible
    if eligible is None:
        known = decision.n_labels  # a stored decision says how many there were
        then = inputs.labels_at(decision.round) if known is None else inputs.all_labels[:known]
        if len(then) < len(inputs.all_labels) and len(then) <= sets.max():
            raise FeedbackError.must(
                "labels of decision", learner.owner, "some that there were then", decision
            )
        return then
    if decision.vocabulary is not None:
        return eligible  # type: ignore[no-any-return]
    return np.sort(learner.vocabulary.encode(eligible, "decision", learner.owner))


def _label_index(learner: Learner, decision: Decision, label: Any, eligible: Array) -> int:
    index = learner.vocabulary.index(label)
    if index is None:
        raise learner.invalid("label", "a known label", label)
    limited = decision._eligible is not None or learner.inputs.label_additions
    if limited and not learner.inputs.may_be_right(index, eligible):
        raise ineligible_label(learner, "label", label)
    return index


def label_to_learn(learner: Learner, label: Any, eligible: Iterable[Any] | None) -> Any:
    """Return the right label, if it can be learnt; of one that could not be shown, only the miss can: ``None``."""
    learns_labels = label is not None and "label" in learner.feedback
    return label if learns_labels and learner.inputs.label_may_be_right(label, eligible) else None


def ineligible_label(learner: Learner, field: str, label: Any) -> FeedbackError:
    """Return the error of an answer that names a label which could not be shown."""
    wanted = "one of the eligible labels"
    if "hit" in learner.feedback:
        wanted += " (where the right one could not be shown, hit=False is the answer)"
    return FeedbackError.must(field, learner.owner, wanted, label)


def _likelihood(learner: Learner, likelihood: Any) -> Array:
    """Return k numbers, checked: none below 0, at least one above it."""
    wanted = f"{learner.n_labels} numbers of at least 0, one for each label, not all of them 0"
    try:
        numbers = np.array(likelihood, np.float64)
    except (TypeError, ValueError) as error:
        raise FeedbackError.must("likelihood", learner.owner, wanted, likelihood) from error
    fine = numbers.shape == (learner.n_labels,) and np.isfinite(numbers).all() and (numbers >= 0.0).all()
    if not fine or not numbers.any():
        raise FeedbackError.must("likelihood", learner.owner, wanted, likelihood)
    return numbers


def learn(learner: Learner, answer: CheckedAnswer) -> None:
    """Learn from a checked answer."""
    status = learner.ensure_core().update(*answer)
    if status:
        raise update_error(learner, status, answer.row, answer.decision.round)
