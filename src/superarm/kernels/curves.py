"""The curved part of a likelihood learner: weights for waves of the row beside those for the row, a gate.

    score = a1 + g a2        a1 linear, a2 of the curved features phi (kernels/lift.py), both averages
    p1    = softmax at the mix of the linear scores alone
    p2    = softmax at the mix of the sums, linear + curved
    W    += step (post - [(1 - g) p1 + g p2]) x~,     W2 += step (post - p2) phi

The gate g in [0, 1] starts at 1 and climbs the likelihood of the bits, by AdaGrad:

    slope = E[a2 | bit] - E[a2] under softmax(score);   G += slope^2;   g += 0.5 slope / sqrt(1 + G)

so that where the truth is linear and noisy, the curves fade. Without curves, and for sparse rows, only
p1 is left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.kernels.averaging import Averaged, average_scores, last_scores, step
from superarm.kernels.compiling import by_row, kernel
from superarm.kernels.lift import EVERY, Lift, LiftScratch, absorb_waves, learn_relevance, lift, lifted
from superarm.kernels.linear import LINE
from superarm.kernels.loop import Answer, Round
from superarm.kernels.ranking import softmax

__all__ = ["Curves", "CurvesScratch", "add_curves", "add_last_curves", "expect", "gate_slope", "mix"]

MIX_GRADIENT = 0.5  # the average's share where the gradient is taken
GATE_RATE = 0.5

Array = np.ndarray[Any, Any]


class Curves(NamedTuple):
    lift: Lift
    weights: Averaged  # of phi
    gate: Array  # g, and G

    @classmethod
    def start(cls, k: int, d: int, features: int, *, seed: int, bias: float, forget: float) -> Curves:
        shape = (k, features + LINE) if features else (0, 0)
        return cls(
            Lift.start(d, features // 2, seed=seed, bias=bias, forget=forget),
            Averaged.start(shape, forget, sparse=False),
            np.array([1.0, 0.0]),
        )


class CurvesScratch(NamedTuple):
    lift: LiftScratch
    linear: Array  # scores, of the average and the last: of the linear part, of the curved part
    curved: Array
    c: Array
    slopes: Array  # of the loss along phi, and along the row
    straight: Array

    @classmethod
    def of(cls, k: int, d: int, features: int) -> CurvesScratch:
        d, k = (d, k) if features else (0, 0)
        return cls(
            LiftScratch.of(d, features // 2),
            np.zeros((2, k), np.float32),
            np.zeros((2, k), np.float32),
            np.zeros(k),
            np.zeros(features, np.float32),
            np.zeros(d, np.float32),
        )


@kernel
def mix(average: Any, last: Any, share: float, out: Any) -> None:
    a, b = np.float32(share), np.float32(1.0 - share)
    for r in range(out.shape[0]):
        out[r] = a * average[r] + b * last[r]


def _add_curves(curves, scratch, f, s):  # type: ignore[no-untyped-def]
    if curves.lift.waves > 0:
        linear, curved, g = scratch.linear[0], scratch.curved[0], np.float32(curves.gate[0])
        average_scores(curves.weights, lift(curves.lift, scratch.lift, f.x), curved, scratch.curved[1])
        for r in range(s.shape[0]):
            linear[r] = s[r]
            s[r] += g * curved[r]


def _add_last_curves(curves, scratch, f, last):  # type: ignore[no-untyped-def]
    if curves.lift.waves > 0:
        linear, curved, g = scratch.linear[1], scratch.curved[1], np.float32(curves.gate[0])
        last_scores(curves.weights, lifted(scratch.lift), curved)
        for r in range(last.shape[0]):
            linear[r] = last[r]
            last[r] += g * curved[r]


@kernel
def gate_slope(q: Any, a: Any, noise: Any, drawn: Any, answer: Answer) -> float:
    """d log Pr(answer) / dg: the mean of a under q given the answer, minus its mean."""
    every, shown, part = 0.0, 0.0, 0.0
    for r in range(q.shape[0]):
        every += q[r] * a[r]
    if answer.label >= 0:
        return float(a[answer.label] - every)
    for i in range(drawn.shape[0]):
        part += q[drawn[i]]
        shown += q[drawn[i]] * a[drawn[i]]
    inside = 1.0 - noise.false_no if answer.hit else noise.false_no
    outside = noise.false_yes if answer.hit else 1.0 - noise.false_yes
    total = inside * part + outside * max(0.0, 1.0 - part)
    if total < 1e-6:  # what was next to impossible says nothing about the gate
        return 0.0
    return float((inside * shown + outside * (every - shown)) / total - every)


@kernel
def _move_gate(gate: Any, slope: float, forget: float) -> None:
    gate[1] = (1.0 - forget) * gate[1] + slope * slope
    gate[0] = min(1.0, max(0.0, gate[0] + GATE_RATE * slope / np.sqrt(1.0 + gate[1])))


@kernel
def _combine(A: Any, c: Any, out: Any) -> None:
    """out = sum_r c_r A_r."""
    for j in range(out.shape[0]):
        out[j] = np.float32(0.0)
    for r in range(c.shape[0]):
        a, g = A[r], np.float32(c[r])
        for j in range(out.shape[0]):
            out[j] += g * a[j]


def _expect_curved(f, state, scratch, round, answer):  # type: ignore[no-untyped-def]
    curves, own, labels, p = state.curves, scratch.curves, scratch.labels, scratch.c
    if curves.lift.waves == 0:
        _expect_linear(f, state, scratch, round, answer)
        return
    linear, curved, mixed, c, k = own.linear, own.curved, scratch.mixed, own.c, p.shape[0]
    softmax(round.s, labels, 1.0, c)
    _move_gate(curves.gate, gate_slope(c, curved[0], state.noise, round.drawn, answer), curves.lift.forget)
    a, b = np.float32(MIX_GRADIENT), np.float32(1.0 - MIX_GRADIENT)
    for r in range(k):
        mixed[r] = a * (linear[0, r] + curved[0, r]) + b * (linear[1, r] + curved[1, r])
    softmax(mixed, labels, 1.0, c)
    mix(linear[0], linear[1], MIX_GRADIENT, mixed)
    softmax(mixed, labels, 1.0, p)
    g = curves.gate[0]
    for r in range(k):
        p[r] = (1.0 - g) * p[r] + g * c[r]
        c[r] = state.step * (scratch.post[r] - c[r])
    step(curves.weights, c, lifted(own.lift))
    if curves.weights.omega[1] % EVERY == 0.0:
        _combine(curves.weights.A, c, own.slopes)
        _combine(state.weights.A, c, own.straight)
        learn_relevance(curves.lift, own.lift, own.slopes, own.straight)
    absorb_waves(curves.lift, own.lift, f.x)


@kernel
def _expect_linear(f: Any, state: Any, scratch: Any, round: Round, answer: Answer) -> None:
    mix(round.s, scratch.last, MIX_GRADIENT, scratch.mixed)
    softmax(scratch.mixed, scratch.labels, 1.0, scratch.c)


def _nothing(curves, scratch, f, s):  # type: ignore[no-untyped-def]
    pass


# s += g a2, for the average; and for the last weights.
add_curves = by_row(2, _add_curves, _nothing)
add_last_curves = by_row(2, _add_last_curves, _nothing)
# scratch.c = the probabilities that the linear weights are to be moved away from, towards scratch.post;
# the curved weights make their step, and the gate.
expect = by_row(0, _expect_curved, _expect_linear.py_func)  # type: ignore[attr-defined]
