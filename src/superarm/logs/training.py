"""Training on a log: several passes, with rows kept out to see how it goes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from time import perf_counter
from typing import Any

import numpy as np

from superarm._progress import Progress as ProgressBar
from superarm._progress import ticked
from superarm.decisions.decision import Record
from superarm.errors import FeedbackError, InvalidInput, at_row
from superarm.learners import Learner
from superarm.logs.batches import Batch, batches
from superarm.logs.estimates import Estimate, HitRateEstimator, best_of
from superarm.logs.policies import Policy, PolicyRunner, has_probabilities
from superarm.logs.reading import Log
from superarm.logs.survey import Survey, held_out, label_numbers, relabel
from superarm.logs.weights import logged_propensities, policy_weights
from superarm.losses import softmax
from superarm.native.randomness import uniform_number

KEPT = 20_000  # held-out rows that are looked at for progress
REPORTS = 5  # a pass
PACE = 1_000  # rows between two looks at how far it is
LEARNT, JUDGES, LEFT_ALONE = "learnt", "judges", "left alone"  # what becomes of a row
CHOOSING_SHARE = 0.1  # the share of rows that choose between one pass and several


@dataclass(frozen=True, slots=True)
class Progress:
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
        progress: how it did after each pass, and in a long log a few times within the first.
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
    progress: tuple[Progress, ...]


def train(
    log: Log,
    learner: Learner,
    survey: Survey,
    *,
    passes: int = 1,
    holdout: float = 0.2,
    seed: int = 0,
    report: Callable[[Progress], object] | None = None,
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
        report: called with each `Progress`.
        progress: True shows a bar for each pass; a function is called with the number of rows read since.
    """
    if passes < 1:
        raise InvalidInput.must("passes", "train", "at least 1", passes)
    if not 0.0 <= holdout < 1.0:
        raise InvalidInput.must("holdout", "train", "in [0, 1)", holdout)
    began = perf_counter()

    def role(record: Record) -> str:
        return JUDGES if held_out(record.number, holdout, seed) else LEARNT

    tried = _losses(log, learner, survey, passes, role, seed, progress) if passes > 1 else {}
    best = min(tried, key=lambda number: tried[number], default=passes)
    run = _Trainer(log, learner, survey, role, progress)
    run.learn(best, report)
    now = {"logs": log.fingerprints(), "holdout": holdout, "seed": seed, "passes": best, "rows": run.answered}
    learner.notes["training"] = [*learner.notes.get("training", ()), now]
    judged = np.array([record.hit for record in run.judges], np.float64)
    rate = (run.hits + 1.0) / (run.answered + 2.0)  # one of each more: a rate of 0 would be too sure
    base = _loss(np.full(len(judged), rate), judged) if len(judged) else nan
    return Training(
        rows=run.answered,
        held_out=run.held_out,
        unanswered=run.unanswered,
        useless=run.useless,
        bad=log.bad,
        passes=best,
        tried=tuple(tried.items()),
        base_loss=base,
        seconds=perf_counter() - began,
        progress=tuple(run.history),
    )


