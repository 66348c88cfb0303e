"""evaluate: what would other policies have shown, and how often would they have hit?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np

from superarm._progress import Progress, with_progress
from superarm._types import Array
from superarm.decisions.decision import Record
from superarm.errors import InvalidInput
from superarm.groups import MISSING, GroupCoverage, coverage_by, group_name
from superarm.learners import SetLogit
from superarm.logs.batches import LogBatch, batches, take
from superarm.logs.calibration import Calibration
from superarm.logs.diagnostics import LogDiagnostics
from superarm.logs.hit_rates import Estimate, HitRateSums, best_of
from superarm.logs.log import Log
from superarm.logs.policies import Policy, PolicyRunner
from superarm.logs.results import Evaluation, PolicyResult, nested
from superarm.logs.summary import LogSummary, is_held_out_row, relabel
from superarm.logs.weights import PolicyWeights, Propensities, logged_propensities, policy_weights
from superarm.losses import softmax


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

    def is_held_out(record: Record) -> bool:
        if with_propensity and record.decision.propensity is None and record.decision.rule is None:
            return False
        return holdout is None or is_held_out_row(record.row_number, holdout, seed)

    records = with_progress(log, progress, summary.rows, "rows")
    run_evaluators(evaluators, records, summary, is_held_out, diagnostics)
    if not diagnostics.rows:
        raise InvalidInput(f"{log.name} has no held-out rows that have an outcome")
    low, high = diagnostics.interval
    results = [evaluator.result(diagnostics, log.name) for evaluator in evaluators]
    return Evaluation(
        rows=diagnostics.rows,
        unanswered=diagnostics.unanswered,
        bad=log.bad,
        hit_rate=diagnostics.hit_rate,
        low=low,
        high=high,
        warnings=tuple(diagnostics.warnings()) or tuple(weight_warnings(results)),
        results=tuple(nested(results, policies, [evaluator.whole.estimates for evaluator in evaluators])),
    )


def run_evaluators(
    evaluators: Sequence[PolicyEvaluator],
    records: Iterable[Record],
    summary: LogSummary,
    is_held_out: Callable[[Record], bool],
    diagnostics: LogDiagnostics,
) -> None:
    """Add the held-out rows among ``records`` to evaluators and diagnostics.

    Where a policy has no probabilities, a reward model has: it learns from every row after that was evaluated.
    """
    labels, model = summary.label_set, None
    if not all(evaluator.runner.has_probabilities for evaluator in evaluators):
        model = SetLogit(**summary.learner_params)
        summary.declare_columns(model)
    for batch in batches(_counted(records, diagnostics, is_held_out), labels):
        rows = [i for i, record in enumerate(batch.records) if is_held_out(record)]
        if rows:
            part = take(batch, rows)
            logged = logged_propensities(part)
            diagnostics.add(part, logged)
            reward_scores = None if model is None else model.scores(part.matrix_for(model))
            scores: dict[int, Array | None] = {}  # several policies may share a learner
            for evaluator in evaluators:
                ranking = id(evaluator.runner.policy.learner or evaluator)
                if ranking not in scores:
                    scores[ranking] = evaluator.runner.scores(part)
                evaluator.add(part, logged, scores[ranking], reward_scores)
        if model is not None:
            names = model.label_set.all()
            for record in batch.records:
                model.update(relabel(record, labels, names), hit=record.hit)


def weight_warnings(results: Sequence[PolicyResult]) -> Iterator[str]:
    """Yield a sentence if the weights of some policies say that the propensities are, or may be, wrong."""
    by_kind = {result.required.propensities: result for result in results}
    for kind, what in (("wrong", "are wrong"), ("doubtful", "are wrong, or some sets could not be shown")):
        if kind in by_kind:
            yield (
                f"The log's propensities {what}: weights do not average 1 for {by_kind[kind].title}, "
                f"{by_kind[kind].sizes}. Wrong ones make the numbers of other policies wrong, too."
            )
            return


def _counted(
    records: Iterable[Record], diagnostics: LogDiagnostics, is_held_out: Callable[[Record], bool]
) -> Iterator[Record]:
    for record in records:
        diagnostics.unanswered += record.hit is None and is_held_out(record)
        yield record


class PolicyEvaluator:
    """Evaluates one policy by rows, as they come: all of them, by label, and by the values of a column."""

    def __init__(self, policy: Policy, summary: LogSummary, group: str | None = None) -> None:
        self.labels, self.group = summary.label_set, group
        self.runner = PolicyRunner(policy, summary)
        self.whole = HitRateEstimator(one_set=self.runner.shows_one_set)
        self.groups: dict[str, HitRateEstimator] = {}
        self.label_sums = np.zeros((self.labels.count, 3))  # rows, hits, labels shown
        self.labels_known = True  # whether every row so far names its right label
        self._log_loss = 0.0

    def add(
        self, batch: LogBatch, logged: Propensities, scores: Array | None, reward_scores: Array | None
    ) -> None:
        """Add rows, the policy's scores of their labels, and a reward model's for policies without probabilities."""
        weights = policy_weights(batch, logged, self.runner.choose(batch, scores))
        s = scores if self.runner.has_probabilities else reward_scores
        assert s is not None
        p = softmax(s)
        self.whole.add(batch, logged, weights, p)
        self._log_loss += len(batch) * log_loss((p * batch.shown).sum(axis=1), batch.hit)
        self.labels_known = self.labels_known and all(record.label is not None for record in batch.records)
        if self.labels_known:
            for record, shown in zip(batch.records, weights.inclusion, strict=True):
                label = self.labels.number_of_text(record.label)
                if label is not None:  # else no set could have it
                    self.label_sums[label] += 1.0, shown[label], shown.sum()
        if self.group is not None:
            names = np.array([group_name(_column_value(record, self.group)) for record in batch.records])
            for name in np.unique(names).tolist():
                i = np.flatnonzero(names == name)
                estimator = self.groups.setdefault(name, HitRateEstimator(one_set=self.whole.one_set))
                estimator.add(take(batch, i), take(logged, i), take(weights, i), p[i])

    @property
    def log_loss(self) -> float:
        """The log loss of the bit; NaN for policies without probabilities."""
        return self._log_loss / self.whole.rows if self.runner.has_probabilities else nan

    def result(self, diagnostics: LogDiagnostics, log: str) -> PolicyResult:
        """Return what the rows say, which come from ``log`` and have these diagnostics."""
        policy = self.runner.policy
        max_uniform = min(diagnostics.max_uniform, 1.0 - (policy.target_coverage or 0.0))
        required = self.whole.linear.required_data(diagnostics.hit_rate, max_uniform)
        ranks = policy.rule is None and policy.target_coverage is None and policy.fixed is None
        fewer_labels = ranks and self.runner.size > 1 and required.rows is None and not required.propensities
        return PolicyResult(
            policy=policy.name,
            set_size=self.runner.size,
            rule=policy.rule_text,
            estimates=self.whole.estimates(),
            required=replace(required, fewer_labels=fewer_labels),
            mean_size=self.whole.mean_size,
            expected=self.whole.linear.expected,
            coverage=policy.target_coverage,
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


class HitRateEstimator:
    """Estimates the hit rate of one policy from rows, as they come.

    Args:
        one_set: whether the policy shows one certain set for a row; else it draws one of several.
    """

    def __init__(self, *, one_set: bool) -> None:
        self.one_set = one_set
        self.by_set, self.linear, self.calibration = HitRateSums("set"), HitRateSums("linear"), Calibration()
        self.rows, self.labels_shown = 0, 0.0

    def add(self, batch: LogBatch, logged: Propensities, weights: PolicyWeights, p: Array) -> None:
        """Add rows, their weights, and the probabilities of their labels by the policy itself or a reward model."""
        pi, known = weights.inclusion, ~np.isnan(logged.propensity)
        self.rows, self.labels_shown = self.rows + len(batch), self.labels_shown + float(pi.sum())
        expected = (p * pi).sum(axis=1), (p * batch.shown).sum(axis=1)
        calibrated = self.calibration.calibrate(*expected, batch.hit)
        predicted = calibrated[0]
        # E[w q_S] = q_B: for one set by any q, for a draw or linear weights by a q that is a sum over labels
        q, q_logged = calibrated if self.one_set else expected
        self.by_set.add(weights.by_set, batch.hit, q, q_logged, predicted, np.ones(len(batch)), known)
        control = logged.m / np.maximum(pi.sum(axis=1), 1e-300)
        self.linear.add(weights.linear, batch.hit, *expected, predicted, control, known)

    def estimates(self, level: float = 0.95) -> tuple[Estimate, ...]:
        """Return all estimates, with intervals of this level."""
        return (*self.by_set.estimates(level), *self.linear.estimates(level))

    @property
    def mean_size(self) -> float:
        """How many labels the policy would have shown, on average."""
        return self.labels_shown / self.rows if self.rows else nan


def _column_value(record: Record, name: str) -> Any:
    """Return a column of a row of a log: one of its own, or one of those that x or the context holds by name."""
    context: Any = record.context
    if isinstance(context, str) and context.lstrip().startswith("{"):  # of a CSV
        try:
            context = json.loads(context)
        except ValueError:  # a text that only looks like JSON has no columns
            context = None
    for values in (record.extra_columns, record.decision.x, context):
        if isinstance(values, dict) and values.get(name) is not None:
            return values[name]
    return None


def log_loss(p: Array, hit: Array) -> float:
    """Return the log loss of expecting hits with probability p."""
    return float(-np.log(np.clip(np.where(hit > 0.5, p, 1.0 - p), 1e-12, 1.0)).mean())
