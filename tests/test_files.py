"""Model files: whole or not at all."""

import json
import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import superarm as sa
from superarm import _files
from superarm.errors import ModelFileError


@pytest.fixture
def model(tmp_path):
    """A trained learner in a file."""
    learner = sa.MCDBF(labels=["a", "b", "c"], n_features=4, set_size=2, seed=5)
    random = np.random.default_rng(0)
    for _ in range(20):
        decision = learner.decide(random.normal(size=4))
        learner.update(decision, hit=bool(random.integers(2)))
    learner.decide(random.normal(size=4))
    path = tmp_path / "model.npz"
    learner.save(path)
    return path


def rewritten(path, **changes):
    """The file with other header values; a value of None leaves the key out."""
    header, arrays = _files.read_model(path)
    header = {key: value for key, value in {**header, **changes}.items() if value is not None}
    blob = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, header=blob, **arrays)
    return path


def test_round_trip(model):
    learner = sa.load(model)
    assert learner.round == 21
    assert learner.answered.count == 20
    assert learner.labels == ("a", "b", "c")
    again = model.with_name("again.npz")
    learner.save(again)
    assert _files.read_model(again)[0] == _files.read_model(model)[0]


def test_arrays_and_json_and_nothing_else(model):
    """No pickle: every part is a plain array, and the header is JSON."""
    with zipfile.ZipFile(model) as archive:
        names = archive.namelist()
    assert "header.npy" in names
    assert all(name == "header.npy" or name.startswith("state.") for name in names)
    with np.load(model, allow_pickle=False) as file:
        for name in file.files:
            assert file[name].dtype.kind in "fiub"
        header = json.loads(file["header"].tobytes())
    assert header["format"] == "superarm-model"
    assert header["version"] == _files.VERSION


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.9999])
def test_truncated(model, share):
    whole = model.read_bytes()
    model.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(
        ModelFileError, match=r"content of .*model.npz must be a whole superarm model, got a foreign"
    ):
        sa.load(model)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7])
def test_a_flipped_bit_is_no_other_model(model, share):
    """The archive has checksums: a damaged file is refused, or reads as what was saved."""
    whole = bytearray(model.read_bytes())
    header, arrays = _files.read_model(model)
    whole[int(len(whole) * share)] ^= 16
    model.write_bytes(bytes(whole))
    try:
        damaged = _files.read_model(model)
    except ModelFileError:
        return
    assert damaged[0] == header
    assert all((damaged[1][name] == value).all() for name, value in arrays.items())


@pytest.mark.parametrize(
    "content",
    [b"hello", b"\x00" * 100, b"PK\x03\x04 no zip", pickle.dumps({"a": 1}), b"\x93NUMPY\x01\x00"],
    ids=["text", "zeros", "almost zip", "pickle", "almost npy"],
)
def test_foreign(tmp_path, content):
    path = tmp_path / "foreign.npz"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"content of .*foreign.npz must be a whole superarm model"):
        sa.load(path)


def test_other_arrays(tmp_path):
    np.savez(tmp_path / "data.npz", X=np.eye(3))
    np.save(tmp_path / "data.npy", np.eye(3))
    np.savez(tmp_path / "object.npz", header=np.array([{"format": 1}], dtype=object))
    np.savez(tmp_path / "list.npz", header=np.frombuffer(b"[1, 2]", np.uint8))
    for name in ("data.npz", "data.npy", "object.npz", "list.npz"):
        with pytest.raises(ModelFileError, match="must be a whole superarm model"):
            sa.load(tmp_path / name)
    with pytest.raises(ModelFileError):
        sa.load(tmp_path)


def test_a_missing_file_stays_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file: .*none\.npz"):
        sa.load(tmp_path / "none.npz")
    with pytest.raises(ModelFileError):
        sa.load(tmp_path / "none.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "another-model"}, r"format of .* must be 'superarm-model', got 'another-model'"),
        ({"version": 99}, r"version of .* must be at most \d+ \(install a newer superarm\), got 99"),
        ({"version": 1}, r"version of .* was made by a superarm that was never released"),
        ({"state_version": 99}, r"state_version of \w+ of .* must be \d+, as this superarm has"),
        (
            {"class": "NobodyHasIt", "file": "own_learner.py"},
            r"imported first: from own_learner import NobodyHasIt \(in own_learner.py\)",
        ),
    ],
)
def test_files_of_another_superarm(model, change, message):
    with pytest.raises(ModelFileError, match=message):
        sa.load(rewritten(model, **change))


@pytest.mark.parametrize(
    "change",
    [
        {"class": None},
        {"params": {"n_labels": 1}},
        {"params": {"n_labels": 3, "n_features": 4, "no_such": 1}},
        {"params": {"labels": ["a", "b", "c"], "n_features": 40, "set_size": 2}},
        {"params": 3},
        {"round": "x"},
        {"answered": [1]},
        {"answered": [0, "xyz"]},
        {"layout": [0, 4, 0]},
        {"layout": [4]},
        {"layout": [5, 0, 0]},
    ],
)
def test_broken_headers(model, change):
    with pytest.raises(ModelFileError, match=r"content of .* must be a superarm model, got a broken"):
        sa.load(rewritten(model, **change))


def test_a_missing_array(model):
    header, arrays = _files.read_model(model)
    del arrays["state.weights.dense"]
    _files.write_model(model, header, arrays)
    with pytest.raises(ModelFileError, match=r"a broken weights.dense"):
        sa.load(model)


def full_disk(file, **arrays):
    file.write(b"half of it")
    raise OSError(28, "No space left on device")


def refuse(*_):
    raise PermissionError("no")


@pytest.mark.parametrize(("call", "failing"), [("numpy.savez", full_disk), ("os.replace", refuse)])
def test_a_write_that_fails_leaves_the_old_file(model, monkeypatch, call, failing):
    before, learner = model.read_bytes(), sa.load(model)
    monkeypatch.setattr(call, failing)
    with pytest.raises(OSError, match=r"No space left|no"):
        learner.save(model)
    monkeypatch.undo()
    assert model.read_bytes() == before
    assert [path.name for path in model.parent.iterdir()] == ["model.npz"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    learner = sa.Perceptron(n_labels=2, n_features=1)
    with pytest.raises(
        ModelFileError, match=r"path of a model file must be a file in an existing folder, got '"
    ):
        learner.save(tmp_path / "nodir" / "x.npz")
    with pytest.raises(ModelFileError, match="must be a file in an existing folder"):
        learner.save(tmp_path)  # a folder itself
    with pytest.raises(
        ModelFileError, match=r"path of a model file must be a path, or a file open .* got None"
    ):
        sa.load(None)


def test_the_name_is_kept_as_given(tmp_path):
    """NumPy would append .npz."""
    learner = sa.Perceptron(n_labels=2, n_features=1)
    learner.save(tmp_path / "model")
    learner.save(str(tmp_path / "other.bin"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "other.bin"]
    assert sa.load(str(tmp_path / "model")).n_labels == 2


def test_what_cannot_be_read_is_no_truncated_file(tmp_path, model, monkeypatch):
    with pytest.raises(ModelFileError, match="Is a directory"):
        sa.load(tmp_path)

    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(ModelFileError, match="cannot be read: Permission denied"):
        sa.load(model)


def test_two_threads_write_the_same_file(tmp_path):
    path, content = tmp_path / "model.npz", b"x" * 4096

    def write_often(_):
        for _ in range(50):
            _files.write_atomically(path, lambda file: file.write(content))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write_often, range(2)))
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]
