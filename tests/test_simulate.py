"""Streams and runs over them."""

import gc
import subprocess
import sys
import tracemalloc
from itertools import islice
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix

import superarm as sa
from superarm.data.rows import Layout, conform_row
from superarm.errors import InvalidInput
from superarm.simulation import checkpoints, simulate
from superarm.streams import NAMES, Arrays, open_data, synnonsep, synsep
from superarm.streams.synthetic import BLOCK, N_OWNED

X = np.arange(12.0).reshape(6, 2)
Y = [0, 1, 2, 0, 1, 2]


def passes(stream, seed, n):
    return [chunk.order.tolist() for chunk in islice(stream.chunks(seed), n)]


# ---------------------------------------------------------------- Arrays


def test_every_pass_has_an_order_of_its_own():
    stream = Arrays(X, Y)
    orders = passes(stream, seed=3, n=4)
    assert all(sorted(order) == list(range(6)) for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    assert orders == passes(stream, seed=3, n=4)
    assert orders != passes(stream, seed=4, n=4)
    assert passes(Arrays(X, Y, shuffle=False), seed=3, n=2) == [[0, 1, 2, 3, 4, 5]] * 2


def test_a_stream_can_be_named():
    """By a name or a file, as on the command line; and 100,000 rounds if nobody says how many."""
    learners = [sa.MCDBF(n_labels=10, n_features=64, set_size=3, seed=1) for _ in range(2)]
    named, opened = (
        sa.simulate(learner, stream, 500)
        for learner, stream in zip(learners, ("digits", open_data("digits")), strict=True)
    )
    np.testing.assert_array_equal(named.counts, opened.counts)
    assert named.data == "digits"
    tiny = sa.Perceptron(n_labels=10, n_features=64)
    assert sa.simulate(tiny, "digits").rounds[-1] == 100_000
    with pytest.raises(InvalidInput, match=r"did you mean 'digits'\?"):
        sa.simulate(tiny, "digit")


@pytest.mark.parametrize(
    ("y", "labels", "codes", "names", "count"),
    [
        ([0, 1, 2, 0, 1, 2], None, [0, 1, 2, 0, 1, 2], None, 3),
        ([0, 1, 3, 0, 1, 3], None, [0, 1, 3, 0, 1, 3], None, 4),
        ([0.0, 1.0, 1.0, 0.0, 1.0, 1.0], None, [0, 1, 1, 0, 1, 1], None, 2),
        ([1, 2, 3, 1, 2, 3], None, [0, 1, 2, 0, 1, 2], (1, 2, 3), 3),
        ([5, 90, 5, 90, 5, 5], None, [0, 1, 0, 1, 0, 0], (5, 90), 2),
        (list("badbad"), None, [1, 0, 2, 1, 0, 2], ("a", "b", "d"), 3),
        (list("badbad"), ["d", "b", "a", "z"], [1, 2, 0, 1, 2, 0], ("d", "b", "a", "z"), 4),
        ([0, 1, 2, 0, 1, 2], ["x", "y", "z"], [0, 1, 2, 0, 1, 2], ("x", "y", "z"), 3),
        ([0, 0, 0, 0, 0, 0], None, [0] * 6, None, 2),
        ([0.5, 1.5, 0.5, 1.5, 0.5, 1.5], None, [0, 1, 0, 1, 0, 1], ("0.5", "1.5"), 2),
    ],
)
def test_labels(y, labels, codes, names, count):
    stream = Arrays(X, y, labels=labels)
    assert (stream.y.tolist(), stream.labels, stream.n_labels) == (codes, names, count)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0, 1]}, "y of Arrays must be 6 labels, at least one, got 2"),
        ({"y": [[0, 1]] * 6}, "y of Arrays must be one label for each row"),
        ({"y": [{0, 1}] * 6}, "y of Arrays must be one label for each row"),
        (
            {"y": list("aabbcc"), "labels": ["a", "b"]},
            "y of Arrays must be made of the given labels, got 'c'",
        ),
        ({"labels": ["a", "a", "b"]}, "labels of Arrays must be distinct and at least two"),
        ({"y": ["a"] * 6}, "labels of Arrays must be distinct and at least two"),
        ({"X": np.full((6, 2), np.nan)}, "X of Arrays must be finite, got nan"),
        ({"X": csr_matrix(np.full((6, 2), np.inf))}, "X of Arrays must be finite, got inf"),
        ({"X": X[:0], "y": []}, "labels of Arrays must be distinct and at least two"),
        ({"X": X[:0], "y": [], "labels": ["a", "b"]}, "y of Arrays must be 0 labels, at least one"),
        ({"X": [1.0, 2.0]}, "X of Arrays must be a matrix with two dimensions"),
    ],
)
def test_bad_arrays(change, message):
    arguments = {"X": X, "y": Y} | change
    with pytest.raises(InvalidInput, match=message):
        Arrays(arguments.pop("X"), arguments.pop("y"), **arguments)


