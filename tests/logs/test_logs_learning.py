"""Training on logs and judging policies by them, from file to result."""

from __future__ import annotations

from itertools import islice
from math import factorial, isnan

import numpy as np
import polars as pl
import pytest
from plain_learner import PlainSteps

import superarm as sa
from superarm.errors import FeedbackError, InvalidInput
from superarm.explore import Dilute, RunnerUp
from superarm.logs import Log, LoggedDecision, Policy, Writer, evaluate, is_held_out_row, summarize, train
from superarm.streams import Arrays

K = 6
ROWS = 9_000  # of the log


@pytest.fixture(scope="module")
def stream():
    """Rows that never come twice: 24,000 points around K centres."""
    random = np.random.default_rng(5)
    centres = random.normal(size=(K, 8))
    y = random.integers(K, size=24_000)
    return Arrays(centres[y] + 0.8 * random.normal(size=(len(y), 8)), y, shuffle=False)


@pytest.fixture(scope="module")
def logged(stream, tmp_path_factory):
    """A log of MC-DBF with much exploration."""
    path = tmp_path_factory.mktemp("logs") / "log.parquet"
    learner = sa.MCDBF(n_labels=K, n_features=8, set_size=2, gamma=0.5, seed=0, estimate="minimum-variance")
    with Writer(path) as writer:
        sa.simulate(learner, stream, ROWS, log=writer)
    return path


def rewrite(source, target, change):
    with Writer(target) as writer:
        for one in islice(Log(source), 5000):
            writer.add(change(one))
    return Log(target)


def replaced(one, **changes):
    """The row with another claim about its propensity; ``gamma=None`` knows no rule and no top set."""
    old = one.decision
    claims = {"propensity": old.propensity, "gamma": old.gamma, "top": old.top} | changes
    if claims["gamma"] is None:
        claims["top"] = None
    made = sa.Decision.given(old.x, old.drawn, **claims)
    return LoggedDecision.from_decision(made, hit=one.hit)


def ordered_propensity(one):
    one.decision.n_labels = K  # which a log does not say
    return one.decision.ordered_propensity


def given(labels, x=None, hit=None, label=None, **details):
    x = np.ones(2, np.float32) if x is None else x
    return LoggedDecision.from_decision(sa.Decision.given(x, labels, **details), hit=hit, label=label)


def test_rows_kept_out_are_no_function_of_the_draws(logged):
    """Their sets look like all sets (with the learner's own numbers they would be the certain ones)."""
    records = list(Log(logged))
    aside = np.array([is_held_out_row(r.row_index, 0.2) for r in records])
    inside = np.array([len({*r.decision.labels} & {*r.decision.top}) for r in records])
    assert aside.mean() == pytest.approx(0.2, abs=0.02)
    gap = inside[aside].mean() - inside[~aside].mean()
    assert abs(gap) < 4 * inside.std() / np.sqrt(aside.sum())
    splits = [[is_held_out_row(i, 0.2, seed=seed) for i in range(99)] for seed in (0, 1)]
    assert splits[0] != splits[1]


def test_set_logit_learns_from_a_log(logged, tmp_path, stream):
    log = Log(logged)
    summary = summarize(log)
    learner = sa.SetLogit(**summary.learner_params)
    ticks = []
    result = train(log, learner, summary, passes=2, progress=ticks.append)
    seen = result.history
    assert result.rows + result.held_out == ROWS
    assert sum(ticks) == ROWS * (1 + 2 + result.passes)  # both are tried, the better one is kept
    assert [p.pass_number for p in seen] == [1, 2][: result.passes]
    assert seen[-1].rows == result.passes * result.rows
    assert seen[-1].log_loss < 0.8 * result.base_loss
    fresh = stream.rows.dense[ROWS:], stream.y[ROWS:]
    truth = np.mean([y in s for y, s in zip(fresh[1], learner.predict_set(fresh[0]), strict=True)])
    best = seen[-1].hit_rate
    assert best.low - best.width / 2 < truth < best.high + best.width / 2
    learner.save(tmp_path / "model.npz")
    (notes,) = sa.load(tmp_path / "model.npz").metadata["training"]
    assert (notes["logs"], notes["holdout"]) == (log.fingerprints(), 0.2)
    assert notes["passes"] == result.passes


