"""Pictures: which files are some, what the model sees of one, and what a browser is sent."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np

from superarm._extras import need
from superarm._types import Array
from superarm.errors import InvalidInput

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
SIDE = 28  # pixels of a picture's side, as the model sees it


def pixel_features(files: list[Path]) -> Array:
    """Grey values of small copies of pictures, and their mean colours: one row a file."""
    need("label")
    from PIL import Image, UnidentifiedImageError

    features = np.zeros((len(files), SIDE * SIDE + 3), np.float32)
    for row, file in zip(features, files, strict=True):
        try:
            with Image.open(file) as picture:
                small = picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)
        except (OSError, UnidentifiedImageError) as error:
            raise InvalidInput.must("picture", str(file), "one that can be read", str(error)) from error
        row[:-3] = np.asarray(small.convert("L"), np.float32).ravel() / 255.0
        row[-3:] = np.asarray(small, np.float32).reshape(-1, 3).mean(axis=0) / 255.0
    return features


def picture_bytes(picture: Path | Array) -> tuple[bytes, str]:
    """The content and the media type of a picture: a file, or a matrix of ink on white, which becomes a PNG."""
    if isinstance(picture, Path):
        return picture.read_bytes(), MEDIA_TYPES[picture.suffix.lower()]
    from PIL import Image

    png = BytesIO()
    levels = 255 - (picture / max(1.0, float(picture.max())) * 255).astype(np.uint8)
    Image.fromarray(levels).save(png, "PNG")
    return png.getvalue(), "image/png"
