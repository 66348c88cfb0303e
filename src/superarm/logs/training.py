"""Training on a log: several passes, with rows kept out to see how it goes."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from time import perf_counter
from typing import Literal

import numpy as np

from superarm._progress import Progress, with_progress
from superarm.decisions.logged_decision import LoggedDecision
from superarm.errors import FeedbackError, InvalidInput, at_row
from superarm.learners import Learner
from superarm.learners.answers import label_to_learn
from superarm.logs.batches import label_indices, relabel
from superarm.logs.diagnostics import LogDiagnostics
from superarm.logs.evaluation import PolicyEvaluator, is_held_out_row, log_loss, run_evaluators
from superarm.logs.log import Log
from superarm.logs.policies import Policy
from superarm.logs.results import Estimate
from superarm.logs.summary import LogSummary
from superarm.native.randomness import uniform_number

MAX_HELD_OUT_ROWS = 20_000  # held-out rows that measure progress, at most
ANNEALING_ROWS = 1_000  # between two steps of the learner's pace
VALIDATION_SHARE = 0.1  # the share of rows that choose between one pass and several
RowUse = Literal["learn", "evaluate", "leave out"]


@dataclass(frozen=True, slots=True)
class PassResult:
    """How well a learner does on rows it has not seen.

    Attributes:
        pass_number: the pass, from 1.
        rows: rows learnt from so far, over all passes.
        log_loss: of the bit, for learners with probabilities; else NaN. Less is better.
        hit_rate: of its top set, where the log can answer for it as `evaluate` would; else ``None``.
        problem: why there is no hit rate, and what it would take; empty if there is one.
    """

    pass_number: int
    rows: int
    log_loss: float
    hit_rate: Estimate | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """The result of a training.

    Attributes:
        rows, held_out: rows that were learnt from, and those kept out.
        unanswered, bad: rows without an outcome, and rows that cannot be used.
        seconds: how long it took.
        history: how it did after each pass.
        passes: how many were kept: as many as asked for, or one, if that was better.
        losses_by_passes: (passes, log loss) of one pass and of all, on rows set aside to choose; empty
            if only one was asked for.
        base_loss: the log loss of knowing only how often a set hits, on the rows kept out.
        unusable: rows that this learner cannot learn from.
    """

    rows: int
    held_out: int
    unanswered: int
    unusable: int
    bad: int
    passes: int
    losses_by_passes: tuple[tuple[int, float], ...]
    base_loss: float
    seconds: float
    history: tuple[PassResult, ...]


def train(
    log: Log,
    learner: Learner,
    summary: LogSummary,
    *,
    passes: int = 1,
    holdout: float = 0.2,
    seed: int = 0,
    progress: Progress = None,
) -> TrainingResult:
    """Teach a learner what a log knows.

    The rows kept out are the same for the same ``holdout`` and ``seed``; the model remembers both
    and the files, so `evaluate` judges it by rows that it has not seen.

    Args:
        log: the log, read once a pass; `Log` takes several files.
        learner: it must learn from given sets: SetLogit; MCDBF where the log has top and gamma. One that has
            learnt before (`superarm.load`) goes on from there.
        summary: what `summarize` gave for it.
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

    def row_use(record: LoggedDecision) -> RowUse:
        return "evaluate" if is_held_out_row(record.row_index, holdout, seed) else "learn"

    losses_by_passes = dict[int, float]()
    # several passes learn the noise of a small log by heart; only rows that were not learnt from show it
    if passes > 1 and learner.scores_are_log_probabilities:
        share = min(VALIDATION_SHARE, MAX_HELD_OUT_ROWS / summary.rows)

        def validation_use(record: LoggedDecision) -> RowUse:
            if row_use(record) == "evaluate":  # these judge the model, and so have no say in it
                return "leave out"
            return "evaluate" if uniform_number(seed + 2**42, record.row_index, 0) < share else "learn"

        for number in (1, passes):
            trial = _Trainer(log, copy.deepcopy(learner), summary, validation_use, holdout, progress)
            trial.learn(number)
            if trial.history:
                losses_by_passes[number] = trial.history[-1].log_loss
    best = min(losses_by_passes, key=lambda number: losses_by_passes[number], default=passes)
    trainer = _Trainer(log, learner, summary, row_use, holdout, progress)
    trainer.learn(best)
    counts = trainer.counts
    rows = counts["learnt"]
    notes = {"logs": log.fingerprints(), "holdout": holdout, "seed": seed, "passes": best, "rows": rows}
    learner.metadata["training"] = [*learner.metadata.get("training", ()), notes]
    hits = np.array([record.hit for record in trainer.held_out_rows], np.float64)
    rate = (counts["hits"] + 1.0) / (rows + 2.0)  # one hit and one miss more: a rate of 0 would be too sure
    return TrainingResult(
        rows=rows,
        held_out=counts["held_out"],
        unanswered=counts["unanswered"],
        unusable=counts["unusable"],
        bad=log.bad,
        passes=best,
        losses_by_passes=tuple(losses_by_passes.items()),
        base_loss=log_loss(np.full(len(hits), rate), hits) if len(hits) else nan,
        seconds=perf_counter() - began,
        history=tuple(trainer.history),
    )


