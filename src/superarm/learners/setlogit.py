"""SetLogit: the likelihood of one bit, online, with nothing to tune. (docs/research.md: how it was found)

The model: p = softmax(W x~), Pr(f = 1) = sum_{r in S} p_r, x~ the row on one scale (kernels/scaling.py).

**The update.** W += step (post - p) x~ with a constant step; predictions use the running average A
(kernels/averaging.py). A constant step escapes local optima, the average removes its noise. With the scores
s of W and s' of A,

    p     softmax at  0.5 s + 0.5 s'        where the gradient is taken
    post  softmax at  0.4 s + 0.6 s' (sparse: as p), times the likelihood of the bit, renormalised
    f = 1: 1 - e1 inside S, e0 outside;  f = 0: e1 inside S, 1 - e0 outside;  told: post = e_y

On a miss, the labels that were not shown give 2 % of their part of post to each other in proportion
to 1 / (credit + 0.01/k), credit being the running average of post: a label without credit is revived.

**The sets** leave out a runner-up, within a budget: explore/runner_up.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.explore.base import Rule, rule_from
from superarm.explore.greedy import Greedy
from superarm.explore.runner_up import RunnerUp, strength
from superarm.kernels import (
    Answer,
    Features,
    Kernels,
    Round,
    Standard,
    StandardScratch,
    absorb,
    kernel,
    safe_to_add,
    softmax,
    standardise,
)
from superarm.kernels.averaging import Averaged, average_scores, averaging_rate, last_scores, step
from superarm.labels import Label
from superarm.learners.base import LabelLearner, Learner
from superarm.learners.common import probabilities
from superarm.parameters import number, share

MIX_GRADIENT, MIX_DENSE, MIX_SPARSE = 0.5, 0.6, 0.5  # the average's share; of post: dense, sparse
REVIVE = 0.02
STEP_DENSE, STEP_SPARSE = 4.0, 12.0
BIAS_DENSE, BIAS_SPARSE = 0.1**0.5, 0.02**0.5

Array = np.ndarray[Any, Any]


class Noise(NamedTuple):
    """How often an answer is wrong."""

    false_yes: float
    false_no: float


class State(NamedTuple):
    scaling: Standard
    rule: Any
    weights: Averaged
    noise: Noise
    step: float
    share: float  # of the average, in post
    credit: Array  # the running average of post


class Scratch(NamedTuple):
    scaling: StandardScratch
    rule: Any
    labels: Array  # 0..k-1
    last: Array  # the scores of W
    mixed: Array
    post: Array
    c: Array


@kernel
def score(state: Any, scratch: Any, features: Features, s: Any) -> None:
    average_scores(state.weights, features, s, scratch.last)


@kernel
def mix(average: Any, last: Any, share: float, out: Any) -> None:
    a, b = np.float32(share), np.float32(1.0 - share)
    for r in range(out.shape[0]):
        out[r] = a * average[r] + b * last[r]


@kernel
def posterior(p: Any, noise: Noise, credit: Any, drawn: Any, hit: bool, waiting: Any) -> None:
    """Turn p, in place, into post: the chance of each label given the bit."""
    k = p.shape[0]
    inside = 1.0 - noise.false_no if hit else noise.false_no
    outside = noise.false_yes if hit else 1.0 - noise.false_yes
    shown = 0.0
    for i in range(drawn.shape[0]):
        shown += p[drawn[i]]
    total = shown * inside + max(1.0 - shown, 0.0) * outside
    if total < 1e-20:  # the bit had probability 0: nothing can be learnt from it
        return
    for i in range(drawn.shape[0]):
        p[drawn[i]] *= -inside / total  # marked by a minus
    revived = 0.0 if hit else REVIVE
    given, spread, floor = 0.0, 0.0, 0.01 / k
    for r in range(k):
        if np.signbit(p[r]):
            p[r] = -p[r]
        else:
            p[r] *= outside / total
            if revived > 0.0:
                given += revived * p[r]
                p[r] *= 1.0 - revived
                # until the total is known, what r receives waits
                waiting[r] = 1.0 / (credit[r] + floor)
                spread += waiting[r]
                continue
        waiting[r] = 0.0
    if given > 0.0:
        for r in range(k):
            p[r] += given * waiting[r] / spread


@kernel
def learn(state: Any, scratch: Any, round: Round, answer: Answer) -> bool:
    post, c, mixed, k = scratch.post, scratch.c, scratch.mixed, scratch.c.shape[0]
    if not safe_to_add(c, 0, round.x):
        return False
    last_scores(state.weights, round.x, scratch.last)
    if answer.label >= 0:
        for r in range(k):
            post[r] = 0.0
        post[answer.label] = 1.0
    else:
        mix(round.s, scratch.last, state.share, mixed)
        softmax(mixed, scratch.labels, 1.0, post)
        posterior(post, state.noise, state.credit, round.drawn, answer.hit, c)
    mix(round.s, scratch.last, MIX_GRADIENT, mixed)
    softmax(mixed, scratch.labels, 1.0, c)
    rate = averaging_rate(state.weights.omega[1], state.weights.forget)
    for r in range(k):
        state.credit[r] += rate * (post[r] - state.credit[r])
        c[r] = state.step * (post[r] - c[r])
    step(state.weights, c, round.x)
    absorb(state.scaling, round.row)
    return True


class LikelihoodLearner(Learner):
    """What SetLogit and its twin with labels share: the state of the update."""

    moves_ineligible = True  # its softmax runs over all labels: the right one need not be eligible
    layout_matters = True
    step: float | None
    forget: float = 0.0
    false_no: float = 0.0
    false_yes: float = 0.0

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | None = None,
        set_size: int = 1,
        seed: int = 0,
        intercept: bool | float = True,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
        )
        if intercept is not True and not intercept < 1.0:
            wanted = "True, False or a number in [0, 1): its square is the share of the constant feature"
            raise self.invalid("intercept", wanted, intercept)

    def start(self, shape: tuple[int, int]) -> State:
        sparse, d = bool(self.sparse), self.n_features
        bias = float(self.intercept)
        if self.intercept is True:
            bias = BIAS_SPARSE if sparse else BIAS_DENSE
        return State(
            scaling=Standard.start(d, sparse=sparse, bias=bias, forget=self.forget),
            rule=self.rule.start(),
            weights=Averaged.start(shape, self.forget),
            noise=Noise(self.false_yes, self.false_no),
            step=self.step or (STEP_SPARSE if sparse else STEP_DENSE),
            share=MIX_SPARSE if sparse else MIX_DENSE,
            credit=np.full(self.n_labels, 1.0 / self.n_labels),
        )

    def scratch(self) -> Scratch:
        k = self.n_labels
        last, mixed = np.zeros((2, k), np.float32)
        return Scratch(
            scaling=StandardScratch.of(self.n_features),
            rule=self.rule.scratch(k),
            labels=np.arange(k),
            last=last.copy(),
            mixed=mixed.copy(),
            post=np.zeros(k),
            c=np.zeros(k),
        )

    def grown(self, before: int) -> None:
        self.state.credit[before:] = 0.0  # new labels are tried first

    def predict_proba(self, X: Any) -> Array:
        """The probability of every label for every row of X."""
        return probabilities(self.scores(X))


class SetLogit(LikelihoodLearner):
    """Maximum likelihood from bits about sets: the learner to start with. Nothing needs tuning.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: every draw is a pure function of (seed, round, position).
        intercept: the share of the constant feature, as a number in [0, 1); True chooses it.
        explore: what the sets are for: ``"show"`` the right label as often as possible, learn to
            ``"rank"`` all labels, ``"balanced"`` between them; a number from 0 (show) to 1 (rank); or
            any rule of `superarm.explore`.
        forget: the least weight of a new round, for streams that drift (0.001 remembers about 1000
            rounds); 0 never forgets.
        false_no: the chance of a "no" although the right label was shown (nobody looked).
        false_yes: the chance of a "yes" although it was not.
        uniform: the share of sets drawn uniformly, so that logs can answer any later question.
        step: the step size; ``None`` is 4 for dense rows and 12 for sparse ones.

    >>> import superarm as sa
    >>> learner = sa.SetLogit(labels=["ant", "bee", "cat", "dog"], n_features=2, set_size=2)
    >>> decision = learner.decide([1.0, 0.0])
    >>> decision.labels, round(decision.propensity, 2)
    (['ant', 'cat'], 0.67)
    >>> learner.update(decision, hit=False)
    """

    name = "set-logit"
    kernels = Kernels(learn, score=score, scale=standardise)
    feedback = ("hit", "label")
    learns_from_given = True

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | None = None,
        set_size: int = 1,
        seed: int = 0,
        intercept: bool | float = True,
        explore: str | float | Rule | dict[str, Any] = "balanced",
        forget: float = 0.0,
        false_no: float = 0.0,
        false_yes: float = 0.0,
        uniform: float = 0.0,
        step: float | None = None,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
        )
        self.explore = rule_from(explore, self.of) if isinstance(explore, dict) else explore
        self.forget = share("forget", self.of, forget, 0.5)
        self.false_no = share("false_no", self.of, false_no, 0.99)
        self.false_yes = share("false_yes", self.of, false_yes, 0.99)
        if self.false_no + self.false_yes >= 1.0:
            raise self.invalid("false_no", "below 1 - false_yes: else a yes means no", false_no)
        self.uniform = share("uniform", self.of, uniform)
        self.step = None if step is None else number("step", self.of, step, 0.0)
        if isinstance(self.explore, Rule):
            if uniform:
                raise self.invalid("uniform", "left to the rule that explore names", uniform)
            if self.explore.single_label and self.set_size > 1:
                raise self.invalid("explore", "a rule for sets of more than one label", explore)
        else:
            strength(explore, self.of)

    @property
    def rule(self) -> Rule:
        if isinstance(self.explore, Rule):
            return self.explore
        return RunnerUp(explore=self.explore, uniform=self.uniform, forget=self.forget)


class AveragedSoftmax(LikelihoodLearner, LabelLearner):
    """SetLogit's update with every label told: the ceiling for learners of bits.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels.
        n_features: the length d of a row; left out, the first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k.
        seed: it draws nothing.
        intercept: the share of the constant feature, as a number in [0, 1); True chooses it.
        step: the step size; ``None`` is 4 for dense rows and 12 for sparse ones.
    """

    name = "softmax-averaged"
    kernels = Kernels(learn, score=score, scale=standardise, sees_label=True)

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | None = None,
        set_size: int = 1,
        seed: int = 0,
        intercept: bool | float = True,
        step: float | None = None,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
        )
        self.step = None if step is None else number("step", self.of, step, 0.0)

    @property
    def rule(self) -> Rule:
        return Greedy()
