"""check_learner: what every learner promises, tried on one: ours, or your own.

    from superarm.checks import check_learner

    check_learner(MyLearner, gamma=0.2)                            # a class and its parameters
    check_learner(lambda **common: MyLearner(rate=3, **common))    # or anything that makes one

The suite makes small learners (``n_labels``, ``n_features``, ``set_size``, ``seed``, sometimes
``labels``) and raises an AssertionError that names the promise that was broken. `CHECKS` has them
by name, for one test each:

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_learner(check):
        run_check(check, MyLearner, gamma=0.2)
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import exp, isclose
from pathlib import Path
from typing import Any

import numpy as np

from superarm.data.rows import Layout, Row, Rows, stack
from superarm.decisions.decision import Decision
from superarm.errors import FeedbackError, InvalidInput, WeightsOverflow
from superarm.learners import Learner, load
from superarm.native.scaling import Standard

__all__ = ["CHECKS", "check_learner", "run_check"]

Make = Callable[..., Learner]
Check = Callable[[Make], None]

K, D, ROUNDS = 5, 7, 120
NAMES = ["ant", "bee", "cat", "dog", "eel"]
LAYOUTS = {"dense": Layout(D, 0), "sparse": Layout(0, D), "mixed": Layout(3, D - 3)}

CHECKS: dict[str, Check] = {}


def check_learner(learner: Make, /, *, skip: Iterable[str] = (), **params: Any) -> None:
    """Run every check (but those in ``skip``) on ``learner(**params)``."""
    skipped = set(skip)
    for name in skipped - CHECKS.keys():
        raise InvalidInput(f"skip of check_learner must be names of checks, got {name!r}")
    for name in CHECKS:
        if name not in skipped:
            run_check(name, learner, **params)


def run_check(name: str, learner: Make, /, **params: Any) -> None:
    """Run the check of this ``name`` in `CHECKS` on ``learner(**params)``."""

    def make(**common: Any) -> Learner:
        size = {} if getattr(learner, "single_label", False) else {"set_size": 2}
        labels = {} if "labels" in common else {"n_labels": K}
        return learner(**{"n_features": D, **labels, **size, **params, **common})

    try:
        CHECKS[name](make)
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from error
    except Exception as error:
        raise AssertionError(f"{name}: it raised {type(error).__name__}: {error}") from error


# ---------------------------------------------------------------- helpers


def _check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def _ensure(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _data(seed: int = 7, rounds: int = ROUNDS) -> tuple[Any, Any]:
    """Rows, half of whose entries are 0, with a label that they tell."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rounds, D)) * (random.random((rounds, D)) < 0.5)
    X[:, 0] += 0.25
    y = (X @ random.normal(size=(D, K))).argmax(axis=1)
    return X.astype(np.float32), y


def _answer(learner: Learner, decision: Decision, y: int) -> None:
    """What the world says if y is right."""
    label = int(y) if learner.labels is None else learner.labels[y]
    if "hit" in learner.feedback:
        learner.update(decision, hit=label in decision.drawn)
    else:
        learner.update(decision, label=label)


def _fits(learner: Learner, labels: Any, size: int) -> bool:
    """Whether there are as many labels as there should be: where sizes vary, at most."""
    return 0 < len(labels) <= size if learner.rule.sizes_vary else len(labels) == size


def _row(x: Any, kind: str) -> Any:
    """A row as one of the kinds that there are."""
    d, width, _ = LAYOUTS[kind]
    if not width:
        return x
    stored = np.flatnonzero(x[d:])
    return Row(x[:d] if d else None, (stored, x[d:][stored]), width)


def _rows(X: Any, kind: str) -> Rows:
    return stack([_row(x, kind) for x in X], LAYOUTS[kind])


def _of(make: Make, kind: str, **common: Any) -> Learner:
    """A learner for rows of this kind."""
    return make(n_features=LAYOUTS[kind].n_features, **common)


def _play(learner: Learner, X: Any, y: Any, kind: str = "dense") -> list[list[Any]]:
    """Decide and answer round by round; what was drawn."""
    drawn = []
    for x, label in zip(X, y, strict=True):
        decision = learner.decide(_row(x, kind))
        drawn.append(decision.drawn)
        _answer(learner, decision, label)
    return drawn


