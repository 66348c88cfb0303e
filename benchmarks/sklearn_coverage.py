"""How well SetFeedbackClassifier(coverage=) keeps its promise on new rows, told labels, and told answers about sets.

    python benchmarks/sklearn_coverage.py digits made ../shared/data/satimage.npz

Of each table 2,000 rows teach (1,200 of digits), and up to 6,000 others judge. The sets have two labels: drawn at
random, or the best two by a small model and some noise, as another system may choose them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification

from superarm import SetLogit
from superarm.sklearn import SetFeedbackClassifier


def table(name: str) -> tuple[Any, Any, int]:
    """Return the rows and labels of a table in random order, and how many rows teach."""
    if name == "made":
        X, y = make_classification(8000, n_informative=8, n_classes=5, random_state=1, flip_y=0.1)
    elif name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        content = np.load(name)
        X, y = content["X"].astype(float), np.unique(content["y"], return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(y))[:8000]
    return X[order], y[order], 1200 if name == "digits" else 2000


def chosen_pairs(X: Any, y: Any, k: int, *, at_random: bool) -> Any:
    """Return two labels for each row."""
    random = np.random.default_rng(1)
    if at_random:
        return np.argsort(random.random((len(X), k)), axis=1)[:, :2]
    model = SetLogit(n_labels=k, n_features=X.shape[1], seed=9, set_size=2)
    model.run(X[:200], y[:200])
    return np.argsort(-(0.7 * model.scores(X) + random.gumbel(size=(len(X), k))), axis=1)[:, :2]


def main() -> None:
    for name in sys.argv[1:]:
        X, y, n = table(name)
        k = int(y.max()) + 1
        for feedback in ("labels", "random sets", "chosen sets"):
            y_fit, routed = y[:n], {}
            if feedback != "labels":
                pairs = chosen_pairs(X[:n], y[:n], k, at_random=feedback == "random sets")
                y_fit, routed = (pairs == y[:n, None]).any(axis=1), {"shown": pairs, "classes": range(k)}
            cells = []
            for coverage in (0.9, 0.95):
                model = SetFeedbackClassifier(coverage=coverage, random_state=0).fit(X[:n], y_fit, **routed)
                sets = model.predict_set(X[n:])
                covered = np.mean([label in labels for label, labels in zip(y[n:], sets, strict=True)])
                kept, size = model.learner_.coverage.kept, np.mean([len(labels) for labels in sets])
                cells += [f"{kept:.3f}", f"{covered:.3f}", f"{size:.2f}"]
            print("|", " | ".join([Path(name).stem, feedback, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
