"""Pictures: their file types, their features for the model, and their content for a browser."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from superarm._extras import require_extra
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


class Picture(NamedTuple):
    """A picture for a browser."""

    content: bytes
    media_type: str


def pixel_features(file: str | Path) -> Array | None:
    """Return the grey values of a small copy of a picture, and its mean colours; None if it cannot be read."""
    require_extra("label", "PIL")
    from PIL import Image

    try:
        with Image.open(file) as picture:
            small = picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):  # what broken files raise
        return None
    grey = np.asarray(small.convert("L"), np.float32).ravel()
    colours: Array = np.asarray(small, np.float32).reshape(-1, 3).mean(axis=0)
    return np.concatenate([grey, colours]) / np.float32(255.0)


def load_picture(picture: Path | Array) -> Picture:
    """Return a picture: a file, or a matrix of ink on white, which becomes a PNG."""
    if isinstance(picture, Path):
        try:
            return Picture(picture.read_bytes(), MEDIA_TYPES[picture.suffix.lower()])
        except OSError as error:
            raise InvalidInput(f"picture {picture} cannot be read: {error.strerror}") from error
    from PIL import Image

    png = BytesIO()
    levels = 255 - (picture / max(1.0, float(picture.max())) * 255).astype(np.uint8)
    Image.fromarray(levels).save(png, "PNG")
    return Picture(png.getvalue(), "image/png")
