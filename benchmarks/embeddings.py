"""SetLogit on rows as they are, and on embeddings:  python benchmarks/embeddings.py FOLDER [--seeds N]

FOLDER holds mnist.npz (pixels), mnist_cnn512.npz (512 features of a network trained on ImageNet, for the
same pictures) and news20.npz (counts of words). Each picture or text is visited once, in an order that the
seed draws; four labels are shown, and one bit comes back. Texts are embedded by latent semantic analysis
(scikit-learn's TruncatedSVD of TF-IDF, fitted without labels), with 100 and 300 columns.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

import superarm as sa

PARTS = (0.1, 1.0)  # of the first pass


def pictures(folder: Path) -> dict[str, tuple[Any, Any]]:
    with np.load(folder / "mnist.npz") as file:
        X = np.concatenate([file["x_train"], file["x_test"]]).reshape(-1, 784).astype(np.float32)
        y = np.concatenate([file["y_train"], file["y_test"]]).astype(np.int64)
    with np.load(folder / "mnist_cnn512.npz") as file:
        features, labels = file["X"].astype(np.float32), file["y"].astype(np.int64)
    assert (labels == y).all()
    return {"pictures, 784 pixels": (X, y), "pictures, 512 features of a network": (features, y)}


def texts(folder: Path) -> dict[str, tuple[Any, Any]]:
    with np.load(folder / "news20.npz") as file:
        counts = csr_matrix(
            (file["X_data"].astype(np.float32), file["X_indices"], file["X_indptr"]), file["X_shape"]
        )
        y = file["y"].astype(np.int64)
    tables: dict[str, tuple[Any, Any]] = {f"texts, {counts.shape[1]:,} words (sparse)": (counts, y)}
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    for width in (100, 300):
        X = TruncatedSVD(width, random_state=0).fit_transform(weighted).astype(np.float32)
        tables[f"texts, {width} columns of LSA"] = (X, y)
    return tables


def errors(X: Any, y: Any, seed: int) -> list[tuple[float, float]]:
    """(error, shown misses) over the first tenth of one pass, and over all of it."""
    learner = sa.SetLogit(n_labels=int(y.max()) + 1, n_features=X.shape[1], set_size=4, seed=seed)
    trace = sa.simulate(learner, sa.streams.Arrays(X, y), len(y))
    parts = [trace.window(0.0, part) for part in PARTS]
    return [(part["error_rate"], part["shown_miss_rate"]) for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{'rows':40} {'first tenth: error, shown misses':>34} {'one pass: error, shown misses':>32}")
    for name, (X, y) in {**texts(arguments.folder), **pictures(arguments.folder)}.items():
        runs = [errors(X, y, seed) for seed in range(arguments.seeds)]
        (e0, s0), (e1, s1) = ([mean(run[i][j] for run in runs) for j in (0, 1)] for i in (0, 1))
        print(f"{name:40} {e0:25.3f} {s0:8.3f} {e1:23.3f} {s1:8.3f}", flush=True)


if __name__ == "__main__":
    main()
