"""Every learner against its naive twin, fed with the same uniforms: same decisions, same weights."""

import naive
import numpy as np
import pytest

import superarm as sa
from superarm.data.rows import Row

K, D, ROUNDS = 5, 6, 150
CASES = [
    ("Perceptron", {}),
    ("Softmax", {"step": 2.0}),
    ("PA", {"variant": "PA"}),
    ("PA", {"variant": "PA-I", "C": 0.3}),
    ("PA", {"variant": "PA-II", "C": 0.3}),
    ("MCSLP", {"set_size": 2}),
    ("MCSLP", {"set_size": 3, "gate": True, "margin": 0.5}),
    ("Banditron", {"gamma": 0.2}),
    ("SOBA", {"gamma": 0.3}),
    ("SOBA", {"gamma": 0.3, "a": 0.5}),
    ("SOBA", {"gamma": 0.3, "matrix": "full"}),
    ("Newtron", {"gamma": 0.2}),
    ("Newtron", {"gamma": 0.2, "D": 4.0, "alpha": 2.0, "beta": 0.5}),
    ("EPABF", {"gamma": 0.3, "variant": "EPABF"}),
    ("EPABF", {"gamma": 0.3, "variant": "EPABF-I"}),
    ("EPABF", {"gamma": 0.3, "variant": "EPABF-II"}),
    *(
        ("MCDBF", {"set_size": m, "gamma": 0.3, "estimate": estimate})
        for m in (1, 2, 4)
        for estimate in ("ordered", "set", "minimum-variance")
    ),
    ("MCDBF", {"set_size": 2, "gamma": 0.3, "estimate": "minimum-variance", "rho": 0.6}),
    ("MCDBF", {"set_size": 2, "gamma": 0.3, "gate": True, "margin": 2.0}),
    ("MCDBF", {"set_size": 3, "gamma": 0.3, "gate": True, "margin": 1.0, "estimate": "minimum-variance"}),
    ("MCDBF", {"set_size": 3, "gamma": 0.3, "gate": True, "estimate": "minimum-variance"}),
]
IDS = [" ".join([name, *(f"{k}={v}" for k, v in params.items())]) for name, params in CASES]


def data(rounds=ROUNDS):
    random = np.random.default_rng(12)
    X = random.normal(size=(rounds, D)).astype(np.float32) * (random.random((rounds, D)) < 0.6)
    X[:, 0] += 0.1
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X @ random.normal(size=(D, K)) + 0.2 * random.normal(size=(rounds, K))).argmax(axis=1)
    return X.astype(np.float32), y


def twins(name, params, intercept, kind="dense"):
    width = (D // 2, D - D // 2) if kind == "mixed" else D
    fast = getattr(sa, name)(n_labels=K, n_features=width, seed=21, intercept=intercept, **params)
    own = {key: value for key, value in params.items() if key != "set_size"}
    slow = getattr(naive, name)(K, D, m=fast.set_size, seed=21, bias=fast.intercepts[0], **own)
    return fast, slow


def row_of(x, kind):
    """A row as dense numbers, as a sparse pair, or its first half dense and the rest sparse."""
    if kind == "dense":
        return x
    half = 0 if kind == "sparse" else D // 2
    at = half + np.flatnonzero(x[half:])
    return (at, x[at]) if kind == "sparse" else Row(dense=x[:half], sparse=(at - half, x[at]), width=D - half)


def weights(learner):
    """W as (label, feature), the intercept last."""
    W, (d, width, _) = learner.core.weights.state(), learner.inputs.layout
    parts = [W["dense"][:, :d]] if d else []
    parts += [W["sparse"][:width].T] if width else []
    constant = W["dense"][:, d] if d else W["sparse"][width]
    return np.column_stack([*parts, constant]).astype(float)


def assert_same_weights(fast, slow):
    a, b = weights(fast), slow.W
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)  # a shift of all rows changes no ranking
    np.testing.assert_allclose(a, b, atol=2e-4 * max(1.0, np.abs(b).max()))


