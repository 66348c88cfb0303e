"""Training on a log: several passes, with rows kept out to see how it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from superarm.decision import Record
from superarm.errors import FeedbackError, InvalidInput, at_row
from superarm.learners import Learner
from superarm.logs.batches import Batch, batches, probabilities
from superarm.logs.estimates import Estimate
from superarm.logs.evaluation import Tally, best_of
from superarm.logs.policies import AtWork, Policy
from superarm.logs.reading import Log
from superarm.logs.survey import Survey, held_out, numbers_of, respelt
from superarm.logs.weights import logged_odds
from superarm.progress import Progress as Showing
from superarm.progress import ticked

__all__ = ["Progress", "Training", "train"]

KEPT = 20_000  # held-out rows that are looked at for progress
REPORTS = 5  # a pass
PACE = 1_000  # rows between two looks at how far it is


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
    """What came of a training.

    Attributes:
        rows, held_out: rows that were learnt from, and those kept out.
        unanswered, bad: rows without an outcome, and rows that cannot be used.
        seconds: how long it took.
        progress: what came of each pass.
        base_loss: the log loss of knowing only how often a set hits, on the same rows.
        useless: rows that this learner cannot learn from.
    """

    rows: int
    held_out: int
    unanswered: int
    useless: int
    bad: int
    base_loss: float
    seconds: float
    progress: tuple[Progress, ...]


def train(
    log: Log,
    learner: Learner,
    facts: Survey,
    *,
    passes: int = 1,
    holdout: float = 0.2,
    seed: int = 0,
    report: Callable[[Progress], object] | None = None,
    progress: Showing = None,
) -> Training:
    """Teach a learner what a log knows.

    The rows kept out are the same for the same ``holdout`` and ``seed``; the model remembers both
    and the file, so `evaluate` judges it by rows that it has not seen.

    Args:
        log: the log, read once a pass.
        learner: it must learn from given sets: SetLogit; MCDBF where the log has top and gamma.
        facts: what `survey` found.
        passes: how many times to go through the log.
        holdout: the share of rows kept out, in [0, 1).
        report: called with each `Progress`.
        progress: True shows a bar for each pass; a function is called with the number of rows read since.
    """
    if passes < 1:
        raise InvalidInput.must("passes", "train", "at least 1", passes)
    if not 0.0 <= holdout < 1.0:
        raise InvalidInput.must("holdout", "train", "in [0, 1)", holdout)
    labels, names = learner.known, learner.known.all()
    began, history = perf_counter(), list[Progress]()
    kept: list[Record] = []
    checks: list[Batch] = []
    rows = answered = hits = aside = useless = unanswered = 0

    def look(turn: int) -> None:
        if not checks:
            checks.extend(batches(kept, labels))
        if checks:
            history.append(_progress(learner, checks, turn, rows, facts))
            if report is not None:
                report(history[-1])

    learner.anneal(1.0, passes)
    for turn in range(1, passes + 1):
        answered = hits = aside = useless = unanswered = 0
        marks = [facts.rows * part // REPORTS for part in range(1, REPORTS)] if turn == 1 else []
        for number, record in enumerate(ticked(log, progress, facts.rows, "rows")):
            if number % PACE == 0:
                learner.anneal(1.0 - (turn - 1 + number / facts.rows) / passes, passes)
            if record.hit is None:
                unanswered += 1
            elif held_out(record.number, holdout, seed):
                aside += 1
                if turn == 1 and len(kept) < KEPT:
                    kept.append(record)
            else:
                decision = respelt(record, labels, names)
                if learner.learns_from(decision):
                    if record.label is None:
                        learner.update(decision, hit=record.hit)
                    else:
                        where = at_row(log.name, record.number)
                        named = numbers_of(labels, [record.label], "label", where)[0]
                        learner.update(decision, label=names[named])
                    rows += 1
                    answered += 1
                    hits += record.hit
                else:
                    useless += 1
            if number + 1 in marks and len(kept) == KEPT:
                look(turn)
        if not answered:
            wanted = "a learner of given sets (set-logit), or top and gamma in every row"
            raise FeedbackError.must("learner", log.name, wanted, learner.name)
        look(turn)
    learner.anneal(1.0, passes)
    learner.notes["training"] = {
        "log": Path(log.name).name,
        "sha256": log.fingerprint(),
        "holdout": holdout,
        "seed": seed,
        "passes": passes,
        "rows": answered,
        "features": list(log.feature_columns),
    }
    judged = np.array([record.hit for record in kept], np.float64)
    rate = (hits + 1.0) / (answered + 2.0)  # one of each more: a rate of 0 would be too sure
    base = _loss(np.full(len(judged), rate), judged) if len(judged) else nan
    return Training(
        rows=answered,
        held_out=aside,
        unanswered=unanswered,
        useless=useless,
        bad=log.bad,
        base_loss=base,
        seconds=perf_counter() - began,
        progress=tuple(history),
    )


def _loss(p: Any, f: Any) -> float:
    return float(-np.log(np.clip(np.where(f > 0.5, p, 1.0 - p), 1e-12, 1.0)).mean())


def _progress(learner: Learner, checks: list[Batch], turn: int, rows: int, facts: Survey) -> Progress:
    """Where the learner stands on the rows kept out."""
    bits = list[Any]()
    policy, tally = AtWork(Policy(learner.name, learner=learner), facts.known, facts.n_features), Tally()
    likely = hasattr(learner, "predict_proba") or learner.learns_from_given
    for batch in checks:
        p = probabilities(learner, batch.matrix_for(learner)) if likely else np.zeros(batch.shown.shape)
        bits.append(((p * batch.shown).sum(axis=1), batch.hit))
        tally.add(batch, logged_odds(batch), policy.choose(batch, {}), p)
    loss = _loss(*(np.concatenate(part) for part in zip(*bits, strict=True))) if likely else nan
    return Progress(turn, rows, loss, best_of(tally.estimates))
