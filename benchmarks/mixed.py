"""Rows with a dense and a sparse part:  python benchmarks/mixed.py FOLDER [--seeds N] [--modes M,…]

FOLDER has banking77.csv, news20.npz and letter.npz. Each row of the table is a set of data: the error of
SetLogit (m = 4, two visits of every row, at most 30,000 rounds) on the dense part alone, on the sparse part
alone, on both, and the last over the better of the first two: at most 1 is wanted.

  banking77     words and pairs of words, hashed, beside columns that tell something about the label (a point
                for each label, and noise around it), or nothing
  news20        its 200 most frequent words as dense columns, all others sparse
  letter        its 16 columns beside words that tell nothing
  rings, lines  made up: the dense part tells one factor of the label (by the distance from the origin, by a
                linear rule), the words the other

Modes: told (AveragedSoftmax), rank, balanced, show. Figures are means over seeds.
"""

from __future__ import annotations

import argparse
import csv
import re
import zlib
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import superarm as sa

ROUNDS, SHOWN = 30_000, 4


def hashed(texts: list[str], width: int = 2**16) -> Any:
    """Words and pairs of words."""
    indices, starts = [], [0]
    for text in texts:
        words = re.findall(r"[a-z0-9']+", text.lower())
        pairs = [f"{a} {b}" for a, b in pairwise(words)]
        indices.extend(zlib.crc32(word.encode()) % width for word in words + pairs)
        starts.append(len(indices))
    X = csr_matrix((np.ones(len(indices), np.float32), indices, starts), shape=(len(texts), width))
    X.sum_duplicates()
    return X


def points(y: Any, d: int, noise: float) -> Any:
    """d columns: a point for each label, and noise around it."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(y.max() + 1, d))
    return (centres[y] + noise * random.normal(size=(len(y), d))).astype(np.float32)


def words(topics: Any, share: float, seed: int, count: int = 12, width: int = 4000) -> Any:
    """So many words a row, by Zipf's law; a share of them from the 60 of its topic."""
    random, n = np.random.default_rng(seed), len(topics)
    law = 1.0 / np.arange(1, width + 1)
    indices = random.choice(width, size=(n, count), p=law / law.sum())
    own = random.integers(0, width, size=(topics.max() + 1, 60))
    from_topic = own[topics[:, None], random.integers(0, 60, size=(n, count))]
    indices = np.where(random.random((n, count)) < share, from_topic, indices)
    X = csr_matrix((np.ones(n * count, np.float32), indices.ravel(), np.arange(n + 1) * count), (n, width))
    X.sum_duplicates()
    return X


def data_sets(folder: Path) -> dict[str, tuple[Any, Any, Any]]:
    """Dense part, sparse part, labels."""
    tables = {}
    with (folder / "banking77.csv").open() as file:
        rows = list(csv.DictReader(file))
    y = np.unique([row["intent"] for row in rows], return_inverse=True)[1]
    text = hashed([row["text"] for row in rows])
    noise = np.random.default_rng(2).normal(size=(len(y), 10)).astype(np.float32)
    tables["banking77, 6 columns tell"] = points(y, 6, 0.7), text, y
    tables["banking77, 1 column tells"] = points(y, 1, 0.3), text, y
    tables["banking77, 6 of 16 tell"] = np.hstack([points(y, 6, 0.7), noise]), text, y
    tables["banking77, 10 of noise"] = noise, text, y
    news = np.load(folder / "news20.npz")
    X = csr_matrix((news["X_data"], news["X_indices"], news["X_indptr"]), news["X_shape"], dtype=np.float32)
    often = np.argsort(-np.bincount(X.indices, minlength=X.shape[1]))
    tables["news20, 200 words dense"] = (
        X[:, np.sort(often[:200])].toarray(),
        X[:, np.sort(often[200:])].tocsr(),
        news["y"],
    )
    letter = np.load(folder / "letter.npz")
    X, y = letter["X"].astype(np.float32), letter["y"]
    tables["letter, words of noise"] = X, words(np.zeros(len(y), int), 0.0, 3), y
    random, n = np.random.default_rng(5), 15_000
    Z, topic = random.normal(size=(n, 6)).astype(np.float32), random.integers(0, 4, n)
    distance = (Z[:, :2] ** 2).sum(axis=1)
    ring = np.searchsorted(np.quantile(distance, [1 / 3, 2 / 3]), distance)
    line = (Z @ random.normal(size=(6, 4))).argmax(axis=1)
    tables["rings × topics"] = Z, words(topic, 0.3, 4), 4 * ring + topic
    tables["lines × topics"] = Z, words(topic, 0.3, 6), 4 * line + topic
    return tables


def error(X: Any, width: Any, y: Any, mode: str, seed: int) -> float:
    common = {"n_labels": int(y.max()) + 1, "n_features": width, "set_size": SHOWN, "seed": seed}
    learner = sa.AveragedSoftmax(**common) if mode == "told" else sa.SetLogit(explore=mode, **common)
    random = np.random.default_rng(100 + seed)
    visit = np.concatenate([random.permutation(len(y)) for _ in range(2)])[:ROUNDS]
    return float(learner.run(X, y, visit)[0]) / len(visit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--modes", default="told,rank,balanced,show")
    options = parser.parse_args()
    modes = options.modes.split(",")
    print(f"| data | {' | '.join(f'{mode}: dense, sparse, both, ratio' for mode in modes)} |")
    print("|---" * (len(modes) + 1) + "|")
    for name, (X, S, y) in data_sets(options.folder).items():
        cells = []
        for mode in modes:
            parts = [(X, X.shape[1]), (S, S.shape[1]), ((X, S), (X.shape[1], S.shape[1]))]
            dense, sparse, both = (
                mean(error(part, width, y, mode, seed) for seed in range(options.seeds))
                for part, width in parts
            )
            ratio = both / min(dense, sparse)
            cells.append(f"{dense:.3f}, {sparse:.3f}, {both:.3f}, {ratio:.2f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
