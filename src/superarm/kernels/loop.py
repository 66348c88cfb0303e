"""What every learner shares in compiled code: one round, one late update, and a million rounds.

A learner is a few kernels (most write only ``learn`` and take the others from here), and a rule for
choosing sets, which is one more:

    scale(scaling, scratch, x) -> Features
        the row as it reaches the weights: state.scaling, scratch.scaling
    score(state, scratch, features, s)
        fill s with the scores that rank the labels
    believe(state, tables) -> float
        a number of the learner's at the time of the draw, which a late update gets back
    learn(state, scratch, round, answer) -> bool
        update the state; False, and nothing done, if a weight might overflow
    reads_scores(state, round) -> bool
        whether ``learn`` will look at the scores; where it will not, a late update computes none
    ask(state, rows, i)
        ask early for the memory of the weights that row i will want
    absorb(scaling, x)
        count the row in, after it was learnt from (unless ``learn`` does so itself)
    choose(rule, scratch, table, s, eligible, moment, drawn, top, numbers) -> Odds     (explore/)
        fill the shown set and the top set with labels, and ``numbers`` with what the rule must know
        to be asked again: state.rule, scratch.rule
    hear(rule)                                                                         (explore/)
        an answer has come, and has been learnt from

`compile_loop` makes the entry points from them, all of the same steps in the same order, so a million
fused rounds and a million single calls compute the same bits. The arrays of a learner reach them as one
argument, a `Model` that is held (kernels/held.py), and so do its `Tables`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from superarm.kernels.compiling import borrowed, kernel, specialise
from superarm.kernels.held import unpacked
from superarm.kernels.linear import Features, fetch, reach, row, scores
from superarm.kernels.ranking import all_finite, best_first, contains
from superarm.kernels.scaling import unit

__all__ = [
    "Answer",
    "Kernels",
    "Loop",
    "Model",
    "Moment",
    "Odds",
    "Round",
    "Tables",
    "compile_loop",
    "linear_score",
    "reads_none",
]

DONE, SCORE_FAILED, UPDATE_REFUSED = 0, 1, 2


class Model(NamedTuple):
    """A learner as compiled code sees it."""

    state: Any
    scratch: Any
    s: Any  # room for the scores of all labels


class Moment(NamedTuple):
    """What a draw's randomness is a function of."""

    seed: int
    round: int


class Odds(NamedTuple):
    """Logarithms of the probability of the ordered draw (the paper's Z) and of the set."""

    ordered: float
    set: float


class Answer(NamedTuple):
    """What the world says: the bit, and the label where it is told (else -1)."""

    hit: bool
    label: int


class Tables(NamedTuple):
    """What depends only on how many labels are eligible and how many shown: the rule's, the learner's."""

    draw: Any
    own: Any


class Round(NamedTuple):
    """One round, as `learn` sees it."""

    row: Any  # as it came
    x: Features  # as it reaches the weights
    s: Any  # the scores of all labels, now, if `reads_scores`
    eligible: Any  # the labels that could be shown, increasing
    top: Any  # the top set, best first
    drawn: Any  # the shown set, in the order of the draw
    odds: Odds
    belief: float
    given: bool  # somebody else chose the set
    tables: Tables


class Kernels(NamedTuple):
    """The kernels of one learner. With ``sees_label``, the fused loop tells it the label."""

    learn: Callable[..., bool]
    score: Callable[..., None] | None = None
    scale: Callable[..., Features] | None = None
    believe: Callable[..., float] | None = None
    absorb: Callable[..., None] | None = None
    ask: Callable[..., None] | None = None
    reads_scores: Callable[..., bool] | None = None
    sees_label: bool = False


class Loop(NamedTuple):
    """The compiled entry points of one learner with one rule."""

    decide: Callable[..., tuple[bool, float, float, float]]
    update: Callable[..., int]
    run: Callable[..., tuple[int, int]]
    score_rows: Callable[..., None]
    decide_many: Callable[..., int]
    update_many: Callable[..., tuple[int, int]]


@kernel
def linear_score(state: Any, scratch: Any, features: Features, s: Any) -> None:
    scores(state.W, features, s)


