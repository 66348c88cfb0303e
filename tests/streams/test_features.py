"""VGG-16 features, with random weights on a few small images."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from superarm.cli.app import app
from superarm.errors import InvalidInput, MissingData
from superarm.streams import open_data, vgg16
from superarm.streams.vgg16 import _keras, extract_features, make_features

pytestmark = pytest.mark.filterwarnings(  # Keras 3.15 on NumPy 2.4
    "ignore:__array__ implementation:DeprecationWarning"
)
needs_keras = pytest.mark.slow  # importing it takes ten seconds; the fixture skips where it is missing


@pytest.fixture(autouse=True)
def _own_data_home(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERARM_DATA", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    if importlib.util.find_spec("keras") is None:
        pytest.skip("Keras is not installed: pip install superarm[features]")
    keras = _keras()  # not imported here: superarm chooses its backend
    keras.utils.set_random_seed(0)
    model = keras.applications.VGG16(include_top=False, weights=None, input_shape=(32, 32, 3))
    path = tmp_path_factory.mktemp("vgg") / "vgg16.weights.h5"
    model.save_weights(path)
    return path


@pytest.fixture
def images(tmp_path):
    random = np.random.default_rng(0)
    path = tmp_path / "tiny.npz"
    pixels = random.integers(0, 256, (7, 28, 28), dtype=np.uint8)
    np.savez(path, x_train=pixels, y_train=np.array([0, 1, 2, 0, 1, 2, 0]))
    return path


@needs_keras
def test_features_do_not_depend_on_the_batch_and_match_keras(weights):
    keras = _keras()
    pixels = np.random.default_rng(1).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    X = extract_features(pixels, weights, batch=2)
    assert X.shape == (5, 512)
    np.testing.assert_allclose(X, extract_features(pixels, weights, batch=5), rtol=1e-3, atol=1e-4)
    model = keras.applications.VGG16(include_top=False, weights=None, input_shape=(32, 32, 3))
    model.load_weights(weights)
    wanted = model.predict_on_batch(keras.applications.vgg16.preprocess_input(pixels.astype(np.float32)))
    np.testing.assert_allclose(X, np.asarray(wanted).reshape(5, 512), rtol=1e-3, atol=1e-4)


@needs_keras
def test_made_once_from_the_same_images_and_weights(images, weights):
    seen = []
    path, computed = make_features(str(images), weights=weights, batch=3, progress=seen.append)
    assert computed
    assert seen == [3, 3, 1]
    stream = open_data(str(path))
    assert (stream.n_features, stream.n_labels, len(stream.y)) == (512, 3, 7)
    assert make_features(str(images), weights=weights) == (path, False)
    assert make_features(str(images), weights=weights, size=40) == (path, True)


@needs_keras
def test_the_command(images, weights, tmp_path):
    target = tmp_path / "out.npz"
    line = ["data", "features", str(images), "--weights", str(weights), "--output", str(target)]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 0, result.output
    assert target.exists()


@needs_keras
def test_weights_of_another_model_are_refused(images, weights, tmp_path):
    broken = tmp_path / "broken.weights.h5"
    broken.write_bytes(b"no weights")
    with pytest.raises(InvalidInput, match=r"weights of .* must be a Keras file for VGG-16"):
        make_features(str(images), weights=broken)


def test_no_weights_and_no_network(images, stub, monkeypatch):
    nowhere = replace(vgg16.WEIGHTS, mirrors=("http://127.0.0.1:1/",))
    monkeypatch.setattr(vgg16, "WEIGHTS", nowhere)
    with pytest.raises(MissingData, match=r"vgg16_weights.*could not be downloaded"):
        make_features(str(images))


# ---------------------------------------------------------------- without Keras


class Model:
    """In place of VGG-16: 512 times the mean of an image."""

    def load_weights(self, path):
        pass

    def predict_on_batch(self, images):
        return np.repeat(images.mean(axis=(1, 2, 3))[:, None], 512, axis=1)


@pytest.fixture
def stub(monkeypatch, tmp_path):
    """A file of weights for a model that needs no Keras."""
    applications = SimpleNamespace(
        VGG16=lambda **_: Model(), vgg16=SimpleNamespace(preprocess_input=lambda x: x)
    )
    pad = ((0, 0), (0, 4), (0, 4), (0, 0))  # 28 pixels to 32
    image = SimpleNamespace(resize=lambda x, size: np.pad(x, pad))
    ops = SimpleNamespace(convert_to_numpy=np.asarray, image=image)
    monkeypatch.setattr(vgg16, "_keras", lambda: SimpleNamespace(applications=applications, ops=ops))
    path = tmp_path / "weights.h5"
    path.write_bytes(b"weights")
    return path


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"no zip"])
def test_a_broken_feature_file_is_made_again(images, stub, content):
    path, computed = make_features(str(images), weights=stub, batch=3)
    assert computed
    assert make_features(str(images), weights=stub) == (path, False)
    path.write_bytes(content)
    assert make_features(str(images), weights=stub) == (path, True)
    stream = open_data(str(path))
    assert (stream.n_features, stream.n_labels, len(stream.y)) == (512, 3, 7)


def test_labels_have_names_and_pixels_from_0_to_1_are_pixels(images, stub, tmp_path):
    with np.load(images) as file:
        arrays = {"X": file["x_train"] / 255.0, "y": file["y_train"], "classes": np.array(list("abc"))}
    np.savez(tmp_path / "b.npz", **arrays)
    paths = [make_features(str(path), weights=stub)[0] for path in (images, tmp_path / "b.npz")]
    one, two = (open_data(str(path)) for path in paths)
    np.testing.assert_allclose(one.rows.dense, two.rows.dense, rtol=1e-3)
    assert two.labels == ("a", "b", "c")
    with np.load(paths[1]) as file:
        assert set(file.files) == {"X", "y", "labels", "provenance"}


def test_what_is_refused(images, stub, tmp_path):
    with pytest.raises(MissingData, match=r"weights of VGG-16: .* is not there"):
        make_features(str(images), weights=tmp_path / "none.h5")
    with pytest.raises(InvalidInput, match="size of features must be at least 32, got 16"):
        make_features(str(images), weights=stub, size=16)
    with pytest.raises(InvalidInput, match="batch of features must be at least 1"):
        make_features(str(images), weights=stub, batch=0)
    with pytest.raises(InvalidInput, match=r"images of features must be an .npz file or one of mnist"):
        make_features("nothing.npz", weights=stub)
    np.savez(tmp_path / "odd.npz", A=np.zeros(3))
    with pytest.raises(InvalidInput, match=r"keys of .* must be X and y"):
        make_features(str(tmp_path / "odd.npz"), weights=stub)
    with pytest.raises(InvalidInput, match=r"pixels of features must be of shape"):
        extract_features(np.zeros((1, 32, 32, 2)), stub)
