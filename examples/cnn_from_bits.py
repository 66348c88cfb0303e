"""A convolutional network that never sees a label: sets chosen by a superarm rule, the loss of one bit.

    python examples/cnn_from_bits.py mnist.npz --passes 5 --set-size 4

The network is plain JAX (pip install jax). For each batch its scores go to `superarm.explore.RunnerUp`, which
chooses a set for every image; all it learns is whether the digit was in the set (`superarm.losses.set_nll`).
Beside it: the same network with every label told, also at equal bits (docs/concepts.md: an answer about m of k
labels holds h(m/k) / log2 k of what a label holds, at the start), and SetLogit on the same pixels.
"""

from __future__ import annotations

import argparse
from math import log2
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

import superarm as sa
from superarm.losses import set_nll

BATCH, RATE = 64, 2e-3


def network(seed: int, k: int):
    """Two layers of 5 x 5 filters, each halving the picture, and a linear one: weights, and scores."""
    keys = jax.random.split(jax.random.PRNGKey(seed), 3)
    shapes = [(16, 1, 5, 5), (32, 16, 5, 5), (32 * 7 * 7, k)]
    fans = [25, 400, 32 * 7 * 7]
    weights = [
        jax.random.normal(key, s) * (2.0 / fan) ** 0.5 for key, s, fan in zip(keys, shapes, fans, strict=True)
    ]
    biases = [jnp.zeros(16), jnp.zeros(32), jnp.zeros(k)]

    def scores(parameters, pictures):
        w, b = parameters
        x = pictures[:, None]
        for i in range(2):
            x = jax.lax.conv_general_dilated(x, w[i], (2, 2), "SAME") + b[i][None, :, None, None]
            x = jax.nn.relu(x)
        return x.reshape(len(x), -1) @ w[2] + b[2]

    return (weights, biases), scores


def adam(parameters, slopes, state, t, rate):
    """One step of Adam (Kingma & Ba 2015)."""
    m, v = state
    m = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, m, slopes)
    v = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, v, slopes)
    size = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    moved = jax.tree.map(lambda p, a, b: p - size * a / (jnp.sqrt(b) + 1e-8), parameters, m, v)
    return moved, (m, v)


def learn(X, y, test, rounds: int, *, k: int, set_size: int | None, seed: int) -> tuple[float, float]:
    """Error on the test pictures after so many rounds, and the share of shown sets that missed.

    ``set_size=None`` tells every label. The rate falls to 0 along a cosine.
    """
    parameters, scores = network(seed, k)
    rule = None if set_size is None else sa.explore.RunnerUp(set_size=set_size, explore="rank", seed=seed)
    state = (jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters))
    order = np.random.default_rng(seed)
    look = jax.jit(scores)

    @jax.jit
    def by_bits(parameters, state, t, rate, pictures, shown, hit):
        slopes = jax.grad(lambda p: set_nll(scores(p, pictures), shown, hit))(parameters)
        return adam(parameters, slopes, state, t, rate)

    @jax.jit
    def by_labels(parameters, state, t, rate, pictures, labels):
        def loss(p):
            return -jax.nn.log_softmax(scores(p, pictures))[jnp.arange(BATCH), labels].mean()

        return adam(parameters, jax.grad(loss)(parameters), state, t, rate)

    misses, steps, visit = 0, max(1, rounds // BATCH), np.zeros(0, np.int64)
    for t in range(1, steps + 1):
        if len(visit) < BATCH:
            visit = np.concatenate([visit, order.permutation(len(y))])
        batch, visit = visit[:BATCH], visit[BATCH:]
        pictures, rate = X[batch], RATE * 0.5 * (1 + np.cos(np.pi * t / steps))
        if rule is None:
            parameters, state = by_labels(parameters, state, t, rate, pictures, y[batch])
            continue
        decisions = rule.decide_many(scores=np.asarray(look(parameters, pictures)))
        hit = (decisions.labels == y[batch, None]).any(axis=1)  # all that the world says
        misses += int((~hit).sum())
        parameters, state = by_bits(parameters, state, t, rate, pictures, decisions.labels, hit)
    best = [np.asarray(look(parameters, part)).argmax(axis=1) for part in np.array_split(test[0], 20)]
    return float((np.concatenate(best) != test[1]).mean()), misses / (steps * BATCH)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", help="an .npz with x_train, y_train, x_test, y_test: 28 x 28 pictures")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--set-size", type=int, default=4)
    parser.add_argument("--rows", type=int, default=None, help="only the first rows, for a quick look")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with np.load(asked.data) as file:
        X, X_test = (
            file[name].reshape(-1, 28, 28).astype(np.float32) / 255.0 for name in ("x_train", "x_test")
        )
        y, y_test = (file[name].astype(np.int64).ravel() for name in ("y_train", "y_test"))
    X, y = X[: asked.rows], y[: asked.rows]
    k, m, rounds = int(y.max()) + 1, asked.set_size, asked.passes * len(y)
    share = -(m / k * log2(m / k) + (1 - m / k) * log2(1 - m / k)) / log2(k)
    print(f"{len(y):,} pictures, {asked.passes} passes, sets of {m} of {k} labels")
    common = {"k": k, "seed": asked.seed}
    runs = [
        (f"network, {rounds:,} bits", rounds, m),
        (f"network, {rounds:,} labels", rounds, None),
        (f"network, {int(share * rounds):,} labels: as many bits", int(share * rounds), None),
    ]
    print(f"{'':45} test error  shown misses")
    for name, n, size in runs:
        began = perf_counter()
        error, missed = learn(X, y, (X_test, y_test), n, set_size=size, **common)
        shown = f"{missed:12.3f}" if size else f"{'':12}"
        print(f"{name:45} {error:10.4f} {shown}   ({perf_counter() - began:.0f} s)", flush=True)
    began = perf_counter()
    learner = sa.SetLogit(n_labels=k, set_size=m, explore="rank", seed=asked.seed)
    order, missed = np.random.default_rng(asked.seed), 0
    for _ in range(asked.passes):
        missed += int(learner.run(X.reshape(len(X), -1), y, order.permutation(len(y)))[2])
    error = float((learner.predict(X_test.reshape(len(X_test), -1)) != y_test).mean())
    seconds = perf_counter() - began
    print(f"{f'SetLogit, {rounds:,} bits':45} {error:10.4f} {missed / rounds:12.3f}   ({seconds:.0f} s)")


if __name__ == "__main__":
    main()
