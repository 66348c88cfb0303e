"""Helpers of the checks: small data, answers, states as bytes, refusals."""

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

LearnerFactory = Callable[..., Learner]

K, D, ROUNDS = 5, 7, 120
NAMES = ["ant", "bee", "cat", "dog", "eel"]
LAYOUTS = {"dense": Layout(D, 0), "sparse": Layout(0, D), "mixed": Layout(3, D - 3)}


CHECKS: dict[str, Callable[[LearnerFactory], None]] = {}


def check(function: Callable[[LearnerFactory], None]) -> Callable[[LearnerFactory], None]:
    """Add a function to `CHECKS`, under its name."""
    CHECKS[function.__name__] = function
    return function


def expect(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def make_data(seed: int = 7, rounds: int = ROUNDS) -> tuple[Any, Any]:
    """Return rows, half of whose entries are 0, and labels that depend on them."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rounds, D)) * (random.random((rounds, D)) < 0.5)
    X[:, 0] += 0.25
    y = (X @ random.normal(size=(D, K))).argmax(axis=1)
    return X.astype(np.float32), y


def answer(learner: Learner, decision: Decision, y: int) -> None:
    """Update a learner with the answer that follows from the right label y."""
    label = int(y) if learner.labels is None else learner.labels[y]
    if "hit" in learner.feedback:
        learner.update(decision, hit=label in decision.drawn)
    else:
        learner.update(decision, label=label)


def has_size(learner: Learner, labels: Any, size: int) -> bool:
    """Return whether a set has this size, or at most this size where the rule's sizes vary."""
    return 0 < len(labels) <= size if learner.rule.sizes_vary else len(labels) == size


def row_as(x: Any, kind: str) -> Any:
    """Return a row in one of the `LAYOUTS`."""
    d, width, _ = LAYOUTS[kind]
    if not width:
        return x
    stored = np.flatnonzero(x[d:])
    return Row(x[:d] if d else None, (stored, x[d:][stored]), width)


def rows_as(X: Any, kind: str) -> Rows:
    return stack([row_as(x, kind) for x in X], LAYOUTS[kind])


def make_for_layout(make: LearnerFactory, kind: str, **common: Any) -> Learner:
    """Return a learner for rows of this layout."""
    return make(n_features=LAYOUTS[kind].n_features, **common)


def run_rounds(learner: Learner, X: Any, y: Any, kind: str = "dense") -> list[list[Any]]:
    """Decide and update round by round; return the drawn sets."""
    drawn = []
    for x, label in zip(X, y, strict=True):
        decision = learner.decide(row_as(x, kind))
        drawn.append(decision.drawn)
        answer(learner, decision, label)
    return drawn


def state_bytes(learner: Learner) -> dict[str, bytes]:
    """Return the arrays of the learner's state, as bytes."""
    return {name: array.tobytes() for name, array in learner.ensure_core().state().items()}


def fingerprint(learner: Learner) -> tuple[Any, ...]:
    """Return what was learnt, and the counters: a refused call must leave all of it unchanged."""
    learnt = {name: array for name, array in state_bytes(learner).items() if not name.startswith("rule.")}
    return learnt, learner.round, learner.answered.start, bytes(learner.answered.bits)


@contextmanager
def expect_refusal(error: type[Exception], what: str) -> Iterator[None]:
    """Expect an error, with a message as `superarm.errors.must` forms them."""
    try:
        yield
    except error as raised:
        clear = " of " in str(raised) and (" must " in str(raised) or " was " in str(raised))
        expect(clear, f"{what}: unclear message {raised}")
    except Exception as other:
        raise AssertionError(f"{what} raised {other!r}, not {error.__name__}") from other
    else:
        raise AssertionError(f"{what} was not refused with {error.__name__}")


def saved_and_loaded(learner: Learner) -> Learner:
    """Return the learner after saving and loading it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        learner.save(path)
        return load(path)


def make_trained(make: LearnerFactory, **common: Any) -> Learner:
    learner = make(**common)
    run_rounds(learner, *make_data(3, 30))
    return learner
