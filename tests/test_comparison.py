"""compare: options that several learners share."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import superarm as sa
from superarm.errors import InvalidInput


def test_learners_of_a_comparison_share_a_set_size_a_gamma_and_seeds() -> None:
    names = ["mc-dbf", "mc-dbf:gamma=0.5", "banditron", "set-logit"]
    found = sa.compare(names, "digits", rounds=200, set_size=2, gamma=0.2, seeds=[3, 5])
    assert [runs[0].set_size for runs in found.runs.values()] == [2, 2, 1, 2]
    assert [[run.seed for run in runs] for runs in found.runs.values()] == [[3, 5]] * 4
    for name, gamma in (("mc-dbf", 0.2), ("mc-dbf:gamma=0.5", 0.5)):
        alone = sa.MCDBF(n_labels=10, set_size=2, gamma=gamma, seed=5, scaling="standard")
        assert found.runs[name][1].error_rate == sa.simulate(alone, "digits", 200).error_rate


def test_of_a_single_learner_no_option_is_left_out() -> None:
    with pytest.raises(InvalidInput, match="gamma of SetLogit must be one of its parameters"):
        sa.compare(["set-logit"], "digits", rounds=50, gamma=0.2)
    with pytest.raises(InvalidInput, match="set_size of Banditron must be 1"):
        sa.compare(["banditron"], "digits", rounds=50, set_size=2)
    assert sa.compare(["mc-dbf"], "digits", rounds=50).runs["mc-dbf"][0].set_size == 1


def test_the_table_tells_what_was_kept_of_a_promise() -> None:
    found = sa.compare(["set-logit:coverage=0.9", "set-logit"], "digits", rounds=8000, seeds=2)
    table, promised = found.table(), found.runs["set-logit:coverage=0.9"]
    assert table["coverage"].to_list() == [pytest.approx(sum(run.coverage for run in promised) / 2), None]
    assert table["mean_size"].to_list()[0] == pytest.approx(sum(run.mean_size for run in promised) / 2)
    assert "coverage         mean size" in repr(found)
    cold = sa.compare(["set-logit:coverage=0.9"], "digits", rounds=10).table()
    assert cold["coverage"].to_list() == [None]
    plain = sa.compare(["set-logit"], "digits", rounds=10)
    assert "coverage" not in plain.table().columns


def test_a_frame_is_compared_on_as_it_is_simulated() -> None:
    size = np.random.default_rng(0).normal(size=300)
    frame = pl.DataFrame({"size": size, "label": np.where(size > 0, "big", "small")})
    found = sa.compare(["set-logit"], frame, rounds=300)
    alone = sa.SetLogit(labels=["big", "small"], scaling="standard")
    assert found.runs["set-logit"][0].error_rate == sa.simulate(alone, frame, 300).error_rate


def test_a_class_in_place_of_a_learner_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match="learners of compare must be learners, or names as on the command line"
    ):
        sa.compare([sa.SetLogit], "digits", rounds=10)  # type: ignore[list-item]