def test_mcdbf_learns_from_logged_draws(logged):
    log = Log(pl.read_parquet(logged)[:4000])
    summary = summarize(log)
    learner = sa.MCDBF(**summary.learner_params, estimate="minimum-variance")
    result = train(log, learner, summary, holdout=0.4)
    assert isnan(result.history[-1].log_loss)
    assert result.history[-1].hit_rate.value > 2 / K + 0.2


def test_a_learner_that_cannot_learn_from_this_log_says_so(logged, tmp_path):
    bare = rewrite(logged, tmp_path / "bare.jsonl", lambda e: replaced(e, gamma=None))
    summary = summarize(bare)
    for name in ("mc-dbf", "banditron"):
        learner = sa.make(name, **(summary.learner_params | {"set_size": 1}))
        with pytest.raises(FeedbackError, match="must be a learner of given sets"):
            train(bare, learner, summary)
    for bad, message in (({"passes": 0}, "passes of train"), ({"holdout": 1.0}, "holdout of train")):
        with pytest.raises(InvalidInput, match=message):
            train(bare, sa.SetLogit(**summary.learner_params), summary, **bad)


def test_unanswered_rows_and_named_labels(tmp_path):
    random = np.random.default_rng(0)
    names = ["a", "b", "c", "d"]
    with Writer(tmp_path / "log.jsonl") as writer:
        for i in range(2000):
            y = int(random.integers(4))
            shown = tuple(random.permutation(names)[:2].tolist())
            answer = ({"hit": names[y] in shown}, {"label": names[y]}, {})[i % 3]
            x = np.eye(4, dtype=np.float32)[y]
            writer.add(given(shown, x, **answer))
    log = Log(tmp_path / "log.jsonl", uniform=True)
    summary = summarize(log)
    learner = sa.SetLogit(**summary.learner_params)
    result = train(log, learner, summary, holdout=0.5)
    assert result.unanswered == 666
    assert learner.predict(np.eye(4, dtype=np.float32)).tolist() == names
    answer = evaluate(log, [Policy("model", learner=learner)], summary, holdout=0.5)
    assert answer.unanswered == sum(is_held_out_row(i, 0.5) for i in range(2, 2000, 3))  # of those that judge
    assert evaluate(log, [Policy("a", fixed=["a"])], summary, holdout=None).unanswered == 666
    assert answer.warnings == ()
    assert answer.results[0].best.high > 0.95


@pytest.mark.parametrize("cls", [sa.SetLogit, PlainSteps])
def test_labels_that_cannot_be_learnt_are_learnt_as_hits_and_misses(tmp_path, cls):
    """Those that were not eligible, as a service exports them; all of them, where a learner knows only the bit."""
    made, twin = (cls(labels=["a", "b", "c"], n_features=2, set_size=1) for _ in range(2))
    x, rounds = np.ones(2, np.float32), [("a", "b"), ("b", "b"), ("a", "c"), ("b", "a")]
    with Writer(tmp_path / "log.jsonl") as writer:
        for shown, right in rounds:
            writer.add(given([shown], x, label=right, eligible=["a", "b"]))
    log = Log(tmp_path / "log.jsonl")
    summary = summarize(log)
    assert train(log, made, summary, holdout=0.0).rows == len(rounds)
    twin.prepare_passes(1)
    for shown, right in rounds:
        learns_label = cls is sa.SetLogit and right != "c"
        answer = {"label": right} if learns_label else {"hit": shown == right}
        twin.update(sa.Decision.given(x, [shown], eligible=["a", "b"]), **answer)
    for name, array in twin.core.state().items():
        np.testing.assert_array_equal(made.core.state()[name], array)


