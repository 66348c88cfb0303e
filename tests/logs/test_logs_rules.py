"""Weights of sets that any rule drew: unbiased by enumeration, and the policy is left as it was."""

from __future__ import annotations

import copy
from itertools import combinations, islice

import numpy as np
import pytest
from logged import World, draws_of, mask

import superarm as sa
from superarm.explore import (
    Boltzmann,
    Cover,
    Dilute,
    Mixture,
    RunnerUp,
    SetDistribution,
    Uniform,
    distribution_of,
)
from superarm.logs import Log, LoggedDecision, Policy, Writer, evaluate, summarize, train
from superarm.logs.batches import LogBatch
from superarm.logs.diagnostics import excess_of_top_labels
from superarm.logs.hit_rates import HitRateEstimator
from superarm.logs.other_formats import Slots, slots_rule
from superarm.logs.policies import PolicyRunner
from superarm.logs.weights import inclusion_of_all, linear_weights, set_weights, weigh_rows
from superarm.streams import Arrays

K = 6
SCORES = [1.0, 0.8, 0.1, 0.5, -1.0, 0.3]


def drawn_by(rule, m, eligible=None):
    return distribution_of(rule.decide(SCORES, set_size=m, eligible=eligible))


def in_slots():
    record = slots_rule(([0, 3], [0.3, 0.7]), ([1, 2, 5], [0.5, 0.3, 0.2]))
    return Slots.distribution_from(record, (), range(K), 2)


DRAWS = {
    "runner-up of 2": lambda: drawn_by(RunnerUp(explore="rank"), 2),
    "runner-up of 3": lambda: drawn_by(RunnerUp(), 3),
    "runner-up of 1": lambda: drawn_by(RunnerUp(), 1),
    "runner-up of 4 of 5": lambda: drawn_by(RunnerUp(), 4, [0, 1, 2, 3, 5]),
    "mixed of 2": lambda: drawn_by(RunnerUp(uniform=0.1), 2),
    "mixed of 3": lambda: drawn_by(RunnerUp(uniform=0.02), 3),
    "mixed of 4": lambda: drawn_by(RunnerUp(uniform=0.3), 4),
    "mixed of 1": lambda: drawn_by(RunnerUp(uniform=0.1), 1),
    "before the first answer": lambda: distribution_of(RunnerUp(set_size=2).decide([0.0] * K)),
    "ties": lambda: distribution_of(
        RunnerUp(set_size=3, uniform=0.1).decide([1.0, 0.5, 0.5, 0.5, -1.0, -1.0])
    ),
    "softmax": lambda: drawn_by(Boltzmann(), 1),
    "uniform": lambda: drawn_by(Uniform(), 2),
    "slots": in_slots,
    "dilute": lambda: drawn_by(Dilute(gamma=0.4), 2),
}


class Plain(SetDistribution):
    """A draw that only answers what every draw must: what somebody's own rule may give."""

    def __init__(self, draw):
        super().__init__(draw.eligible, draw.m)
        self.probability, self._pairs = draw.probability, draw.pair_inclusion()

    def probability(self, labels):
        raise NotImplementedError

    def inclusion(self):
        return np.diagonal(self._pairs)

    def pair_inclusion(self):
        return self._pairs


Plain.__abstractmethods__ = frozenset()


