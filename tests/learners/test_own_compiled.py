"""The compiled learner of docs/extend.md, built with the command that stands there, keeps every promise."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from learner_internals import INTERNALS, run_internal

import superarm as sa
from superarm.checks import CHECKS, run_check

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extend.md"


def block(name: str) -> str:
    """The file of this name in the page."""
    text = PAGE.read_text(encoding="utf-8")
    start = text.index(f"\n# {name}\n") + 1
    return text[start : text.index("\n```", start) + 1]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The class, from a folder where it was built."""
    pytest.importorskip("Cython")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no C compiler ({compiler})")
    folder = tmp_path_factory.mktemp("own")
    for name in ("steps.pyx", "up_and_down.py"):
        (folder / name).write_text(block(name), encoding="utf-8")
    command = next(
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if "steps.pyx" in line and "$" in line
    )
    words = command.removeprefix("$ python ").split()
    home = {**os.environ, "PYTHONPATH": str(Path(sa.__file__).parents[1])}
    built = subprocess.run(
        [sys.executable, *words], cwd=folder, env=home, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("up_and_down").UpAndDown
    finally:
        sys.path.remove(str(folder))


@pytest.mark.parametrize("check", CHECKS)
def test_every_promise(own, check):
    run_check(check, own, gamma=0.2)


@pytest.mark.parametrize("name", INTERNALS)
def test_what_its_core_inherits(own, name):
    run_internal(name, own, gamma=0.2)


def test_it_makes_the_steps_of_its_equation(own):
    """Against the same learner in plain Python: same sets, same weights, up to the last bits."""
    compiled = own(n_labels=5, n_features=4, set_size=2, gamma=0.3, rate=0.5, seed=4, intercept=False)
    W = np.zeros((5, 4))
    X = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    for i, x in enumerate(X):
        decision = compiled.decide(x)
        compiled.update(decision, hit=i % 3 == 0)
        W[decision.drawn] += (0.25 if i % 3 == 0 else -0.25) * x / np.linalg.norm(x)
    np.testing.assert_allclose(compiled.core.weights.state()["dense"][:, :4], W, atol=1e-4)


def test_by_its_file(own, tmp_path):
    """As --learner finds it, and a model file after that."""
    file = Path(sys.modules[own.__module__].__file__)
    learner = sa.make(f"{file}:UpAndDown:rate=0.5", n_labels=4, n_features=2, set_size=2)
    learner.update(learner.decide([1.0, 0.0]), hit=True)
    learner.save(tmp_path / "model.npz")
    back = sa.load(tmp_path / "model.npz")
    assert back.params == learner.params
    assert back.rank([1.0, 0.0]) == learner.rank([1.0, 0.0])
