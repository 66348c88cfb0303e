"""evaluate: what would other policies have shown, and how often would they have hit?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import nan

import numpy as np

from superarm._progress import Progress, with_progress
from superarm._types import Array, Cell
from superarm.decisions.logged_decision import LoggedDecision
from superarm.errors import InvalidInput
from superarm.groups import MISSING, GroupCoverage, coverage_by, group_name
from superarm.learners import SetLogit
from superarm.logs.batches import LogBatch, batches, relabel
from superarm.logs.diagnostics import LogDiagnostics
from superarm.logs.hit_rates import HitRateEstimator
from superarm.logs.log import Log
from superarm.logs.nested import tighten_nested
from superarm.logs.parsing import parse_object
from superarm.logs.policies import Policy, PolicyRunner
from superarm.logs.results import Evaluation, PolicyResult, best_of
from superarm.logs.summary import LogSummary
from superarm.logs.weights import weigh_rows
from superarm.losses import softmax
from superarm.native.randomness import uniform_number


def evaluate(
    log: Log,
    policies: Sequence[Policy],
    summary: LogSummary,
    *,
    holdout: float | None = 0.2,
    seed: int = 0,
    with_propensity: bool = False,
    group: str | None = None,
    progress: Progress = None,
) -> Evaluation:
    """Estimate the hit rates of policies from a log.

    Args:
        log: the log; it is read once.
        policies: they must have learnt from none of the held-out rows.
        summary: what `summarize` gave for it.
        holdout: use this share of the rows, those that `train` keeps out with the same
            ``holdout`` and ``seed``; ``None`` uses all of them.
        with_propensity: use only rows that say how probable their set was, which is right if it is chance which do.
        group: a column of the log; each result tells ``by_group`` what holds for its values.
        progress: True shows a bar; a function is called with the number of rows read since its last call.
    """
    evaluators = [PolicyEvaluator(policy, summary, group) for policy in policies]
    log.keep_columns(name for policy in policies for name in policy.columns)
    log.keep_columns([] if group is None else [group])
    diagnostics = LogDiagnostics()

    def is_held_out(record: LoggedDecision) -> bool:
        if with_propensity and record.decision.propensity is None and record.decision.rule is None:
            return False
        return holdout is None or is_held_out_row(record.row_index, holdout, seed)

    def answered() -> Iterator[LoggedDecision]:
        for record in with_progress(log, progress, summary.rows, "rows"):
            if record.hit is not None:
                yield record
            else:
                diagnostics.unanswered += is_held_out(record)

    run_evaluators(evaluators, answered(), summary, is_held_out, diagnostics)
    if not diagnostics.rows:
        raise InvalidInput(f"{log.name} has no held-out rows that have an outcome")
    low, high = diagnostics.interval
    results = [evaluator.result(diagnostics, log.name) for evaluator in evaluators]
    if summary.one_sided is not None and (summary.hits or summary.answered < summary.rows):
        warnings = [summary.one_sided]  # whatever else looks wrong then may come of it
    else:
        warnings = list(diagnostics.warnings()) or list(weight_warnings(results))
    return Evaluation(
        rows=diagnostics.rows,
        unanswered=diagnostics.unanswered,
        bad=log.bad,
        hit_rate=diagnostics.hit_rate,
        low=low,
        high=high,
        warnings=tuple(warnings),
        results=tuple(tighten_nested(results, policies, [one.overall.estimates for one in evaluators])),
    )


def is_held_out_row(number: int, holdout: float, seed: int = 0) -> bool:
    """Return whether `train` keeps a row out, and `evaluate` judges by it.

    Args:
        number: the number of the row in its file or table.
        holdout: the share of rows to keep out.
        seed: decides which ones.

    >>> [is_held_out_row(number, 0.5) for number in range(6)]
    [False, True, False, False, False, False]
    """
    # another seed than a learner's: its draws at that round would be the same numbers, and the rows
    # kept out would be those with certain sets
    return bool(uniform_number(seed + 2**41, number, 0) < holdout)


def run_evaluators(
    evaluators: Sequence[PolicyEvaluator],
    records: Iterable[LoggedDecision],
    summary: LogSummary,
    is_held_out: Callable[[LoggedDecision], bool],
    diagnostics: LogDiagnostics,
) -> None:
    """Add the held-out rows among ``records`` to evaluators and diagnostics.

    Where a policy has no probabilities, a reward model has: it learns from every row after that was evaluated.
    """
    labels = summary.vocabulary
    reward_model = None
    if not all(evaluator.runner.has_probabilities for evaluator in evaluators):
        reward_model = SetLogit(**summary.learner_params)
        summary.declare_columns(reward_model)
    for answered in batches(records, labels):
        if held_out_rows := list(filter(is_held_out, answered)):
            held_out = LogBatch.from_records(held_out_rows, labels)
            diagnostics.add(held_out)
            reward_scores = None
            if reward_model is not None:
                reward_scores = reward_model.scores(held_out.matrix_for(reward_model))
            scores: dict[int, Array] = {}  # several policies may share a learner
            for evaluator in evaluators:
                ranking = id(evaluator.runner.policy.learner or evaluator)
                if ranking not in scores:
                    scores[ranking] = evaluator.runner.scores(held_out)
                evaluator.add(held_out, scores[ranking], reward_scores)
        if reward_model is not None:
            names = reward_model.vocabulary.all()
            for record in answered:
                reward_model.update(relabel(record, labels, names), hit=record.hit)


def weight_warnings(results: Sequence[PolicyResult]) -> Iterator[str]:
    """Yield a sentence if the weights of some policies say that the propensities are, or may be, wrong."""
    by_kind = {result.required.propensities: result.description for result in results}
    for kind, what in (("wrong", "are wrong"), ("doubtful", "are wrong, or some sets could not be shown")):
        if kind in by_kind:
            yield (
                f"The log's propensities {what}: weights do not average 1 for {by_kind[kind]}. "
                "Wrong ones make the numbers of other policies wrong, too."
            )
            return


class PolicyEvaluator:
    """Evaluates one policy by rows, as they come: over all rows, by label, and by the values of a column."""

    def __init__(self, policy: Policy, summary: LogSummary, group: str | None = None) -> None:
        self.labels = summary.vocabulary
        self.group = group
        self.runner = PolicyRunner(policy, summary)
        self.overall = HitRateEstimator(one_set=self.runner.shows_one_set)
        self.groups: dict[str, HitRateEstimator] = {}
        self.label_sums = np.zeros((self.labels.count, 3))  # rows, hits, labels shown
        self.labels_known = True  # whether every row so far names its right label
        self._log_loss = 0.0

    def add(self, batch: LogBatch, scores: Array, reward_scores: Array | None) -> None:
        """Add rows, the policy's scores of their labels, and a reward model's for policies without probabilities."""
        rows = weigh_rows(batch, self.runner.distributions(batch, scores))
        s = scores if self.runner.has_probabilities else reward_scores
        assert s is not None
        p = softmax(s)
        self.overall.add(rows, p)
        self._log_loss += len(batch) * log_loss((p * batch.shown).sum(axis=1), batch.hit)
        self.labels_known = self.labels_known and all(record.label is not None for record in batch.records)
        if self.labels_known:
            for record, shown in zip(batch.records, rows.inclusion, strict=True):
                label = self.labels.index_of_text(record.label)
                if label is not None:  # else no set could have it
                    self.label_sums[label] += 1.0, shown[label], shown.sum()
        if self.group is not None:
            names = np.array([group_name(_column_value(record, self.group)) for record in batch.records])
            for name in np.unique(names).tolist():
                i = np.flatnonzero(names == name)
                estimator = self.groups.setdefault(name, HitRateEstimator(one_set=self.overall.one_set))
                estimator.add(rows.take(i), p[i])

    @property
    def log_loss(self) -> float:
        """The log loss of the bit; NaN for policies without probabilities."""
        return self._log_loss / self.overall.rows if self.runner.has_probabilities else nan

    def result(self, diagnostics: LogDiagnostics, log: str) -> PolicyResult:
        """Return what the rows say, which come from ``log`` and have these diagnostics."""
        policy = self.runner.policy
        max_uniform = min(diagnostics.max_uniform, 1.0 - (policy.promised_coverage or 0.0))
        required = self.overall.linear.required_data(diagnostics.hit_rate, max_uniform)
        ranks = policy.rule is None and policy.promised_coverage is None and policy.fixed is None
        fewer_labels = ranks and self.runner.size > 1 and required.rows is None and not required.propensities
        return PolicyResult(
            policy=policy.name,
            set_size=self.runner.size,
            rule=policy.rule_text,
            estimates=self.overall.estimates(),
            required=replace(required, fewer_labels=fewer_labels),
            mean_size=self.overall.mean_size,
            expected=self.overall.linear.expected,
            coverage=policy.promised_coverage,
            by_label=coverage_by(self.labels.all(), self.label_sums) if self.labels_known else (),
            by_group=tuple(self._by_group(log)),
        )

    def _by_group(self, log: str) -> Iterator[GroupCoverage]:
        if self.groups and self.groups.keys() <= {MISSING}:
            wanted = "a column of the log, or a name in its x or context"
            raise InvalidInput.must("group", log, wanted, self.group)
        for name, estimator in sorted(self.groups.items()):
            best = best_of(estimator.estimates())
            rate = (nan, nan, nan) if best is None else (best.value, best.low, best.high)
            yield GroupCoverage(name, estimator.rows, *rate, estimator.mean_size)


def _column_value(record: LoggedDecision, name: str) -> Cell:
    """Return the value of a column in a row of a log: its own column, or a name in x or in the context."""
    for values in (record.extra_columns, record.decision.x, parse_object(record.context)):
        if isinstance(values, dict) and values.get(name) is not None:
            return values[name]
    return None


def log_loss(p: Array, hit: Array) -> float:
    """Return the log loss of expecting hits with probability p."""
    return float(-np.log(np.clip(np.where(hit > 0.5, p, 1.0 - p), 1e-12, 1.0)).mean())