def truth_of(learner, stream, size, gamma=None):
    from superarm.explore.dilute_probabilities import dilute_moments

    sets = learner.predict_set(stream.rows.dense[ROWS:], size)
    top = np.mean([y in s for y, s in zip(stream.y[ROWS:], sets, strict=True)])
    if gamma is None:
        return top
    inside, outside = dilute_moments(K, size, gamma).inclusion
    return inside * top + outside * (1 - top)


def test_the_result_holds_the_truth(logged, stream):
    """Policies of several sizes, that explore or not, judged by the rows that were kept out."""
    log = Log(logged)
    summary = summarize(log)
    learner = sa.SetLogit(**summary.learner_params)
    train(log, learner, summary)
    cases = [(1, None), (2, None), (3, None), (2, 0.3), (3, 0.3)]
    policies = [Policy(f"{m} {g}", learner=learner, set_size=m, rule=g and Dilute(gamma=g)) for m, g in cases]
    policies.append(Policy("fixed", fixed=[0, 1]))
    ticks = []
    answer = evaluate(log, policies, summary, progress=ticks.append)
    assert sum(ticks) == ROWS
    assert answer.warnings == ()
    assert answer.rows == sum(is_held_out_row(i, 0.2) for i in range(ROWS))
    assert answer.low < answer.hit_rate < answer.high
    truths = [truth_of(learner, stream, m, g) for m, g in cases] + [float(np.isin(stream.y, [0, 1]).mean())]
    for result, truth in zip(answer.results, truths, strict=True):
        best = result.best
        assert best is not None
        middle, reach = (best.low + best.high) / 2, best.width / 2
        assert abs(truth - middle) < 2 * reach  # 4 standard errors
        assert best.width < 0.2
        assert all(e.problem for e in result.estimates if result.set_size != 2 and e.name in ("ips", "dr"))


def test_what_the_learner_itself_would_draw(logged):
    log = Log(pl.read_parquet(logged)[:4000])
    summary = summarize(log)
    learner = sa.MCDBF(**summary.learner_params, gamma=0.4, estimate="minimum-variance")
    train(log, learner, summary)
    policies = [Policy("it", learner=learner, rule=rule) for rule in ("own", Dilute(gamma=0.4))]
    drawn, exact = evaluate(log, policies, summary).results
    a, b = (next(e for e in v.estimates if e.name == "pi-dr") for v in (drawn, exact))
    assert abs(a.value - b.value) < a.width
    assert not a.problem


def test_eligible_labels_are_respected(tmp_path):
    """Only some labels can be shown; the policy chooses among them, and none of them may be right."""
    random = np.random.default_rng(1)
    learner = sa.MCDBF(n_labels=5, n_features=5, set_size=2, gamma=0.6, seed=4)
    with Writer(tmp_path / "log.parquet") as writer:
        for _ in range(1500):
            y = int(random.integers(5))
            eligible = sorted(random.permutation(5)[: random.integers(2, 6)].tolist())
            decision = learner.decide(np.eye(5)[y], eligible=eligible)
            writer.add(decision, hit=y in decision.labels)
    log = Log(tmp_path / "log.parquet")
    summary = summarize(log)
    perfect = sa.SetLogit(**summary.learner_params)
    for _ in range(100):
        for y in range(5):
            perfect.update(sa.Decision.given(np.eye(5, dtype=np.float32)[y], [y]), hit=True)
    answer = evaluate(log, [Policy("perfect", learner=perfect)], summary, holdout=None)
    made = [one.decision for one in log]
    truth = np.mean([d.eligible is None or int(np.argmax(d.x)) in d.eligible for d in made])
    linear = [e for e in answer.results[0].estimates if e.name.startswith("pi")]
    assert all(e.low - e.width / 2 < truth < e.high + e.width / 2 for e in linear)
    draws = evaluate(log, [Policy("draws", learner=perfect, rule="own")], summary, holdout=None)
    assert draws.rows == 1500


