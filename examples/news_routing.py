"""Routing news to 20 groups: sparse rows, labels that are strings, one bit about three of them.

An editor sees three groups for every article and says only whether the right one is among them.

The data is 20 newsgroups as word counts in an .npz. With a network, scikit-learn makes it:

    from sklearn.datasets import fetch_20newsgroups
    from sklearn.feature_extraction.text import CountVectorizer

    parts = [fetch_20newsgroups(subset=s, remove=("headers",)) for s in ("train", "test")]
    X = CountVectorizer(min_df=3).fit_transform([text for part in parts for text in part.data])
    np.savez_compressed(
        "news20.npz", X_data=X.data, X_indices=X.indices, X_indptr=X.indptr, X_shape=X.shape,
        y=np.concatenate([part.target for part in parts]), classes=np.array(parts[0].target_names),
        is_train=np.arange(X.shape[0]) < len(parts[0].data),
    )

    python examples/news_routing.py path/to/news20.npz
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, diags

import superarm as sa

HERE = Path(__file__).resolve().parent


def find(arguments: list[str]) -> Path:
    shared = Path(os.environ.get("SUPERARM_SHARED_DATA", HERE.parent.parent / "shared" / "data"))
    path = Path(arguments[0]) if arguments else shared / "news20.npz"
    if not path.is_file():
        sys.exit(f"{path} is not there: the top of {__file__} says how to make it with scikit-learn")
    return path


def read(path: Path) -> tuple[csr_matrix, np.ndarray, np.ndarray]:
    """Articles (logarithms of counts, rare words louder, rows of length 1), their groups, who trains."""
    with np.load(path, allow_pickle=False) as file:
        counts = csr_matrix(
            (file["X_data"], file["X_indices"], file["X_indptr"]), file["X_shape"], np.float32
        )
        groups, is_train = file["classes"][file["y"]], file["is_train"].astype(bool)
    counts.data = np.log1p(counts.data)
    common = np.asarray((counts[is_train] > 0).sum(axis=0)).ravel()
    X = counts @ diags(np.log((1 + is_train.sum()) / (1 + common)).astype(np.float32))
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return csr_matrix(diags(1 / np.maximum(norms, 1e-12)) @ X, dtype=np.float32), groups, is_train


def main() -> None:
    X, groups, is_train = read(find(sys.argv[1:]))
    names = sorted(set(groups.tolist()))
    learner = sa.SetLogit(labels=names, n_features=X.shape[1], set_size=3, seed=0)
    train, test = np.flatnonzero(is_train), np.flatnonzero(~is_train)
    random, seen, asked = np.random.default_rng(0), 0, 0
    print(f"{len(train):,} articles to route, {X.shape[1]:,} words, {len(names)} groups")
    for _ in range(3):
        for i in random.permutation(train):
            decision = learner.decide(X[[i]])
            hit = groups[i] in decision.labels
            learner.update(decision, hit=hit)
            seen, asked = seen + hit, asked + 1
        sets = learner.predict_set(X[test])
        top = np.mean(sets[:, 0] == groups[test])
        among = np.mean([group in s for group, s in zip(groups[test], sets, strict=True)])
        rates = f"first {top:.1%}, among three {among:.1%}"
        print(f"after {asked:,} bits: {seen / asked:.0%} of them yes; {len(test):,} later articles: {rates}")
    article = test[0]
    print(f"an article of {groups[article]} would be offered to: {', '.join(learner.rank(X[[article]])[:3])}")


if __name__ == "__main__":
    main()
