"""Golden runs and traces of 0.2 at each level of this processor; and a level that it has not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from superarm import native
from superarm.native import cpu

pytestmark = pytest.mark.smoke  # of the wheel, too
TESTS = Path(__file__).parents[1]
C = TESTS.parent / "src/superarm/native/c"
LEVELS = [level for level in cpu.levels() if level != cpu.LEVEL]  # the suite itself runs at the other one


def python(level: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))
    }
    command = [sys.executable, *arguments]
    return subprocess.run(
        command,
        env=environment | {"SUPERARM_CPU": level},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not LEVELS, reason="this processor has one level")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.slow
def test_golden_runs_at_another_level(level):
    files = [str(TESTS / "learners" / name) for name in ("test_golden.py", "test_frozen.py")]
    done = python(level, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("level", cpu.levels())
def test_a_level_can_be_forced(level):
    done = python(level, "-c", "from superarm.native import cpu_level; print(cpu_level())")
    assert done.stdout.strip() == level


def test_a_level_that_is_not_there_is_refused_in_one_sentence():
    done = python("v9", "-c", "import superarm.native.cpu")
    possible = ", ".join(cpu.levels())
    assert done.stderr.splitlines()[-1] == (
        "superarm.errors.InvalidInput: SUPERARM_CPU of the environment must be "
        f"one of {possible} on this processor, got 'v9'"
    )


def test_the_command_line_refuses_a_level_in_one_line():
    done = python("v9", "-m", "superarm", "simulate", "--data", "digits", "--rounds", "10")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("superarm: SUPERARM_CPU of the environment must be one of base")


def test_the_level_of_this_process():
    assert native.cpu_level() == cpu.LEVEL
    assert cpu.LEVEL in cpu.levels()


@pytest.mark.parametrize("header", sorted(C.glob("*.h")), ids=lambda path: path.name)
def test_a_header_includes_what_it_needs(header):
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    code = f'#include "{header.name}"\n'
    command = [compiler, "-fsyntax-only", "-x", "c", "-I", str(C), "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
