"""Training on a log: several passes, with rows kept out to see how it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log as ln
from math import nan, sqrt
from time import perf_counter
from typing import Any

import numpy as np

from superarm.errors import FeedbackError, InvalidInput
from superarm.learners import Learner
from superarm.logs.batches import Batch, batches, probabilities
from superarm.logs.entry import Entry
from superarm.logs.reading import Log
from superarm.logs.survey import Survey, Vocabulary, held_out
from superarm.logs.weights import Choice, linear_weights, logged_odds

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
        hit_rate, error: of its top set, with a standard error, where the log says how probable its
            sets were; else NaN.
    """

    turn: int
    rows: int
    log_loss: float
    hit_rate: float
    error: float


@dataclass(frozen=True, slots=True)
class Training:
    """What came of a training.

    Attributes:
        base_loss: the log loss of knowing only how often a set hits.
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
    progress: Callable[[int], object] | None = None,
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
        progress: called with the number of rows read since the last call.
    """
    if passes < 1:
        raise InvalidInput.must("passes", "train", "at least 1", passes)
    if not 0.0 <= holdout < 1.0:
        raise InvalidInput.must("holdout", "train", "in [0, 1)", holdout)
    words = Vocabulary(learner.labels, learner.n_labels)
    began, history = perf_counter(), list[Progress]()
    kept: list[Entry] = []
    checks: list[Batch] = []
    rows = answered = hits = aside = useless = unanswered = 0

    def look(turn: int) -> None:
        if not checks:
            checks.extend(batches(kept, words))
        if checks:
            history.append(_progress(learner, checks, turn, rows))
            if report is not None:
                report(history[-1])

    learner.anneal(1.0, passes)
    for turn in range(1, passes + 1):
        answered = hits = aside = useless = unanswered = 0
        marks = [facts.rows * part // REPORTS for part in range(1, REPORTS)] if turn == 1 else []
        for number, entry in enumerate(log):
            if progress is not None:
                progress(1)
            if number % PACE == 0:
                learner.anneal(1.0 - (turn - 1 + number / facts.rows) / passes, passes)
            if entry.hit is None:
                unanswered += 1
            elif held_out(entry.place, holdout, seed):
                aside += 1
                if turn == 1 and len(kept) < KEPT:
                    kept.append(entry)
            else:
                decision = words.decision(entry)
                if learner.learns_from(decision):
                    if entry.label is None:
                        learner.update(decision, hit=entry.hit)
                    else:
                        named = words.codes([entry.label], "label", entry.place)[0]
                        learner.update(decision, label=words.labels[named])
                    rows += 1
                    answered += 1
                    hits += entry.hit
                else:
                    useless += 1
            if number + 1 in marks and len(kept) == KEPT:
                look(turn)
        if not answered:
            wanted = "a learner of given sets (set-logit), or top and gamma in every row"
            raise FeedbackError.must("learner", str(log.path), wanted, learner.name)
        look(turn)
    learner.anneal(1.0, passes)
    learner.notes["training"] = {
        "log": log.path.name,
        "sha256": log.fingerprint(),
        "holdout": holdout,
        "seed": seed,
        "passes": passes,
        "rows": answered,
        "features": list(log.feature_columns),
    }
    rate = hits / answered
    entropy = -sum(part * ln(part) for part in (rate, 1 - rate) if part > 0)
    return Training(
        rows=answered,
        held_out=aside,
        unanswered=unanswered,
        useless=useless,
        bad=log.bad,
        base_loss=entropy,
        seconds=perf_counter() - began,
        progress=tuple(history),
    )


def _loss(p: Any, f: Any) -> float:
    return float(-np.log(np.clip(np.where(f > 0.5, p, 1.0 - p), 1e-12, 1.0)).mean())


def _progress(learner: Learner, checks: list[Batch], turn: int, rows: int) -> Progress:
    """Where the learner stands on the rows kept out."""
    bits, terms = list[Any](), list[Any]()
    likely = hasattr(learner, "predict_proba") or learner.learns_from_given
    for batch in checks:
        X = batch.matrix(learner)
        p = probabilities(learner, X) if likely else np.zeros(batch.shown.shape)
        logged = (p * batch.shown).sum(axis=1)
        bits.append((logged, batch.hit))
        s = np.where(batch.eligible, learner.scores(X), -np.inf)
        top = np.zeros(s.shape, bool)
        np.put_along_axis(top, np.argsort(-s, axis=1, kind="stable")[:, : learner.set_size], True, axis=1)
        choice = Choice(top & batch.eligible)
        w = linear_weights(batch, logged_odds(batch), choice).w
        terms.append(choice.expected(p, batch.eligible) + w * (batch.hit - logged))
    loss = _loss(*(np.concatenate(part) for part in zip(*bits, strict=True))) if likely else nan
    t = np.concatenate(terms)  # NaN if a row does not say how its set was drawn
    error = float(t.std(ddof=1) / sqrt(len(t))) if len(t) > 1 else nan
    return Progress(turn, rows, loss, float(t.mean()), error)
