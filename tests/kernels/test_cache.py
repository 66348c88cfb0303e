"""The cache of compiled code on disk: it helps, and can never stop the program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np

import superarm
from superarm.kernels import compiling, kernel

OWN = """
from typing import Any, NamedTuple
import numpy as np
import superarm as sa
from superarm.kernels import kernel, Kernels
from superarm.learners.banditron import learn as theirs, Banditron

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

class Mine(Banditron):
    name = "mine"
    kernels = Kernels(learn, score=score)

    def start(self, shape):
        inner = super().start(shape)
        return Own(inner, inner.scaling, inner.rule)

learner = Mine(n_labels=3, n_features=2)
learner.update(learner.decide([1.0, 0.5]), hit=True)
"""
PLAIN = """
import superarm as sa
learner = sa.Banditron(n_labels=3, n_features=2)
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


def test_python_can_call_a_kernel() -> None:
    @kernel
    def add(a, b):
        return a + b

    @compiling.entry
    def twice(a, b):
        return add(a, b) + add(a, b)

    assert twice(1, 2) == 6
    assert add(1, 2) == 3
    assert add(1.5, 2.0) == 3.5


class AtOnce:
    """A timer whose time has come when it starts, however busy the machine is."""

    def __init__(self, seconds, told, arguments) -> None:
        self.start = lambda: told(*arguments)

    def cancel(self) -> None:
        pass


def test_long_compiling_is_told_and_short_is_not(tmp_path: Path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    caplog.set_level("INFO", "superarm.compiling")

    def half(x):
        return x / 2

    monkeypatch.setattr(compiling, "PATIENCE", 3600.0)
    assert compiling.entry(half)(3.0) == 1.5
    assert caplog.messages == []
    monkeypatch.setattr(compiling, "Timer", AtOnce)
    half.__qualname__ = half.__qualname__.rpartition("-")[0]
    assert compiling.entry(half)(3.0) == 1.5  # from the disk
    assert caplog.messages == []
    half.__qualname__ = half.__qualname__.rpartition("-")[0]
    assert compiling.entry(half)(3) == 1.5
    assert caplog.messages == ["compiling half, some seconds; kept for the next time"]


def superarm_command(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-m", "superarm", *arguments]
    return subprocess.run(whole, env=environment, capture_output=True, text=True, timeout=600, check=False)


def test_a_package_and_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    """Nothing can be kept; all works. (A file stands where Python's and Numba's folder would be: it stops
    root as well.)"""
    package = tmp_path / "superarm"
    shutil.copytree(Path(superarm.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("")
    nowhere = {"HOME": "/dev/null/nobody", "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    done = superarm_command(
        nowhere | kept,
        *("simulate", "--data", "digits", "--rounds", "50", "--learner", "perceptron", "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"] == 50
    told = "superarm: compiling run of perceptron-greedy, some seconds; "
    told += "not kept: no folder for it can be written, set NUMBA_CACHE_DIR"
    assert done.stderr.splitlines() in ([], [told])  # a quick machine has nothing to tell


WARMED = """
import json, sys
import numpy as np
import superarm as sa
common = {"n_labels": 12, "n_features": 64, "set_size": 1}
missed = {}
for spec in ("perceptron", "banditron"):
    learner, X = sa.make(spec, **common), np.eye(3, 64)
    answer = {"label": 0} if spec == "perceptron" else {"hit": True}
    learner.update(learner.decide(X[0]), **answer)
    answers = {f"{name}s": [value] * 3 for name, value in answer.items()}
    learner.update_many(learner.decide_many(X), **answers)
    sa.simulate(sa.make(spec, **common | {"n_labels": 10}), "digits", 20)
    learner.predict(X)
    missed[spec] = {n: sum(f.stats.cache_misses.values()) for n, f in learner._loop._asdict().items()}
print(json.dumps(missed))
"""


def test_after_warming_up_nothing_is_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = superarm_command(
        environment, "warm", "--learner", "perceptron", "--learner", "banditron", "--json"
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told["seconds"]) == {"perceptron", "banditron"}
    assert told["folder"].startswith(str(tmp_path / "cache"))
    command = [sys.executable, "-c", WARMED]
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    for missed in json.loads(again.stdout).values():
        assert missed == dict.fromkeys(missed, 0)
        assert len(missed) == 6