@kernel
def ask_linear(state: Any, rows: Any, i: int) -> None:
    reach(state.W, rows, i)


@kernel
def ask_nothing(state: Any, rows: Any, i: int) -> None:
    pass


@kernel
def no_belief(state: Any, tables: Any) -> float:
    return 0.0


@kernel
def reads_all(state: Any, round: Round) -> bool:
    return True


@kernel
def reads_none(state: Any, round: Round) -> bool:
    return False


@kernel
def absorb_nothing(scaling: Any, x: Any) -> None:
    pass


def compile_loop(name: str, kernels: Kernels, choose: Callable[..., Odds], hear: Callable[..., None]) -> Loop:
    """The entry points of a learner that chooses its sets by a rule, which is two kernels."""
    names = {
        "scale": kernels.scale or unit,
        "score": kernels.score or linear_score,
        "believe": kernels.believe or no_belief,
        "learn": kernels.learn,
        "absorb": kernels.absorb or absorb_nothing,
        "ask": kernels.ask or (ask_nothing if kernels.score else ask_linear),
        "reads_scores": kernels.reads_scores or reads_all,
        "choose": choose,
        "hear": hear,
        "sees_label": kernels.sees_label,
    }
    sources = [value for value in names.values() if callable(value)]
    templates = (_decide, _update, _run, _score_rows, _decide_many, _update_many)
    return Loop(*(specialise(template, name, sources, **names) for template in templates))


# ---------------------------------------------------------------- templates (see compile_loop)

scale: Any = unit
score: Any = linear_score
believe: Any = no_belief
choose: Any = None
hear: Any = None
learn: Any = None
absorb: Any = absorb_nothing
ask: Any = ask_linear
reads_scores: Any = reads_all
sees_label: bool = False


def _decide(  # compiled
    model: Any, tables: Any, x: Any, eligible: Any, seed: int, round_: int, sets: Any, numbers: Any
) -> tuple[bool, float, float, float]:
    """sets[0] gets the shown labels best first, sets[1] as drawn, sets[2] the top set."""
    state, scratch, s = unpacked(model)
    tables = unpacked(tables)
    score(state, scratch, scale(state.scaling, scratch.scaling, x), s)
    if not all_finite(s):
        return False, 0.0, 0.0, 0.0
    moment = Moment(seed, round_)
    belief = believe(state, tables)
    odds = choose(state.rule, scratch.rule, tables.draw, s, eligible, moment, sets[1], sets[2], numbers)
    best_first(s, sets[1], sets[0])
    return True, odds.ordered, odds.set, belief


def _update(  # compiled
    model: Any,
    tables: Any,
    x: Any,
    eligible: Any,
    sets: Any,
    log_ordered: float,
    log_set: float,
    belief: float,
    given: bool,
    hit: bool,
    label: int,
) -> int:
    state, scratch, s = unpacked(model)
    tables = unpacked(tables)
    features = scale(state.scaling, scratch.scaling, x)
    odds = Odds(log_ordered, log_set)
    this = Round(x, features, s, eligible, sets[2], sets[1], odds, belief, given, tables)
    if reads_scores(state, this):
        score(state, scratch, features, s)
        if not all_finite(s):
            return SCORE_FAILED
    elif features.squares == np.inf:  # what the scores would have shown
        return UPDATE_REFUSED
    if not learn(state, scratch, this, Answer(hit, label)):
        return UPDATE_REFUSED
    absorb(state.scaling, x)
    hear(state.rule)
    return DONE


