"""Stored decisions whose sets no decision has: refused before compiled code, which checks nothing, reads them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import superarm as sa
from superarm.decisions import Decisions
from superarm.errors import SuperarmError

X = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
SIZES = {sa.MCDBF: {"set_size": 2}, sa.SetLogit: {"set_size": 2}}
LEARNERS = [sa.Banditron, sa.SOBA, sa.Newtron, sa.MCDBF, sa.SetLogit, sa.EPABF]
CHANGES = {
    "no top": {"top": []},
    "top twice": {"top": "repeat"},
    "nothing eligible": {"eligible": []},
    "eligible without the drawn": {"eligible": "others"},
    "eligible twice": {"eligible": "repeat"},
    "no labels then": {"n_labels": 0},
    "fewer labels then": {"n_labels": "fewer"},
}


def changed(data: dict, change: dict) -> dict:
    given = dict(change)
    shown = data["labels"]
    for name, value in change.items():
        if value == "repeat":
            given[name] = data["top"] + data["top"][:1] if name == "top" else shown + data["top"] + shown
        elif value == "others":
            given[name] = [label for label in range(5) if label not in shown]
        elif value == "fewer":
            given[name] = max(shown + data["top"])
    return data | given


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("cls", LEARNERS)
def test_no_learner_reads_sets_that_no_decision_has(cls: type, change: str) -> None:
    learner = cls(n_labels=5, n_features=6, seed=0, **SIZES.get(cls, {}))
    data = learner.decide(X[0]).to_dict()
    before = learner.scores(X[:1])
    with pytest.raises(SuperarmError, match="must"):
        learner.update(sa.Decision.from_dict(changed(data, CHANGES[change])), hit=True)
    assert np.array_equal(learner.scores(X[:1]), before)
    learner.update(sa.Decision.from_dict(data), hit=True)  # as it was stored, it can be learnt from


def test_a_row_of_a_stored_decision_is_as_wide_as_its_learner_takes() -> None:
    learner = sa.MCDBF(n_labels=5, n_features=6, set_size=2, seed=0)
    frame = learner.decide_many(X).to_frame()
    narrow = frame.with_columns(pl.Series("x", X[:, :2], dtype=pl.Array(pl.Float32, 2)))
    decisions = Decisions.from_frame(narrow, learner.vocabulary)
    with pytest.raises(SuperarmError, match="6"):
        learner.update(decisions[0], hit=True)
    with pytest.raises(SuperarmError, match="6"):
        learner.update_many(decisions, np.ones(20, bool))
