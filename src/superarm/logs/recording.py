"""A simulated run that writes its decision log."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from superarm.errors import InvalidInput
from superarm.learners import Learner
from superarm.logs.writing import Writer
from superarm.simulation import Trace, checkpoints
from superarm.streams import Stream

__all__ = ["record"]


def record(
    learner: Learner,
    stream: Stream,
    rounds: int,
    log: Writer,
    *,
    progress: Callable[[int], object] | None = None,
) -> Trace:
    """As `superarm.simulate`, round by round, with a row in ``log`` for each.

    The true label goes into the log only if the learner is told it, too.
    """
    for size in ("n_features", "n_labels"):
        if getattr(learner, size) != getattr(stream, size):
            wanted = f"{getattr(stream, size)}, as {stream.name} has"
            raise InvalidInput.must(size, learner.of, wanted, getattr(learner, size))
    marks = checkpoints(rounds)
    counts = np.zeros((len(marks), 3), np.int64)
    total, done, at, began = np.zeros(3, np.int64), 0, 0, perf_counter()
    names = learner.labels or range(learner.n_labels)
    told = learner.feedback == ("label",)
    for chunk in stream.chunks(learner.seed):
        for i in chunk.visit[: rounds - done]:
            x = chunk.rows.row(i)
            label = names[chunk.y[i]]
            decision = learner.decide(x)
            hit = label in decision.labels
            if told:
                learner.update(decision, label=label)
            else:
                learner.update(decision, hit=hit)
            log.add(decision, hit=hit, label=label if told else None, id=f"{learner.seed}-{done}")
            total += [decision.top[0] != label, label not in decision.top, not hit]
            done += 1
            if done == marks[at]:
                counts[at] = total
                at += 1
                if progress is not None:
                    progress(done - (int(marks[at - 2]) if at > 1 else 0))
        if done == rounds:
            break
    seconds = perf_counter() - began
    return Trace(learner.name, stream.name, learner.set_size, learner.seed, marks, counts, seconds)