def possible(draw):
    """A batch with each possible set once, and the chance of each."""
    sets = [s for s in combinations(draw.eligible, draw.m) if draw.probability(s) > 1e-12]
    p, n = np.array([draw.probability(s) for s in sets]), len(sets)
    unknown = np.full(n, np.nan)
    among = np.tile(np.isin(np.arange(K), draw.eligible), (n, 1))
    top = np.tile(np.arange(K) < draw.m, (n, 1))
    shown = mask(np.array(sets), K)
    return LogBatch([None] * n, np.zeros(n), shown, top, among, unknown, [draw] * n), p


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("plain", [False, True])
def test_weights_are_unbiased_by_enumeration(name, plain):
    """E[w 1_S] = pi_B for every policy that the draw can answer for; for all others w is NaN."""
    draw = Plain(DRAWS[name]()) if plain else DRAWS[name]()
    batch, p = possible(draw)
    assert p.sum() == pytest.approx(1.0)
    untied = isinstance(draw, Mixture) and not draw.ties
    np.testing.assert_allclose(batch.propensity, p)
    assert p @ excess_of_top_labels(batch) == pytest.approx(0.0, abs=1e-9)
    shown = batch.shown * 1.0
    answered = {"linear": 0, "set": 0}
    others = [drawn_by(RunnerUp(explore=0.2), draw.m, draw.eligible), DRAWS["mixed of 2"](), draw]
    sets = [s for m in range(1, len(draw.eligible)) for s in combinations(draw.eligible, m)]
    policies = [Mixture.certain(draw.eligible, s) for s in sets]
    policies += [Mixture.dilute(draw.eligible, s, 0.3) for s in sets]
    policies += [other for other in others if other.m == draw.m]
    for policy in policies:
        pi = np.tile(inclusion_of_all([policy], K), (len(p), 1))
        # Is there any weight of the possible sets that gives pi?
        best = np.linalg.lstsq(shown.T, pi[0], rcond=None)[0]
        known = np.abs(shown.T @ best - pi[0]).max() < 1e-9
        linear = linear_weights(batch, pi)
        assert np.isnan(linear.w).all() == (not known)
        if known:
            answered["linear"] += 1
            np.testing.assert_allclose((p * linear.w) @ shown, pi[0], atol=1e-8)
            assert p @ linear.w**2 == pytest.approx(linear.mean_square[0], rel=1e-6)
        whole = set_weights(batch, [policy] * len(p))
        covered = sum(policy.probability(s) for s in batch.sets) == pytest.approx(1.0)
        if policy.m == draw.m and covered:
            answered["set"] += 1
            np.testing.assert_allclose((p * whole.w) @ shown, pi[0], atol=1e-8)
            if not np.isnan(whole.mean_square[0]):
                assert p @ whole.w**2 == pytest.approx(whole.mean_square[0], rel=1e-6)
            else:
                assert not untied
        elif untied or (isinstance(policy, Mixture) and not policy.dilute_share):
            assert np.isnan(whole.w).all()
    assert answered["linear"] >= 1
    assert answered["set"] >= 1


@pytest.mark.parametrize("name", ["ties", "before the first answer"])
def test_a_top_set_in_the_order_of_the_draw_is_sound(name):
    """Older logs have one: which of the tied labels are in it depends on the draw."""
    draw = DRAWS[name]()
    batch, p = possible(draw)
    sets = [(labels, probability / (1.0 - draw.dilute_share)) for labels, probability in draw.sets.items()]
    one_order = Mixture(draw.eligible, draw.m, sets, draw.dilute_share)
    p_given_top = np.array([one_order.probability(s) for s in batch.sets])
    assert np.abs(p_given_top - p).max() > 0.1
    assert p_given_top @ excess_of_top_labels(batch) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("policy", ["runner-up of 2", "mixed of 2"])
def test_a_policy_of_few_sets_on_a_log_of_the_paper(policy):
    """E[w^2] is exact, too, where the log was drawn as in eq. 5."""
    draw, own = DRAWS["dilute"](), DRAWS[policy]()
    batch, p = possible(draw)
    batch.distributions[:] = [Mixture.dilute(range(K), [0, 1], 0.4)] * len(p)  # the two best of SCORES
    np.testing.assert_allclose(batch.propensity, p)
    policy = [own] * len(p)
    pi = inclusion_of_all(policy, K)
    for weights in (set_weights(batch, policy), linear_weights(batch, pi)):
        np.testing.assert_allclose((p * weights.w) @ batch.shown, pi[0], atol=1e-9)
        assert p @ weights.w**2 == pytest.approx(weights.mean_square[0])


@pytest.fixture(scope="module")
def stream():
    random = np.random.default_rng(5)
    centres = random.normal(size=(K, 8))
    y = random.integers(K, size=14_000)
    return Arrays(centres[y] + 0.8 * random.normal(size=(len(y), 8)), y, shuffle=False)


@pytest.fixture(scope="module")
def logged(stream, tmp_path_factory):
    """A log of SetLogit with its own rule, and a little uniform exploration; names are not in order."""
    path = tmp_path_factory.mktemp("rules") / "log.parquet"
    names = ["fox", "ant", "cow", "bee", "elk", "dog"]
    learner = sa.SetLogit(labels=names, n_features=8, set_size=2, seed=0, uniform=0.02)
    with Writer(path) as writer:
        sa.simulate(learner, stream, 8000, log=writer)
    return path


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_a_log_asks_the_rule_again(stream, tmp_path, m, ending):
    """From a file, with labels in an order that it does not know: the chance of each set, to 12 digits."""
    names = ["fox", "7", "cow", "bee", "elk", "dog"]
    learner = sa.SetLogit(labels=names, n_features=8, set_size=m, seed=1, uniform=0.1, explore="rank")
    made = []
    with Writer(tmp_path / f"log.{ending}") as writer:
        for i in range(60):
            eligible = ["dog", "7", "fox", "bee"] if i % 3 == 0 else None
            made.append(learner.decide(stream.rows.row(i), eligible=eligible))
            writer.add(made[-1], hit=np.int64(i % 2))
    log = Log(tmp_path / f"log.{ending}")
    assert [one.hit for one in log] == [bool(i % 2) for i in range(60)]
    labels = summarize(log, labels=sorted(names)).vocabulary
    assert [str(name) for name in labels.all()] == sorted(names)
    batch = LogBatch.from_records(list(log), labels)
    np.testing.assert_allclose(batch.rule_propensity, [d.propensity for d in made], rtol=1e-12)