def test_logs_from_any_other_draw_with_known_odds(tmp_path, stream):
    """No top and gamma, but propensities that leave no set out: the linear estimate still works."""
    random = np.random.default_rng(2)
    weight = np.linspace(1, 2, 15)
    sets = [(i, j) for i in range(K) for j in range(i)]
    chances = weight / weight.sum()
    with Writer(tmp_path / "log.jsonl") as writer:
        for i in range(6000):
            at = random.choice(15, p=chances)
            hit = bool(stream.y[i] in sets[at])
            writer.add(given(sets[at], stream.rows.row(i), hit=hit, propensity=float(chances[at])))
    log = Log(tmp_path / "log.jsonl")
    answer = evaluate(log, [Policy("fixed", fixed=[0, 1, 2])], summarize(log), holdout=None)
    assert answer.warnings == ()
    best = answer.results[0].best
    assert best.name.startswith("pi")
    assert best.low - best.width / 2 < np.isin(stream.y[:6000], [0, 1, 2]).mean() < best.high + best.width / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: replaced(e, gamma=0.2, propensity=None), "do not look drawn as the log says"),
        (lambda e: replaced(e, gamma=0.9, propensity=None), "do not look drawn as the log says"),
        (lambda e: replaced(e, gamma=None, propensity=e.decision.propensity / factorial(2)), "too small"),
        (lambda e: replaced(e, propensity=ordered_propensity(e)), "probabilities of the ordered draw"),
        (lambda e: replaced(e, propensity=min(1.0, 1.5 * e.decision.propensity)), "does not follow from"),
        (lambda e: replaced(e, gamma=None, propensity=None), "nothing can be said"),
        (lambda e: replaced(e, gamma=None, propensity=1.0), "with certainty"),
    ],
)
@pytest.mark.slow
def test_wrong_odds_are_detected(logged, tmp_path, change, message):
    log = rewrite(logged, tmp_path / "wrong.parquet", change)
    answer = evaluate(log, [Policy("fixed", fixed=[0, 1])], summarize(log), holdout=None)
    assert any(message in warning for warning in answer.warnings), answer.warnings


def test_what_evaluate_refuses(logged):
    log = Log(pl.read_parquet(logged)[:500])
    summary = summarize(log)
    other = sa.SetLogit(n_labels=K + 1, n_features=8)
    own = sa.SetLogit(n_labels=K, n_features=8)
    for policy, message in (
        (lambda: Policy("none"), "policy of none must be one of a learner, scores"),
        (
            lambda: Policy("g", learner=own, rule=0.1),
            "rule of g must be a rule of superarm.explore, or 'own'",
        ),
        (
            lambda: Policy("f", fixed=[1], rule=RunnerUp()),
            "rule of f must be left out for a fixed list, or D",
        ),
        (lambda: Policy("d", fixed=[1], rule="own"), "rule of d must be a rule: only a learner has its own"),
        (lambda: Policy("o", learner=other), "labels of o must be those of the log"),
        (lambda: Policy("s", learner=own, set_size=9), "set_size of s must be in 1..6"),
        (lambda: Policy("f", fixed=["no"]), "fixed of f must be known labels"),
    ):
        with pytest.raises(InvalidInput, match=message):
            evaluate(log, [policy()], summary)


def test_nothing_to_judge_by(tmp_path):
    with Writer(tmp_path / "log.csv") as writer:
        for _ in range(5):
            writer.add(given((0, 1)))
            writer.add(given((1, 2)))
    log = Log(tmp_path / "log.csv")
    with pytest.raises(InvalidInput, match=r"log.csv has no held-out rows that have an outcome"):
        evaluate(log, [Policy("fixed", fixed=[0])], summarize(log))


