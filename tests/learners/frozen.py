"""What earlier versions did: the cases, their rows, and how to run them.

Every draw is a function of (seed, round, draw), so a version that learns as before must choose the same sets and make
the same mistakes, but for the last bits of float32 sums. test_frozen.py compares the version at hand with two files:

    frozen_02.json.gz   written by 0.2, whose loops were compiled by Numba: the learners that standardise no columns
    frozen_03.json.gz   written by 0.3, when it changed how columns are standardised and gave the curves two banks
                        of waves: all others (`standardised`), those with curves once more when projections got 256
                        places, and when each bank got its loudness; and the late answers of MC-DBF's minimum-variance
                        estimate (`uses_current_rho`); and SetLogit when RunnerUp and Cover came to break ties
                        by one mechanism (`breaks_ties_anew`; 24 seeds: the same error rate), and again when the
                        top set of tied labels no longer depended on the draw (sets, as shown and as drawn,
                        were those of before). Just before the
                        first, at commit 7c775b3, 0.3 did in all 464 cases what 0.2 had done

    python tests/learners/frozen.py freeze [CASE …]  # writes frozen_03.json.gz: only after a change that is meant
    python tests/learners/frozen.py check 5 6        # compares; here on rows changed in last bits, twice

A case has a short part, round by round, whose every decision is kept, and for the plain ones a long part, one
fused loop on a learner of its own, whose counts are kept after 1/16, 1/4 and all of its rounds.

Last bits may turn a near-tie, and from there on two runs are strangers. So every case was also frozen on rows
changed by some parts in 10^7, 8 times, or 32 where that moved something. The short part is held as far as all
these runs chose the same sets (less a quarter, if they parted). Counts must be equal where the changes moved
none, in this stretch or the next; else they may differ by twice the spread, or 1 % of the rounds.

Labels with the same history have the same scores, to the last bit, as long as one loop serves them, which takes
labels by five. Another order of sums may rank such labels otherwise. Ties are therefore kept as well: a run
may part where only tied labels change places. Of the long part no decisions are kept: where its counts differ, it is
replayed round by round, to see in which stretch the first tie at the top is. From a tie on, a run is as good as one
with another seed: counts may differ by twice what they differ among 16 other seeds, or 2 % of the rounds (some learners
draw nothing). Before it they are held as ever.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

import superarm as sa
from superarm import explore
from superarm.streams import open_data

OLD, NEW = (Path(__file__).parent / f"frozen_{version}.json.gz" for version in ("02", "03"))
N, SHORT, LONG = 2000, 60, 4000
RUNS, MORE = 8, 24  # on changed rows, when freezing; more where these moved something
LOUDNESS = (2e-7, 1e-6)  # of the changes, by turns; a float32 has 6e-8

Array = np.ndarray[Any, Any]

# ---------------------------------------------------------------- rows


class Table(list[Any]):
    """Rows with names."""


@lru_cache(maxsize=32)
def data(kind: str, d: int, k: int) -> tuple[Any, Array]:
    """N rows and labels. Only `Generator.random` is asked: its numbers are the same in every NumPy."""
    if kind in ("digits", "synsep"):
        chunk = next(iter(open_data(kind).chunks(1)))
        at, rows = chunk.order[:N], chunk.rows
        return (rows.dense if hasattr(rows, "dense") else rows.values)[at], chunk.y[at]  # as 0.2 called them
    random = np.random.Generator(np.random.PCG64(1000 * d + k))
    y = (random.random(N) * k).astype(np.int64)
    if kind == "dense":
        centres = random.random((k, d)) - 0.5
        return (centres[y] + (0.8 if d == 2 else 1.5) * (random.random((N, d)) - 0.5)).astype(np.float32), y
    if kind == "sparse":
        return _sparse(random, y, d, k), y
    return _named(random, y, k), y


def _sparse(random: np.random.Generator, y: Array, d: int, k: int) -> Any:
    """Twelve features of the label's own thirty, and ten of anybody's."""
    from scipy.sparse import csr_matrix

    own = (random.random((k, 30)) * d).astype(np.int64)
    mine = own[y[:, None], (random.random((N, 12)) * 30).astype(np.int64)]
    indices = np.sort(np.hstack([mine, (random.random((N, 10)) * d).astype(np.int64)]), axis=1)
    kept = np.hstack([np.ones((N, 1), bool), np.diff(indices, axis=1) > 0])
    values = (random.random((N, 22)) + 0.5).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return csr_matrix((values[kept], indices[kept], starts), shape=(N, d))


def _named(random: np.random.Generator, y: Array, k: int) -> Table:
    """Numbers, words, truths, dates and gaps; some names come late, one number is spelt as a word."""
    rows = Table()
    for i, label in enumerate(y.tolist()):
        u = random.random(10).tolist()
        day = date(2024, 1, 1) + timedelta(days=int(u[0] * 60) + 7 * label)
        x: dict[str, Any] = {
            "age": 20.0 + 5.0 * label + 9.0 * u[1],
            "income": None if u[2] < 0.2 else 1e4 * (1.0 + u[3]) * (1 + label % 3),
            "city": f"city {(label + int(u[4] * 3)) % k}",
            "paid": u[5] < (label + 1) / (k + 1),
            "since": day if i % 2 else day.isoformat(),
            "share": -1.0 + 2.0 * u[6],
        }
        if u[7] < 0.5:
            x["colour"] = f"colour {label % 4}" if u[8] < 0.8 else "none"
        if i > 30:
            x["late"] = float(label % 5) + u[9]
        if i % 7 == 3:
            x["share"] = str(round(x["share"], 3))
        rows.append(x)
    return rows


def changed(X: Any, seed: int | None) -> Any:
    """The rows, with changes in the last bits of every number that ``seed`` chooses."""
    if seed is None:
        return X
    random, loud = np.random.Generator(np.random.PCG64(seed)), LOUDNESS[seed % len(LOUDNESS)]

    def factors(shape: Any) -> Array:
        return 1.0 + loud * (2.0 * random.random(shape) - 1.0)

    if isinstance(X, Table):
        turn = iter(factors(4 * len(X)))
        return Table({n: v * next(turn) if type(v) is float else v for n, v in x.items()} for x in X)
    if isinstance(X, np.ndarray):
        whole = bool((np.round(X) == X).all())  # then numbers that were equal must stay so: one for a column
        return (X * factors(X.shape[1] if whole else X.shape)).astype(np.float32)
    X = X.copy()
    X.data = (X.data * factors(X.data.shape)).astype(np.float32)
    return X


# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """One learner on one kind of rows; ``way`` is how it is asked and answered in the short part."""

    learner: str
    kind: str
    d: int
    k: int
    m: int
    way: str = "plain"
    long: int = LONG
    seed: int = 0

    def __str__(self) -> str:
        size = self.kind if self.kind in ("digits", "synsep", "named") else f"{self.kind}-d{self.d}"
        return f"{self.learner}-{size}-k{self.k}-m{self.m}" + (f"-{self.way}" if self.way != "plain" else "")


TOLD: dict[str, tuple[str, dict[str, Any]]] = {  # every label
    "perceptron": ("Perceptron", {}),
    "softmax": ("Softmax", {}),
    "softmax:step=10": ("Softmax", {"step": 10.0}),
    "softmax-averaged": ("AveragedSoftmax", {}),
    "softmax-averaged:curves=0": ("AveragedSoftmax", {"curves": 0}),
    "pa": ("PA", {}),
    "pa:PA": ("PA", {"variant": "PA"}),
    "pa:PA-II": ("PA", {"variant": "PA-II", "C": 0.5}),
    "mc-slp": ("MCSLP", {}),
    "mc-slp:gate": ("MCSLP", {"gate": True, "margin": 0.5}),
}
SINGLE: dict[str, tuple[str, dict[str, Any]]] = {  # a bit on one label
    "banditron": ("Banditron", {}),
    "soba": ("SOBA", {"matrix": "full"}),
    "soba-diag": ("SOBA", {"matrix": "diagonal"}),
    "newtron": ("Newtron", {}),
    "epabf": ("EPABF", {}),
    "epabf:EPABF": ("EPABF", {"variant": "EPABF"}),
    "epabf:EPABF-II": ("EPABF", {"variant": "EPABF-II", "gamma": 0.2}),
}
DILUTE: dict[str, tuple[str, dict[str, Any]]] = {
    "mc-dbf": ("MCDBF", {}),
    "mc-dbf:set": ("MCDBF", {"estimate": "set"}),
    "mc-dbf:minimum": ("MCDBF", {"estimate": "minimum-variance"}),
    "mc-dbf:gate": ("MCDBF", {"gate": True}),
    "mc-dbf:set,gate": ("MCDBF", {"estimate": "set", "gate": True, "margin": 2.0}),
    "mc-dbf:minimum,gate": ("MCDBF", {"estimate": "minimum-variance", "gate": True}),
    "mc-dbf:rho,gamma": ("MCDBF", {"estimate": "minimum-variance", "rho": 0.7, "gamma": 0.3}),
}
LOGIT: dict[str, tuple[str, dict[str, Any]]] = {
    "set-logit": ("SetLogit", {}),
    "set-logit:show": ("SetLogit", {"explore": "show"}),
    "set-logit:rank": ("SetLogit", {"explore": "rank"}),
    "set-logit:0.25": ("SetLogit", {"explore": 0.25}),
    "set-logit:curves=0": ("SetLogit", {"curves": 0}),
    "set-logit:curves=0,rank": ("SetLogit", {"curves": 0, "explore": "rank"}),
    "set-logit:forget": ("SetLogit", {"forget": 0.001}),
    "set-logit:noise": ("SetLogit", {"false_no": 0.1, "false_yes": 0.05}),
    "set-logit:none": ("SetLogit", {"none_label": 1}),
    "set-logit:uniform": ("SetLogit", {"uniform": 0.05}),
    "set-logit:step": ("SetLogit", {"step": 1.0, "intercept": False, "curves": 0}),
}
RULES: dict[str, tuple[str, dict[str, Any]]] = {  # SetLogit with a rule of its own
    "set-logit:Dilute": ("Dilute", {"gamma": 0.2}),
    "set-logit:Uniform": ("Uniform", {}),
    "set-logit:Greedy": ("Greedy", {}),
    "set-logit:RunnerUp": ("RunnerUp", {"explore": 0.8, "uniform": 0.1, "forget": 0.01}),
    "set-logit:Boltzmann": ("Boltzmann", {"gamma": 0.2, "alpha": 2.0}),
}
MAIN = (
    "perceptron",
    "mc-slp",
    "mc-dbf",
    "mc-dbf:minimum",
    "set-logit",
    "set-logit:rank",
    "set-logit:curves=0",
)
ALONE = {*SINGLE, "set-logit:Boltzmann"}  # sets of one label


def made(case: Case, **more: Any) -> Any:
    """The learner of a case."""
    common = {"n_labels": case.k, "set_size": case.m, "seed": case.seed, **more}
    if case.learner in RULES:
        rule, params = RULES[case.learner]
        return sa.SetLogit(explore=getattr(explore, rule)(**params), **common)
    name, params = {**TOLD, **SINGLE, **DILUTE, **LOGIT}[case.learner]
    return getattr(sa, name)(**params, **common)


def _cases() -> Iterator[Case]:
    for learner in (*TOLD, *SINGLE, *DILUTE, *LOGIT, *RULES):
        one = learner in ALONE
        for kind, d, k, m in (
            ("dense", 2, 3, 2),
            ("dense", 16, 10, 2),
            ("dense", 64, 25, 4),
            ("sparse", 3000, 10, 2),
            ("named", 0, 10, 3),
        ):
            if not (learner == "soba" and (d > 16 or kind == "named")):  # its matrix would be too large
                yield Case(learner, kind, d, k, 1 if one else m)
    for learner in MAIN:
        yield Case(learner, "dense", 16, 10, 1, seed=1)
        yield Case(learner, "dense", 16, 10, 9, seed=2)
        yield Case(learner, "dense", 600, 10, 4, seed=3, long=2000)
        yield Case(learner, "dense", 64, 100, 4, seed=4, long=2000)
        yield Case(learner, "dense", 2, 26, 24, seed=5)
        yield Case(learner, "digits", 64, 10, 4, seed=6, long=8000)
        yield Case(learner, "synsep", 400, 9, 3, seed=7, long=2000)
        yield Case(learner, "sparse", 3000, 100, 4, seed=8)
        yield Case(learner, "sparse", 3000, 26, 1, seed=9)
        yield Case(learner, "sparse", 3000, 3, 2, seed=10)
        yield Case(learner, "named", 0, 26, 1, seed=11)
    for learner in SINGLE:
        if learner != "soba":
            yield Case(learner, "digits", 64, 10, 1, seed=6, long=8000)
            yield Case(learner, "sparse", 3000, 100, 1, seed=8)
    # W is centred every 65,536 updates
    for learner in ("mc-dbf:set", "mc-dbf:minimum", "mc-dbf:minimum,gate"):
        yield Case(learner, "dense", 16, 3, 1, seed=12, long=70_000)
    for learner in (*MAIN, "softmax", "pa", "banditron", "newtron", "mc-dbf:set,gate", "set-logit:none"):
        for way in ("late", "eligible", "grown", "many", *(["names"] if learner in MAIN else [])):
            for kind, d in (("dense", 16), ("sparse", 3000)):
                yield Case(learner, kind, d, 10, 1 if learner in ALONE else 3, way, seed=13)
    for learner in ("late", "eligible", "many"):
        yield Case("set-logit", "named", 0, 10, 3, learner, seed=14)
    for learner in ("set-logit:Dilute", "set-logit:Uniform", "set-logit:RunnerUp", "set-logit:Boltzmann"):
        for way in ("eligible", "many"):
            yield Case(learner, "dense", 16, 10, 1 if learner in ALONE else 3, way, seed=15)
    for learner in (*DILUTE, "set-logit", "set-logit:curves=0", "set-logit:forget", "set-logit:noise"):
        for kind, d in (("dense", 16), ("sparse", 3000)):
            yield Case(learner, kind, d, 10, 3, "label", seed=16)
            yield Case(learner, kind, d, 10, 3, "given", seed=17)
    yield Case("set-logit", "named", 0, 10, 3, "given", seed=18)
    yield Case("mc-dbf", "named", 0, 10, 3, "given", seed=18)


CASES = list(_cases())


def standardised(case: Case) -> bool:
    """Whether the learner of a case standardises columns: those of named rows, and SetLogit all dense ones."""
    return case.kind == "named" or (
        case.kind != "sparse" and case.learner.startswith(("set-logit", "softmax-averaged"))
    )


def uses_current_rho(case: Case) -> bool:
    """Whether answers come late to a learner that takes rho from then: 0.2 took it from the time of the draw."""
    return case.learner == "mc-dbf:minimum" and case.way in ("late", "grown", "many")


def breaks_ties_anew(case: Case) -> bool:
    """Whether the learner of a case leaves labels out: since RunnerUp and Cover share how they break ties."""
    return case.learner.startswith("set-logit")


# ---------------------------------------------------------------- the short part


@dataclass
class Kept:
    """What a short part leaves behind: sets, and the numbers that belong to them."""

    sets: list[Any] = field(default_factory=list)
    numbers: list[list[float | None]] = field(default_factory=list)

    def add(self, decision: Any) -> None:
        self.sets.append([_plain(decision.drawn), _plain(decision.top), _plain(decision.labels)])
        value = decision.log_propensity
        self.numbers.append([None if isnan(value) else round(float(value), 6)])


def _plain(labels: Any) -> list[Any]:
    return [label if isinstance(label, str) else int(label) for label in labels]


def answer(case: Case, learner: Any, decision: Any, label: Any, t: int) -> None:
    """Tell the label to those who need it, and to others in turn with bits if the case says so."""
    if case.learner in TOLD or (case.way == "label" and t % 3 == 1):
        learner.update(decision, label=label)
    else:
        learner.update(decision, hit=label in decision.labels)


def plain(case: Case, learner: Any, row: Callable[[int], Any], y: Array) -> Iterator[Any]:
    for t in range(SHORT):
        decision = learner.decide(row(t))
        yield decision
        answer(case, learner, decision, int(y[t]), t)


def late(case: Case, learner: Any, row: Callable[[int], Any], y: Array) -> Iterator[Any]:
    """Answers come up to 12 rounds later, out of order, and some never."""
    due: dict[int, list[tuple[int, Any]]] = {}
    for t in range(SHORT):
        decision = learner.decide(row(t))
        yield decision
        if t % 11 != 5:
            due.setdefault(t + 7 * t % 13, []).append((t, decision))
        for i, asked in reversed(due.pop(t, [])):
            answer(case, learner, asked, int(y[i]), i)


def eligible(case: Case, learner: Any, row: Callable[[int], Any], y: Array) -> Iterator[Any]:
    """Some labels at a time, sets of other sizes, now and then fewer labels than would be shown."""
    for t in range(SHORT):
        label, none = int(y[t]), learner.none_label if case.learner == "set-logit:none" else None
        among = [r for r in range(case.k) if (7 * r + 3 * t) % (2 + t % 3) != 1 and r != none]
        among = among[: 2 if t % 10 == 9 else None]
        if case.learner in TOLD and label not in among:
            among.append(label)
        size = None if t % 4 else 1 + t // 4 % case.m
        decision = learner.decide(row(t), eligible=among if t % 5 else None, set_size=size)
        yield decision
        answer(case, learner, decision, label, t)


def grown(case: Case, learner: Any, row: Callable[[int], Any], y: Array) -> Iterator[Any]:
    """Half of the labels are added in the middle, while the answers to some earlier sets are still open."""
    open_ = []
    for t in range(SHORT):
        if t == SHORT // 2:
            learner.add_labels(case.k // 2)
        label = int(y[t]) if t >= SHORT // 2 or y[t] < case.k - case.k // 2 else 0
        decision = learner.decide(row(t))
        yield decision
        if SHORT // 2 - 4 <= t < SHORT // 2:
            open_.append((decision, label, t))
        else:
            answer(case, learner, decision, label, t)
        if t == SHORT // 2 + 5:
            for waiting in open_:
                answer(case, learner, *waiting)


def many(case: Case, learner: Any, row: Callable[[int], Any], y: Array) -> Iterator[Any]:
    """Batches; in every second one some labels only, and some answers that never come."""
    rows = row(slice(0, SHORT))
    none = case.learner == "set-logit:none"
    for turn, (start, stop) in enumerate(pairwise((0, 1, 13, 25, 43, SHORT))):
        some = None if turn % 2 == 0 else [r for r in range(case.k) if r % 4 and not (none and r == 1)]
        decisions = learner.decide_many(rows[start:stop], eligible=some)
        yield from decisions
        told: list[Any] = y[start:stop].tolist()
        if case.learner in TOLD:
            labels = [r if some is None or r in some else None for r in told]
            learner.update_many(decisions, labels=labels)
        else:
            hits = [bool((shown == r).any()) for shown, r in zip(decisions.labels, told, strict=True)]
            learner.update_many(decisions, [h if i % 5 != 4 else None for i, h in enumerate(hits)])


def names(case: Case, learner: Any, row: Callable[[int], Any], y: Array) -> Iterator[Any]:
    """Labels with names."""
    for t in range(SHORT):
        decision = learner.decide(
            row(t), eligible=None if t % 3 else [f"label {r}" for r in range(1, case.k)]
        )
        yield decision
        if case.learner not in TOLD or t % 3 or y[t]:
            answer(case, learner, decision, f"label {y[t]}", t)


def given(case: Case, learner: Any, row: Callable[[int], Any], y: Array) -> Iterator[Any]:
    """Every second set was chosen by somebody else: with a top set, or as SetLogit may take it."""
    for t in range(SHORT):
        if t % 2 == 0:
            decision = learner.decide(row(t))
            yield decision
        else:
            shown = [(t + 3 * i) % case.k for i in range(case.m)]
            about: dict[str, Any] = {"propensity": 0.05 + 0.01 * (t % 7)} if t % 4 == 1 else {}
            if case.learner in DILUTE:
                about = {"top": [(t + i) % case.k for i in range(case.m)], "gamma": 0.2 + 0.1 * (t % 3)}
            among = sorted({*shown, *about.get("top", ()), 0, 1, 2}) if t % 5 == 0 else None
            decision = sa.Decision.given(row(t), shown, eligible=among, **about)
        answer(case, learner, decision, int(y[t]), t)


WAYS = {way.__name__: way for way in (plain, late, eligible, grown, many, names, given)}


def tied(case: Case, learner: Any, x: Any) -> list[list[Any]]:
    """Labels whose scores for a row differ by last bits at most; not those at 0, where nothing is rounded."""
    s = np.asarray(learner.scores(x), np.float64)[0]
    order, near = np.argsort(-s, kind="stable"), 1e-5 * np.abs(s).max()
    groups = np.split(order, np.flatnonzero(-np.diff(s[order]) > near) + 1)
    return [
        [f"label {r}" if case.way == "names" else r for r in group.tolist()]
        for group in groups
        if len(group) > 1 and s[group].any()
    ]


def short(case: Case, X: Any, y: Array, ties: bool = False) -> dict[str, Any]:
    """Decisions one after the other, ranks after some of them, scores at the end; and ties, if asked for."""
    more: dict[str, Any] = {}
    if case.way == "grown":
        more = {"n_labels": case.k - case.k // 2}
    elif case.way == "names":
        more = {"n_labels": None, "labels": [f"label {r}" for r in range(case.k)]}
    learner, kept, ranks, round_ties, rank_ties = made(case, **more), Kept(), [], [], []
    way = WAYS.get(case.way, plain)
    for decision in way(case, learner, lambda at: X[at], y):
        at = len(kept.sets) * (2 if case.way == "given" else 1)
        kept.add(decision)
        if len(kept.sets) % 20 == 0 and case.way != "many":
            ranks.append(_plain(learner.rank(X[-1])[:12]))
            rank_ties.append(tied(case, learner, X[-1:]) if ties else [])
        round_ties.append(tied(case, learner, X[at : at + 1]) if ties else [])
    found = {**vars(kept), "ranks": ranks, "scores": scores(learner, X)}
    return {**found, "ties": round_ties, "rank_ties": rank_ties} if ties else found


def scores(learner: Any, X: Any) -> list[list[float]]:
    """Of some labels, for the last rows."""
    found = np.asarray(learner.scores(X[-3:]), np.float64)[:, :12]
    return [[float(f"{value:.6g}") for value in row] for row in found]


# ---------------------------------------------------------------- the long part


def stretches(case: Case) -> tuple[int, ...]:
    return 0, case.long // 16, case.long // 4, case.long


def long(case: Case, X: Any, y: Array) -> dict[str, Any]:
    """Wrong tops, top sets that missed and shown sets that missed, so far, after each stretch; and scores."""
    learner, visit = made(case), np.arange(case.long) * 997 % len(y)
    counts, total = [], np.zeros(3, np.int64)
    for start, stop in pairwise(stretches(case)):
        total += learner.run(X, y, visit[start:stop])[:3]
        counts.append(total.tolist())
    return {"counts": counts, "final": scores(learner, X)}


def first_tie(case: Case) -> int:
    """The first round of the long part whose top set has a tie, to last bits; or how many rounds there are."""
    (X, y), learner = data(case.kind, case.d, case.k), made(case)
    for t in range(case.long):
        at = t * 997 % len(y)
        decision = learner.decide(X[at])
        if any(set(group) & set(_plain(decision.top)) for group in tied(case, learner, X[at : at + 1])):
            return t
        answer(case, learner, decision, int(y[at]), t)
    return case.long


def run(case: Case, noise: int | None = None, *, ties: bool = False) -> dict[str, Any]:
    """All that is kept of a case; ``noise`` changes the last bits of its rows."""
    X, y = data(case.kind, case.d, case.k)
    X = changed(X, noise)
    return {**short(case, X, y, ties), **(long(case, X, y) if case.way == "plain" else {})}


# ---------------------------------------------------------------- freezing and comparing


def _apart(one: Any, other: Any) -> float:
    """The largest distance between numbers in lists of lists; ``None`` stands for no number."""
    pairs = [
        (a, b)
        for row, twin in zip(one, other, strict=True)
        for a, b in zip(row, twin, strict=True)
        if not (a is None and b is None)
    ]
    return max((abs(a - b) if a is not None and b is not None else np.inf for a, b in pairs), default=0.0)


def freeze(case: Case) -> dict[str, Any]:
    """What the version at hand does, and what changes in the last bits of its rows do to that."""
    frozen, others = run(case, ties=True), [run(case, 100 + i) for i in range(RUNS)]
    if _sensitive(frozen, others):
        others += [run(case, 100 + i) for i in range(RUNS, RUNS + MORE)]
    stable = min(_same(frozen, other) for other in others)
    whole = stable == len(frozen["sets"])
    stable = stable if whole else stable * 3 // 4  # others may part earlier still
    frozen["sets"], frozen["numbers"] = frozen["sets"][:stable], frozen["numbers"][:stable]
    frozen["ranks"], frozen["ties"] = frozen["ranks"][: stable // 20], frozen["ties"][:stable]
    frozen["apart"] = max(_apart(frozen["numbers"], other["numbers"][:stable]) for other in others)
    if whole:
        frozen["scores_apart"] = max(_apart(frozen["scores"], other["scores"]) for other in others)
    else:
        del frozen["scores"]
    if "counts" in frozen:
        counts = np.array([frozen["counts"], *(other["counts"] for other in others)])
        frozen["spread"] = np.ptp(counts, axis=0).tolist()
        frozen["final_apart"] = max(_apart(frozen["final"], other["final"]) for other in others)
    return frozen


def _same(one: dict[str, Any], other: dict[str, Any]) -> int:
    """How many rounds two runs went together."""
    sets = [a == b for a, b in zip(one["sets"], other["sets"], strict=True)]
    ranks = [a == b for a, b in zip(one["ranks"], other["ranks"], strict=True)]
    together = sets.index(False) if False in sets else len(sets)
    return min(together, 20 * ranks.index(False) + 19) if False in ranks else together


def _sensitive(one: dict[str, Any], others: list[dict[str, Any]]) -> bool:
    """Whether the last bits grew, in sets, counts or scores."""
    return any(
        _same(one, other) < len(one["sets"])
        or one.get("counts") != other.get("counts")
        or any(
            _apart(one[s], other[s]) > 1e-5 * np.abs(one[s]).max() for s in ("scores", "final") if s in one
        )
        for other in others
    )


def tolerances(case: Case, frozen: dict[str, Any]) -> Array:
    """How far each count may be off: not at all where changes move nothing, here and one stretch on."""
    spread = np.array(frozen["spread"])
    touched = spread.any(axis=1)
    # scores that have begun to drift: a count will follow, on some machine
    touched[-1] |= frozen["final_apart"] > 5e-5 * np.abs(frozen["final"]).max()
    touched[:-1] |= touched[1:]
    rounds = np.array(stretches(case))[1:, None]
    return np.where(touched[:, None], np.maximum(np.maximum(2 * spread, 3), rounds // 100), 0)


def tolerances_after_a_tie(case: Case, at: int) -> Array:
    """How far each count may be off where the first tie is at round ``at``; 0 in the stretches before it."""
    X, y = data(case.kind, case.d, case.k)
    others = [long(replace(case, seed=100 + i), X, y)["counts"] for i in range(16)]
    rounds = np.array(stretches(case))[1:, None]
    return np.where(rounds > at, np.maximum(2 * np.ptp(others, axis=0), rounds // 50), 0)


def parting(frozen: dict[str, Any], got: dict[str, Any]) -> tuple[int, bool]:
    """The first round with other sets, or how many rounds are held; and whether only ties were turned."""
    for t, (then, now) in enumerate(zip(frozen["sets"], got["sets"], strict=False)):
        if then != now:
            first = next(i for i in (1, 2, 0) if then[i] != now[i])  # the top set; what is drawn follows it
            return t, _tied(then[first], now[first], frozen["ties"][t])
    return len(frozen["sets"]), False


def _tied(then: list[Any], now: list[Any], ties: list[list[Any]]) -> bool:
    """Whether all labels that changed places were tied."""
    moved = [(a, b) for a, b in zip(then, now, strict=True) if a != b]
    return all(any(a in group and b in group for group in ties) for a, b in moved)


def differences(case: Case, frozen: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """What is not as it was, in words; none is as it should be."""
    found, (n, at_a_tie) = [], parting(frozen, got)
    if n < len(frozen["sets"]) and not at_a_tie:
        found.append(f"round {n}: drawn, top and labels were {frozen['sets'][n]}, are {got['sets'][n]}")
    for turn in range(min(n // 20, len(frozen["ranks"]))):
        then, now = frozen["ranks"][turn], got["ranks"][turn]
        if then != now and not _tied(then, now, frozen["rank_ties"][turn]):
            found.append(f"rank after round {20 * turn + 19}: was {then}, is {now}")
            break
    off = _apart(frozen["numbers"][:n], got["numbers"][:n])
    if not off <= max(4.0 * frozen["apart"], 1e-5):
        found.append(f"log propensities differ by {off:.2g}; changed rows: {frozen['apart']:.2g}")
    held = [] if n < len(frozen["sets"]) else ["scores"]
    if "counts" in frozen:
        off_by = np.abs(np.subtract(frozen["counts"], got["counts"]))
        most = tolerances(case, frozen)
        if (off_by > most).any():
            most = np.maximum(most, tolerances_after_a_tie(case, n if at_a_tie else first_tie(case)))
        if (off_by > most).any():
            was, now = frozen["counts"], got["counts"]
            found.append(f"counts were {was}, are {now}, may be off by {most.tolist()}")
        held += [] if most[-1].any() else ["final"]
    for name in held:
        if name in frozen:
            apart = frozen[f"{name}_apart"]
            off, size = _apart(frozen[name], got[name]), np.abs(frozen[name]).max()
            if not off <= max(4.0 * apart, 1e-4 * size):
                found.append(f"{name} of size {size:.3g} differ by {off:.2g}; changed rows: {apart:.2g}")
    return found


def read() -> dict[str, Any]:
    """The frozen results, by case."""
    results = {}
    for path in (OLD, NEW):
        with gzip.open(path, "rt") as file:
            results |= json.load(file)
    for result in results.values():  # older versions kept further numbers
        result["numbers"] = [row[:1] for row in result["numbers"]]
    return results


def main() -> None:
    what, *more = sys.argv[1:]
    if what == "freeze":
        results = {} if not more else json.loads(gzip.decompress(NEW.read_bytes()))  # others stay
        changed = [
            case for case in CASES if standardised(case) or uses_current_rho(case) or breaks_ties_anew(case)
        ]
        chosen = [case for case in changed if not more or str(case) in more]
        with ProcessPoolExecutor() as pool:
            for case, frozen in zip(chosen, pool.map(freeze, chosen), strict=True):
                results[str(case)] = frozen
                print(case, len(frozen["sets"]), frozen.get("spread", ""), flush=True)
        text = json.dumps(results, separators=(",", ":"))
        NEW.write_bytes(gzip.compress(text.encode(), mtime=0))
        print(f"superarm {sa.__version__}: {len(results)} cases, {NEW.stat().st_size:,} bytes")
    else:
        frozen, seeds = read(), [int(seed) for seed in more] or [None]
        for noise in seeds:
            turned = 0
            for case in CASES:
                got = run(case, noise)
                turned += parting(frozen[str(case)], got)[1]
                for line in differences(case, frozen[str(case)], got):
                    print(f"{case}: {line}", flush=True)
            print(f"superarm {sa.__version__}, rows changed by seed {noise}: {turned} cases parted at a tie")


if __name__ == "__main__":
    main()