class _Trainer:
    """Some passes of a learner over a log."""

    def __init__(
        self,
        log: Log,
        learner: Learner,
        survey: Survey,
        role: Callable[[Record], str],
        progress: ProgressBar,
    ) -> None:
        self.log, self.learner, self.survey, self.role, self.progress = log, learner, survey, role, progress
        self.names = learner.label_set.all()
        self.judges: list[Record] = []  # rows that judge
        self.checks: list[Batch] = []  # the same, as arrays
        self.history: list[Progress] = []
        self.rows = self.answered = self.hits = self.held_out = self.useless = self.unanswered = 0

    def learn(self, passes: int, report: Callable[[Progress], object] | None = None) -> None:
        learner, total = self.learner, self.survey.rows
        learner.anneal(1.0, passes)
        self.survey.declare_columns(learner)
        for turn in range(1, passes + 1):
            self.answered = self.hits = self.held_out = self.useless = self.unanswered = 0
            marks = [total * part // REPORTS for part in range(1, REPORTS)] if turn == 1 else []
            for number, record in enumerate(ticked(self.log, self.progress, total, "rows")):
                if number % PACE == 0:
                    learner.anneal(1.0 - (turn - 1 + number / total) / passes, passes)
                self._learn_row(record, turn)
                if number + 1 in marks and len(self.judges) == KEPT:
                    self._measure(turn, report)
            if not self.answered:
                wanted = "a learner of given sets (set-logit), or top and gamma in every row"
                raise FeedbackError.must("learner", self.log.name, wanted, learner.name)
            self._measure(turn, report)
        learner.anneal(1.0, passes)

    def _learn_row(self, record: Record, turn: int) -> None:
        """Learn from a row, or keep it out."""
        learner = self.learner
        if record.hit is None:
            self.unanswered += 1
            return
        role, labels = self.role(record), learner.label_set
        if role != LEARNT:
            self.held_out += 1
            if turn == 1 and role == JUDGES and len(self.judges) < KEPT:
                self.judges.append(record)
            return
        decision = relabel(record, labels, self.names)
        if not learner.learns_from(decision):
            self.useless += 1
            return
        if record.label is None:
            learner.update(decision, hit=record.hit)
        else:
            where = at_row(self.log.name, record.number)
            named = label_numbers(labels, [record.label], "label", where)[0]
            learner.update(decision, label=self.names[named])
        self.rows += 1
        self.answered += 1
        self.hits += record.hit

    def _measure(self, turn: int, report: Callable[[Progress], object] | None) -> None:
        """How the learner does on the rows kept out."""
        if not self.checks:
            self.checks.extend(batches(self.judges, self.learner.label_set))
        if self.checks:
            self.history.append(_progress(self.learner, self.checks, turn, self.rows, self.survey))
            if report is not None:
                report(self.history[-1])


def _losses(
    log: Log,
    learner: Learner,
    survey: Survey,
    passes: int,
    role: Callable[[Record], str],
    seed: int,
    progress: ProgressBar,
) -> dict[int, float]:
    """The log loss of one pass, and of several, on a few rows that are set aside for this alone.

    Several passes know a small log by heart, noise and all; which number of them is better, only rows
    that were not learnt from can tell. Those kept out for `evaluate` have no say: they judge the model.
    """
    share = min(CHOOSING_SHARE, KEPT / survey.rows)

    def chooses(record: Record) -> str:
        if role(record) != LEARNT:
            return LEFT_ALONE
        return JUDGES if uniform_number(seed + 2**42, record.number, 0) < share else LEARNT

    losses = dict[int, float]()
    if has_probabilities(learner):
        for number in (1, passes):
            run = _Trainer(log, copy.deepcopy(learner), survey, chooses, progress)
            run.learn(number)
            if run.history:
                losses[number] = run.history[-1].log_loss
    return losses


def _loss(p: Any, f: Any) -> float:
    return float(-np.log(np.clip(np.where(f > 0.5, p, 1.0 - p), 1e-12, 1.0)).mean())


def _progress(learner: Learner, checks: list[Batch], turn: int, rows: int, survey: Survey) -> Progress:
    """Where the learner stands on the rows kept out."""
    bits = list[Any]()
    policy = PolicyRunner(Policy(learner.name, learner=learner), learner.label_set, survey.n_features)
    estimator = HitRateEstimator(one_set=policy.shows_one_set)
    likely = has_probabilities(learner)
    for batch in checks:
        s = learner.scores(batch.matrix_for(learner))
        p = softmax(s) if likely else np.zeros(batch.shown.shape)
        bits.append(((p * batch.shown).sum(axis=1), batch.hit))
        logged = logged_propensities(batch)
        estimator.add(batch, logged, policy_weights(batch, logged, policy.choose(batch, s)), p)
    loss = _loss(*(np.concatenate(part) for part in zip(*bits, strict=True))) if likely else nan
    return Progress(turn, rows, loss, best_of(estimator.estimates))
