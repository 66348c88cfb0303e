"""What no program should do, and some do: it is refused in one sentence, and nothing is damaged."""

from __future__ import annotations

import io
import multiprocessing
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import superarm as sa
from superarm.decisions import Decisions
from superarm.errors import SuperarmError

X = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)


def all_finite(learner: sa.Learner) -> bool:
    return all(np.isfinite(a).all() for a in learner.ensure_core().state().values() if a.dtype.kind == "f")


@pytest.mark.parametrize("make", [sa.MCDBF, sa.Banditron, sa.SetLogit, sa.AveragedSoftmax])
@pytest.mark.parametrize("row", [[1e-38, 1e-38], [3e38, 1e38], [1e-44, 0.0]])
def test_rows_of_extreme_size_leave_a_learner_whole(make, row) -> None:
    learner = make(n_labels=4, n_features=2, scaling="unit", seed=0)
    for hit in (True, False):
        with suppress(SuperarmError):
            learner.update(learner.decide(np.array(row, np.float32)), **feedback(learner, hit))
    assert all_finite(learner)
    learner.decide([1.0, 2.0])


def feedback(learner: sa.Learner, hit: bool) -> dict[str, object]:
    return {"hit": hit} if "hit" in learner.feedback else {"label": 1}


def test_the_first_calls_of_a_loaded_learner_may_come_from_several_threads() -> None:
    learner = sa.SetLogit(n_labels=400, set_size=4, seed=0)
    learner.decide(X[0])
    file = io.BytesIO()
    learner.save(file)
    for _ in range(60):
        file.seek(0)
        loaded = sa.load(file)
        threads = [threading.Thread(target=loaded.decide, args=(X[0],)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert loaded.round == 4


def _decide(learner: sa.Learner) -> None:
    learner.decide(X[0])


@pytest.mark.skipif(not hasattr(multiprocessing, "get_context"), reason="no processes")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_process_forked_beside_a_call_does_not_wait_for_ever() -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system does not fork")
    learner = sa.SetLogit(n_labels=5, n_features=6, set_size=2, seed=0)
    learner.decide(X[0])
    learner.lock.__enter__()  # as another thread has it
    try:
        child = multiprocessing.get_context("fork").Process(target=_decide, args=(learner,))
        child.start()
        child.join(20)
        assert child.exitcode == 0
    finally:
        learner.lock.__exit__(None, None, None)


def test_an_answer_for_which_there_is_no_memory_is_not_learnt() -> None:
    learner = sa.SetLogit(n_labels=5, n_features=6, set_size=2, seed=0)
    far = sa.Decision.from_dict(learner.decide(X[0]).to_dict() | {"round": 10**15})
    learner.advance(far)
    before = learner.scores(X).tobytes()
    with pytest.raises((MemoryError, OverflowError)):
        learner.update(far, hit=True)
    assert learner.scores(X).tobytes() == before


def test_the_row_of_a_decision_stays_as_it_was() -> None:
    """Compiled code learns from it, and does not look at it again."""
    dense = sa.SetLogit(n_labels=5, n_features=6, set_size=2, seed=0).decide(X[0])
    sparse = sa.SetLogit(n_labels=5, n_features=10, set_size=2).decide(sa.Row(sparse=([1], [1.0]), width=10))
    for array in (dense.x, sparse.x.indices, sparse.x.values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


@pytest.mark.parametrize("scores", [pd.DataFrame(X), np.asfortranarray(X)], ids=["frame", "fortran"])
def test_scores_of_any_layout(scores) -> None:
    expected = sa.explore.RunnerUp(set_size=2, seed=0).decide_many(scores=X)
    given = sa.explore.RunnerUp(set_size=2, seed=0).decide_many(scores=scores)
    assert (given.labels == expected.labels).all()


@pytest.mark.parametrize(
    "change",
    [
        {"log_propensity": 2.0},
        {"round": 0.5},
        {"round": True},
        {"round": -1},
        {"rule": {"name": "cover", "draw_log": [float("nan")]}},
        {"rule": {"name": "runner-up", "cost": float("inf")}},
    ],
)
def test_numbers_that_no_decision_has(change) -> None:
    learner = sa.SetLogit(n_labels=5, n_features=6, set_size=2, seed=0)
    data = learner.decide(X[0]).to_dict()
    with pytest.raises(SuperarmError, match=rf"{next(iter(change))} of Decision.from_dict must be"):
        sa.Decision.from_dict(data | change)
    frame = learner.decide_many(X).to_frame()
    if "log_propensity" in change:
        with pytest.raises(SuperarmError, match=r"log_propensity of Decisions.from_frame must be at most 0"):
            Decisions.from_frame(frame.with_columns(log_propensity=pl.lit(2.0)), learner.vocabulary)


def test_labels_that_came_later_are_none_of_an_older_decision() -> None:
    learner = sa.MCDBF(n_labels=3, n_features=6, set_size=2, seed=0)
    data = learner.decide(X[0]).to_dict()
    learner.add_labels(2)
    later = data | {"n_labels": None, "labels": [4, 3], "drawn": [4, 3], "top": [4, 3]}
    with pytest.raises(SuperarmError, match="labels of decision"):
        learner.update(sa.Decision.from_dict(later), hit=True)


def test_counts_are_not_written_over_what_is_read() -> None:
    learner, y = sa.Perceptron(n_labels=5, n_features=6), np.zeros(30, np.intp)
    with pytest.raises(SuperarmError, match="signed_sizes"):
        learner.run(X, y, signed_sizes=y)


@pytest.mark.parametrize("starts", [[0, -5, 10], [0, 5, 10**9], [1, 5, 10]])
def test_sparse_rows_that_do_not_fit_their_numbers(starts) -> None:
    X = scipy.sparse.random(2, 30, density=10 / 60, format="csr", random_state=0)
    learner = sa.SetLogit(n_labels=5, n_features=30, set_size=2)
    assert X.has_canonical_format
    X.indptr = np.array(starts, X.indptr.dtype)
    with pytest.raises(SuperarmError, match="X of SetLogit must be"):
        learner.decide_many(X)


def test_a_model_file_with_a_layout_that_no_learner_has(tmp_path: Path) -> None:
    from superarm import _files

    learner = sa.SetLogit(n_labels=5, n_features=6, set_size=2)
    learner.decide(X[0])
    learner.save(tmp_path / "model.npz")
    header, arrays = _files.read_model(tmp_path / "model.npz")
    del header["format"], header["version"]
    _files.write_model(tmp_path / "model.npz", header | {"layout": [6, 0, 2**31]}, arrays)
    with pytest.raises(SuperarmError, match=r"content of .* must be a superarm model"):
        sa.load(tmp_path / "model.npz")


class Growing(sa.explore.PlainRule):
    name = "growing"

    def __init__(self, **common: object) -> None:
        super().__init__(**common)
        self.n = 1

    def log_size(self, n: int, m: int) -> int:
        return self.n

    def choose(self, context: sa.explore.DrawContext) -> tuple[list[int], float, list[float]]:
        self.n += 1000
        return list(range(context.set_size)), 1.0, [0.0] * self.n

    def distribution_from(self, record: object, top: object, eligible: object, m: int) -> None:
        raise NotImplementedError


def test_a_rule_that_writes_down_more_than_it_said() -> None:
    with pytest.raises(SuperarmError, match=r"draw_log of Growing\.choose must be at most 1 numbers"):
        Growing(set_size=2).decide([1.0, 2.0, 3.0])
