"""SetLogit: the likelihood of one bit, online, with nothing to tune. (docs/research.md: how it was found)

The model: p = softmax(W x~), Pr(f = 1) = sum_{r in S} p_r, x~ the row on one scale (scaling.py).

**The update.** W += step (post - p) x~ with a constant step; predictions use the running average A
(averaging.py). A constant step escapes local optima, the average removes its noise. With the scores
s of W and s' of A,

    p     softmax at  0.5 s + 0.5 s'        where the gradient is taken
    post  softmax at  0.4 s + 0.6 s' (sparse: as p), times the likelihood of the bit, renormalised
    f = 1: 1 - e1 inside S, e0 outside;  f = 0: e1 inside S, 1 - e0 outside;  told: post = e_y

On a miss, the labels that were not shown give 2 % of their part of post to each other in proportion
to 1 / (credit + 0.01/k), credit being the running average of post: a label without credit is revived.

**The sets** leave out a runner-up, within a budget: runner_up.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.averaging import averaged_scores, averaged_step, averaging_rate, last_scores
from superarm.learners.base import LabelLearner, Learner, probabilities
from superarm.learners.loop import compile_loop
from superarm.learners.runner_up import choose
from superarm.numerics import kernel, safe_to_add, softmax, weights
from superarm.scaling import absorb, prepare, prepared

WORDS = {"show": 0.0, "balanced": 0.5, "rank": 1.0}
MIX_GRADIENT, MIX_DENSE, MIX_SPARSE = 0.5, 0.6, 0.5  # the average's share; of post: dense, sparse
REVIVE = 0.02
STEP_DENSE, STEP_SPARSE = 4.0, 12.0
BIAS_DENSE, BIAS_SPARSE = 0.1**0.5, 0.02**0.5


class State(NamedTuple):
    W: np.ndarray[Any, Any]
    A: np.ndarray[Any, Any]
    omega: np.ndarray[Any, Any]
    bias: float
    step: float
    share: float  # of the average, in post
    forget: float
    false_yes: float
    false_no: float
    explore: float
    uniform: float
    credit: np.ndarray[Any, Any]
    clock: np.ndarray[Any, Any]  # rounds, and what exploring without a budget would have cost
    # scaling.py
    mean: np.ndarray[Any, Any]
    var: np.ndarray[Any, Any]
    inverse: np.ndarray[Any, Any]
    df: np.ndarray[Any, Any]
    seen: np.ndarray[Any, Any]
    z: np.ndarray[Any, Any]  # scratch
    # scratch
    labels: np.ndarray[Any, Any]
    mixed: np.ndarray[Any, Any]
    p: np.ndarray[Any, Any]
    c: np.ndarray[Any, Any]
    order: np.ndarray[Any, Any]
    sums: np.ndarray[Any, Any]


@kernel
def score(state: Any, x: Any, s: Any) -> None:
    averaged_scores(state.W, state.A, state.omega, prepare(state, x), state.bias, s[0], s[1])


@kernel
def mix(s: Any, share: float, out: Any) -> None:
    a, b = np.float32(share), np.float32(1.0 - share)
    for r in range(s.shape[1]):
        out[r] = a * s[0, r] + b * s[1, r]


@kernel
def posterior(state: Any, drawn: Any, hit: bool) -> None:
    """Turn p, in place, into post: the chance of each label given the bit."""
    p, k = state.p, state.p.shape[0]
    inside = 1.0 - state.false_no if hit else state.false_no
    outside = state.false_yes if hit else 1.0 - state.false_yes
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
                # until the total is known, what r receives waits in c
                state.c[r] = 1.0 / (state.credit[r] + floor)
                spread += state.c[r]
                continue
        state.c[r] = 0.0
    if given > 0.0:
        for r in range(k):
            p[r] += given * state.c[r] / spread


@kernel
def learn(
    state: Any,
    design: Any,
    x: Any,
    s: Any,
    eligible: Any,
    drawn: Any,
    top: Any,
    odds: Any,
    hit: bool,
    label: int,
) -> bool:
    p, c, k = state.p, state.c, state.c.shape[0]
    if not safe_to_add(c, 0, x):
        return False
    last_scores(state.W, prepared(state, x), state.bias, s[1])
    if label >= 0:
        for r in range(k):
            p[r] = 0.0
        p[label] = 1.0
    else:
        mix(s, state.share, state.mixed)
        softmax(state.mixed, state.labels, 1.0, p)
        posterior(state, drawn, hit)
    mix(s, MIX_GRADIENT, state.mixed)
    softmax(state.mixed, state.labels, 1.0, c)
    rate = averaging_rate(state.omega[1], state.forget)
    for r in range(k):
        state.credit[r] += rate * (p[r] - state.credit[r])
        c[r] = state.step * (p[r] - c[r])
    averaged_step(state.W, state.A, state.omega, c, prepared(state, x), state.bias, state.forget)
    absorb(state, x)
    return True


def start(learner: Any, shape: tuple[int, int], **settings: float) -> State:
    """The state of a learner with this update."""
    k, d, sparse = learner.n_labels, learner.n_features, learner.sparse
    bias = (BIAS_SPARSE if sparse else BIAS_DENSE) if learner.intercept is True else float(learner.intercept)
    dense_size = 1 if sparse else d
    return State(
        W=weights(shape),
        A=weights(shape),
        omega=np.array([1.0, 0.0]),
        bias=bias,
        share=MIX_SPARSE if sparse else MIX_DENSE,
        step=learner.step or (STEP_SPARSE if sparse else STEP_DENSE),
        forget=settings.get("forget", 0.0),
        false_yes=settings.get("false_yes", 0.0),
        false_no=settings.get("false_no", 0.0),
        explore=settings.get("explore", 0.0),
        uniform=settings.get("uniform", 0.0),
        credit=np.full(k, 1.0 / k),
        clock=np.zeros(2),
        mean=np.zeros(dense_size, np.float32),
        var=np.zeros(dense_size, np.float32),
        inverse=np.zeros(dense_size, np.float32),
        df=np.zeros(d if sparse else 1, np.float32),
        seen=np.zeros(3),
        z=np.zeros(d, np.float32),
        labels=np.arange(k),
        mixed=np.zeros(k, np.float32),
        p=np.zeros(k),
        c=np.zeros(k),
        order=np.zeros(k, np.int64),
        sums=np.zeros(k + 1),
    )


class SetLogit(Learner):
    """Maximum likelihood from bits about sets: the learner to start with. Nothing needs tuning.

    Args:
        explore: what the sets are for: ``"show"`` the right label as often as possible, learn to
            ``"rank"`` all labels, ``"balanced"`` between them; or a number from 0 (show) to 1 (rank).
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
    loop = compile_loop(name, learn, score=score, choose=choose)
    feedback = ("hit", "label")
    learns_from_given = True
    moves_ineligible = True  # its softmax runs over all labels: the right one need not be eligible
    layout_matters = True
    n_scores = 2

    def __init__(
        self,
        *,
        explore: str | float = "balanced",
        forget: float = 0.0,
        false_no: float = 0.0,
        false_yes: float = 0.0,
        uniform: float = 0.0,
        step: float | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.explore = explore
        if isinstance(explore, str) and explore not in WORDS:
            raise self._invalid("explore", "'show', 'balanced', 'rank' or a number in [0, 1]", explore)
        number = WORDS[explore] if isinstance(explore, str) else explore
        self._explore = self._share("explore", number, 1.0)
        self.forget = self._share("forget", forget, 0.5)
        self.false_no = self._share("false_no", false_no, 0.99)
        self.false_yes = self._share("false_yes", false_yes, 0.99)
        if self.false_no + self.false_yes >= 1.0:
            raise self._invalid("false_no", "below 1 - false_yes: else a yes means no", false_no)
        self.uniform = self._share("uniform", uniform, 1.0)
        self.step = None if step is None else self._number("step", step, 0.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return start(
            self,
            shape,
            explore=self._explore,
            forget=self.forget,
            false_yes=self.false_yes,
            false_no=self.false_no,
            uniform=self.uniform,
        )

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """The probability of every label for every row of X."""
        return probabilities(self.scores(X))


class AveragedSoftmax(LabelLearner):
    """SetLogit's update with every label told: the ceiling for learners of bits.

    Args:
        step: the step size; ``None`` is 4 for dense rows and 12 for sparse ones.
    """

    name = "softmax-averaged"
    loop = compile_loop(name, learn, score=score, sees_label=True)
    moves_ineligible = True
    layout_matters = True
    n_scores = 2

    def __init__(self, *, step: float | None = None, **common: Any) -> None:
        super().__init__(**common)
        self.step = None if step is None else self._number("step", step, 0.0)

    def _start(self, shape: tuple[int, int]) -> State:
        return start(self, shape)

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """The probability of every label for every row of X."""
        return probabilities(self.scores(X))