class _Trainer:
    """Some passes of a learner over a log, each evaluated by rows that are not learnt from."""

    def __init__(
        self,
        log: Log,
        learner: Learner,
        summary: LogSummary,
        row_use: Callable[[LoggedDecision], RowUse],
        holdout: float,
        progress: Progress,
    ) -> None:
        self.log = log
        self.learner = learner
        self.summary = summary
        self.row_use = row_use
        self.holdout = holdout
        self.progress = progress
        self.names = learner.vocabulary.all()
        self.held_out_rows: list[LoggedDecision] = []  # the first ones to evaluate by
        self.history: list[PassResult] = []
        self.counts: Counter[str] = Counter()  # of the rows of one pass

    def learn(self, passes: int) -> None:
        learner = self.learner
        total = self.summary.rows
        learner.prepare_passes(passes)
        self.summary.declare_columns(learner)
        for number in range(1, passes + 1):
            self.counts.clear()
            for i, record in enumerate(with_progress(self.log, self.progress, total, "rows")):
                if passes > 1 and i % ANNEALING_ROWS == 0:
                    learner.anneal(1.0 - (number - 1 + i / total) / passes)
                use = self.row_use(record)
                if record.hit is None:
                    self.counts["unanswered"] += 1
                elif use == "learn":
                    self._learn_row(record)
                elif use == "evaluate":
                    self.counts["held_out"] += 1
                    if number == 1 and len(self.held_out_rows) < MAX_HELD_OUT_ROWS:
                        self.held_out_rows.append(record)
            if not self.counts["learnt"]:
                wanted = "a learner of given sets (set-logit), or top and gamma in every row"
                raise FeedbackError.must("learner", self.log.name, wanted, learner.name)
            if self.held_out_rows:
                self.history.append(self._evaluate(number))
        learner.anneal(1.0)

    def _learn_row(self, record: LoggedDecision) -> None:
        learner = self.learner
        decision = relabel(record, learner.vocabulary, self.names)
        if not learner.learns_from(decision):
            self.counts["unusable"] += 1
            return
        label = record.label
        if label is not None:
            where = at_row(self.log.name, record.row_index)
            label = self.names[label_indices(learner.vocabulary, [label], "label", where)[0]]
        label = label_to_learn(learner, label, decision.eligible)
        learner.update(decision, **({"hit": record.hit} if label is None else {"label": label}))
        self.counts["learnt"] += 1
        self.counts["hits"] += bool(record.hit)

    def _evaluate(self, number: int) -> PassResult:
        """Return how the learner does after this pass on held-out rows, as `evaluate` would tell it."""
        learner = self.learner
        evaluator = PolicyEvaluator(Policy(learner.name, learner=learner), self.summary)
        # without probabilities of the learner's own, a reward model is needed, which learns from all rows
        records = self.held_out_rows if learner.scores_are_log_probabilities else self.log
        diagnostics = LogDiagnostics()

        def is_held_out(record: LoggedDecision) -> bool:
            return self.row_use(record) == "evaluate"

        run_evaluators([evaluator], records, self.summary, is_held_out, diagnostics)
        result = evaluator.result(diagnostics, self.log.name)
        problem = ""
        if result.best is None:
            remedy = result.remedy(self.summary.answered, self.holdout, fewer_labels=False)
            problem = f"{result.estimates[-1].problem}; {remedy}"
        rows = number * self.counts["learnt"]
        return PassResult(number, rows, evaluator.log_loss, result.best, problem)