# ---------------------------------------------------------------- data by name or file


def test_data_by_name():
    assert {"synsep", "synnonsep", "digits"} <= set(NAMES)
    stream = open_data("digits")
    assert (stream.n_features, stream.n_labels, len(stream.y), stream.name) == (64, 10, 1797, "digits")
    assert open_data("synsep").name == "synsep"
    assert open_data("synnonsep").name == "synnonsep"


def test_data_in_files(tmp_path):
    sparse = csr_matrix(X)
    np.savez(tmp_path / "plain.npz", X=X, y=Y)
    np.savez(tmp_path / "named.npz", X=X, y=Y, classes=["a", "b", "c"])
    parts = {
        "X_data": sparse.data,
        "X_indices": sparse.indices,
        "X_indptr": sparse.indptr,
        "X_shape": X.shape,
    }
    np.savez(tmp_path / "csr.npz", y=Y, **parts)
    np.savez(tmp_path / "images.npz", x_train=X.reshape(6, 1, 2), y_train=Y)
    for name in ("plain", "named", "csr", "images"):
        stream = open_data(str(tmp_path / f"{name}.npz"))
        assert (stream.name, stream.n_features, stream.n_labels) == (name, 2, 3)
        assert stream.labels == (("a", "b", "c") if name == "named" else None)


# ---------------------------------------------------------------- SYNSEP


def test_synsep_is_what_it_should_be():
    stream = synsep()
    chunk = next(stream.chunks(0))
    assert chunk.rows.dense.shape == (BLOCK, 400)
    assert set(np.unique(chunk.rows.dense)) == {0.0, 1.0}
    seen = np.zeros((9, N_OWNED), bool)
    for label in range(9):
        rows = chunk.rows.dense[chunk.y == label]
        owned = rows[:, :N_OWNED].any(axis=0)
        seen[label] = owned
        assert 20 <= owned.sum() <= 40
        assert (rows[:, :N_OWNED].sum(axis=1) == owned.sum() - 5).all()
        off = owned.sum() - rows[:, :N_OWNED][:, owned].sum(axis=1)
        assert (off == 5).all()
    assert (chunk.rows.dense[:, N_OWNED:].sum(axis=1) == 20).all()
    assert len({row.tobytes() for row in seen}) == 9
    counts = np.bincount(chunk.y, minlength=9)
    assert abs(counts / BLOCK - 1 / 9).max() < 0.02
    every = chunk.rows.dense[:, N_OWNED:].mean(axis=0)  # 280 coordinates, 20 of them on
    assert abs(every - 20 / 280).max() < 0.025


def test_synsep_is_a_function_of_the_seed():
    first, again, other = (list(islice(synsep().chunks(seed), 2)) for seed in (1, 1, 2))
    for a, b in zip(first, again, strict=True):
        assert (a.rows.dense == b.rows.dense).all()
        assert (a.y == b.y).all()
    assert (first[0].rows.dense != other[0].rows.dense).any()
    assert (first[0].rows.dense != first[1].rows.dense).any()


