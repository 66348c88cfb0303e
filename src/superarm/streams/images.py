"""MNIST, Fashion-MNIST, CIFAR-10 and SVHN (cropped) from their official files. Nothing is unpickled."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from superarm._extras import require_extra
from superarm._types import Array
from superarm.errors import InvalidInput, MissingData
from superarm.streams.download import RemoteFile, find_file


@dataclass(frozen=True, slots=True)
class Images:
    """Pixels (n, height, width, channels) in 0..255, label indices, and label names if there are any."""

    pixels: Array
    y: Array
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ImageSet:
    """A set of images: its files and how to read them. All of its images are used, training part first."""

    name: str
    files: tuple[RemoteFile, ...]
    read: Callable[[list[Path]], tuple[Array, Array]]
    shape: tuple[int, int, int, int]
    labels: tuple[str, ...] | None = None


# ---------------------------------------------------------------- formats


def read_idx(path: Path) -> Array:
    """Return the array of bytes in an IDX file (MNIST's format), packed with gzip."""
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput.must("content", str(path), "a whole gzip file", error) from error
    dimensions = content[3] if len(content) > 3 else 0
    start = 4 + 4 * dimensions
    if content[:3] != b"\0\0\x08" or dimensions == 0 or len(content) < start:
        raise InvalidInput.must("content", str(path), "an IDX file of bytes", content[:4])
    shape = np.frombuffer(content, ">u4", dimensions, 4).astype(int).tolist()
    if len(content) - start != np.prod(shape):
        raise InvalidInput.must(
            "content", str(path), f"{np.prod(shape)} bytes, as its head says", len(content) - start
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_mnist(paths: list[Path]) -> tuple[Array, Array]:
    """Return images and labels from IDX files: the paths alternate."""
    parts = [read_idx(path) for path in paths]
    return np.concatenate(parts[0::2])[..., None], np.concatenate(parts[1::2])


def read_cifar10(paths: list[Path]) -> tuple[Array, Array]:
    """Return images and labels from the archive of the binary version: records of a label and 3 x 32 x 32 bytes."""
    (path,) = paths
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    parts = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                name = Path(member.name).name
                file = archive.extractfile(member) if name in names else None
                if file is not None:
                    parts[name] = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
        raise InvalidInput.must("content", str(path), "CIFAR-10's binary archive", error) from error
    if set(parts) != set(names):
        raise InvalidInput.must("content", str(path), f"an archive with {', '.join(names)}", sorted(parts))
    records = np.concatenate([parts[name] for name in names])
    return records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0]


def read_svhn(paths: list[Path]) -> tuple[Array, Array]:
    """Return images and labels from MATLAB files; the digit 0 is label 10 there."""
    require_extra("logs")
    from scipy.io import loadmat

    parts = []
    for path in paths:
        try:
            content = loadmat(str(path), variable_names=("X", "y"))
            parts.append((content["X"].transpose(3, 0, 1, 2), content["y"].ravel() % 10))
        except (KeyError, ValueError, TypeError, OSError, NotImplementedError, zlib.error) as error:
            raise InvalidInput.must("content", str(path), "a MATLAB file with X and y", error) from error
    pixels, y = zip(*parts, strict=True)
    return np.concatenate(pixels), np.concatenate(y)


# ---------------------------------------------------------------- the sets
# docs/data.md says where the checksums are from


def _files(folder: str, mirrors: tuple[str, ...], table: str) -> tuple[RemoteFile, ...]:
    """Return the files of a table with a line for each: name, bytes, SHA-256."""
    rows = [line.split() for line in table.strip().splitlines()]
    return tuple(
        RemoteFile(folder, name, mirrors, f"sha256:{sha256}", int(size)) for name, size, sha256 in rows
    )


MNIST = _files(
    "mnist",
    (
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    ),
    """
    train-images-idx3-ubyte.gz 9912422 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609
    train-labels-idx1-ubyte.gz 28881 3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c
    t10k-images-idx3-ubyte.gz 1648877 8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6
    t10k-labels-idx1-ubyte.gz 4542 f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6
    """,
)
FASHION_MNIST = _files(
    "fashion-mnist",
    (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    ),
    """
    train-images-idx3-ubyte.gz 26421880 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84
    train-labels-idx1-ubyte.gz 29515 a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845
    t10k-images-idx3-ubyte.gz 4422102 346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073
    t10k-labels-idx1-ubyte.gz 5148 67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5
    """,
)
CIFAR10 = _files(
    "cifar10",
    ("https://www.cs.toronto.edu/~kriz/",),
    "cifar-10-binary.tar.gz 170052171 c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
SVHN = _files(
    "svhn",
    ("http://ufldl.stanford.edu/housenumbers/",),
    """
    train_32x32.mat 182040794 435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8
    test_32x32.mat 64275384 cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b
    """,
)
FASHION_LABELS = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
CIFAR10_LABELS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

IMAGE_SETS = {
    images.name: images
    for images in (
        ImageSet("mnist", MNIST, read_mnist, (70_000, 28, 28, 1)),
        ImageSet("fashion-mnist", FASHION_MNIST, read_mnist, (70_000, 28, 28, 1), FASHION_LABELS),
        ImageSet("cifar10", CIFAR10, read_cifar10, (60_000, 32, 32, 3), CIFAR10_LABELS),
        ImageSet("svhn", SVHN, read_svhn, (99_289, 32, 32, 3)),
    )
}


def load_images(name: str) -> Images:
    """Return the images of a set that `superarm data get` has fetched."""
    image_set = IMAGE_SETS[name]
    paths = [find_file(file) for file in image_set.files]
    missing = [file.name for file, path in zip(image_set.files, paths, strict=True) if path is None]
    if missing:
        raise MissingData(f"{', '.join(missing)} of {name} not found here; run: superarm data get {name}")
    pixels, y = image_set.read([path for path in paths if path is not None])
    return Images(np.ascontiguousarray(pixels), y.astype(np.int64), image_set.labels)
