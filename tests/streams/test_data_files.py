"""The user's own data: tables, svmlight, arrays, frames."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pytest
from lab_kit import blobs, shared_data

import superarm as sa
from superarm.errors import InvalidInput
from superarm.streams import from_frame, open_data
from superarm.streams.catalog import content_digest

NAMES = np.array(["ant", "bee", "cat"])


def frame_of(label: str = "animal"):
    X, y = blobs()
    columns = {f"f{i}": X[:, i] for i in range(X.shape[1])}
    return polars.DataFrame({"f0": columns.pop("f0"), label: NAMES[y], **columns}), X, y


@pytest.mark.parametrize("name", ["label", "y", "class", "target"])
def test_usual_label_columns_are_found(tmp_path, name):
    frame, _, y = frame_of(name)
    frame.write_csv(tmp_path / "a.csv")
    np.testing.assert_array_equal(open_data(str(tmp_path / "a.csv")).y, y)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_tables_of_all_kinds_are_the_same_stream(tmp_path, ending):
    frame, X, y = frame_of()
    path = tmp_path / f"zoo.{ending}"
    if ending in ("csv", "tsv"):
        frame.write_csv(path, separator=";" if ending == "csv" else "\t")
    else:
        (frame.write_ndjson if ending == "jsonl" else frame.write_parquet)(path)
    stream = open_data(str(path), label="animal")
    np.testing.assert_array_equal(stream.rows.dense, X)
    np.testing.assert_array_equal(stream.y, y)
    assert (stream.name, stream.labels) == ("zoo", ("ant", "bee", "cat"))


def test_frames_of_polars_and_pandas_are_the_same_stream():
    frame, X, y = frame_of()
    words = pandas.DataFrame(frame.to_dict(as_series=False))
    for own in (frame, words, words.astype({"animal": "category"})):
        stream = from_frame(own, label="animal")
        np.testing.assert_array_equal(stream.rows.dense, X)
        np.testing.assert_array_equal(stream.y, y)
        assert stream.labels == ("ant", "bee", "cat")


def test_svmlight(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("7 1:0.5 3:2.0\n9 2:1.0\n7 1:1.0 # a comment\n")
    stream = open_data(str(path))
    assert (stream.n_features, stream.labels) == (3, (7, 9))
    rows = stream.rows
    np.testing.assert_array_equal(rows.values, [0.5, 2.0, 1.0, 1.0])
    np.testing.assert_array_equal(rows.indices, [0, 2, 1, 0])
    np.testing.assert_array_equal(rows.starts, [0, 2, 3, 4])
    np.testing.assert_array_equal(stream.y, [0, 1, 0])


@pytest.mark.parametrize(
    ("content", "label", "message"),
    [
        ("a,b\n1,2\n", None, "label of .* must be the name of the label column"),
        ("a,b\n1,2\n", "c", "label of .* must be one of its columns a, b, got 'c'"),
        ("a,label\n1e39,x\n2,y\n", None, r"x\['a'\] of row 1 of .* must be finite as a 32-bit float, or"),
        ("a,label\n1,x\n2,\n", None, "column 'label' of .* must be a label in every row, got none in row 2"),
        ("label\nx\ny\n", None, "columns of .* must be the label and at least one feature"),
        ("age,animal\n1,x\n3,y\n", "anmal", r"got 'anmal'; did you mean 'animal'\?"),
    ],
)
def test_tables_that_are_refused(tmp_path, content, label, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InvalidInput, match=message):
        open_data(str(tmp_path / "a.csv"), label=label)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.parquet", b"no parquet", "content of .* must be a Parquet file"),
        ("a.svm", b"1 x:y\n", "content of .* must be svmlight lines"),
        ("a.npz", b"no zip", "content of .* must be an .npz with X and y, got a foreign or truncated file"),
        ("a.txt", b"", "data of superarm must be a name or a file ending in .npz, .parquet, .csv"),
    ],
)
def test_files_that_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        open_data(str(tmp_path / name))


def test_misspelt_names_are_guessed():
    with pytest.raises(InvalidInput, match=r"got 'fashion-minst'; did you mean 'fashion-mnist'\?"):
        open_data("fashion-minst")


def test_a_label_column_is_for_tables_only(tmp_path):
    X, y = blobs()
    np.savez(tmp_path / "a.npz", X=X, y=y)
    for source in (str(tmp_path / "a.npz"), "digits"):
        with pytest.raises(InvalidInput, match=r"label of .* must be left out: only tables have columns"):
            open_data(source, label="y")


def test_the_ending_is_refused_before_its_options(tmp_path):
    (tmp_path / "f.xlsx").touch()
    with pytest.raises(
        InvalidInput, match=r"data of superarm must be a name or a file ending in .npz, .parquet"
    ):
        open_data(str(tmp_path / "f.xlsx"), label="team")
    with pytest.raises(InvalidInput, match="data of superarm must be a file or one of"):
        open_data("nope.xlsx", label="team")


@pytest.mark.parametrize("keys", ["A", "X", "y", "x_train"])
def test_npz_without_rows_or_labels_is_refused(tmp_path, keys):
    np.savez(tmp_path / "a.npz", **{keys: np.zeros(3)})
    with pytest.raises(InvalidInput, match=rf"keys of .* must be X and y, .* got \['{keys}'\]"):
        open_data(str(tmp_path / "a.npz"))


def test_identity_follows_content_not_name(tmp_path):
    frame, _, _ = frame_of()
    for name in ("a.csv", "b.csv"):
        frame.write_csv(tmp_path / name)
    frame.head(30).write_csv(tmp_path / "c.csv")
    a, b, c = (content_digest(str(tmp_path / f"{n}.csv")) for n in "abc")
    assert a == b != c
    assert content_digest("synsep") != content_digest("synnonsep") != content_digest("digits")


def test_a_table_is_learned(tmp_path):
    frame, _, _ = frame_of()
    frame.write_csv(tmp_path / "a.csv")
    stream = open_data(str(tmp_path / "a.csv"), label="animal")
    learner = sa.SetLogit(labels=stream.labels, n_features=4, set_size=2, seed=0)
    assert sa.simulate(learner, stream, 5000).error_rate < 0.1


@pytest.mark.parametrize(
    ("file", "k", "d", "n", "least"),
    [
        ("letter.npz", 26, 16, 20_000, 0.7),
        ("usps.npz", 10, 256, 7_291, 0.2),
        ("news20.npz", 20, 32_207, 18_846, 0.7),
        ("mnist_cnn512.npz", 10, 512, 70_000, 0.5),
    ],
)
def test_shared_data_end_to_end(file, k, d, n, least):
    stream = open_data(str(shared_data(file)))
    assert (stream.n_labels, stream.n_features, len(stream.y)) == (k, d, n)
    common = {"labels": stream.labels} if stream.labels else {"n_labels": k}
    learner = sa.Perceptron(n_features=d, seed=0, **common)
    assert sa.simulate(learner, stream, 5000).error_rate < least


def test_rows_come_as_they_are(tmp_path):
    X, y = blobs()
    X = X * 7.0
    np.savez(tmp_path / "a.npz", X=X, y=y)
    np.testing.assert_array_equal(open_data(str(tmp_path / "a.npz")).rows.dense, X)
    assert next(open_data("synsep").chunks(0)).rows.dense.max() == 1.0
    assert open_data("digits").rows.dense.max() == 16.0


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["007", "7", "8"], ("007", "7", "8")),
        (["1_000", "1e3", "2"], ("1_000", "1e3", "2")),
        (["-1", "1", "1"], (-1, 1)),
        ([3.0, 5.0, 3.0], (3, 5)),
        (["1", "2", "nano"], ("1", "2", "nano")),
        ([True, False, True], ("False", "True")),
    ],
)
def test_labels_of_tables_are_numbers_only_where_they_are_spelt_as_such(cells, labels):
    frame = {"n": [1.5, 2.5, 3.5], "label": cells}
    assert from_frame(polars.DataFrame(frame)).labels == labels


def test_missing_labels_are_refused_and_never_become_names():
    X = np.eye(3)
    for y in ([1.0, 2.0, np.nan], ["a", "b", None], np.array(["a", None, "b"], object), ["a", "b", np.nan]):
        with pytest.raises(InvalidInput, match="y of Arrays must be a label in every row, got none in row"):
            sa.streams.Arrays(X, y)
    assert sa.streams.Arrays(X, ["1", "2", "nan"]).labels == ("1", "2", "nan")
    with pytest.raises(InvalidInput, match="column 'label' of frame must be a label in every row"):
        from_frame(polars.DataFrame({"n": [1.5, 2.5, 3.5], "label": ["1", "2", "nan"]}))