def _arrays(learner: Learner) -> dict[str, bytes]:
    """Every bit of the state."""
    return {name: array.tobytes() for name, array in learner.core.state().items()}


def _weights(learner: Learner, labels: list[int]) -> list[bytes]:
    """The weights of these labels, where they are kept as ours are."""
    state = learner.core.state()
    axes = {"weights.dense": 0, "weights.sparse": 1}
    return [state[name].take(labels, axis).tobytes() for name, axis in axes.items() if name in state]


def _bits(learner: Learner) -> tuple[Any, ...]:
    """What was learnt, and the counters: what a refused call must leave as it was."""
    learnt = {name: bits for name, bits in _arrays(learner).items() if not name.startswith("rule.")}
    return learnt, learner.round, learner.answered.low, bytes(learner.answered.later)


@contextmanager
def _refused(error: type[Exception], what: str) -> Iterator[None]:
    """What happens inside must be refused, with a message in the template's words."""
    try:
        yield
    except error as raised:
        _ensure(" of " in str(raised) and " must " in str(raised), f"{what}: unclear message {raised}")
    except Exception as other:
        raise AssertionError(f"{what} raised {other!r}, not {error.__name__}") from other
    else:
        raise AssertionError(f"{what} was not refused with {error.__name__}")


def _saved(learner: Learner) -> Learner:
    """The learner after a trip through a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        learner.save(path)
        return load(path)


def _trained(make: Make, **common: Any) -> Learner:
    learner = make(**common)
    _play(learner, *_data(3, 30))
    return learner


# ---------------------------------------------------------------- bits and randomness


@_check
def fused_equals_stepwise(make: Make) -> None:
    """`run` and round-by-round calls give the same bits, whatever the rows."""
    X, y = _data()
    for kind in LAYOUTS:
        fused, stepwise = _of(make, kind, seed=3), _of(make, kind, seed=3)
        counts = fused.run(_rows(X, kind), y)
        drawn = _play(stepwise, X, y, kind)
        _ensure(_arrays(fused) == _arrays(stepwise), f"{kind} run and decide/update differ in bits")
        _ensure(fused.round == stepwise.round == ROUNDS, "run counts other rounds than decide")
        _ensure(fused.answered.low == stepwise.answered.low == ROUNDS, "run leaves rounds unanswered")
        missed = sum(label not in shown for label, shown in zip(y, drawn, strict=True))
        _ensure(counts[2] == missed, "run counts other shown misses than decide")


@_check
def dense_equals_sparse(make: Make) -> None:
    """All kinds of rows lead to the same weights, up to float32 (unless it scales them differently)."""
    X, y = _data(rounds=60)
    dense = make(seed=1)
    drawn = _play(dense, X, y)
    if isinstance(dense.core.scaling, Standard):
        return
    for kind in ("sparse", "mixed"):
        other = _of(make, kind, seed=1)
        _ensure(_play(other, X, y, kind) == drawn, f"dense and {kind} rows lead to different sets")
        a, b = dense.scores(X), other.scores(_rows(X, kind))
        a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
        scale = max(1.0, float(np.abs(a).max()))
        _ensure(np.abs(a - b).max() <= 1e-4 * scale, f"dense and {kind} scores differ")


@_check
def randomness_is_the_seed(make: Make) -> None:
    """The same seed gives the same bits; another seed other draws, if the learner draws at all."""
    X, y = _data(rounds=300)
    one, two, other = make(seed=5), make(seed=5), make(seed=6)
    drawn = _play(one, X, y)
    _ensure(_play(two, X, y) == drawn, "the same seed gave different draws")
    _ensure(_arrays(one) == _arrays(two), "the same seed gave different bits")
    if make().decide(X[0]).propensity != 1.0:
        _ensure(_play(other, X, y) != drawn, "another seed gave the same draws")


@_check
def saved_goes_on(make: Make) -> None:
    """save, load, go on: the same bits as never having stopped, open decisions included."""
    X, y = _data()
    for kind in LAYOUTS:
        learner = _of(make, kind, seed=2)
        _play(learner, X[:50], y[:50], kind)
        rows = [_row(x, kind) for x in X]
        open_ = [learner.decide(x) for x in rows[50:55]]
        _answer(learner, open_[3], y[53])
        loaded = _saved(learner)
        _ensure(type(loaded) is type(learner), "another class came back")
        _ensure(loaded.params == learner.params, "other parameters came back")
        for it in (learner, loaded):
            _answer(it, open_[1], y[51])
            _play(it, X[55:], y[55:], kind)
            _answer(it, open_[4], y[54])
        _ensure(_arrays(loaded) == _arrays(learner), "the loaded learner went on to other bits")
        _ensure(_bits(loaded) == _bits(learner), "the loaded learner counts other rounds or answers")


@_check
def decision_survives_json(make: Make) -> None:
    """to_dict, JSON, from_dict: the update computes the same bits."""
    X, y = _data(rounds=40)
    for kind in LAYOUTS:
        direct, stored = _of(make, kind, seed=8), _of(make, kind, seed=8)
        for i, label in enumerate(y):
            x = _row(X[i], kind)
            among = [0, 2, 3, 4] if i % 3 == 0 else None
            label = 2 if among and label == 1 else label
            _answer(direct, direct.decide(x, eligible=among), label)
            decision = stored.decide(x, eligible=among)
            text = json.dumps(decision.to_dict(), allow_nan=False)
            back = Decision.from_dict(json.loads(text))
            _ensure(back.to_dict() == decision.to_dict(), "from_dict gave another Decision back")
            _answer(stored, back, label)
        _ensure(_arrays(direct) == _arrays(stored), "a stored Decision was learnt from differently")


@_check
def batches_equal_single_calls(make: Make) -> None:
    """decide_many and update_many, of columns and of lists of stored decisions: the bits of single calls."""
    X, y = _data(rounds=60)
    for kind in LAYOUTS:
        single, columns, stored = (_of(make, kind, seed=4) for _ in range(3))
        decisions = columns.decide_many(_rows(X, kind))
        one_by_one = [single.decide(_row(x, kind)) for x in X]
        rows = [Decision.from_dict(stored.decide(_row(x, kind)).to_dict()) for x in X]
        _ensure(decisions.labels.tolist() == [d.labels for d in one_by_one], f"{kind}: other sets in a batch")
        for decision, label in zip(one_by_one, y, strict=True):
            _answer(single, decision, label)
        hits = [label in decision.drawn for decision, label in zip(one_by_one, y, strict=True)]
        answers = {"hits": hits} if "hit" in single.feedback else {"labels": y}
        columns.update_many(decisions, **answers)
        stored.update_many(rows, **answers)
        _ensure(_arrays(columns) == _arrays(single), f"{kind}: update_many and update differ in bits")
        _ensure(
            _arrays(stored) == _arrays(single), f"{kind}: a list of decisions was learnt from differently"
        )


@_check
def deciding_moves_a_cursor_only(make: Make) -> None:
    """decide(at=cursor) leaves the learner alone; advance makes up for it."""
    X, y = _data(rounds=30)
    usual, other = make(seed=9), make(seed=9)
    for x, label in zip(X, y, strict=True):
        expected, cursor = usual.decide(x), other.cursor()
        before = None if other.core is None else _arrays(other)
        decision = other.decide(x, at=cursor)
        _ensure(decision.drawn == expected.drawn, "another set at a cursor")
        _ensure(other.round == decision.round, "deciding at a cursor moved the learner")
        _ensure(before is None or _arrays(other) == before, "deciding at a cursor moved the learner")
        other.advance(Decision.from_dict(decision.to_dict()))
        _ensure(other.cursor() == usual.cursor(), "advance did not make up for deciding at a cursor")
        _answer(usual, expected, label)
        _answer(other, decision, label)
    _ensure(_arrays(usual) == _arrays(other), "decide, and decide at a cursor and advance, differ in bits")


# ---------------------------------------------------------------- answers


@_check
def feedback_comes_when_it_comes(make: Make) -> None:
    """Late, in any order, or never."""
    X, y = _data(rounds=40)
    learner = make()
    decisions = [learner.decide(x) for x in X]
    order = np.random.default_rng(0).permutation(40)
    for i in order[:30]:
        _answer(learner, decisions[i], y[i])
    for i in range(40):
        _ensure((i in learner.answered) == (i in order[:30]), f"round {i} is booked wrongly")
    _ensure(np.isfinite(learner.scores(X)).all(), "scores are not finite after late feedback")


@_check
def second_answer_is_refused(make: Make) -> None:
    """One Decision, one answer; also after save and load, and after the Decision was stored."""
    X, y = _data(rounds=6)
    learner = make()
    decisions = [learner.decide(x) for x in X]
    for i in (4, 1, 0):
        _answer(learner, decisions[i], y[i])
    for it in (learner, _saved(learner)):
        before = _bits(it)
        for i in (4, 1, 0):
            again = Decision.from_dict(decisions[i].to_dict())
            for decision in (decisions[i], again):
                with _refused(FeedbackError, "a second answer"):
                    _answer(it, decision, 0)
        _ensure(_bits(it) == before, "a refused answer changed the learner")
        _answer(it, decisions[2], y[2])


@_check
def foreign_decision_is_refused(make: Make) -> None:
    """A Decision of another learner, even of one made alike, or of the future."""
    X, _ = _data(rounds=3)
    learner, other = _trained(make), _trained(make)
    before = _bits(learner)
    with _refused(FeedbackError, "another learner's decision"):
        _answer(learner, other.decide(X[0]), 0)
    mine = learner.decide(X[0]).to_dict()
    future = Decision.from_dict({**mine, "round": learner.round + 5})
    with _refused(FeedbackError, "a decision it has not made"):
        _answer(learner, future, 0)
    answer: dict[str, Any] = {"hit": True} if "hit" in learner.feedback else {"label": 0}
    with _refused(FeedbackError, "no decision at all"):
        learner.update(None, **answer)  # type: ignore[arg-type]
    _ensure(_bits(learner)[0] == before[0], "a refused answer changed the weights")


@_check
def wrong_kind_of_feedback_is_refused(make: Make) -> None:
    """Neither answer, both, one it does not take, or something that is no answer."""
    X, _ = _data(rounds=1)
    learner = _trained(make)
    decision = learner.decide(X[0])
    before = _bits(learner)
    hit = True if "hit" in learner.feedback else None
    label = 0 if "label" in learner.feedback else None
    wrong: list[dict[str, Any]] = [{}, {"hit": True, "label": 0}]
    wrong += [{"label": 0}] if label is None else [{"label": K}, {"label": -1}, {"label": "no such"}]
    wrong += [{"hit": True}] if hit is None else [{"hit": 2}, {"hit": "yes"}]
    for answer in wrong:
        with _refused(ValueError, f"the answer {answer}"):
            learner.update(decision, **answer)
    _ensure(_bits(learner) == before, "a refused answer changed the learner")
    _answer(learner, decision, 0)


@_check
def given_sets_are_learnt_or_refused(make: Make) -> None:
    """A set that somebody else chose: learnt from once, or refused."""
    X, _ = _data(rounds=1)
    learner = _trained(make)
    before = _bits(learner)
    given = Decision.given(X[0], labels=[3] if learner.single_label else [3, 1])
    if not learner.learns_from_given:
        with _refused(FeedbackError, "a given set"):
            _answer(learner, given, 3)
        _ensure(_bits(learner) == before, "a refused set changed the learner")
        return
    _answer(learner, given, 3)
    _ensure(_bits(learner)[0] != before[0], "a given set taught nothing")
    with _refused(FeedbackError, "a given set, twice"):
        _answer(learner, given, 3)


# ---------------------------------------------------------------- decisions and predictions


@_check
def decision_is_consistent(make: Make) -> None:
    """labels is a permutation of drawn, best first; propensities are probabilities."""
    X, y = _data()
    learner = make()
    for x, label in zip(X, y, strict=True):
        scores = learner.scores(x[None])[0]
        decision = learner.decide(x)
        labels, p, z = decision.labels, decision.propensity, decision.ordered_propensity
        _ensure(sorted(labels) == sorted(decision.drawn), "labels and drawn are different sets")
        _ensure(len(set(labels)) == len(labels), "a label is shown twice")
        _ensure(_fits(learner, labels, learner.set_size), "not set_size labels")
        _ensure(_fits(learner, set(decision.top), learner.set_size), "the top set has another size")
        _ensure((np.diff(scores[labels]) <= 0).all(), "labels are not shown best first")
        if p is None or not 0.0 < p <= 1.0 or not isclose(p, exp(decision.log_propensity)):
            raise AssertionError(f"propensity {p} is no probability, or not exp of its log")
        _ensure(z is None or 0.0 < z <= p * (1 + 1e-9), f"ordered propensity {z} exceeds the set's, {p}")
        _answer(learner, decision, label)


@_check
def eligible_and_set_size_are_respected(make: Make) -> None:
    """A decision shows what it may, as much as it may; or says why not."""
    X, _ = _data(rounds=50)
    learner = _trained(make)
    for i, x in enumerate(X):
        among = [[1, 3, 4], [0, 2], [4], [2, 4, 0, 1]][i % 4]
        decision = learner.decide(x, eligible=among)
        _ensure(set(decision.labels) <= set(among), f"{decision.labels} shown, {among} eligible")
        _ensure(set(decision.top) <= set(among), f"top set {decision.top}, {among} eligible")
        _ensure(_fits(learner, decision.labels, min(learner.set_size, len(among))), "another set size")
        _ensure(decision.eligible == sorted(among), "the Decision forgot the eligible labels")
        if len(among) <= learner.set_size and not learner.rule.sizes_vary:
            _ensure(decision.propensity == 1.0, "all eligible labels shown, yet not with probability 1")
        _answer(learner, decision, among[0])
        for size in (1, 3):
            if learner.single_label and size > 1:
                with _refused(InvalidInput, "a larger set"):
                    learner.decide(x, set_size=size)
            else:
                decision = learner.decide(x, set_size=size)
                _ensure(_fits(learner, decision.labels, size), f"set_size={size} was not respected")
                _answer(learner, decision, 1)
    for wrong in ([], [0, 0], [0, K], [-1], ["no such"], [0.5]):
        with _refused(InvalidInput, f"eligible={wrong}"):
            learner.decide(X[0], eligible=wrong)
    sizes: list[Any] = [0, -1, K + learner.rule.sizes_vary, 1.5, "2"]
    for wrong_size in sizes:
        with _refused(InvalidInput, f"set_size={wrong_size!r}"):
            learner.decide(X[0], set_size=wrong_size)


@_check
def ineligible_rows_stay(make: Make) -> None:
    """Weights of labels that could not be shown do not move (unless it says that they do)."""
    X, _ = _data()
    for kind in LAYOUTS:
        learner = _of(make, kind)
        if learner.moves_ineligible:
            return
        _play(learner, X[:30], np.arange(30) % K, kind)
        before = _weights(learner, [0, 3])
        for i, x in enumerate(X[30:]):
            _answer(learner, learner.decide(_row(x, kind), eligible=[4, 1, 2]), [1, 2, 4][i % 3])
        _ensure(_weights(learner, [0, 3]) == before, "weights of ineligible labels moved")


@_check
def rank_and_predict_agree(make: Make) -> None:
    """rank orders all labels; predict and predict_set are its beginning."""
    X, _ = _data(rounds=20)
    learner = _trained(make)
    best, sets = learner.predict(X), learner.predict_set(X)
    for i, x in enumerate(X):
        order = learner.rank(x)
        _ensure(sorted(order) == list(range(K)), "rank is no permutation of the labels")
        _ensure(order == learner.rank(_row(x, "sparse")), "rank differs between a dense and a sparse row")
        _ensure(best[i] == order[0], "predict is not the first of rank")
        _ensure(_fits(learner, sets[i], learner.set_size), "predict_set has another size")
        _ensure(list(sets[i]) == order[: len(sets[i])], "predict_set is not the beginning of rank")
    before = _arrays(learner)
    learner.predict(X)
    _ensure(_arrays(learner) == before, "predict changed the learner")


@_check
def names_are_kept(make: Make) -> None:
    """Label names go in and come out, everywhere, also from a file."""
    X, y = _data(rounds=40)
    named, plain = make(labels=NAMES, seed=1), make(seed=1)
    for x, label in zip(X, y, strict=True):
        decision, other = named.decide(x), plain.decide(x)
        _ensure(decision.drawn == [NAMES[i] for i in other.drawn], "names and numbers drew differently")
        _answer(named, decision, label)
        _answer(plain, other, label)
    loaded = _saved(named)
    for it in (named, loaded):
        _ensure(it.labels == tuple(NAMES), "the names were lost")
        _ensure(it.rank(X[0]) == [NAMES[i] for i in plain.rank(X[0])], "rank has other names")
        _ensure(it.predict(X).tolist() == [NAMES[i] for i in plain.predict(X)], "predict has other names")
        limited = it.decide(X[0], eligible=["bee", "dog", "eel"])
        _ensure(set(limited.labels) <= {"bee", "dog", "eel"}, "eligible names were not respected")
        with _refused(InvalidInput, "a number for a name"):
            it.decide(X[0], eligible=[1, 3])


# ---------------------------------------------------------------- bad input


@_check
def bad_rows_are_refused(make: Make) -> None:
    """NaN, inf, wrong lengths and broken sparse rows: refused, and nothing changes."""
    good = np.ones(D, np.float32)
    bad: list[Any] = [np.ones(D - 1), np.ones(D + 1), np.ones((2, D)), "row", [None] * D, []]
    bad += [np.full(D, "x"), np.full(D, 1e39)]
    bad += [np.where(np.arange(D) == 2, value, good) for value in (np.nan, np.inf, -np.inf)]
    bad += [([0, D], [1.0, 1.0]), ([-1, 2], [1.0, 1.0]), ([3, 1], [1.0, 1.0]), ([1, 1], [1.0, 1.0])]
    bad += [([0, 1], [1.0]), ([0, 1], [1.0, np.nan]), ([0, 1], [np.inf, 1.0])]
    for kind in ("dense", "sparse"):
        learner, twin = make(), make()
        for it in (learner, twin):
            _play(it, *_data(3, 30), kind)
        for x in bad:
            with _refused(InvalidInput, f"the row {x!r}"):
                learner.decide(x)
            with _refused(InvalidInput, f"rank of the row {x!r}"):
                learner.rank(x)
        _ensure(_bits(learner) == _bits(twin), "a refused row changed the learner")
        for it in (learner, twin):
            _play(it, *_data(4, 20), kind)
        _ensure(_bits(learner) == _bits(twin), "a refused row changed what came after it")
    fresh = make()
    with _refused(InvalidInput, "NaN as the first row"):
        fresh.decide(np.full(D, np.nan))
    _ensure(fresh.round == 0, "a refused first row was counted")


@_check
def bad_row_stops_a_run(make: Make) -> None:
    """A run stops before a bad row, with all rounds before it learnt."""
    X, y = _data()
    broken = X.copy()
    broken[70, 1] = np.nan
    learner, short = make(), make()
    with _refused(InvalidInput, "NaN in a run"):
        learner.run(broken, y)
    short.run(X[:70], y[:70])
    _ensure(_bits(learner) == _bits(short), "the run did not stop before the bad row")


@_check
def overflow_leaves_the_last_good_state(make: Make) -> None:
    """However large the rows: an update is refused, or leaves all weights finite."""
    X, y = _data(rounds=40)
    for power in (5, 10, 15, 19, 25, 30, 37, 38):
        for kind in LAYOUTS:
            learner = _of(make, kind)
            _play(learner, X[:10], y[:10], kind)
            for x, label in zip(X, y, strict=True):
                row = np.clip(x, -3, 3) * np.float32(10.0**power)
                before = _bits(learner)
                try:
                    decision = learner.decide(_row(row, kind))
                    before = _bits(learner)
                    _answer(learner, decision, label)
                except WeightsOverflow as error:
                    _ensure("round" in str(error), f"the message names no round: {error}")
                    _ensure(_bits(learner) == before, "a refused update changed the learner")
                    break
            finite = all(np.isfinite(array).all() for array in learner.core.state().values())
            _ensure(finite, f"rows of size 1e{power} left weights that are not finite")
