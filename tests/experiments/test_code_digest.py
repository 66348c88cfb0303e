"""What changes the hash of the code behind a result."""

from __future__ import annotations

import shutil
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from lab_kit import write_spec

import superarm as sa
from superarm.experiments import Store, read_spec, run
from superarm.experiments import code_digest as home
from superarm.experiments.code_digest import code_digest


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


@pytest.mark.parametrize(
    "changed",
    [
        "helpers/rate.py",
        "helpers/deep/tables.py",
        "helpers/shared.py",
        "package/__init__.py",
        f"steps{EXTENSION_SUFFIXES[0]}",
    ],
)
def test_what_a_users_file_imports_changes_the_hash(own, changed):
    for name, text in {
        "helpers/rate.py": "import helpers.deep.tables\nfrom .shared import RATE",
        "helpers/deep/tables.py": "",
        "helpers/shared.py": "RATE = 1",
        "helpers/unused.py": "",
        "package/__init__.py": "",
        f"steps{EXTENSION_SUFFIXES[0]}": "compiled",
        "broken.py": "print 'of another Python'",
    }.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(text)
    imports = "from helpers.rate import RATE\nimport package, steps\n"
    (own / "mine.py").write_text(imports + (own / "mine.py").read_text())
    first = code_digest(use(own))
    (own / "helpers" / "unused.py").write_text("1")
    assert code_digest(use(own)) == first
    (own / changed).write_text((own / changed).read_text() + "\n1")
    assert code_digest(use(own)) != first


def test_a_users_file_imports_from_its_folder_and_a_change_there_runs_again(tmp_path):
    (tmp_path / "rates_of_this_test").mkdir()
    (tmp_path / "rates_of_this_test" / "rate.py").write_text("RATE = 1")
    (tmp_path / "own.py").write_text(
        "import superarm as sa\nfrom rates_of_this_test.rate import RATE\nclass Own(sa.PA): pass\n"
    )
    text = 'rounds = 100\ndata = ["digits"]\nlearners = ["own.py:Own"]\n'
    spec, store = read_spec(write_spec(tmp_path, text)), Store(tmp_path / "s")
    assert [run(spec, store).executed for _ in range(2)] == [1, 0]
    (tmp_path / "rates_of_this_test" / "rate.py").write_text("RATE = 2")
    assert run(spec, store).executed == 1


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