def _run(  # compiled
    model: Any,
    tables: Any,
    rows: Any,
    y: Any,
    visit: Any,
    eligible: Any,
    seed: int,
    round_: int,
    drawn: Any,
    top: Any,
    numbers: Any,
    counts: Any,
) -> tuple[int, int]:
    """Rounds over rows[visit]; counts: errors, misses, shown misses. (rounds done, why it stopped)"""
    state, scratch, s = unpacked(model)
    tables = unpacked(tables)
    rows, y, visit, eligible = borrowed((rows, y, visit, eligible))
    drawn, top, numbers, counts = borrowed((drawn, top, numbers, counts))
    last = visit.shape[0] - 1
    for i in range(visit.shape[0]):
        following = visit[min(i + 1, last)]
        fetch(rows, following)  # rows visited at random come slowly from memory: ask early
        x = row(rows, visit[i])
        features = scale(state.scaling, scratch.scaling, x)
        score(state, scratch, features, s)
        if not all_finite(s):
            return i, SCORE_FAILED
        ask(state, rows, following)
        belief = believe(state, tables)
        moment = Moment(seed, round_ + i)
        odds = choose(state.rule, scratch.rule, tables.draw, s, eligible, moment, drawn, top, numbers)
        label: Any = y[visit[i]]
        hit = contains(drawn, label)
        this = Round(x, features, s, eligible, top, drawn, odds, belief, False, tables)
        if not learn(state, scratch, this, Answer(hit, label if sees_label else -1)):
            return i, UPDATE_REFUSED
        absorb(state.scaling, x)
        hear(state.rule)
        counts[0] += top[0] != label
        counts[1] += not contains(top, label)
        counts[2] += not hit
    return visit.shape[0], DONE


def _score_rows(model: Any, rows: Any, out: Any) -> None:  # compiled
    state, scratch, s = unpacked(model)
    rows, out = borrowed((rows, out))
    for i in range(out.shape[0]):
        score(state, scratch, scale(state.scaling, scratch.scaling, row(rows, i)), s)
        for r in range(s.shape[0]):
            out[i, r] = s[r]


def _decide_many(  # compiled
    model: Any,
    tables: Any,
    rows: Any,
    eligible: Any,
    seed: int,
    round_: int,
    sets: Any,
    numbers: Any,
    odds: Any,
) -> int:
    """`_decide` for every row; odds: ordered, of the set, belief. How many rows were fine."""
    state, scratch, s = unpacked(model)
    tables = unpacked(tables)
    rows, eligible, sets, numbers, odds = borrowed((rows, eligible, sets, numbers, odds))
    last = sets.shape[0] - 1
    for i in range(sets.shape[0]):
        score(state, scratch, scale(state.scaling, scratch.scaling, row(rows, i)), s)
        if not all_finite(s):
            return i
        ask(state, rows, min(i + 1, last))
        moment = Moment(seed, round_ + i)
        odds[i, 2] = believe(state, tables)
        drawn, top = sets[i, 1], sets[i, 2]
        o = choose(state.rule, scratch.rule, tables.draw, s, eligible, moment, drawn, top, numbers[i])
        odds[i, 0], odds[i, 1] = o.ordered, o.set
        best_first(s, drawn, sets[i, 0])
        fetch(rows, min(i + 2, last))  # the next one is on its way: rows come in order
    return int(sets.shape[0])


def _update_many(  # compiled
    model: Any,
    tables: Any,
    rows: Any,
    which: Any,
    eligible: Any,
    sets: Any,
    odds: Any,
    hits: Any,
    labels: Any,
) -> tuple[int, int]:
    """`_update` for the rows in ``which``; (how many were done, why it stopped)"""
    state, scratch, s = unpacked(model)
    tables = unpacked(tables)
    rows, which, eligible = borrowed((rows, which, eligible))
    sets, odds, hits, labels = borrowed((sets, odds, hits, labels))
    last = which.shape[0] - 1
    for at in range(which.shape[0]):
        i, following = which[at], which[min(at + 1, last)]
        fetch(rows, following)
        x = row(rows, i)
        features = scale(state.scaling, scratch.scaling, x)
        ask(state, rows, following)
        both = Odds(odds[i, 0], odds[i, 1])
        this = Round(x, features, s, eligible, sets[i, 2], sets[i, 1], both, odds[i, 2], False, tables)
        if reads_scores(state, this):
            score(state, scratch, features, s)
            if not all_finite(s):
                return at, SCORE_FAILED
        elif features.squares == np.inf:
            return at, UPDATE_REFUSED
        if not learn(state, scratch, this, Answer(hits[at], labels[at])):
            return at, UPDATE_REFUSED
        absorb(state.scaling, x)
        hear(state.rule)
    return which.shape[0], DONE
