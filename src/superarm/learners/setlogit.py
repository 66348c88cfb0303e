"""SetLogit: the likelihood of one bit, online, with nothing to tune. (docs/research.md: how it was found)

The model: p = softmax(W x~), Pr(f = 1) = sum_{r in S} p_r, x~ the row on one scale (kernels/scaling.py).

**The update.** W += step (post - p) x~ with a constant step (dense rows: parts too small to matter are
left out; sparse rows: at the pace of each label and feature, kernels/pace.py); predictions use the
running average A (kernels/averaging.py). A constant step escapes local optima, the average removes its
noise. With the scores s of W and s' of A,

    p     softmax at  0.5 s + 0.5 s'        where the gradient is taken
    post  softmax at  0.4 s + 0.6 s' (sparse: as p), times the likelihood of the bit, renormalised
    f = 1: 1 - e1 inside S, e0 outside;  f = 0: e1 inside S, 1 - e0 outside;  told: post = e_y

On a miss, the labels that were not shown give 2 % (sparse: 20 %) of their part of post to each other
in proportion to 1 / (credit + 0.01/k), credit being the running average of post: a label without
credit is revived.

**The sets** leave out a runner-up, within a budget: explore/runner_up.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from superarm.explore.base import Rule, rule_from
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
    reach,
    safe_to_add,
    softmax,
    standardise,
)
from superarm.kernels.averaging import Averaged, average_scores, averaging_rate, last_scores
from superarm.kernels.curves import Curves, CurvesScratch, add_curves, add_last_curves, expect, mix
from superarm.kernels.pace import Pace, paced_step
from superarm.labels import Label, plain
from superarm.learners.base import Learner
from superarm.learners.common import probabilities
from superarm.parameters import number, share, whole

MIX_DENSE, MIX_SPARSE = 0.6, 0.5  # the average's share in post
REVIVE_DENSE, REVIVE_SPARSE = 0.02, 0.2
CREDIT = 3.0  # the window of its running average
STEP_CURVED, STEP_DENSE, STEP_SPARSE = 3.0, 4.0, 0.67  # sparse: times sqrt(k)
CURVES, CURVES_TRAINED = 1024, 4096  # curved features: of a learner, where several passes pay for more
MOST_CURVED = 32_768  # labels that may have them: 256 MiB
BIAS_DENSE, BIAS_SPARSE = 0.1**0.5, 0.02**0.5

Array = np.ndarray[Any, Any]


class Noise(NamedTuple):
    """How often an answer is wrong."""

    false_yes: float
    false_no: float


class Revival(NamedTuple):
    """Labels without credit are revived, on a miss."""

    share: float  # of post that the labels give to each other
    none: int  # the label that is never shown takes no part; -1 if there is none


class State(NamedTuple):
    scaling: Standard
    rule: Any
    weights: Averaged
    curves: Curves
    noise: Noise
    pace: Pace
    step: float
    share: float  # of the average, in post
    revival: Revival
    credit: Array  # the running average of post


class Scratch(NamedTuple):
    scaling: StandardScratch
    rule: Any
    curves: CurvesScratch
    labels: Array  # 0..k-1
    last: Array  # the scores of W
    mixed: Array
    post: Array
    c: Array


@kernel
def score(state: Any, scratch: Any, features: Features, s: Any) -> None:
    average_scores(state.weights, features, s, scratch.last)
    add_curves(state.curves, scratch.curves, features, s)


@kernel
def ask(state: Any, rows: Any, i: int) -> None:
    reach(state.scaling.df, rows, i)
    reach(state.weights.W, rows, i)
    reach(state.weights.A, rows, i)
    reach(state.pace.G, rows, i)


@kernel
def posterior(
    p: Any, noise: Noise, revival: Revival, credit: Any, drawn: Any, hit: bool, waiting: Any
) -> None:
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
    revived = 0.0 if hit else revival.share
    given, spread, floor = 0.0, 0.0, 0.01 / k
    for r in range(k):
        if np.signbit(p[r]):
            p[r] = -p[r]
        else:
            p[r] *= outside / total
            if revived > 0.0 and r != revival.none:
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
    add_last_curves(state.curves, scratch.curves, round.x, scratch.last)
    if answer.label >= 0:
        for r in range(k):
            post[r] = 0.0
        post[answer.label] = 1.0
    else:
        mix(round.s, scratch.last, state.share, mixed)
        softmax(mixed, scratch.labels, 1.0, post)
        posterior(post, state.noise, state.revival, state.credit, round.drawn, answer.hit, c)
    expect(round.x, state, scratch, round, answer)
    rate = averaging_rate(state.weights.omega[1], state.weights.forget, CREDIT)
    for r in range(k):
        state.credit[r] += rate * (post[r] - state.credit[r])
        c[r] = state.step * (post[r] - c[r])
    paced_step(state.pace, state.weights, rate, c, round.x)
    absorb(state.scaling, round.row)
    return True


class LikelihoodLearner(Learner):
    """What SetLogit and its twin with labels share: the state of the update."""

    recipe = 2
    moves_ineligible = True  # its softmax runs over all labels: the right one need not be eligible
    layout_matters = True
    step: float | None
    curves: int | None
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
        step: float | None = None,
        curves: int | None = None,
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
        self.curves = None if curves is None else whole("curves", self.of, curves, 0)
        if self.curves is not None and self.curves % 2:
            raise self.invalid("curves", "an even number (as many cosines as sines), or None", curves)
        if intercept is not True and not intercept < 1.0:
            wanted = "True, False or a number in [0, 1): its square is the share of the constant feature"
            raise self.invalid("intercept", wanted, intercept)

    @property
    def n_curved(self) -> int:
        """How many curved features there are beside those of the row; 0 for sparse rows."""
        if self.sparse:
            return 0
        if self.curves is not None:
            return self.curves
        labels = self.growth[0][1] if self.growth else self.n_labels  # labels added later change nothing
        return CURVES if labels <= MOST_CURVED else 0

    @property
    def _step(self) -> float:
        sparse = STEP_SPARSE * self.n_labels**0.5
        return self.step or (sparse if self.sparse else STEP_CURVED if self.n_curved else STEP_DENSE)

    def start(self, shape: tuple[int, int]) -> State:
        sparse, d, curved = bool(self.sparse), self.n_features, self.n_curved
        if not (sparse or curved) and self.curves is None:
            warnings.warn(
                f"{self.of} stays linear: {CURVES} curved features for each of {self.n_labels} labels take "
                f"{self.n_labels * CURVES * 8 / 2**30:.1f} GiB; curves={CURVES} takes them all the same",
                stacklevel=2,
            )
        bias = float(self.intercept)
        if self.intercept is True:
            bias = BIAS_SPARSE if sparse else BIAS_DENSE
        return State(
            scaling=Standard.start(d, sparse=sparse, bias=bias, forget=self.forget),
            rule=self.rule.start(),
            weights=Averaged.start(shape, self.forget, sparse=sparse),
            curves=Curves.start(self.n_labels, d, curved, seed=self.seed, bias=bias, forget=self.forget),
            pace=Pace.start(d, self.n_labels, sparse=sparse, step=self._step),
            noise=Noise(self.false_yes, self.false_no),
            step=self._step,
            share=MIX_SPARSE if sparse else MIX_DENSE,
            revival=Revival(
                REVIVE_SPARSE if sparse else REVIVE_DENSE, -1 if self.none is None else self.none
            ),
            credit=np.full(self.n_labels, 1.0 / self.n_labels),
        )

    def scratch(self) -> Scratch:
        k = self.n_labels
        last, mixed = np.zeros((2, k), np.float32)
        return Scratch(
            scaling=StandardScratch.of(self.n_features),
            rule=self.rule.scratch(k),
            curves=CurvesScratch.of(k, self.n_features, self.n_curved),
            labels=np.arange(k),
            last=last.copy(),
            mixed=mixed.copy(),
            post=np.zeros(k),
            c=np.zeros(k),
        )

    def grown(self, before: int) -> None:
        self.state.credit[before:] = 0.0  # new labels are tried first

    def anneal(self, left: float, passes: int) -> None:
        """Several passes pay for more curves, and for a step that shrinks to nothing."""
        if passes > 1 and self.state is None and self.curves is None and self.n_labels <= MOST_CURVED // 4:
            self.curves = CURVES_TRAINED
        elif passes > 1 and self.state is not None and not self.sparse:  # their steps shrink anyway
            self.state = self.state._replace(step=self._step * left)

    def predict_proba(self, X: Any) -> Array:
        """The probability of every label for every row of X: a column for each, none_label's among them."""
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
        none_label: a label that is never shown and never predicted, but may be the truth: most people
            click nothing, or none of the labels fits. One of ``labels``, or its number.
        uniform: the share of sets drawn uniformly, so that logs can answer any later question.
        step: the step size, of the curved part too; ``None`` chooses it: 3 with curves, 4 without,
            0.67 sqrt(k) for sparse rows.
        curves: how many curved features stand beside those of a dense row, an even number; 0 is the
            linear model, ``None`` is 1024 (8 KiB a label; several passes of `train`: up to 4096; above
            32,768 labels: none). Sparse rows stay linear.

    >>> import superarm as sa
    >>> learner = sa.SetLogit(labels=["ant", "bee", "cat", "dog"], n_features=2, set_size=2)
    >>> decision = learner.decide([1.0, 0.0])
    >>> decision.labels, round(decision.propensity, 2)
    (['dog', 'ant'], 0.17)
    >>> learner.update(decision, hit=False)
    """

    name = "set-logit"
    kernels = Kernels(learn, score=score, scale=standardise, ask=ask)
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
        none_label: Label | None = None,
        uniform: float = 0.0,
        step: float | None = None,
        curves: int | None = None,
    ) -> None:
        super().__init__(
            n_labels=n_labels,
            labels=labels,
            n_features=n_features,
            set_size=set_size,
            seed=seed,
            intercept=intercept,
            step=step,
            curves=curves,
        )
        self.explore = rule_from(explore, self.of) if isinstance(explore, dict) else explore
        self.forget = share("forget", self.of, forget, 0.5)
        self.false_no = share("false_no", self.of, false_no, 0.99)
        self.false_yes = share("false_yes", self.of, false_yes, 0.99)
        if self.false_no + self.false_yes >= 1.0:
            raise self.invalid("false_no", "below 1 - false_yes: else a yes means no", false_no)
        self.none_label = plain(none_label)
        if none_label is not None:
            self.none = self.known.number(none_label)
            if self.none is None:
                raise self.invalid("none_label", "one of the labels", none_label)
            self._forget_compiled()
        self.uniform = share("uniform", self.of, uniform)
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
