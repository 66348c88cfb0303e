"""Data by name or file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from superarm.errors import InvalidInput, must
from superarm.streams.arrays import Arrays
from superarm.streams.base import Stream

__all__ = ["NAMES", "open_data"]

NAMES = ("synsep", "synnonsep", "digits")


def open_data(source: str, *, scale: str = "unit") -> Stream:
    """The stream called ``source``, or the one in the file of that name."""
    if source in ("synsep", "synnonsep"):
        from superarm.streams.synthetic import synnonsep, synsep

        return synsep(scale) if source == "synsep" else synnonsep(scale)
    if source == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return Arrays(X, y, scale=scale, name="digits")
    path = Path(source)
    if not path.exists():
        raise InvalidInput(must("data", "superarm", f"a file or one of {', '.join(NAMES)}", source))
    return Arrays(**_read_npz(path), scale=scale, name=path.stem)


def _read_npz(path: Path) -> dict[str, Any]:
    """X, y and label names from an .npz: X and y; or CSR parts; or images x_train and y_train."""
    try:
        with np.load(path, allow_pickle=False) as file:
            keys = set(file.files)
            names = file["classes"].tolist() if "classes" in keys else None
            if {"X", "y"} <= keys:
                return {"X": file["X"], "y": file["y"], "labels": names}
            if {"X_data", "X_indices", "X_indptr", "X_shape", "y"} <= keys:
                from scipy.sparse import csr_matrix

                parts = file["X_data"], file["X_indices"], file["X_indptr"]
                return {"X": csr_matrix(parts, file["X_shape"]), "y": file["y"], "labels": names}
            if {"x_train", "y_train"} <= keys:
                images = file["x_train"]
                return {"X": images.reshape(len(images), -1), "y": file["y_train"], "labels": names}
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise InvalidInput(must("content", str(path), "an .npz with X and y", str(error))) from error
    wanted = "X and y, or X_data, X_indices, X_indptr, X_shape and y, or x_train and y_train"
    raise InvalidInput(must("keys", str(path), wanted, sorted(keys)))