def test_synnonsep_replaces_labels():
    clean, noisy = next(synsep().chunks(5)), next(synnonsep().chunks(5))
    assert (clean.rows.dense == noisy.rows.dense).all()
    assert 0.03 < (clean.y != noisy.y).mean() < 0.06  # 5 %, of which a ninth by chance the same


# ---------------------------------------------------------------- simulate


def test_public_names():
    """sa.simulate is the function, in whatever order names are asked for; and importing loads no NumPy."""
    code = (
        "import sys, superarm as sa; assert 'numpy' not in sys.modules; "
        "sa.Trace; assert callable(sa.simulate); "
        "missing = [n for n in sa.__all__ if getattr(sa, n, None) is None]; assert not missing, missing; "
        "assert callable(sa.simulate) and callable(sa.make) and callable(sa.load)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_simulate_is_decide_and_update(sparse):
    """By hand over the same visits: the same counts and the same bits."""
    random = np.random.default_rng(1)
    rows, y = random.normal(size=(50, 4)) * (random.random((50, 4)) < 0.7), random.integers(5, size=50)
    stream = Arrays(csr_matrix(rows) if sparse else rows, y)
    common = {"n_labels": 5, "n_features": 4, "set_size": 2, "seed": 7}
    fused, by_hand = sa.MCDBF(**common), sa.MCDBF(**common)
    trace = simulate(fused, stream, 170)
    counts, done = np.zeros(3), 0
    for chunk in stream.chunks(7):
        for i in chunk.order[: 170 - done]:
            row = chunk.rows.row(i)
            decision = by_hand.decide(row)
            hit = int(chunk.y[i]) in decision.drawn
            counts += [decision.top[0] != chunk.y[i], chunk.y[i] not in decision.top, not hit]
            by_hand.update(decision, hit=hit)
            done += 1
        if done == 170:
            break
    assert trace.counts[-1].tolist() == counts.tolist()
    for name, array in fused.core.state().items():
        assert array.tobytes() == by_hand.core.state()[name].tobytes()
    assert fused.round == by_hand.round == 170


def test_trace():
    stream = Arrays(X, Y)
    ticks = []
    trace = simulate(sa.Banditron(n_labels=3, n_features=2, seed=4), stream, 1000, progress=ticks.append)
    assert sum(ticks) == 1000
    assert (trace.learner, trace.data, trace.set_size, trace.seed) == ("banditron", "arrays", 1, 4)
    assert trace.rounds.tolist() == checkpoints(1000).tolist()
    assert (np.diff(trace.counts, axis=0) >= 0).all()
    assert (trace.counts <= trace.rounds[:, None]).all()
    assert trace.rates == {
        "error_rate": trace.error_rate,
        "miss_rate": trace.miss_rate,
        "shown_miss_rate": trace.shown_miss_rate,
    }
    assert trace.error_rate == trace.counts[-1, 0] / 1000
    assert trace.rounds_per_second > 0
    curve = trace.to_frame()
    assert curve.columns == ["round", "error_rate", "miss_rate", "shown_miss_rate"]
    assert curve["round"].to_list() == trace.rounds.tolist()
    assert curve["shown_miss_rate"][-1] == trace.shown_miss_rate


def test_seed_of_the_stream():
    stream = Arrays(X, Y)

    def counts(seed):
        learner = sa.Perceptron(n_labels=3, n_features=2, seed=4)
        return simulate(learner, stream, 40, seed=seed).counts.tolist()

    assert counts(None) == counts(4)
    assert counts(5) != counts(4)


def test_a_simulation_goes_on_where_the_learner_is():
    stream = Arrays(X, Y, shuffle=False)
    one, two = (sa.MCDBF(n_labels=3, n_features=2, seed=1) for _ in range(2))
    simulate(one, stream, 12)
    simulate(two, stream, 6)
    simulate(two, stream, 6)
    assert one.core.state()["weights.dense"].tobytes() == two.core.state()["weights.dense"].tobytes()


def test_window():
    counts = np.cumsum(np.outer(np.arange(1, 101) <= 50, [1, 1, 1]), axis=0)
    trace = sa.Trace("l", "d", 1, 0, np.arange(1, 101), counts, 1.0, "unit", np.arange(1, 101))
    assert trace.window(0.0, 0.5) == {"error_rate": 1.0, "miss_rate": 1.0, "shown_miss_rate": 1.0}
    assert trace.window(0.5, 1.0) == {"error_rate": 0.0, "miss_rate": 0.0, "shown_miss_rate": 0.0}
    assert trace.window(0.4, 0.6)["error_rate"] == 0.5
    with pytest.raises(InvalidInput, match=r"start and stop of Trace.window must be increasing"):
        trace.window(0.5, 0.5)


def test_checkpoints():
    for rounds in (1, 2, 10, 999, 10**6, 10**8):
        marks = checkpoints(rounds)
        assert (marks[0], marks[-1]) == (1, rounds)
        assert (np.diff(marks) > 0).all()
        assert len(marks) <= 210


def test_bad_simulations():
    stream = Arrays(X, Y)
    with pytest.raises(InvalidInput, match="rounds of simulate must be at least 1, got 0"):
        simulate(sa.Perceptron(n_labels=3, n_features=2), stream, 0)
    with pytest.raises(InvalidInput, match="n_features of Perceptron must be 2, as arrays has, got 3"):
        simulate(sa.Perceptron(n_labels=3, n_features=3), stream, 5)
    with pytest.raises(InvalidInput, match="n_labels of Perceptron must be 3, as arrays has, got 4"):
        simulate(sa.Perceptron(n_labels=4, n_features=2), stream, 5)


@pytest.mark.parametrize("source", [(X, Y), [X, Y], X, None])
def test_what_is_no_stream_is_refused_with_the_way_to_one(source):
    wanted = r"^stream of superarm must be a stream, .*; X and y are superarm.streams.Arrays\(X, y\), got a "
    with pytest.raises(InvalidInput, match=wanted):
        simulate(sa.Perceptron(n_labels=3, n_features=2), source, 5)


def test_a_path_is_a_stream(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    assert simulate(sa.Perceptron(n_labels=3, n_features=2), tmp_path / "a.npz", 5).rounds[-1] == 5


def test_a_stream_that_ends_early_is_told():
    class Ends(Arrays):
        def chunks(self, seed):
            yield next(super().chunks(seed))

    short = Ends(X, Y)
    with pytest.raises(
        InvalidInput, match=f"rounds of simulate must be at most {len(Y)}, as arrays ended there"
    ):
        simulate(sa.Perceptron(n_labels=3, n_features=2), short, len(Y) + 1)
    assert simulate(sa.Perceptron(n_labels=3, n_features=2), short, len(Y)).rounds[-1] == len(Y)


def test_memory_does_not_grow():
    """A million rounds of a small learner leave nothing behind for each round."""
    random = np.random.default_rng(0)
    stream = Arrays(random.normal(size=(10_000, 3)), random.integers(4, size=10_000))
    learner = sa.MCDBF(n_labels=4, n_features=3, set_size=2)
    simulate(learner, stream, 20_000)  # compile, import, cache
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    trace = simulate(learner, stream, 1_000_000)
    gc.collect()
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert trace.rounds[-1] == 1_000_000
    assert after - before < 400_000  # less than half a byte a round: what calls leave in caches is bounded
    assert peak - before < 1_000_000  # an order of 10,000 rows, twice
    assert learner.answered.count == 1_020_000
    assert not learner.answered.bits


def test_sparse_rows_of_a_stream():
    stream = Arrays(csr_matrix(X), Y)
    chunk = next(stream.chunks(0))
    row = chunk.rows.row(2)
    wanted = conform_row(X[2].astype(np.float32), Layout(0, X.shape[1]), "it")
    assert row.indices.tolist() == wanted.indices.tolist()
    assert row.values.round(4).tolist() == wanted.values.round(4).tolist()


def test_a_frame_is_a_stream() -> None:
    """Its label column is found by its name, or asked for."""
    random = np.random.default_rng(0)
    size = random.normal(size=300)
    frame = pl.DataFrame({"size": size, "label": np.where(size > 0, "big", "small")})
    learner = sa.SetLogit(labels=["big", "small"])
    trace = sa.simulate(learner, frame, 900)
    assert trace.error_rate < 0.1
    assert learner.columns.kinds == {"size": "numbers"}
    assert repr(sa.streams.from_frame(frame)) == "Arrays(frame: 300 rows of 1 features, 2 labels)"
    with pytest.raises(InvalidInput, match="label of frame must be the name of the label column"):
        sa.simulate(learner, frame.rename({"label": "kind"}))


def test_fewer_rounds_than_the_warm_up_are_no_coverage() -> None:
    learner = sa.SetLogit(n_labels=10, n_features=64, coverage=0.95)
    trace = sa.simulate(learner, "digits", 20)
    assert not trace.is_warm
    assert "no round after the warm-up of" in repr(trace)
    for text in (repr(trace), trace._repr_html_()):
        assert "nan" not in text
        assert "no round after the warm-up" in text


@pytest.mark.parametrize("learner", ["set-logit", SimpleNamespace(decide=None, update=None)])
def test_what_is_no_learner_is_refused_with_the_way_to_one(learner):
    with pytest.raises(InvalidInput, match=r"learner of simulate must be a Learner \(.* as a PlainLearner; "):
        sa.simulate(learner, "digits", 10)


# ---------------------------------------------------------------- labels and columns of another order


@pytest.mark.parametrize("names", [list("cab"), [7, 5, 6], ["6", "7", "5"]])
def test_labels_in_another_order_are_matched_by_name(names):
    """The same run as in the stream's order: by name, the learner is the same."""
    rng = np.random.default_rng(0)
    index = np.arange(300) % 3
    rows = np.eye(3)[index] + rng.normal(size=(300, 3)) / 10
    in_order = sorted(names)
    stream = Arrays(rows, [in_order[i] for i in index])
    traces, learners = [], []
    for labels in (in_order, names):
        learner = sa.SetLogit(labels=labels, set_size=1, explore="rank", seed=0)
        traces.append(sa.simulate(learner, stream, 900))
        learners.append(learner)
    assert [trace.error_rate < 0.3 for trace in traces] == [True, True]
    for learner in learners:
        assert (learner.predict(rows) == np.array(in_order)[index]).mean() > 0.95
    compared = sa.compare(learners[1:], stream, 900)
    assert next(iter(compared.runs.values()))[0].error_rate < 0.3
    promised = sa.SetLogit(labels=names, coverage=0.9)
    assert [part.name for part in sa.simulate(promised, stream, 3000).by_label] == names


def test_numbers_of_a_stream_without_names_are_matched_too():
    stream = Arrays(np.tile(np.eye(3), (99, 1)), [0, 1, 2] * 99)
    numbered = sa.SetLogit(labels=[2, 0, 1], set_size=1, explore="rank")
    sa.simulate(numbered, stream, 600)
    assert numbered.predict(np.eye(3)).tolist() == [0, 1, 2]
    named = sa.SetLogit(labels=["ant", "bee", "cat"], set_size=1, explore="rank")  # names for its indices
    sa.simulate(named, stream, 600)
    assert named.predict(np.eye(3)).tolist() == ["ant", "bee", "cat"]


def test_other_labels_and_columns_are_refused():
    stream = Arrays(X, list("abcabc"))
    with pytest.raises(
        InvalidInput, match="labels of arrays must be those of the learner, in any order, got 'c'"
    ):
        sa.simulate(sa.SetLogit(labels=["a", "b", "z"], set_size=1), stream, 10)
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [0.0, 2.0], "label": ["x", "y"]})
    learner = sa.SetLogit(labels=["x", "y"], set_size=1)
    sa.simulate(learner, frame, 10)
    with pytest.raises(InvalidInput, match="columns of frame must be those that the learner knows"):
        sa.simulate(learner, frame.select("b", "a", "label"), 10)
