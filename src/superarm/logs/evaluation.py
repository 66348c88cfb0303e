"""evaluate: what would other policies have shown, and how often would they have hit?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from math import nan
from typing import Any

import numpy as np

from superarm._progress import Progress, ticked
from superarm._types import Array
from superarm.decisions.decision import Record
from superarm.errors import InvalidInput
from superarm.groups import MISSING, GroupCoverage, coverage_by, group_names
from superarm.learners import SetLogit
from superarm.logs.batches import Batch, batches, take
from superarm.logs.diagnostics import LogDiagnostics
from superarm.logs.estimates import HitRateEstimator, best_of
from superarm.logs.log import Log
from superarm.logs.policies import Policy, PolicyRunner
from superarm.logs.survey import Survey, held_out, relabel
from superarm.logs.verdicts import Evaluation, Verdict, nested
from superarm.logs.weights import Propensities, logged_propensities, policy_weights
from superarm.losses import softmax


def evaluate(
    log: Log,
    policies: Sequence[Policy],
    survey: Survey,
    *,
    holdout: float | None = 0.2,
    seed: int = 0,
    group: str | None = None,
    progress: Progress = None,
) -> Evaluation:
    """Judge policies by a log.

    Args:
        log: the log; it is read once.
        policies: they must have learnt from none of the rows that judge them.
        survey: what the function `survey` found in it.
        holdout: judge by this share of the rows, those that `train` keeps out with the same
            ``holdout`` and ``seed``; ``None`` judges by all of them.
        group: a column of the log; each verdict tells ``by_group`` what holds for its values.
        progress: True shows a bar; a function is called with the number of rows read since its last call.
    """
    labels = survey.label_set
    evaluators = [PolicyEvaluator(policy, survey, group) for policy in policies]
    log.keep_columns(name for policy in policies for name in policy.columns)
    log.keep_columns([] if group is None else [group])
    diagnostics = LogDiagnostics()
    # what is expected of policies that have no probabilities: learnt from every row after it was judged
    model = (
        None
        if all(evaluator.runner.has_probabilities for evaluator in evaluators)
        else SetLogit(**survey.learner_params)
    )
    if model is not None:
        survey.declare_columns(model)

    def judges(record: Record) -> bool:
        return holdout is None or held_out(record.row_number, holdout, seed)

    records = ticked(log, progress, survey.rows, "rows")
    for batch in batches(_counted(records, diagnostics, judges), labels):
        rows = [i for i, record in enumerate(batch.records) if judges(record)]
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
    if not diagnostics.rows:
        raise InvalidInput(f"{log.name} has no rows to judge by that have an outcome")
    low, high = diagnostics.interval
    return Evaluation(
        rows=diagnostics.rows,
        unanswered=diagnostics.unanswered,
        bad=log.bad,
        hit_rate=diagnostics.hit_rate,
        low=low,
        high=high,
        warnings=tuple(diagnostics.warnings()),
        verdicts=tuple(
            nested([evaluator.verdict(diagnostics.hit_rate, log.name) for evaluator in evaluators], policies)
        ),
    )


def _counted(
    records: Iterator[Record], diagnostics: LogDiagnostics, judges: Callable[[Record], bool]
) -> Iterator[Record]:
    for record in records:
        diagnostics.unanswered += record.hit is None and judges(record)
        yield record


class PolicyEvaluator:
    """Judges one policy by rows, as they come: all of them, by label, and by the values of a column."""

    def __init__(self, policy: Policy, survey: Survey, group: str | None) -> None:
        self.labels, self.group = survey.label_set, group
        self.runner = PolicyRunner(policy, survey.label_set, survey.n_features)
        self.whole = HitRateEstimator(one_set=self.runner.shows_one_set)
        self.groups: dict[str, HitRateEstimator] = {}
        self.label_sums = np.zeros((self.labels.count, 3))  # rows, hits, labels shown
        self.labels_known = True  # whether every row so far names its right label

    def add(
        self, batch: Batch, logged: Propensities, scores: Array | None, reward_scores: Array | None
    ) -> None:
        """Rows, the policy's scores of their labels, and those of a reward model for policies without probabilities."""
        weights = policy_weights(batch, logged, self.runner.choose(batch, scores))
        s = scores if self.runner.has_probabilities else reward_scores
        assert s is not None
        p = softmax(s)
        self.whole.add(batch, logged, weights, p)
        self.labels_known = self.labels_known and all(record.label is not None for record in batch.records)
        if self.labels_known:
            for record, shown in zip(batch.records, weights.inclusion, strict=True):
                label = self.labels.number_of_text(record.label)
                if label is not None:  # else no set could have it
                    self.label_sums[label] += 1.0, shown[label], shown.sum()
        if self.group is not None:
            names = np.array(group_names(_column_value(record, self.group) for record in batch.records))
            for name in np.unique(names).tolist():
                i = np.flatnonzero(names == name)
                estimator = self.groups.setdefault(name, HitRateEstimator(one_set=self.whole.one_set))
                estimator.add(take(batch, i), take(logged, i), take(weights, i), p[i])

    def verdict(self, hit_rate: float, log: str) -> Verdict:
        """What the rows say, which come from ``log`` and had this hit rate."""
        policy = self.runner.policy
        return Verdict(
            policy=policy.name,
            set_size=self.runner.size,
            gamma=policy.gamma,
            rule=policy.rule_words,
            estimates=self.whole.estimates,
            wanted=self.whole.linear.wanted(hit_rate),
            mean_size=self.whole.mean_size,
            expected=self.whole.linear.expected,
            coverage=policy.promise,
            by_label=coverage_by(self.labels.all(), self.label_sums) if self.labels_known else (),
            by_group=tuple(self._by_group(log)),
        )

    def _by_group(self, log: str) -> Iterator[GroupCoverage]:
        if self.groups and self.groups.keys() <= {MISSING}:
            wanted = "a column of the log, or a name in its x or context"
            raise InvalidInput.must("group", log, wanted, self.group)
        for name, estimator in sorted(self.groups.items()):
            best = best_of(estimator.estimates)
            rate = (nan, nan, nan) if best is None else (best.rate, best.low, best.high)
            yield GroupCoverage(name, estimator.rows, *rate, estimator.mean_size)


def _column_value(record: Record, name: str) -> Any:
    """A column of a row of a log: one of its own, or one of those that x or the context holds by name."""
    context: Any = record.context  # of a CSV, text
    if isinstance(context, str) and context.lstrip().startswith("{"):
        context = json.loads(context)
    for values in (record.extra_columns, record.decision.x, context):
        if isinstance(values, dict) and values.get(name) is not None:
            return values[name]
    return None
