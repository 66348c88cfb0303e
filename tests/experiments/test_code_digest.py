"""Which files stand behind a result, and what changes their hash."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

import superarm as sa
from superarm.experiments import code_digest as home
from superarm.experiments.code_digest import code_digest, files_behind
from superarm.streams import Arrays, open_data

PACKAGE = Path(home.__file__).parents[1]


def names(paths):
    return {str(path.relative_to(PACKAGE)) for path in paths}


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_run_stands_on_its_learner_its_rule_its_stream_and_compiled_code_and_no_more():
    learner = sa.MCDBF(n_labels=10)
    behind = names(files_behind(learner, learner.rule, open_data("digits"), sa.simulate))
    assert {"learners/mcdbf.py", "learners/learner.py", "explore/dilute.py", "explore/rule.py"} <= behind
    assert {"simulation.py", "streams/arrays.py", "native/core.pyx", "native/mcdbf.pyx"} <= behind
    assert {"native/core.pxd", "native/c/linear.h", "native/c/vectors.c"} <= behind
    assert "native/core.c" not in behind
    assert not {"bench.py", "checks.py", "learners/soba.py", "learners/setlogit.py"} & behind
    assert not {name for name in behind if name.split("/")[0] in ("cli", "report", "logs", "service")}


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


def test_a_users_file_is_followed_to_its_neighbours_and_into_the_package(own):
    mine = load(own / "mine.py", "mine_followed").Mine
    behind = files_behind(mine)
    assert {own / "mine.py", own / "mine_helper.py"} <= set(behind)
    ours = names(path for path in behind if PACKAGE in path.parents)
    assert "learners/perceptron.py" in ours
    assert "learners/mcdbf.py" not in ours


def test_only_what_code_does_changes_the_hash(own):
    mine = load(own / "mine.py", "mine_hashed").Mine
    text, helper = (own / "mine.py").read_text(), (own / "mine_helper.py").read_text()
    first = code_digest(mine)
    (own / "mine.py").write_text(text.replace("A learner.", "Another word.").replace("\n\n", "\n\n# why\n\n"))
    assert code_digest(mine) == first
    (own / "mine.py").write_text(text.replace("return sa", "x = 1\n        return sa"))
    assert code_digest(mine) != first
    (own / "mine.py").write_text(text)
    assert code_digest(mine) == first
    (own / "mine_helper.py").write_text(helper.replace("2.0", "3.0"))
    assert code_digest(mine) != first


def test_the_hash_does_not_know_where_files_lie(own, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    for name in ("mine.py", "mine_helper.py"):
        shutil.copy(own / name, other / name)
    here, there = (load(folder / "mine.py", f"mine_{folder.name}").Mine for folder in (own, other))
    assert code_digest(here) == code_digest(there)


def test_another_version_is_another_hash(monkeypatch):
    before = code_digest(sa.MCDBF)
    monkeypatch.setattr(sa, "__version__", "99")
    assert code_digest(sa.MCDBF) != before


def test_objects_without_files_are_passed_over():
    namespace = {}
    exec("class Loose: pass", namespace)
    assert files_behind(len, 3, object) == files_behind(namespace["Loose"]) == files_behind()


def test_instances_classes_and_functions_can_be_asked():
    stream = Arrays([[1.0], [2.0]], [0, 1])
    assert files_behind(stream) == files_behind(Arrays)
    from superarm.experiments import run  # a name that the package and a module in it share

    assert "experiments/run.py" in names(files_behind(run))
