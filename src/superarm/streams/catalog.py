"""Data by name or file."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from superarm._files import file_digest
from superarm.errors import InvalidInput, MissingData
from superarm.streams.arrays import Arrays
from superarm.streams.data_files import SVMLIGHT, read_data
from superarm.streams.download import data_home
from superarm.streams.images import IMAGE_SETS, load_images
from superarm.streams.stream import Stream
from superarm.streams.synthetic import synnonsep, synsep

# 1,797 pictures of 8 x 8 from the UCI "Optical Recognition of Handwritten Digits", as scikit-learn has them
DIGITS = Path(__file__).parent / "digits.npz"
SYNTHETIC = {"synsep": synsep, "synnonsep": synnonsep}
EMBEDDED = (*SYNTHETIC, "digits")
FEATURES = tuple(f"{name}-vgg16" for name in IMAGE_SETS)
NAMES = (*EMBEDDED, *IMAGE_SETS, *FEATURES)


def open_data(source: str, *, label: str | None = None, **options: Any) -> Stream:
    """Return the stream called ``source``, or the one in the file of that name.

    Args:
        source: one of `NAMES`, or a file: .csv, .tsv, .jsonl, .parquet, .npz or svmlight.
        label: the name of the label column, for tables.
        options: for tables, ``columns`` (what they are; left out, inferred from 20,000 rows), ``kinds`` (what some
            of them are: ``{"note": "text", "id": "left out"}``), ``vectors`` (an .npy beside the table), ``group``
            (`simulate` counts the coverage of each value of this column).
    """
    options = {name: value for name, value in {"label": label, **options}.items() if value}
    suffix = Path(source).suffix.lower()
    if options and (source in NAMES or suffix in (".npz", *SVMLIGHT)):
        name, value = next(iter(options.items()))
        raise InvalidInput.must(name, source, "left out: only tables have columns", value)
    if source in SYNTHETIC:
        return SYNTHETIC[source]()
    if source in IMAGE_SETS:
        images = load_images(source)
        flat = images.pixels.reshape(len(images.y), -1)
        return Arrays(flat, images.y, labels=images.labels, name=source)
    path = _data_file(source)
    return Arrays(**read_data(path, **options), name=path.stem)


def feature_file(name: str) -> Path:
    """Return where `superarm data features` keeps the features called ``name``."""
    return data_home() / "features" / f"{name}.npz"


def content_digest(source: str) -> str:
    """Return a text that changes whenever the content of ``source`` does."""
    if source in EMBEDDED:
        return f"{source} 1"  # the version of its content
    if source in IMAGE_SETS:  # opening them checks the pinned checksums
        digests = "".join(file.digest for file in IMAGE_SETS[source].files)
        return f"{source} 1 {hashlib.sha256(digests.encode()).hexdigest()[:16]}"
    path = _data_file(source)
    stat = path.stat()
    return _file_digest_at(path, stat.st_size, stat.st_mtime_ns)


def _data_file(source: str) -> Path:
    if source == "digits":
        return DIGITS
    if source in FEATURES:
        path = feature_file(source)
        if not path.is_file():
            name = source.removesuffix("-vgg16")
            raise MissingData(f"{source} has not been made here; run: superarm data features {name}")
        return path
    path = Path(source)
    if not path.is_file():
        wanted = f"a file or one of {', '.join(NAMES)}"
        raise InvalidInput.must("data", "superarm", wanted, source, choices=NAMES)
    return path


@lru_cache(maxsize=64)
def _file_digest_at(path: Path, size: int, modified: int) -> str:
    return "sha256 " + file_digest(path)
