"""What changes the hash of the code behind a result."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import superarm as sa
from superarm.experiments import runs as home
from superarm.experiments.runs import code_digest


@pytest.fixture
def own(tmp_path):
    """A user's learner with a file beside it."""
    (tmp_path / "mine_helper.py").write_text("STEP = 2.0\n\ndef other():\n    return 1\n")
    (tmp_path / "mine.py").write_text(
        '"""Mine."""\n'
        "import numpy as np\n"
        "import superarm as sa\n"
        "\n"
        "class Mine(sa.Perceptron):\n"
        '    """A learner."""\n'
        "    def make_rule(self):\n"
        "        import mine_helper\n"
        "        return sa.explore.Greedy(), mine_helper.STEP\n"
    )
    return tmp_path


def use(folder):
    return f"{folder / 'mine.py'}:Mine"


def test_a_users_file_and_those_beside_it_change_the_hash(own):
    text, helper = (own / "mine.py").read_text(), (own / "mine_helper.py").read_text()
    first = code_digest(use(own))
    assert first != code_digest("perceptron")
    (own / "mine.py").write_text(text.replace("return sa", "x = 1\n        return sa"))
    assert code_digest(use(own)) != first
    (own / "mine.py").write_text(text)
    assert code_digest(use(own)) == first
    (own / "mine_helper.py").write_text(helper.replace("2.0", "3.0"))
    assert code_digest(use(own)) != first


def test_the_hash_does_not_know_where_files_lie(own):
    other = own / "elsewhere"
    other.mkdir()
    for name in ("mine.py", "mine_helper.py"):
        shutil.copy(own / name, other / name)
    assert code_digest(use(own)) == code_digest(use(other))


def test_another_version_is_another_hash(monkeypatch):
    before = code_digest("mc-dbf")
    monkeypatch.setattr(sa, "__version__", "99")
    assert code_digest("mc-dbf") != before


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ("learners/mcdbf.py", True),
        ("native/core.pyx", True),
        ("native/c/kernels.c", True),
        ("simulation.py", True),
        ("losses.py", True),
        ("groups.py", True),
        ("parameters.py", True),
        ("data/encoding.py", True),
        ("report/page.py", False),
        ("native/core.c", False),  # generated
    ],
)
def test_our_code_that_a_run_passes_through_counts(tmp_path, monkeypatch, changed, counts):
    package = tmp_path / "superarm"
    for name in ("learners/mcdbf.py", "native/core.pyx", "native/c/kernels.c", *home.RUN_FILES):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("before")
    monkeypatch.setattr(home, "PACKAGE", package)
    before = home._package_digest.__wrapped__()
    (package / changed).parent.mkdir(parents=True, exist_ok=True)
    (package / changed).write_text("after")
    assert (home._package_digest.__wrapped__() != before) == counts


def test_every_file_of_ours_is_there():
    assert all((Path(home.PACKAGE) / name).is_dir() for name in home.RUN_FOLDERS)
    assert all((Path(home.PACKAGE) / name).is_file() for name in home.RUN_FILES)
