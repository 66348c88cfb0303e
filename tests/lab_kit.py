"""What the tests of data, logs, experiments and reports share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


def shared_data(name: str) -> Path:
    """A file of ../shared/data beside the checkout; the test is skipped where it is not there."""
    folder = Path(os.environ.get("SUPERARM_SHARED_DATA") or ROOT.parent / "shared" / "data")
    path = folder / name
    if not path.is_file():
        pytest.skip(f"no {name} in ../shared/data beside the checkout (or in $SUPERARM_SHARED_DATA)")
    return path


def run(*arguments: object) -> str:
    """What a command prints, in a wide terminal; what it raises, raised."""
    from typer.testing import CliRunner

    from superarm.cli.app import app

    result = CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "160"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def write_spec(folder: Path, text: str, name: str = "grid") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def small_spec(folder: Path, extra: str = "", name: str = "grid") -> Path:
    """Three learners, two set sizes, three seeds on digits: fifteen quick runs (Banditron has one size)."""
    text = f"""
title = "A small grid"
rounds = 2000
seeds = 3
set_sizes = [2, 4]
gammas = [0.1]
data = ["digits"]
learners = ["mc-dbf", "banditron", "perceptron"]
reference = "perceptron"
{extra}
"""
    return write_spec(folder, text, name)


def results(store: Any) -> dict[str, Any]:
    """What must be identical between runs: key -> (checkpoints, counts)."""
    import json

    found = {}
    for path in (store.folder / "runs").glob("*.json"):
        outcome = json.loads(path.read_bytes())
        found[path.stem] = (outcome["trace"]["rounds"], outcome["trace"]["counts"])
    return found


def blobs(n: int = 60, k: int = 3, d: int = 4) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Labels that are easy to tell from rows."""
    random = np.random.default_rng(0)
    y = np.arange(n) % k
    X = random.normal(0.0, 0.1, (n, d))
    X[np.arange(n), y] += 1.0
    return X.astype(np.float32), y


def small_data(folder: Path) -> Path:
    """Blobs as mine.npz: no learner's process has to import scikit-learn for them."""
    X, y = blobs()
    np.savez(folder / "mine.npz", X=X, y=y)
    return folder / "mine.npz"
