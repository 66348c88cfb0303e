"""What would another policy have shown, and how often would it have hit?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from superarm._progress import Progress, ticked
from superarm._types import Array
from superarm.decisions.decision import Record
from superarm.learners import SetLogit
from superarm.learners.predictions import probabilities
from superarm.logs.batches import batches
from superarm.logs.diagnostics import LogCheck
from superarm.logs.policies import Policy, PolicyRunner
from superarm.logs.reading import Log
from superarm.logs.survey import Survey, held_out, relabel
from superarm.logs.tallies import PartsTally, Tally
from superarm.logs.verdicts import Evaluation, nested
from superarm.logs.weights import logged_propensities, policy_weights


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
    labels = survey.known
    judged = []
    for policy in policies:
        runner = PolicyRunner(policy, labels, survey.n_features)
        one_set = runner.shows_one_set
        judged.append((runner, Tally(one_set=one_set), PartsTally(labels, group, log.name, one_set=one_set)))
    log.keep_columns(name for policy in policies for name in policy.columns)
    log.keep_columns([] if group is None else [group])
    check = LogCheck()
    # what is expected of policies that have no probabilities: learnt from every row after it was judged
    model = None if all(runner.has_probabilities for runner, _, _ in judged) else SetLogit(**survey.common)
    if model is not None:
        survey.declare_columns(model)

    def judges(record: Record) -> bool:
        return holdout is None or held_out(record.number, holdout, seed)

    records = ticked(log, progress, survey.rows, "rows")
    for batch in batches(_counted(records, check, judges), labels):
        chosen = [i for i, record in enumerate(batch.records) if judges(record)]
        if chosen:
            part = batch.part(np.array(chosen))
            logged = logged_propensities(part)
            check.add(part, logged)
            reward = None if model is None else model.scores(part.matrix_for(model))
            scores: dict[int, Array | None] = {}  # several policies may share a learner
            for runner, tally, by_part in judged:
                ranking = id(runner.policy.learner or runner)
                if ranking not in scores:
                    scores[ranking] = runner.scores(part)
                weights = policy_weights(part, logged, runner.choose(part, scores[ranking]))
                s = scores[ranking] if runner.has_probabilities else reward
                assert s is not None
                p = probabilities(s)
                tally.add(part, logged, weights, p)
                by_part.add(part, logged, weights, p)
        if model is not None:
            names = model.known.all()
            for record in batch.records:
                model.update(relabel(record, labels, names), hit=record.hit)
    rate = check.hits / check.rows if check.rows else 0.0
    verdicts = [
        replace(tally.verdict(runner, rate), by_label=by_part.by_label, by_group=by_part.by_group)
        for runner, tally, by_part in judged
    ]
    return check.report(log, nested(verdicts, policies))


def _counted(
    records: Iterator[Record], check: LogCheck, judges: Callable[[Record], bool]
) -> Iterator[Record]:
    for record in records:
        check.unanswered += record.hit is None and judges(record)
        yield record
