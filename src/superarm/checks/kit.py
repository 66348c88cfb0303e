"""What checks are written with: small data, answers, states as bytes, refusals."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from superarm.data.rows import Layout, Row, Rows, stack
from superarm.decisions.decision import Decision
from superarm.learners import Learner, load

Make = Callable[..., Learner]

K, D, ROUNDS = 5, 7, 120
NAMES = ["ant", "bee", "cat", "dog", "eel"]
LAYOUTS = {"dense": Layout(D, 0), "sparse": Layout(0, D), "mixed": Layout(3, D - 3)}


CHECKS: dict[str, Callable[[Make], None]] = {}


def check(function: Callable[[Make], None]) -> Callable[[Make], None]:
    """Add a function to `CHECKS`, under its name."""
    CHECKS[function.__name__] = function
    return function


def ensure(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def data(seed: int = 7, rounds: int = ROUNDS) -> tuple[Any, Any]:
    """Rows, half of whose entries are 0, with a label that they tell."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rounds, D)) * (random.random((rounds, D)) < 0.5)
    X[:, 0] += 0.25
    y = (X @ random.normal(size=(D, K))).argmax(axis=1)
    return X.astype(np.float32), y


def answer(learner: Learner, decision: Decision, y: int) -> None:
    """What the world says if y is right."""
    label = int(y) if learner.labels is None else learner.labels[y]
    if "hit" in learner.feedback:
        learner.update(decision, hit=label in decision.drawn)
    else:
        learner.update(decision, label=label)


def fits(learner: Learner, labels: Any, size: int) -> bool:
    """Whether there are as many labels as there should be: where sizes vary, at most."""
    return 0 < len(labels) <= size if learner.rule.sizes_vary else len(labels) == size


def row_as(x: Any, kind: str) -> Any:
    """A row as one of the kinds that there are."""
    d, width, _ = LAYOUTS[kind]
    if not width:
        return x
    stored = np.flatnonzero(x[d:])
    return Row(x[:d] if d else None, (stored, x[d:][stored]), width)


def rows_as(X: Any, kind: str) -> Rows:
    return stack([row_as(x, kind) for x in X], LAYOUTS[kind])


def learner_for(make: Make, kind: str, **common: Any) -> Learner:
    """A learner for rows of this kind."""
    return make(n_features=LAYOUTS[kind].n_features, **common)


def play(learner: Learner, X: Any, y: Any, kind: str = "dense") -> list[list[Any]]:
    """Decide and answer round by round; what was drawn."""
    drawn = []
    for x, label in zip(X, y, strict=True):
        decision = learner.decide(row_as(x, kind))
        drawn.append(decision.drawn)
        answer(learner, decision, label)
    return drawn


def arrays(learner: Learner) -> dict[str, bytes]:
    """The arrays of the learner's state, as bytes."""
    return {name: array.tobytes() for name, array in learner.core.state().items()}


def weights(learner: Learner, labels: list[int]) -> list[bytes]:
    """The weights of these labels, where they are kept as ours are."""
    state = learner.core.state()
    axes = {"weights.dense": 0, "weights.sparse": 1}
    return [state[name].take(labels, axis).tobytes() for name, axis in axes.items() if name in state]


def bits(learner: Learner) -> tuple[Any, ...]:
    """What was learnt, and the counters: what a refused call must leave as it was."""
    learnt = {name: bits for name, bits in arrays(learner).items() if not name.startswith("rule.")}
    return learnt, learner.round, learner.answered.low, bytes(learner.answered.later)


@contextmanager
def refused(error: type[Exception], what: str) -> Iterator[None]:
    """What happens inside must be refused, with a message in the template's words."""
    try:
        yield
    except error as raised:
        clear = " of " in str(raised) and (" must " in str(raised) or " was " in str(raised))
        ensure(clear, f"{what}: unclear message {raised}")
    except Exception as other:
        raise AssertionError(f"{what} raised {other!r}, not {error.__name__}") from other
    else:
        raise AssertionError(f"{what} was not refused with {error.__name__}")


def saved_and_loaded(learner: Learner) -> Learner:
    """The learner after a trip through a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        learner.save(path)
        return load(path)


def trained(make: Make, **common: Any) -> Learner:
    learner = make(**common)
    play(learner, *data(3, 30))
    return learner
