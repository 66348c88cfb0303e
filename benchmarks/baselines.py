"""Partial-label baselines on one log of uniform sets:  python benchmarks/baselines.py DATA_DIRECTORY

For each row of the training part one set of m labels is drawn uniformly, and one bit says whether the right label is
in it. Every method gets this log, and nothing else; the table has the share of test rows whose top label is wrong.

  SetLogit      the first pass in the order of the log, each other one in an order of its own
  linear, net   softmax regression, and a network with one hidden layer of 256 ReLU; Adam, batches of 128, in NumPy
  set_nll       -log sum of p over the candidates, which is CC (Feng et al. 2020) where answers are never wrong
  RC            cross-entropy with weights: the model's p restricted to the candidates, after the row's last step
  PRODEN        the same, before the row's last step (Lv et al. 2020)
  noes only     set_nll on the rows that were answered no: multiple complementary labels (Feng et al. 2020)
  every label   told the label: what the model could do at all

The candidates of a row are its set after a yes, and all other labels after a no. To add a method: a function that takes
a Log and yields (passes, predict), and its line in `methods`.

  --names       of the data sets: NAME.npz in DATA_DIRECTORY, with X and y (mnist_cnn512, letter and mnist)
  --rows N      of the log (20,000); as many others, at most 10,000, are the test
  --set-size M  3
  --passes N    the most (100); pass 1 and 10 are told, too
  --methods     only those whose names begin so
  --seed N      0
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import superarm as sa
from superarm.losses import posterior

Array = np.ndarray[Any, Any]
Predict = Callable[[Array], Array]

MEASURED = (1, 10)  # passes after which the test rows are looked at, beside the last one


@dataclass(frozen=True)
class Log:
    """What a method may see; ``y`` is for those that are told every label."""

    X: Array
    shown: Array
    hit: Array
    n_labels: int
    y: Array
    seed: int


class Model:
    """Softmax regression, or a network with one hidden layer; Adam with the usual constants."""

    def __init__(self, n_features: int, n_labels: int, hidden: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        sizes = [n_features, *([hidden] if hidden else []), n_labels]
        self.weights = []
        for n_in, n_out in pairwise(sizes):
            self.weights.append(random.normal(0.0, (2.0 / n_in) ** 0.5, (n_in, n_out)).astype(np.float32))
            self.weights.append(np.zeros(n_out, np.float32))
        if not hidden:
            self.weights[0][:] = 0.0
        self.moments = [(np.zeros_like(w), np.zeros_like(w)) for w in self.weights]
        self.steps = 0

    def logits(self, X: Array) -> Array:
        return self._forward(X)[-1]

    def _forward(self, X: Array) -> list[Array]:
        values = [X]
        for i in range(0, len(self.weights), 2):
            z = values[-1] @ self.weights[i] + self.weights[i + 1]
            values.append(np.maximum(z, 0.0) if i + 2 < len(self.weights) else z)
        return values

    def step(
        self, X: Array, targets: Callable[[Array], Array], rate: float = 1e-3, decay: float = 1e-5
    ) -> None:
        """One step of the cross-entropy with soft targets, which are computed from the logits."""
        values = self._forward(X)
        slope = (softmax(values[-1]) - targets(values[-1])) / len(X)
        gradients: list[Array] = []
        for i in range(len(self.weights) - 2, -1, -2):
            gradients = [values[i // 2].T @ slope, slope.sum(axis=0), *gradients]
            slope = (slope @ self.weights[i].T) * (values[i // 2] > 0.0)
        self.steps += 1
        scale = rate * (1.0 - 0.999**self.steps) ** 0.5 / (1.0 - 0.9**self.steps)
        for w, g, (m, v) in zip(self.weights, gradients, self.moments, strict=True):
            g = g + decay * w
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            w -= scale * m / (np.sqrt(v) + 1e-8)


def softmax(logits: Array) -> Array:
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


class SetNLL:
    """The gradient of sa.losses.set_nll is p - posterior: a cross-entropy with these targets."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def targets(self, rows: Array, logits: Array) -> Array:
        return np.asarray(posterior(logits, self.log.shown[rows], self.log.hit[rows]), np.float32)

    def after_step(self, rows: Array, model: Model) -> None:
        """Nothing is kept."""