def play(fast, slow, kind, delay=0, eligible=False):
    X, y = data()
    waiting = []
    for t, x in enumerate(X):
        among = None
        if eligible and t % 3:
            among = [[0, 1, 3, 4], [1, 2, 3], [0, 4], [2]][t % 4]
        decision, shown = fast.decide(row_of(x, kind), eligible=among), slow.decide(x, among)
        assert decision.drawn == shown.drawn
        assert decision.top == shown.top
        if decision.gamma is not None or decision.size == 1:
            assert decision.ordered_propensity == pytest.approx(shown.Z, rel=1e-4)
        label = int(y[t]) if among is None or y[t] in among else among[0]
        waiting.append((decision, shown, label))
        if len(waiting) > delay:
            decision, shown, label = waiting.pop(t % len(waiting))
            if "hit" in fast.feedback:
                fast.update(decision, hit=label in decision.drawn)
            else:
                fast.update(decision, label=label)
            slow.learn(shown, label)
    assert_same_weights(fast, slow)
    assert np.abs(weights(fast)).max() > 0.05


@pytest.mark.parametrize(("name", "params"), CASES, ids=IDS)
@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed"])
def test_round_by_round(name, params, kind):
    play(*twins(name, params, intercept=True, kind=kind), kind)


@pytest.mark.parametrize(("name", "params"), CASES, ids=IDS)
@pytest.mark.parametrize("kind", ["dense", "mixed"])
def test_late_feedback_and_eligible_labels(name, params, kind):
    play(*twins(name, params, intercept=False, kind=kind), kind, delay=4, eligible=True)


@pytest.mark.parametrize(("name", "params"), CASES, ids=IDS)
def test_fused_run(name, params):
    fast, slow = twins(name, params, intercept=0.5)
    X, y = data()
    counts = np.zeros(3)
    for x, label in zip(X, y, strict=True):
        shown = slow.decide(x)
        counts += [shown.top[0] != label, label not in shown.top, label not in shown.drawn]
        slow.learn(shown, label)
    assert fast.run(X, y)[:3].tolist() == counts.tolist()
    assert_same_weights(fast, slow)
    ranks = np.argsort(-np.array([slow.scores(np.append(x, 0.5)) for x in X]), axis=1, kind="stable")
    agree = (fast.predict_set(X, None) == ranks[:, : fast.set_size]).mean()
    assert agree > 0.99


@pytest.mark.parametrize("gate", [False, True])
def test_mcdbf_takes_labels_too(gate):
    """Told the label, MC-DBF makes MC-SLP's step."""
    X, y = data(300)
    for k, m in ((K, 2), (4, 2), (2, 1)):
        common = {"n_labels": k, "n_features": D, "set_size": m, "gate": gate}
        told = sa.MCDBF(gamma=1.0, margin=1.0, **common)
        slow = naive.MCSLP(k, D, m=m, gate=gate)
        for x, label in zip(X, y % k, strict=True):
            decision, shown = told.decide(x), slow.decide(x)
            assert decision.top == shown.top
            told.update(decision, label=int(label))
            slow.learn(shown, label)
        assert_same_weights(told, slow)


def test_newtron_minimises_its_objective():
    """The naive Newtron's closed form is the minimum of the sum it stands for, coordinate by coordinate."""
    slow = naive.Newtron(K, D, gamma=0.2, beta=0.3)
    X, y = data(40)
    gs, kappas, Ws = [], [], []
    for x, label in zip(X, y, strict=True):
        shown, before = slow.decide(x), slow.b.copy()
        W, A = slow.inside(), slow.A.copy()
        slow.learn(shown, label)
        kappa = shown.Z if shown.drawn == [label] else 1.0
        g = np.sqrt((slow.A - A) / (kappa * slow.beta)) * -np.sign(slow.b - before)
        assert abs(kappa * slow.beta * (g * W).sum()) < 1  # so the sign above is that of g
        gs.append(g), kappas.append(kappa), Ws.append(W)
    # gradient of sum <g, W> + kappa beta (1/2 g^2 W^2 - <g, W_t> g W) + |W|^2 / 2D
    gradient = slow.W / slow.D
    for g, kappa, W in zip(gs, kappas, Ws, strict=True):
        gradient += g + kappa * slow.beta * (g * g * slow.W - (g * W).sum() * g)
    np.testing.assert_allclose(gradient, 0, atol=1e-8)
