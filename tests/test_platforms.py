"""What other systems lack is not on the way; what cannot work there says so in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Windows has no such modules, and these functions are missing there
ABSENT = """
import os, socket, sys
sys.modules |= dict.fromkeys(["fcntl", "resource", "uvloop", "pwd", "grp", "termios"])
for name in ("sysconf", "fork", "pread", "pwrite", "getuid", "O_DIRECTORY"):
    delattr(os, name)
del socket.AF_UNIX
"""
ALL = """
import importlib, pathlib, superarm
home = pathlib.Path(superarm.__file__).parent
journal = ("superarm.journal", "superarm.service", "superarm.play", "superarm.label")
for path in home.rglob("*.py"):
    name = ".".join(path.relative_to(home.parent).with_suffix("").parts).removesuffix(".__init__")
    if not name.startswith(journal) and not name.endswith("__main__"):
        importlib.import_module(name)
"""
USE = """
import numpy as np
import superarm as sa
learner = sa.SOBA(n_labels=4, n_features=3, matrix="full")
learner.update(learner.decide([1.0, 0.0, 0.5]), hit=True)
learner.save("model.npz")
print(sa.load("model.npz").round)
print(sa.simulate(sa.Perceptron(n_labels=10, n_features=64, set_size=2), "digits", 100).rounds[-1])
"""
REFUSED = """
from superarm.errors import SuperarmError
from superarm.service import Client
for attempt in (
    lambda: __import__("superarm.journal.store"),
    lambda: __import__("superarm.label.labelling"),
    lambda: Client("unix:/run/superarm.sock", retries=0).stats(),
):
    try:
        attempt()
    except SuperarmError as error:
        print(error)
"""


def without(code: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", ABSENT + code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_every_module_but_the_journal_is_imported_without_them(tmp_path: Path) -> None:
    assert without(ALL, tmp_path) == []


def test_learners_streams_and_files_work_without_them(tmp_path: Path) -> None:
    assert without(USE, tmp_path) == ["1", "100"]


def test_the_service_says_where_it_can_run(tmp_path: Path) -> None:
    assert without(REFUSED, tmp_path) == [
        *2 * ["a journal needs Linux or macOS: it locks files and syncs folders as Windows cannot"],
        "unix: addresses need Linux or macOS: this system has no such sockets",
    ]


def test_a_terminal_that_knows_few_letters(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "superarm", "theory", "--labels", "5", "--set-size", "2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Theorem 6" in done.stdout
