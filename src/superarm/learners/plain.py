"""PlainLearner: a learner of your own in plain Python. Slow, and next to the compiled ones in everything.

    class Counting(sa.PlainLearner):
        def begin(self):
            return {"yes": np.ones(self.n_labels), "asked": np.full(self.n_labels, 2.0)}

        def score(self, x):
            return np.log(self.memory["yes"] / self.memory["asked"])

        def learn(self, x, shown, hit):
            self.memory["asked"][shown] += 1
            self.memory["yes"][shown] += hit

Sets, late answers, one answer each, eligible labels, names, batches, model files: all of it is taken care
of. What you keep in ``memory`` must be arrays, or values that JSON knows: it is what a model file holds.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from superarm._types import Array
from superarm.data.rows import Layout
from superarm.decisions import Decision
from superarm.errors import Unquoted, WeightsOverflow
from superarm.learners.families import AnyRuleLearner
from superarm.native.core import Core
from superarm.native.plain_core import PlainCore


class PlainLearner(AnyRuleLearner):
    """The base class of learners in plain Python: define `begin`, `score` and `learn`.

    Args:
        intercept: kept as it is; what it means is up to you.
        scaling: ``None``, rows as they are; ``"standard"``, each column by its own mean and spread, learnt online;
            ``"unit"``, of length 1.

    Parameters of your own are keyword-only, and kept as attributes of the same name.
    """

    scores_are_log_probabilities = True
    default_scaling = "none"
    core: PlainCore | None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = cls.__name__

    # ------------------------------------------------------------ what you define

    def begin(self) -> dict[str, Any]:
        """Return the memory before the first round: arrays, and values that JSON knows, by name."""
        raise TypeError(f"{self.owner} must define begin()")

    def score(self, x: Array) -> Any:
        """Return k numbers by which to rank the labels for a row x: logarithms of probabilities, or alike."""
        raise TypeError(f"{self.owner} must define score(x)")

    def learn(self, x: Array, shown: Array, hit: bool) -> None:
        """Change the memory by an answer, ``hit``, to x: ``shown`` are the indices of the labels that were shown."""
        raise TypeError(f"{self.owner} must define learn(x, shown, hit)")

    @property
    def memory(self) -> dict[str, Any]:
        """What `begin` made and `learn` changes; empty before the first row."""
        return getattr(self, "_memory", {}) if self.core is None else self.core.memory

    @property
    def row_length(self) -> int:
        """How many numbers the rows have that `score` and `learn` get: dense columns, then sparse ones."""
        return sum(self.n_features) if isinstance(self.n_features, tuple) else self.n_features

    # ------------------------------------------------------------ the learner around it

    @property
    def intercepts(self) -> tuple[float, float]:
        return 0.0, 0.0

    def make_core(self, layout: Layout) -> Core:
        memory = self.begin()
        if not isinstance(memory, dict):
            raise TypeError(f"begin() of {self.owner} must return a dict, got {memory!r}")
        if self.core is not None:  # which the new one continues; cores.py copies its arrays, which may grow
            memory |= {name: v for name, v in self.core.memory.items() if not isinstance(v, np.ndarray)}
        self._memory = memory  # of a core that may be provisional (`decide` at a cursor)
        return PlainCore(
            **self.core_args(layout), score=self._checked_scores, learn=self._learn, memory=memory
        )

    def learns_from(self, decision: Decision) -> bool:
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_memory"}

    # ------------------------------------------------------------ what compiled code calls

    def _checked_scores(self, x: Array) -> Array:
        """Return what `score` gives, checked."""
        with np.errstate(over="ignore"):  # found below
            s = np.asarray(self.score(x), np.float32)
        if s.shape != (self.n_labels,):
            raise self.invalid(
                "score(x)", f"{self.n_labels} numbers, one for each label", Unquoted(f"shape {s.shape}")
            )
        if not np.isfinite(s).all():
            raise WeightsOverflow(f"scores of {self.owner} must be finite, got {s} at round {self.round}")
        return s

    def _learn(self, x: Array, shown: Array, hit: bool) -> bool:
        """Call `learn`, and put the memory back if numbers are not finite, or it fails. Return whether it learnt."""
        before = {name: _copied(value) for name, value in self.memory.items()}
        try:
            self.learn(x, shown, hit)
            fine = all(np.isfinite(value).all() for value in self.memory.values() if _is_numeric(value))
        except BaseException:
            self._put_back(before)
            raise
        if not fine:
            self._put_back(before)
        return fine

    def _put_back(self, memory: dict[str, Any]) -> None:
        self.memory.clear()
        self.memory.update(memory)


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else copy.deepcopy(value)


def _is_numeric(value: Any) -> bool:
    return isinstance(value, float | int) or (isinstance(value, np.ndarray) and value.dtype.kind in "fiu")
