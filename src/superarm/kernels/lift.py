"""Curved features of a row: random waves, so that a linear model of them bends.

With z the standardised row (kernels/scaling.py, before the constant takes its share):

    u    = P random projections of a z, each about N(0, |a z|^2), times clip(5.5 sqrt(q), 1, 4)
    phi  = [cos u, sin u], each wave standardised online, clipped to ±5, as long as half-way between 1
           and its own length: what standardise does to a row, again

**The projections.** 512 numbers are 16 rows of 32 lanes. One stage turns row i by i lanes, flips signs
at random and takes the Walsh-Hadamard transform over the rows; three stages are as good as a Gaussian
matrix and cost O(512 log 512). Fewer than 64 columns are written several times. Longer rows than 512 are
cut into blocks, more than 512 projections are groups, each with signs of its own and all added up. The
signs are a function of the seed.

**The bandwidth.** q, the running mean of (z . z')^2 over rows z, z' that follow each other, is one over
the effective dimension of the rows.

**The relevance** a_j of a column: the root mean square of the loss's slope along it, by the averages of
the linear and of the curved weights, over all columns 1 in the mean square. A column that does not
matter leaves the waves, and the bandwidth is spent on those that do.

`lift` reads the state, `absorb_waves` and `learn_relevance` move it. No waves: the arrays are empty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from superarm.kernels.compiling import entry, kernel
from superarm.kernels.linear import Features
from superarm.kernels.randomness import uniform

__all__ = ["Lift", "LiftScratch", "absorb_waves", "learn_relevance", "lift", "lifted"]

SHARP, LEAST, MOST = 5.5, 1.0, 4.0  # the bandwidth
CLIP = 5.0
LANES, SIZE = 32, 512
SPREAD = 64  # columns should fill as many of the 512 places
EVERY = 8  # the statistics of the waves, and the slopes, take in every 8th row; at first every one
FIRST = 256

# Places in Lift.seen: rows counted, those in mean and var, mean |phi|^2, when 1 / sd is due again, q,
# slopes counted, when the relevance is due again.
ROWS, WAVES, LENGTH, DUE, ALIKE, SLOPES, RENEW = range(7)

Array = np.ndarray[Any, Any]


class Lift(NamedTuple):
    """The projections, and what the rows seen so far say about the waves and the columns."""

    waves: int  # P: as many cosines as sines
    forget: float
    # Constants that single calls and the fused loop must not compute each in its own way:
    share: float  # |x~| / |z|, the constant feature having the rest
    stretch: float  # from `_project` to projections: three stages enlarge by 4 each
    turns: float  # from `_project` of x~ to turns of the waves, at a bandwidth of 1
    alike: float  # from (x~ . x~')^2 to (z . z')^2
    copies: int
    sign: Array  # groups x blocks x 3 x 512
    mean: Array  # of the 2 P waves
    var: Array
    inverse: Array  # 1 / sd, now and then brought up to date
    previous: Array  # the last row
    relevance: Array  # of every column
    slope: Array  # the running mean of its squared slope
    seen: Array  # by the places above

    @classmethod
    def start(cls, d: int, waves: int, *, seed: int, bias: float, forget: float) -> Lift:
        if not waves:
            d = 0
        sign = np.empty((-(-waves // SIZE), -(-d // SIZE), 3, SIZE), np.float32)
        _random_signs(seed, sign.reshape(-1))
        mean, var, inverse = np.zeros((3, 2 * waves), np.float32)
        previous, slope = np.zeros((2, d), np.float32)
        seen = np.zeros(7)
        seen[ALIKE] = 1.0 / 16.0
        copies = max(1, SPREAD // max(1, d))
        share, stretch = (1.0 - bias * bias) ** 0.5, (SIZE / 16.0**3 / copies) ** 0.5
        return cls(
            waves,
            forget,
            share,
            stretch,
            stretch / share / (2.0 * np.pi),
            share**-4.0,
            copies,
            sign,
            mean.copy(),
            var.copy(),
            inverse.copy(),
            previous.copy(),
            np.ones(d, np.float32),
            slope.copy(),
            seen,
        )


class LiftScratch(NamedTuple):
    """Of one row: its projections, its waves, phi, and room to work."""

    angle: Array  # in turns of a wave, once `_waves` has scaled them
    raw: Array
    phi: Array
    length: Array  # of phi: as it is squared, and the factor that makes it half-way
    columns: Array
    wide: Array  # 2 x 1024: rows of lanes, each written twice
    half: Array
    own: Array

    @classmethod
    def of(cls, d: int, waves: int) -> LiftScratch:
        def empty(*shape: int) -> Array:
            return np.zeros(shape, np.float32)

        groups = -(-waves // SIZE)
        return cls(
            empty(groups * SIZE),
            empty(2 * waves),
            empty(2 * waves),
            np.zeros(2),
            empty(d),
            empty(2, 2 * SIZE),
            empty(SIZE),
            empty(SIZE),
        )


@entry
def _random_signs(seed: int, out: Any) -> None:
    for i in range(out.shape[0]):  # no round has the number -1
        out[i] = np.float32(1.0 if uniform(seed, -1, i) < 0.5 else -1.0)


# ---------------------------------------------------------------- projections
#
# All offsets within an array are constants: only then does the compiler see that it may vectorise.


@kernel
def _place(z: Any, relevance: Any, copies: int, half: Any, wide: Any) -> None:
    """Up to 512 columns as rows of lanes; each row is written twice, so that turned it is contiguous."""
    d = z.shape[0]
    for i in range(copies):
        own = half[i * d : (i + 1) * d]
        for j in range(d):
            own[j] = relevance[j] * z[j]
    rest = half[copies * d :]
    for j in range(rest.shape[0]):
        rest[j] = np.float32(0.0)
    for i in range(4):  # four rows at a time: one alone would be unrolled, and not vectorised
        h, w = half[4 * LANES * i :], wide[8 * LANES * i :]
        for j in range(LANES):
            a, b, c, e = h[j], h[j + 32], h[j + 64], h[j + 96]
            w[j], w[j + 64], w[j + 128], w[j + 192] = a, b, c, e
            w[j + 32], w[j + 96], w[j + 160], w[j + 224] = a, b, c, e


@kernel
def _across(wide: Any, sign: Any, half: Any) -> None:
    """Row i turned by i lanes, signs flipped, and H over the rows i, i + 4, i + 8, i + 12."""
    for i in range(4):
        v, s, h = wide[65 * i :], sign[LANES * i :], half[LANES * i :]
        for j in range(LANES):
            a, b = s[j] * v[j], s[j + 128] * v[j + 4 * 65]
            c, e = s[j + 256] * v[j + 8 * 65], s[j + 384] * v[j + 12 * 65]
            a, b, c, e = a + b, a - b, c + e, c - e
            h[j], h[j + 128], h[j + 256], h[j + 384] = a + c, b + e, a - c, b - e


@kernel
def _within(half: Any, wide: Any) -> None:
    """H over four rows that follow each other, each row written twice."""
    for i in range(4):
        h, w = half[4 * LANES * i :], wide[8 * LANES * i :]
        for j in range(LANES):
            a, b, c, e = h[j], h[j + 32], h[j + 64], h[j + 96]
            a, b, c, e = a + b, a - b, c + e, c - e
            p, q, r, t = a + c, b + e, a - c, b - e
            w[j], w[j + 64], w[j + 128], w[j + 192] = p, q, r, t
            w[j + 32], w[j + 96], w[j + 160], w[j + 224] = p, q, r, t


@kernel
def _within_last(half: Any, out: Any) -> None:
    """The same, each row once."""
    for i in range(4):
        h, w = half[4 * LANES * i :], out[4 * LANES * i :]
        for j in range(LANES):
            a, b, c, e = h[j], h[j + 32], h[j + 64], h[j + 96]
            a, b, c, e = a + b, a - b, c + e, c - e
            w[j], w[j + 32], w[j + 64], w[j + 96] = a + c, b + e, a - c, b - e


@kernel
def _project(lift: Any, scratch: Any, z: Any) -> None:
    """angle = projections of relevance z, before they are stretched."""
    one, two, half, own = scratch.wide[0], scratch.wide[1], scratch.half, scratch.own
    sign, d = lift.sign, z.shape[0]
    for g in range(sign.shape[0]):
        angle = scratch.angle[g * SIZE : (g + 1) * SIZE]
        for b in range(sign.shape[1]):
            first, last = b * SIZE, min(d, b * SIZE + SIZE)
            _place(z[first:last], lift.relevance[first:last], lift.copies, half, one)
            _across(one, sign[g, b, 0], half)
            _within(half, two)
            _across(two, sign[g, b, 1], half)
            _within(half, one)
            _across(one, sign[g, b, 2], half)
            if b == 0:
                _within_last(half, angle)
            else:
                _within_last(half, own)
                for j in range(SIZE):
                    angle[j] += own[j]


@kernel
def _stage_back(half: Any, sign: Any, turned: Any) -> None:
    """The transpose of one stage, in place."""
    n = LANES
    while n < SIZE:
        for i in range(0, SIZE, 2 * n):
            one, two = half[i : i + n], half[i + n : i + 2 * n]
            for j in range(n):
                a, b = one[j], two[j]
                one[j] = a + b
                two[j] = a - b
        n *= 2
    for j in range(SIZE):
        turned[j] = sign[j] * half[j]
    for i in range(SIZE // LANES):  # row i, turned back by i lanes
        first, last = half[LANES * i + i : LANES * i + LANES], half[LANES * i : LANES * i + i]
        own = turned[LANES * i : LANES * i + LANES]
        for j in range(LANES - i):
            first[j] = own[j]
        for j in range(i):
            last[j] = own[LANES - i + j]


@kernel
def _project_back(lift: Any, scratch: Any) -> None:
    """columns = the transpose of `_project`, relevance apart, applied to angle."""
    columns, half, turned = scratch.columns, scratch.half, scratch.own
    sign, d = lift.sign, columns.shape[0]
    for j in range(d):
        columns[j] = np.float32(0.0)
    for g in range(sign.shape[0]):
        angle = scratch.angle[g * SIZE : (g + 1) * SIZE]
        for b in range(sign.shape[1]):
            for j in range(SIZE):
                half[j] = angle[j]
            for stage in range(2, -1, -1):
                _stage_back(half, sign[g, b, stage], turned)
            own = columns[b * SIZE : min(d, b * SIZE + SIZE)]
            for i in range(lift.copies):
                copy = half[i * own.shape[0] : (i + 1) * own.shape[0]]
                for j in range(own.shape[0]):
                    own[j] += copy[j]


# ---------------------------------------------------------------- waves


@kernel
def _sharpness(lift: Any) -> float:
    return float(min(MOST, max(LEAST, SHARP * np.sqrt(lift.seen[ALIKE]))))


@kernel
def _waves(turns: Any, scale: Any, cosine: Any, sine: Any) -> None:
    """cos and sin of 2 pi scale turns, to 0.001: a parabola and one correction, which vectorise."""
    for i in range(cosine.shape[0]):
        t = turns[i] * scale
        t = t - np.floor(t + np.float32(0.5))
        r = t + np.float32(0.25)
        r = r - np.floor(r + np.float32(0.5))
        s = np.float32(8.0) * t - np.float32(16.0) * t * abs(t)
        c = np.float32(8.0) * r - np.float32(16.0) * r * abs(r)
        cosine[i] = c * (np.float32(0.775) + np.float32(0.225) * abs(c))
        sine[i] = s * (np.float32(0.775) + np.float32(0.225) * abs(s))


@kernel
def lift(lift: Any, scratch: Any, x: Any) -> Features:
    """phi of a scaled row as Features, in scratch space."""
    raw, phi, mean, inverse, P = scratch.raw, scratch.phi, lift.mean, lift.inverse, lift.waves
    _project(lift, scratch, x)
    _waves(scratch.angle, np.float32(_sharpness(lift) * lift.turns), raw[:P], raw[P:])
    total, high, low = np.float32(0.0), np.float32(CLIP), np.float32(-CLIP)
    for i in range(2 * P):
        v = min(high, max(low, (raw[i] - mean[i]) * inverse[i]))
        phi[i] = v
        total += v * v
    squares = np.float64(total)
    scratch.length[0], scratch.length[1] = squares, 1.0
    if squares > 0.0:
        typical = lift.seen[LENGTH] if lift.seen[LENGTH] > 0.0 else squares
        scratch.length[1] = 1.0 / np.sqrt(np.sqrt(squares * typical))
    return lifted(scratch)


@kernel
def lifted(scratch: Any) -> Features:
    """The phi that `lift` has made."""
    squares, factor = scratch.length[0], scratch.length[1]
    return Features(scratch.phi, np.float32(factor), 0.0, squares * factor * factor)


@kernel
def absorb_waves(lift: Any, scratch: Any, x: Any) -> None:
    """Count the row in that was lifted last."""
    seen, previous = lift.seen, lift.previous
    alike = np.float32(0.0)
    for j in range(x.shape[0]):
        alike += x[j] * previous[j]
        previous[j] = x[j]
    dot = np.float64(alike)
    seen[ROWS] += 1.0
    seen[ALIKE] += (lift.alike * (dot * dot) - seen[ALIKE]) * max(1.0 / (seen[ROWS] + 16.0), lift.forget)
    seen[LENGTH] += (scratch.length[0] - seen[LENGTH]) * max(1.0 / seen[ROWS], 0.001, lift.forget)
    if seen[ROWS] < FIRST or seen[ROWS] % EVERY == 0.0:
        seen[WAVES] += 1.0
        raw, mean, var = scratch.raw, lift.mean, lift.var
        rate = max(1.0 / seen[WAVES], min(1.0, EVERY * lift.forget))
        a, b = np.float32(rate), np.float32(1.0 - rate)
        for i in range(raw.shape[0]):
            gap = raw[i] - mean[i]
            mean[i] += a * gap
            var[i] = b * (var[i] + a * gap * gap)
    if seen[ROWS] >= seen[DUE]:  # 1/sd moves slowly: every row at first, then after each further 1 %
        seen[DUE] = seen[ROWS] + 1.0 + np.floor(seen[ROWS] * 0.01)
        inverse, var = lift.inverse, lift.var
        for i in range(var.shape[0]):
            inverse[i] = np.float32(1.0) / np.sqrt(var[i]) if var[i] > 1e-30 else np.float32(0.0)


@kernel
def learn_relevance(lift: Any, scratch: Any, curved: Any, straight: Any) -> None:
    """Take in the slope of the loss along every column, at the row that was lifted last.

    ``curved`` is its slope along every feature of phi, ``straight`` along every feature of the row.
    """
    raw, inverse, angle, columns = scratch.raw, lift.inverse, scratch.angle, scratch.columns
    seen, slope, relevance = lift.seen, lift.slope, lift.relevance
    P, d = lift.waves, columns.shape[0]
    for i in range(P, angle.shape[0]):
        angle[i] = np.float32(0.0)
    for i in range(P):
        angle[i] = curved[P + i] * inverse[P + i] * raw[i] - curved[i] * inverse[i] * raw[P + i]
    _project_back(lift, scratch)
    scale, share = np.float32(lift.stretch * _sharpness(lift) * scratch.length[1]), np.float32(lift.share)
    seen[SLOPES] += 1.0
    rate = np.float32(max(3.0 / (seen[SLOPES] + 3.0), min(1.0, EVERY * lift.forget)))
    total = 0.0
    for j in range(d):
        v = scale * relevance[j] * columns[j] + share * straight[j]
        slope[j] += rate * (v * v - slope[j])
        total += slope[j]
    if seen[SLOPES] >= seen[RENEW] and total > 0.0:  # phi changes with it: seldom, after each further 10 %
        seen[RENEW] = 1.1 * seen[SLOPES] + 8.0
        for j in range(d):
            relevance[j] = np.float32(np.sqrt(np.float64(slope[j]) * d / total))
