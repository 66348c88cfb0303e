"""Image features as the paper's: 512 numbers from the last convolutional block of VGG-16."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from superarm._extras import require_extra
from superarm._files import READ_ERRORS, file_digest, open_npz, write_atomically
from superarm._progress import Progress, progress_bar
from superarm._types import Array
from superarm.data.tables import read_npz
from superarm.errors import InvalidInput, MissingData
from superarm.streams.catalog import feature_file
from superarm.streams.download import RemoteFile, fetch_files
from superarm.streams.images import IMAGE_SETS, Images, load_images

MIN_SIDE = 32  # VGG-16 halves an image five times
N_FEATURES = 512
WEIGHTS = RemoteFile(
    "vgg16",
    "vgg16_weights_tf_dim_ordering_tf_kernels_notop.h5",
    ("https://storage.googleapis.com/tensorflow/keras-applications/vgg16/",),
    "md5:6d6bbae143d832006294945121d1f1fc",
    58889256,
)


def make_features(
    source: str,
    *,
    weights: Path | None = None,
    size: int | None = None,
    batch: int = 256,
    output: Path | None = None,
    progress: Progress = None,
) -> tuple[Path, bool]:
    """Write the features of a set of images to a file that `open_data` reads.

    Args:
        source: an image set's name, or an .npz with images ``x_train`` and ``y_train`` (or X and y).
        weights: a Keras weights file of VGG-16 without its top; the ImageNet one by default.
        size: height and width that images are enlarged to; at least 32.
        batch: images at a time; memory grows with this, not with the number of images.
        output: the file to write; by default in the data home, where NAME-vgg16 finds it.
        progress: True shows a bar; a function is called with the number of images since its last call.

    Returns:
        The file, and whether it had to be computed (it was not there from the same images and weights).
    """
    if batch < 1:
        raise InvalidInput.must("batch", "features", "at least 1", batch)
    _keras()  # before anything is downloaded
    name, images = _named_images(source)
    if weights is None:
        weights = fetch_files([WEIGHTS])[0]
    elif not weights.is_file():
        raise MissingData(
            f"weights of VGG-16: {weights} is not there; leave weights out to download {WEIGHTS.name}"
        )
    height, width = images.pixels.shape[1:3]
    side = max(MIN_SIDE, height, width) if size is None else size
    if side < MIN_SIDE:
        raise InvalidInput.must("size", "features", f"at least {MIN_SIDE}", side)
    provenance = {
        "model": "vgg16",
        "version": 1,
        "size": side,
        "images": hashlib.sha256(images.pixels.tobytes() + images.y.tobytes()).hexdigest(),
        "weights": file_digest(weights),
    }
    target = output or feature_file(f"{name}-vgg16")
    if _provenance(target) == provenance:
        return target, False
    X = extract_features(images.pixels, weights, side=side, batch=batch, progress=progress)
    arrays: dict[str, Any] = {"X": X, "y": images.y}
    arrays["provenance"] = np.frombuffer(json.dumps(provenance).encode(), np.uint8)
    if images.labels is not None:
        arrays["labels"] = np.array(images.labels)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, lambda file: np.savez(file, **arrays))
    return target, True


def extract_features(
    pixels: Array,
    weights: Path,
    *,
    side: int = MIN_SIDE,
    batch: int = 256,
    progress: Progress = None,
) -> Array:
    """Return the 512 features of each image (n, height, width, 1 or 3), pixels in 0..255."""
    keras = _keras()
    if pixels.ndim != 4 or pixels.shape[3] not in (1, 3):
        raise InvalidInput.must("pixels", "features", "of shape (n, height, width, 1 or 3)", pixels.shape)
    model = keras.applications.VGG16(
        include_top=False, weights=None, pooling="avg", input_shape=(side, side, 3)
    )
    try:
        model.load_weights(str(weights))
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInput.must(
            "weights", str(weights), "a Keras file for VGG-16 without its top", error
        ) from error
    X = np.empty((len(pixels), N_FEATURES), np.float32)
    with progress_bar(len(pixels), "images", progress=progress) as tick:
        for start in range(0, len(pixels), batch):
            part = pixels[start : start + batch].astype(np.float32)
            if part.shape[3] == 1:
                part = np.repeat(part, 3, axis=3)
            if part.shape[1:3] != (side, side):
                part = np.asarray(keras.ops.convert_to_numpy(keras.ops.image.resize(part, (side, side))))
            part = keras.applications.vgg16.preprocess_input(part)
            X[start : start + len(part)] = keras.ops.convert_to_numpy(model.predict_on_batch(part))
            tick(len(part))
    return X


def _keras() -> Any:
    if "KERAS_BACKEND" not in os.environ:  # Keras would take TensorFlow, whether it is there or not
        backend = next((b for b in ("jax", "torch", "tensorflow") if importlib.util.find_spec(b)), None)
        if backend is not None:
            os.environ["KERAS_BACKEND"] = backend
    require_extra("features")
    import keras

    return keras


def _named_images(source: str) -> tuple[str, Images]:
    """Return the name and the images of a set, or of an .npz."""
    if source in IMAGE_SETS:
        return source, load_images(source)
    path = Path(source)
    if path.suffix != ".npz" or not path.is_file():
        wanted = f"an .npz file or one of {', '.join(IMAGE_SETS)}"
        raise InvalidInput.must("images", "features", wanted, source, choices=IMAGE_SETS)
    content = read_npz(path)
    pixels, labels = content["X"], content["labels"]
    if pixels.ndim == 3:
        pixels = pixels[..., None]
    if pixels.dtype.kind == "f" and pixels.size and pixels.max() <= 1.0:
        pixels = pixels * 255.0
    return path.stem, Images(pixels, content["y"], None if labels is None else tuple(map(str, labels)))


def _provenance(path: Path) -> Any:
    """Return what a file of features was made from: images, weights, size; ``None`` if it cannot be read."""
    try:
        with open_npz(path) as file:
            return json.loads(file["provenance"].tobytes())
    except READ_ERRORS:  # not there, broken, or made by something else
        return None
