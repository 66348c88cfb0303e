"""The cache of compiled code on disk: it helps, and can never stop the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np

from superarm.kernels import compiling

ROOT = Path(__file__).parents[2]

OWN = """
from typing import Any, NamedTuple
import numpy as np
import superarm as sa
from superarm.kernels import kernel, Kernels
from superarm.learners.setlogit import learn as theirs, SetLogit

class Own(NamedTuple):
    inner: Any
    scaling: Any
    rule: Any

@kernel
def learn(state, scratch, round, answer):
    return theirs(state.inner, scratch, round, answer)

@kernel
def score(state, scratch, features, s):
    for r in range(s.shape[0]):
        s[r] = 0.0

class Mine(SetLogit):
    name = "mine"
    kernels = Kernels(learn, score=score, scale=SetLogit.kernels.scale)

    def start(self, shape):
        inner = super().start(shape)
        return Own(inner, inner.scaling, inner.rule)

learner = Mine(n_labels=3, n_features=2)
learner.update(learner.decide([1.0, 0.5]), hit=True)
"""
PLAIN = """
import superarm as sa
learner = sa.SetLogit(n_labels=3, n_features=2)
learner.update(learner.decide([1.0, 0.5]), hit=True)
print("fine")
"""


def run(code: str, folder: Path, cache: Path) -> str:
    script = folder / "own_module.py"
    script.write_text(code)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", "import own_module"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_content_of_the_cache_stops_the_program(tmp_path: Path) -> None:
    """A user's learner that calls our kernels with its own state; then that module is gone; then the
    files are broken."""
    mine, plain, cache = tmp_path / "mine", tmp_path / "plain", tmp_path / "cache"
    mine.mkdir()
    plain.mkdir()
    run(OWN, mine, cache)
    assert run(PLAIN, plain, cache) == "fine\n"
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:20] + b"broken")
    assert run(PLAIN, plain, cache) == "fine\n"


def test_an_unreadable_index_is_a_miss_and_is_replaced(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def double(x):
        return 2 * x

    first = compiling.entry(double)
    assert first(3) == 6
    index = next(path for path in tmp_path.rglob("*.nbi"))
    good = index.read_bytes()
    index.write_bytes(b"\x80\x04cno_such_module\nThing\n.")
    double.__qualname__ = double.__qualname__.rpartition("-")[0]
    second = compiling.entry(double)
    assert second(3) == 6
    assert index.read_bytes()[:20] == good[:20]
    double.__qualname__ = double.__qualname__.rpartition("-")[0]
    third = compiling.entry(double)
    assert third(3) == 6
    assert sum(third.stats.cache_hits.values()) == 1


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path: Path, monkeypatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(blocked))

    def triple(x):
        return 3 * x

    assert compiling.entry(triple)(np.float64(2.0)) == 6.0