def warnings_of(rows):
    log = Log(rows)
    policies = [Policy("fixed", fixed=labels) for labels in ([0, 1], [2, 3, 4])]
    return evaluate(log, policies, summarize(log, labels=K), holdout=None).warnings


COLD_STARTS = {
    "runner-up": {"set_size": 2},
    "runner-up, uniform": {"set_size": 3, "explore": "rank", "uniform": 0.1},
    "cover, uniform": {"coverage": 0.9, "uniform": 0.05},
    "cover": {"explore": Cover(coverage=0.8, warm_up=10)},
}


@pytest.mark.parametrize(
    ("name", "learns"),
    # all tied for good, this cover shows all labels in the end: nothing that could be wrong
    [(name, learns) for name in COLD_STARTS for learns in (True, False) if learns or name != "cover"],
)
def test_a_log_that_began_with_tied_scores_is_sound_and_a_wrong_one_is_not(stream, name, learns):
    """What it says of its draws holds where all labels are tied, as before the first answer, and later on."""
    learner = sa.SetLogit(n_labels=K, n_features=8, seed=2, **COLD_STARTS[name])
    rows = []
    for i in range(600):
        decision = learner.decide(stream.rows.row(i))
        hit = bool(stream.y[i] in decision.labels)
        if learns:
            learner.update(decision, hit=hit)
        rows.append(LoggedDecision.from_decision(decision, hit=hit).to_dict())
    drawn_wrongly = ("do not look drawn", "propensities are")
    assert not any(what in warning for warning in warnings_of(rows) for what in drawn_wrongly)
    unlogged = {"propensity": None, "ordered_propensity": None}
    for row in rows:  # the top set, or the first labels of all, whatever the rule drew
        labels = row["top"] if learns else list(range(len(row["labels"])))
        row |= {"labels": labels, "drawn": labels, "set_size": len(labels)} | unlogged
    assert any(what in warning for warning in warnings_of(rows) for what in drawn_wrongly), warnings_of(rows)


@pytest.mark.slow
def test_policies_are_left_as_they_were(logged):
    """Also those that draw: not a bit of the learner's state moves, nor its round, nor a rule's budget."""
    log = Log(logged)
    summary = summarize(log)
    learner = sa.SetLogit(**summary.learner_params)
    train(log, learner, summary)
    rule = RunnerUp(set_size=2)
    for _ in range(5):
        rule.decide([0.1] * K)
    before, clock = copy.deepcopy(learner), rule.distribution([0.1] * K)
    policies = [
        Policy("draws", learner=learner, rule="own"),
        Policy("rule", learner=learner, rule=rule),
        Policy("top", learner=learner),
    ]
    evaluate(log, policies, summary, holdout=0.1)
    assert (learner.round, learner.answered.count) == (before.round, before.answered.count)
    for name, was in before.core.state().items():
        np.testing.assert_array_equal(was, learner.core.state()[name], err_msg=name)
    now = rule.distribution([0.1] * K)
    assert now.probability([0, 1]) == clock.probability([0, 1])


def test_a_policy_that_explores_is_judged_as_what_it_is(logged, stream, tmp_path):
    """Its sets have the chances that its own `decide` would give them, with the budget of the model file."""
    log = Log(logged)
    summary = summarize(log)
    learner = sa.SetLogit(**summary.learner_params, explore="rank")
    for i in range(3000):
        made = learner.decide(stream.rows.row(i))
        learner.update(made, hit=summary.labels[stream.y[i]] in made.labels)
    learner.save(tmp_path / "model.npz")
    loaded = sa.load(tmp_path / "model.npz")
    policy = PolicyRunner(Policy("draws", learner=loaded, rule="own"), summary)
    batch = LogBatch.from_records(list(islice(log, 50)), summary.vocabulary)
    draws = policy.distributions(batch, policy.scores(batch))
    for i, one in enumerate(batch.records):
        for turn in range(3):
            at = loaded.cursor()  # the learner's own clock does not move
            at.round = 7 * i + turn
            made = loaded.decide(one.decision.x, cursor=at)
            numbers = loaded.vocabulary.encode(made.labels, "labels", "test")
            assert draws[i].probability(frozenset(numbers)) == pytest.approx(made.propensity, rel=1e-6)


