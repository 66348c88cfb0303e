"""Distributions of sets: G z = pi, solved over blocks of labels, is what the whole matrix gives."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from superarm.explore import Mixture

K = 7
SETS = [([0, 1, 2], 0.6), ([0, 2, 3], 0.3), ([0, 1, 3], 0.1)]
VARYING = [([0, 1, 2], 0.7), ([0], 0.2), ([0, 1, 2, 3, 4], 0.1)]
DISTRIBUTIONS = {
    "one set": Mixture.certain(range(K), [1, 4]),
    "few sets": Mixture(range(K), 3, SETS),
    "few sets, some uniform": Mixture(range(K), 3, SETS, 0.05),
    "few sets, hardly any uniform": Mixture(range(K), 3, SETS, 1e-7),
    "of several sizes": Mixture(range(K), 5, VARYING),
    "of several sizes, some uniform": Mixture(range(K), 2, VARYING, 0.2),
    "dilute": Mixture.dilute(range(K), [2, 5], 0.3),
    "dilute and few sets": Mixture(range(K), 3, SETS, 0.4, [0, 5, 6], 0.2),
    "uniform": Mixture(range(K), 3, dilute_share=1.0),
    "tied": Mixture(range(K), 3, SETS, ties=[[1, 2], [3, 4, 5]]),
    "tied, some uniform": Mixture(range(K), 3, SETS, 0.1, ties=[[0], [1, 2, 3, 6]]),
    "tied labels that are in no set": Mixture(range(K), 3, SETS, 0.1, ties=[[4, 5, 6]]),
    "all tied": Mixture(range(K), 3, SETS, ties=[list(range(K))]),
    "tied, of several sizes": Mixture(range(K), 2, VARYING, 0.3, ties=[[1, 2], [4, 5]]),
}


def enumerated(distribution: Mixture) -> Any:
    """E[1_S 1_S'], by the probability of every set."""
    total, G = 0.0, np.zeros((K, K))
    for size in range(K + 1):
        for labels in combinations(range(K), size):
            shown, p = np.isin(np.arange(K), labels), distribution.probability(labels)
            total, G = total + p, G + p * np.outer(shown, shown)
    assert total == pytest.approx(1.0)
    return G


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_blocks_of_labels_give_what_all_labels_give(name: str) -> None:
    distribution, random = DISTRIBUTIONS[name], np.random.default_rng(0)
    G = enumerated(distribution)
    np.testing.assert_allclose(distribution.pair_inclusion(), G, atol=1e-12)
    np.testing.assert_allclose(distribution.inclusion(), np.diagonal(G), atol=1e-12)
    inverse = np.linalg.pinv(G, rcond=1e-12, hermitian=True)
    for _ in range(5):
        pi = G @ random.standard_normal(K)  # in the range of G
        np.testing.assert_allclose(distribution.solve(pi), inverse @ pi, rtol=1e-5, atol=1e-6)
    beyond = np.eye(K) - inverse @ G  # onto what no set can show
    if np.linalg.norm(beyond) > 0.1:
        assert np.isnan(distribution.solve(np.diagonal(G) + beyond @ random.standard_normal(K))).all()
    else:
        assert np.isfinite(distribution.solve(random.random(K))).all()


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_labels_with_names_are_the_same(name: str) -> None:
    numbered = DISTRIBUTIONS[name]
    letters, pi = "abcdefg", numbered.inclusion()
    rest = 1.0 - numbered.dilute_share
    few = [([letters[i] for i in labels], p / rest) for labels, p in numbered.sets.items()]
    top = [letters[i] for i in numbered.top]
    ties = [[letters[i] for i in labels] for labels in numbered.ties.values()]
    named = Mixture(list(letters), numbered.m, few, numbered.dilute_share, top, numbered.gamma, ties)
    np.testing.assert_allclose(named.inclusion(), pi)
    np.testing.assert_allclose(named.solve(pi), numbered.solve(pi), rtol=1e-6, atol=1e-9)
    assert named.probability(["a", "b", "c"]) == pytest.approx(numbered.probability([0, 1, 2]))
    assert named.probability(["a", "b", "?"]) == 0.0 == numbered.probability([0, 1, K])


@pytest.mark.parametrize("ties", [[], [list(range(1, 2000))], [list(range(3, 1000))]])
def test_no_matrix_over_all_labels_is_built(ties: list[list[int]], monkeypatch: Any) -> None:
    k = 2000
    distribution = Mixture(range(k), 3, SETS, 0.05, ties=ties)
    sizes: list[int] = []
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: sizes.append(len(matrix)) or eigh(matrix))
    assert np.isfinite(distribution.solve(distribution.inclusion())).all()
    assert 0 < max(sizes) < 10