class PRODEN(SetNLL):
    """Targets are those of the row's last visit; at first, all candidates alike."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.kept = super().targets(np.arange(len(log.X)), np.zeros((len(log.X), log.n_labels), np.float32))

    def targets(self, rows: Array, logits: Array) -> Array:
        before = self.kept[rows]
        self.kept[rows] = super().targets(rows, logits)
        return before


class RC(PRODEN):
    """The same, with targets computed anew after the step."""

    def targets(self, rows: Array, logits: Array) -> Array:
        return self.kept[rows]

    def after_step(self, rows: Array, model: Model) -> None:
        self.kept[rows] = SetNLL.targets(self, rows, model.logits(self.log.X[rows]))


class EveryLabel(SetNLL):
    """Told the label of each row."""

    def targets(self, rows: Array, logits: Array) -> Array:
        return np.eye(self.log.n_labels, dtype=np.float32)[self.log.y[rows]]


def many_passes(log: Log, *, loss: type[SetNLL], hidden: int, passes: int) -> Iterator[tuple[int, Predict]]:
    """A model of ours over many passes, with standardised columns."""
    mean, sd = log.X.mean(axis=0), log.X.std(axis=0)
    sd[sd == 0.0] = 1.0
    log = replace(log, X=((log.X - mean) / sd).astype(np.float32))
    random = np.random.default_rng(log.seed)
    model, bits = Model(log.X.shape[1], log.n_labels, hidden, log.seed), loss(log)
    for number in range(1, passes + 1):
        order = random.permutation(len(log.X))
        for start in range(0, len(order), 128):
            rows = order[start : start + 128]
            model.step(log.X[rows], partial(bits.targets, rows))
            bits.after_step(rows, model)
        if number in MEASURED or number == passes:
            yield number, lambda X: model.logits(((X - mean) / sd).astype(np.float32)).argmax(axis=1)


def noes_only(log: Log, **options: Any) -> Iterator[tuple[int, Predict]]:
    no = ~log.hit
    part = replace(log, X=log.X[no], shown=log.shown[no], hit=log.hit[no], y=log.y[no])
    return many_passes(part, loss=SetNLL, **options)


def set_logit(log: Log, *, passes: int) -> Iterator[tuple[int, Predict]]:
    """SetLogit as it is, from sets that somebody else chose."""
    size = {"n_labels": log.n_labels, "n_features": log.X.shape[1], "set_size": log.shown.shape[1]}
    learner = sa.SetLogit(**size, seed=log.seed)
    order, random = np.arange(len(log.X)), np.random.default_rng(log.seed)
    for number in range(1, passes + 1):
        for i in order:
            learner.update(sa.Decision.given(log.X[i], labels=log.shown[i]), hit=bool(log.hit[i]))
        if number in MEASURED or number == passes:
            yield number, learner.predict
        order = random.permutation(order)


def methods(passes: int) -> dict[str, Callable[[Log], Iterator[tuple[int, Predict]]]]:
    table: dict[str, Callable[[Log], Iterator[tuple[int, Predict]]]] = {
        "SetLogit": partial(set_logit, passes=passes)
    }
    for name, hidden in (("linear", 0), ("net", 256)):
        for words, loss in (
            ("set_nll = CC", SetNLL),
            ("RC", RC),
            ("PRODEN", PRODEN),
            ("every label", EveryLabel),
        ):
            table[f"{name}, {words}"] = partial(many_passes, loss=loss, hidden=hidden, passes=passes)
        table[f"{name}, noes only"] = partial(noes_only, hidden=hidden, passes=passes)
    return table


def make_log(path: Path, rows: int, set_size: int, seed: int) -> tuple[Log, Array, Array]:
    """A log of uniform sets, and the rows and labels of the test."""
    stream = sa.streams.open_data(str(path))
    random = np.random.default_rng(seed)
    order = random.permutation(len(stream.y))
    rows = min(rows, 3 * len(order) // 4)
    train, test = order[:rows], order[rows : rows + 10_000]
    X, y, k = stream.rows.dense, stream.y, stream.n_labels
    shown = random.permuted(np.tile(np.arange(k), (rows, 1)), axis=1)[:, :set_size]
    hit = (shown == y[train, None]).any(axis=1)
    return Log(X[train], shown, hit, k, y[train], seed), X[test], y[test]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--names", nargs="+", default=["mnist_cnn512", "letter", "mnist"])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--set-size", type=int, default=3)
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--methods", nargs="+", default=[""])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.names:
        log, X, y = make_log(options.folder / f"{name}.npz", options.rows, options.set_size, options.seed)
        print(f"{name}: {len(log.X):,} rows, {log.n_labels} labels, m = {options.set_size}; test: {len(y):,}")
        for method, fit in methods(options.passes).items():
            if not method.startswith(tuple(options.methods)):
                continue
            began, parts = process_time(), []
            for passes, predict in fit(log):
                parts.append(f"{passes:3} x {(predict(X) != y).mean():.4f}")
            print(f"  {method:22} {'   '.join(parts):42} {process_time() - began:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
