"""Training on a log: several passes, with rows kept out to see how it goes."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from time import perf_counter

import numpy as np

from superarm._progress import Progress as ProgressBar
from superarm._progress import ticked
from superarm._types import Array
from superarm.decisions.decision import Record
from superarm.errors import FeedbackError, InvalidInput, at_row
from superarm.learners import Learner
from superarm.logs.batches import batches
from superarm.logs.estimates import Estimate, HitRateEstimator, best_of
from superarm.logs.log import Log
from superarm.logs.policies import Policy, PolicyRunner, has_probabilities
from superarm.logs.survey import Survey, held_out, label_numbers, relabel
from superarm.logs.weights import logged_propensities, policy_weights
from superarm.losses import softmax
from superarm.native.randomness import uniform_number

JUDGING_ROWS = 20_000  # held-out rows that measure progress, at most
ANNEALING_ROWS = 1_000  # between two steps of the learner's pace
CHOOSING_SHARE = 0.1  # the share of rows that choose between one pass and several
RowFilter = Callable[[Record], bool]


@dataclass(frozen=True, slots=True)
class PassResult:
    """How well a learner does on rows it has not seen.

    Attributes:
        turn: the pass, from 1.
        rows: rows learnt from so far, over all passes.
        log_loss: of the bit, for learners with probabilities; else NaN. Less is better.
        hit_rate: of its top set, where the log can answer for it as `evaluate` would; else ``None``.
    """

    turn: int
    rows: int
    log_loss: float
    hit_rate: Estimate | None


@dataclass(frozen=True, slots=True)
class Training:
    """The result of a training.

    Attributes:
        rows, held_out: rows that were learnt from, and those kept out.
        unanswered, bad: rows without an outcome, and rows that cannot be used.
        seconds: how long it took.
        progress: how it did after each pass.
        passes: how many were kept: as many as asked for, or one, if that was better.
        tried: (passes, log loss) of both, on rows set aside to choose; empty if only one was asked for.
        base_loss: the log loss of knowing only how often a set hits, on the rows kept out.
        useless: rows that this learner cannot learn from.
    """

    rows: int
    held_out: int
    unanswered: int
    useless: int
    bad: int
    passes: int
    tried: tuple[tuple[int, float], ...]
    base_loss: float
    seconds: float
    progress: tuple[PassResult, ...]


def train(
    log: Log,
    learner: Learner,
    survey: Survey,
    *,
    passes: int = 1,
    holdout: float = 0.2,
    seed: int = 0,
    progress: ProgressBar = None,
) -> Training:
    """Teach a learner what a log knows.

    The rows kept out are the same for the same ``holdout`` and ``seed``; the model remembers both
    and the files, so `evaluate` judges it by rows that it has not seen.

    Args:
        log: the log, read once a pass; `Log` takes several files.
        learner: it must learn from given sets: SetLogit; MCDBF where the log has top and gamma. One that has
            learnt before (`superarm.load`) goes on from there.
        survey: what the function `survey` found in it.
        passes: how many times to go through the log. One pass is tried beside them, on nine rows in
            ten, and kept if it is better: several may know a small log by heart.
        holdout: the share of rows kept out, in [0, 1).
        progress: True shows a bar for each pass; a function is called with the number of rows read since.
    """
    if passes < 1:
        raise InvalidInput.must("passes", "train", "at least 1", passes)
    if not 0.0 <= holdout < 1.0:
        raise InvalidInput.must("holdout", "train", "in [0, 1)", holdout)
    began = perf_counter()

    def judges(record: Record) -> bool:
        return held_out(record.row_number, holdout, seed)

    tried = _try_passes(log, learner, survey, passes, judges, seed, progress) if passes > 1 else {}
    best = min(tried, key=lambda number: tried[number], default=passes)
    run = _Trainer(log, learner, survey, lambda record: not judges(record), judges, progress)
    run.learn(best)
    counts = run.counts
    notes = {
        "logs": log.fingerprints(),
        "holdout": holdout,
        "seed": seed,
        "passes": best,
        "rows": counts["learnt"],
    }
    learner.metadata["training"] = [*learner.metadata.get("training", ()), notes]
    hits = np.array([record.hit for record in run.judging], np.float64)
    rate = (counts["hits"] + 1.0) / (
        counts["learnt"] + 2.0
    )  # one of each more: a rate of 0 would be too sure
    return Training(
        rows=counts["learnt"],
        held_out=counts["held_out"],
        unanswered=counts["unanswered"],
        useless=counts["useless"],
        bad=log.bad,
        passes=best,
        tried=tuple(tried.items()),
        base_loss=_log_loss(np.full(len(hits), rate), hits) if len(hits) else nan,
        seconds=perf_counter() - began,
        progress=tuple(run.history),
    )


class _Trainer:
    """Some passes of a learner over a log, each measured by rows that are not learnt from.

    Args:
        learns: which rows are learnt from.
        judges: which rows measure it.
    """

    def __init__(
        self,
        log: Log,
        learner: Learner,
        survey: Survey,
        learns: RowFilter,
        judges: RowFilter,
        progress: ProgressBar,
    ) -> None:
        self.log, self.learner, self.survey, self.progress = log, learner, survey, progress
        self.learns, self.judges = learns, judges
        self.names = learner.label_set.all()
        self.judging: list[Record] = []  # rows that judge
        self.history: list[PassResult] = []
        self.rows = 0  # learnt from, over all passes
        self.counts: Counter[str] = Counter()  # of the rows of one pass

    def learn(self, passes: int) -> None:
        learner, total = self.learner, self.survey.rows
        learner.anneal(1.0, passes)
        self.survey.declare_columns(learner)
        for number in range(1, passes + 1):
            self.counts.clear()
            for i, record in enumerate(ticked(self.log, self.progress, total, "rows")):
                if i % ANNEALING_ROWS == 0:
                    learner.anneal(1.0 - (number - 1 + i / total) / passes, passes)
                if record.hit is None:
                    self.counts["unanswered"] += 1
                elif self.learns(record):
                    self._learn_row(record)
                else:
                    self.counts["held_out"] += 1
                    if number == 1 and len(self.judging) < JUDGING_ROWS and self.judges(record):
                        self.judging.append(record)
            if not self.counts["learnt"]:
                wanted = "a learner of given sets (set-logit), or top and gamma in every row"
                raise FeedbackError.must("learner", self.log.name, wanted, learner.name)
            if self.judging:
                self.history.append(self._measured(number))
        learner.anneal(1.0, passes)

    def _learn_row(self, record: Record) -> None:
        learner = self.learner
        decision = relabel(record, learner.label_set, self.names)
        if not learner.learns_from(decision):
            self.counts["useless"] += 1
            return
        if record.label is None:
            learner.update(decision, hit=record.hit)
        else:
            where = at_row(self.log.name, record.row_number)
            label = label_numbers(learner.label_set, [record.label], "label", where)[0]
            learner.update(decision, label=self.names[label])
        self.rows += 1
        self.counts["learnt"] += 1
        self.counts["hits"] += bool(record.hit)

    def _measured(self, number: int) -> PassResult:
        """How the learner does after this pass on the rows that judge."""
        learner = self.learner
        policy = PolicyRunner(
            Policy(learner.name, learner=learner), learner.label_set, self.survey.n_features
        )
        estimator = HitRateEstimator(one_set=policy.shows_one_set)
        expected, hits = list[Array](), list[Array]()
        predicts = has_probabilities(learner)
        for batch in batches(self.judging, learner.label_set):
            scores = learner.scores(batch.matrix_for(learner))
            p = softmax(scores) if predicts else np.zeros(batch.shown.shape)
            expected.append((p * batch.shown).sum(axis=1))
            hits.append(batch.hit)
            logged = logged_propensities(batch)
            estimator.add(batch, logged, policy_weights(batch, logged, policy.choose(batch, scores)), p)
        loss = _log_loss(np.concatenate(expected), np.concatenate(hits)) if predicts else nan
        return PassResult(number, self.rows, loss, best_of(estimator.estimates))


def _try_passes(
    log: Log,
    learner: Learner,
    survey: Survey,
    passes: int,
    judges: RowFilter,
    seed: int,
    progress: ProgressBar,
) -> dict[int, float]:
    """The log loss of one pass, and of several, on a few rows that are set aside for this alone.

    Several passes know a small log by heart, noise and all; which number of them is better, only rows
    that were not learnt from can tell. Those kept out for `evaluate` have no say: they judge the model.
    """
    share = min(CHOOSING_SHARE, JUDGING_ROWS / survey.rows)

    def chooses(record: Record) -> bool:
        return not judges(record) and bool(uniform_number(seed + 2**42, record.row_number, 0) < share)

    def learns(record: Record) -> bool:
        return not judges(record) and not chooses(record)

    losses = dict[int, float]()
    if has_probabilities(learner):
        for number in (1, passes):
            run = _Trainer(log, copy.deepcopy(learner), survey, learns, chooses, progress)
            run.learn(number)
            if run.history:
                losses[number] = run.history[-1].log_loss
    return losses


def _log_loss(p: Array, hit: Array) -> float:
    """The log loss of expecting hits with probability p."""
    return float(-np.log(np.clip(np.where(hit > 0.5, p, 1.0 - p), 1e-12, 1.0)).mean())
