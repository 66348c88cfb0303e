"""A slate of ads, where most people click nothing.

Three of twelve ads are shown to every visitor; the only news is whether one of them was clicked. Most
visitors want none of the twelve. So "nothing" is a label of its own, which is never shown: then a "no"
need not mean that one of the nine other ads would have been clicked. (docs/most-click-nothing.md)

    python examples/ad_slate.py
"""

from __future__ import annotations

import numpy as np

import superarm as sa

ADS = [f"ad-{letter}" for letter in "abcdefghijkl"]
NOTHING = "(nothing)"
VISITORS, FEATURES, SLATE = 40_000, 10, 3


def visitors(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, and for each ad the probability that it is the one to be clicked, if shown."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(VISITORS, FEATURES)).astype(np.float32)
    taste = random.normal(size=(FEATURES, len(ADS)))
    appeal = np.exp(X @ taste)
    return X, appeal / (appeal.sum(axis=1, keepdims=True) + 6 * np.exp(2.0) * len(ADS))


def run(learner: sa.SetLogit, X: np.ndarray, p: np.ndarray, seed: int) -> np.ndarray:
    """Show a slate to each visitor and learn from the click; the clicks."""
    random = np.random.default_rng(seed)
    clicks = np.zeros(VISITORS, bool)
    for i, x in enumerate(X):
        decision = learner.decide(x)
        shown = [ADS.index(ad) for ad in decision.labels]
        clicks[i] = random.random() < p[i, shown].sum()
        learner.update(decision, hit=bool(clicks[i]))
    return clicks


def main() -> None:
    X, p = visitors(seed=1)
    last = slice(VISITORS // 2, None)
    print(f"{VISITORS:,} visitors, {SLATE} of {len(ADS)} ads each; clicks a visitor in the second half:")
    print(f"  a random slate                          {p[last].mean() * SLATE:.3f}")
    common = {"n_features": FEATURES, "set_size": SLATE, "seed": 2}
    learners = {
        "the ads are the labels": sa.SetLogit(labels=ADS, **common),
        "with none_label": sa.SetLogit(labels=[*ADS, NOTHING], none_label=NOTHING, **common),
    }
    for name, learner in learners.items():
        clicks = run(learner, X, p, seed=2)
        print(f"  SetLogit, {name:<30}{clicks[last].mean():.3f}")
    best = np.sort(p[last], axis=1)[:, -SLATE:].sum(axis=1).mean()
    print(f"  the best slate there is                 {best:.3f}")


if __name__ == "__main__":
    main()
