"""What every learner shares in compiled code: one round, one late update, and a million rounds.

A learner is three kernels (most of them take the first two from here and write only ``learn``):

    score(state, x, s)
        fill s[0] with the scores that rank the labels (further rows of s are the learner's own)
    choose(state, design, s, eligible, seed, round_, drawn, top, odds)
        fill the shown set and the top set with labels, and odds with
        (log ordered propensity, log set propensity, one number that learn gets back)
    learn(state, design, x, s, eligible, drawn, top, odds, hit, label) -> bool
        update the state; False, and nothing done, if a weight might overflow.
        ``label`` is -1 unless the world has named it: learners of bits never see it.

`compile_loop` makes the entry points from them. They are one body, so a million fused rounds
and a million single calls compute the same bits.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from superarm.numerics import borrowed, contains, kernel, row, scores, shared, specialise, top_positions
from superarm.sets import draw

__all__ = ["Loop", "compile_loop", "draw_set", "linear_score", "resolve", "show_top"]

LARGEST = np.finfo(np.float32).max
DONE, SCORE_FAILED, UPDATE_REFUSED = 0, 1, 2


class Loop(NamedTuple):
    """The compiled entry points of one learner."""

    decide: Callable[..., bool]
    update: Callable[..., int]
    run: Callable[..., tuple[int, int]]
    score_rows: Callable[..., None]


def compile_loop(
    name: str,
    learn: Callable[..., bool],
    *,
    score: Callable[..., None] | None = None,
    choose: Callable[..., None] | None = None,
    sees_label: bool = False,
) -> Loop:
    """The entry points of a learner; by default linear scores, and sets drawn as in the paper."""
    names = {
        "score": score or linear_score,
        "choose": choose or (show_top if sees_label else draw_set),
        "learn": learn,
        "sees_label": sees_label,
    }
    # a learner in a user's own file must be compiled anew when that file has changed
    digest = hashlib.sha256()
    for function in (names["score"], names["choose"], learn):
        body = function.py_func  # type: ignore[union-attr]
        digest.update(body.__module__.encode() + Path(inspect.getfile(body)).read_bytes())
    stamp = f"{name}-{digest.hexdigest()[:8]}"
    templates = (_decide, _update, _run, _score_rows)
    return Loop(*(specialise(template, stamp, **names) for template in templates))


def resolve(function: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """The compiled code for arguments of exactly these types.

    Calling it skips Numba's look at the type of every argument, two thirds of a single call.
    """
    types = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(types)
    return function.overloads[types].entry_point  # type: ignore[no-any-return]


# ---------------------------------------------------------------- the parts most learners use


@shared
def linear_score(state: Any, x: Any, s: Any) -> None:
    scores(state.W, x, state.bias, s[0])


@shared
def draw_set(
    state: Any, design: Any, s: Any, eligible: Any, seed: int, round_: int, drawn: Any, top: Any, odds: Any
) -> None:
    """The paper's draw, around the top set."""
    top_positions(s[0], eligible, top)
    draw(design, top, seed, round_, drawn, odds)
    for i in range(top.shape[0]):
        top[i] = eligible[top[i]]
        drawn[i] = eligible[drawn[i]]


@shared
def show_top(
    state: Any, design: Any, s: Any, eligible: Any, seed: int, round_: int, drawn: Any, top: Any, odds: Any
) -> None:
    """The top set itself, for learners that need no exploration."""
    top_positions(s[0], eligible, top)
    for i in range(top.shape[0]):
        top[i] = eligible[top[i]]
        drawn[i] = top[i]
    odds[0] = 0.0
    odds[1] = 0.0


@kernel
def all_finite(values: Any) -> bool:
    bad = 0
    for i in range(values.shape[0]):
        bad += not abs(values[i]) <= LARGEST  # also for NaN
    return bad == 0


@kernel
def _best_first(s: Any, drawn: Any, shown: Any) -> None:
    for i in range(drawn.shape[0]):
        l = i
        while l > 0 and s[drawn[i]] > s[shown[l - 1]]:
            shown[l] = shown[l - 1]
            l -= 1
        shown[l] = drawn[i]


# ---------------------------------------------------------------- templates (see compile_loop)

score: Any = linear_score
choose: Any = draw_set
learn: Any = None
sees_label: bool = False


def _decide(  # compiled
    state: Any, design: Any, x: Any, s: Any, eligible: Any, seed: int, round_: int, sets: Any, odds: Any
) -> bool:
    score(state, x, s)
    if not all_finite(s[0]):
        return False
    odds[2] = 0.0
    choose(state, design, s, eligible, seed, round_, sets[1], sets[2], odds)
    _best_first(s[0], sets[1], sets[0])
    return True


def _update(  # compiled
    state: Any, design: Any, x: Any, s: Any, eligible: Any, sets: Any, odds: Any, hit: bool, label: int
) -> int:
    score(state, x, s)
    if not all_finite(s[0]):
        return SCORE_FAILED
    if not learn(state, design, x, s, eligible, sets[1], sets[2], odds, hit, label):
        return UPDATE_REFUSED
    return DONE


def _run(  # compiled
    state: Any,
    design: Any,
    rows: Any,
    y: Any,
    visit: Any,
    s: Any,
    eligible: Any,
    seed: int,
    round_: int,
    drawn: Any,
    top: Any,
    odds: Any,
    counts: Any,
) -> tuple[int, int]:
    """Rounds over rows[visit]; counts: errors, misses, shown misses. (rounds done, why it stopped)"""
    state, design, rows, y, visit = borrowed((state, design, rows, y, visit))
    s, eligible, drawn, top, odds, counts = borrowed((s, eligible, drawn, top, odds, counts))
    for i in range(visit.shape[0]):
        x = row(rows, visit[i])
        score(state, x, s)
        if not all_finite(s[0]):
            return i, SCORE_FAILED
        choose(state, design, s, eligible, seed, round_ + i, drawn, top, odds)
        label = y[visit[i]]
        hit = contains(drawn, label)
        told = label if sees_label else -1
        if not learn(state, design, x, s, eligible, drawn, top, odds, hit, told):
            return i, UPDATE_REFUSED
        counts[0] += top[0] != label
        counts[1] += not contains(top, label)
        counts[2] += not hit
    return visit.shape[0], DONE


def _score_rows(  # compiled
    state: Any, rows: Any, n: int, s: Any, out: Any
) -> None:
    for i in range(n):
        score(state, row(rows, i), s)
        out[i] = s[0]