@pytest.mark.slow
def test_the_result_on_its_own_top_set_and_draws_holds_the_truth(logged, stream):
    log = Log(logged)
    summary = summarize(log)
    learner = sa.SetLogit(**summary.learner_params)
    train(log, learner, summary, passes=2)
    names = ["fox", "ant", "cow", "bee", "elk", "dog"]
    fresh = stream.rows.dense[8000:], [names[y] for y in stream.y[8000:]]
    top = np.mean([y in s for y, s in zip(fresh[1], learner.predict_set(fresh[0]), strict=True)])
    scores = lambda X: learner.scores(X.astype(np.float32))  # noqa: E731
    policies = [
        Policy("top", learner=learner),
        Policy("scores", scores=scores, set_size=2),
        Policy("p", probabilities=lambda X: learner.predict_proba(X.astype(np.float32)), set_size=2),
        Policy("draws", learner=learner, rule="own"),
        Policy("same rule", scores=scores, rule=RunnerUp(explore="show", set_size=2)),
    ]
    answer = evaluate(log, policies, summary)
    assert answer.warnings == ()
    best = [result.best for result in answer.results]
    assert all(one is not None for one in best)
    assert [best[2].value, best[2].low, best[2].high] == pytest.approx(
        [best[0].value, best[0].low, best[0].high]
    )
    assert best[1].value == pytest.approx(best[0].value, abs=0.02)  # another q
    assert best[0].low - best[0].width / 2 < top < best[0].high + best[0].width / 2
    assert best[0].high - best[0].low < 0.15
    assert [result.rule for result in answer.results[:3]] == [None] * 3
    assert answer.results[3].rule.startswith("RunnerUp(explore='balanced'")


@pytest.mark.slow
@pytest.mark.no_cover  # counting lines would take half of its time
def test_intervals_cover_the_truth_where_a_rule_drew():
    """Logs of runner-up with uniform exploration, one context in four far from what it shows.

    120 logs: the standard error of a coverage of 95 % is 2 %. Rows that cannot answer only widen.
    """
    k, m, rows, runs = 6, 2, 1600, 120
    world = World.make(k, m, 0.5, 0.2, seed=3)
    random = np.random.default_rng(0)
    rule = RunnerUp(set_size=m, uniform=0.4, explore="rank")
    scores = [np.where(np.isin(np.arange(k), top), 1.0, 0.0) + 0.3 * random.random(k) for top in world.top]
    draws = [distribution_of(rule.decide(s)) for s in scores]
    sets = np.array(list(combinations(range(k), m)))
    chances = [np.array([draw.probability(s) for s in sets]) for draw in draws]
    policies = {
        "top": draws_of(mask(np.array([np.argsort(-s)[:m] for s in scores]), k)),
        "other": draws_of(mask(world.order[:, :m], k)),
        "larger": draws_of(mask(world.order[:, : m + 1], k)),
        "draws": draws,
    }
    found: dict[tuple[str, str], list[bool]] = {}
    logging = draws
    every = np.ones((4, k), bool)
    for _ in range(runs):
        context = np.sort(random.integers(4, size=rows))
        at = np.concatenate([random.choice(len(sets), (context == c).sum(), p=chances[c]) for c in range(4)])
        shown = mask(sets[at], k)
        label = (random.random(rows)[:, None] > world.p[context].cumsum(axis=1)).sum(axis=1)
        hit = (label < k) & shown[np.arange(rows), np.minimum(label, k - 1)]
        unknown = np.full(rows, np.nan)
        top = mask(np.array([np.argsort(-s)[:m] for s in scores]), k)[context]
        batch = LogBatch(
            [None] * rows, hit * 1.0, shown, top, every[context], unknown,
            [logging[c] for c in context],
        )  # fmt: skip
        for name, policy in policies.items():
            pi = inclusion_of_all(policy, k)
            truth = float((pi * world.p).sum(axis=1)[context].mean())
            estimator = HitRateEstimator(one_set=name != "draws")
            estimator.add(weigh_rows(batch, [policy[c] for c in context]), world.guess[context])
            for e in estimator.estimates():
                if not e.problem:
                    found.setdefault((name, e.name), []).append(e.low <= truth <= e.high)
    answered = {key: values for key, values in found.items() if len(values) > runs / 2}
    assert {name for name, _ in answered} == set(policies)
    for key, values in answered.items():
        assert np.mean(values) >= 0.89, (key, np.mean(values))