def test_sparse_logs(tmp_path):
    """Sparse rows train and judge sparse learners."""
    learner = sa.MCDBF(n_labels=4, n_features=9, set_size=2, gamma=0.5)
    random = np.random.default_rng(0)
    with Writer(tmp_path / "log.parquet") as writer:
        for _ in range(1500):
            y = int(random.integers(4))
            decision = learner.decide((np.array([y, 8]), np.array([1.0, 0.5])))
            writer.add(decision, hit=y in decision.labels)
    log = Log(tmp_path / "log.parquet")
    summary = summarize(log)
    assert summary.n_features == 9
    made = sa.SetLogit(**summary.learner_params)
    train(log, made, summary)
    assert made.inputs.layout.kind == "sparse"
    answer = evaluate(log, [Policy("made", learner=made)], summary, holdout=0.5)
    assert answer.results[0].best.high > 0.9


@pytest.mark.slow
def test_the_figure(logged, tmp_path):
    log = Log(logged)
    policies = [Policy("fixed", fixed=[0, 1], rule=rule) for rule in (None, Dilute(gamma=0.5))]
    answer = evaluate(log, policies, summarize(log), holdout=None)
    for ending in ("html", "svg", "png", "pdf"):
        answer.plot().save(tmp_path / f"figure.{ending}")
        assert (tmp_path / f"figure.{ending}").stat().st_size > 1000
    assert "fixed, gamma = 0.5" in (tmp_path / "figure.svg").read_text()
    silent = evaluate(log, [Policy("four", fixed=[0])], summarize(Log(logged)), holdout=0.001)
    with pytest.raises(InvalidInput, match="no figure: the log can answer for no policy"):
        silent.plot()


# ---------------------------------------------------------------- one pass or several


def noisy(n, noise, seed=0):
    """Two of six labels, uniformly; the right one by ten numbers, or by chance."""
    random, world = np.random.default_rng(seed), np.random.default_rng(9)
    weights, X = world.normal(size=(10, 6)), random.normal(size=(n, 10))
    y = (X @ weights + noise * random.gumbel(size=(n, 6))).argmax(axis=1)
    shown = [random.permutation(6)[:2].tolist() for _ in range(n)]
    hit = [int(label) in s for label, s in zip(y, shown, strict=True)]
    return pl.DataFrame({"x": X.tolist(), "labels": shown, "hit": hit})


@pytest.mark.slow
def test_several_passes_are_kept_only_if_they_are_better():
    losses = {}
    for name, noise, n in (("noisy", 4.0, 1500), ("clear", 0.1, 1500)):
        log = Log(noisy(n, noise), uniform=True)
        summary = summarize(log)
        for passes in (1, 6):
            learner = sa.SetLogit(**summary.learner_params)
            result = train(log, learner, summary, passes=passes)
            losses[name, passes] = result.history[-1].log_loss
            assert learner.metadata["training"][-1]["passes"] == result.passes
            assert [number for number, _ in result.losses_by_passes] == ([1, 6] if passes == 6 else [])
            assert result.passes == passes if name == "clear" else 1
    assert losses["noisy", 6] == losses["noisy", 1]  # to the bit: one pass is what it was
    assert losses["clear", 6] < losses["clear", 1]


def test_the_rows_that_judge_have_no_say_in_the_passes():
    """Other answers in the rows kept out change neither the choice nor the model."""
    frame = noisy(800, 0.1)
    models = []
    for wrong in (False, True):
        hits = [hit ^ (wrong and is_held_out_row(i, 0.2)) for i, hit in enumerate(frame["hit"])]
        log = Log(frame.with_columns(hit=pl.Series(hits)), uniform=True)
        summary = summarize(log)
        learner = sa.SetLogit(**summary.learner_params)
        result = train(log, learner, summary, passes=3)
        models.append(
            (result.passes, [loss for _, loss in result.losses_by_passes], learner.scores(np.eye(10)))
        )
    for one, two in zip(*models, strict=True):
        np.testing.assert_array_equal(one, two)
