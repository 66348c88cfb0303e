"""PlainRule: the base of rules in plain Python. Slower than a compiled one, and as exact.

Compiled code calls `choose` with the interpreter, once for each decision (docs/extend.md, with what that
costs, and how to compile a rule).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import log
from typing import ClassVar, NamedTuple

import numpy as np

from superarm._types import Array
from superarm.errors import InvalidInput
from superarm.explore.rule import Rule
from superarm.native.plain_rule import PlainRuleKernel
from superarm.native.randomness import uniform_number
from superarm.native.rule import RuleKernel


class DrawContext(NamedTuple):
    """The input of `PlainRule.choose`.

    Attributes:
        scores: a score for each label that may be shown.
        set_size: how many to show; with `sizes_vary`, the most.
        seed, round: what the randomness is a function of.
        draw_state: numbers that deciding moves (`PlainRule.on_decided`); not to be changed here.
        memory: numbers that answers move (`PlainRule.on_feedback`); not to be changed here.
    """

    scores: Array
    set_size: int
    seed: int
    round: int
    draw_state: Array
    memory: Array

    def uniform(self, draw: int) -> float:
        """Return number ``draw`` of this round's uniforms in [0, 1): the same in every call."""
        return uniform_number(self.seed, self.round, draw)


class Choice(NamedTuple):
    """The result of `PlainRule.choose`.

    Attributes:
        shown: positions in ``context.scores``, in the order of the draw.
        probability: that exactly these are shown, in whatever order.
        draw_log: numbers that `on_decided`, `on_feedback`, `record` and `distribution_from` need.
    """

    shown: Sequence[int] | Array
    probability: float
    draw_log: Sequence[float] | Array = ()


class PlainRule(Rule):
    """A rule in plain Python. You define `choose` and `distribution_from`, and the others if you need them."""

    n_draw_state: ClassVar[int] = 0  # numbers that deciding moves
    n_memory: ClassVar[int] = 0  # numbers that answers move

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = cls.__name__

    # ------------------------------------------------------------ what you define

    @abstractmethod
    def choose(self, context: DrawContext) -> Choice:
        """Choose a set. It must be a pure function of ``context``: it moves nothing."""

    def log_size(self, n: int, m: int) -> int:
        """Return the most numbers that `choose` may write to its draw log, where m of n labels are asked for."""
        return 0

    def on_decided(self, draw_state: Array, draw_log: Array) -> None:
        """Move ``draw_state`` after a decision, by what `choose` wrote down, ``draw_log``."""

    def on_feedback(self, draw_state: Array, memory: Array, draw_log: Array, hit: bool) -> None:
        """Move ``draw_state`` and ``memory`` after an answer, ``hit``, was learnt from.

        ``draw_log`` is what `choose` wrote down; it is empty for a set that another system chose.
        """

    # ------------------------------------------------------------ for compiled code

    def make_kernel(self, k: int, seed: int) -> RuleKernel:
        return PlainRuleKernel(k, seed, self)

    @property
    def uses_feedback(self) -> bool:
        """Whether answers move it."""
        return type(self).on_feedback is not PlainRule.on_feedback

    def choose_checked(
        self, scores: Array, m: int, seed: int, round_: int, draw_state: Array, memory: Array
    ) -> tuple[list[int], list[int], float, Array]:
        """Call `choose` and check its result.

        ``scores``, ``m`` (how many to show), ``seed``, ``round_``, ``draw_state`` and ``memory`` are its `DrawContext`.

        Returns:
            The shown positions, the top ones, the logarithm of the probability, and the draw log.
        """
        owner, n = f"{type(self).__name__}.choose", len(scores)
        top = np.argsort(-scores, kind="stable")[:m].tolist()
        shown, probability, written = self.choose(DrawContext(scores, m, seed, round_, draw_state, memory))
        chosen = [int(i) for i in shown]
        if not 1 <= len(chosen) <= m or len({*chosen} & {*range(n)}) != len(chosen):
            raise InvalidInput.must(
                "shown", owner, f"at most {m} distinct positions of {n}, at least one", chosen
            )
        if not 0.0 < probability <= 1.0 + 1e-9:
            raise InvalidInput.must("probability", owner, "in (0, 1]", probability)
        draw_log = np.asarray(written, np.float64)
        if draw_log.ndim != 1:
            raise InvalidInput.must("draw_log", owner, "a list of numbers", written)
        return chosen, top, log(probability), draw_log
