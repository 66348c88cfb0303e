"""Which files stand behind a result, and what changes their hash."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import superarm as sa
from superarm import sources
from superarm.sources import digest, modules_behind
from superarm.streams import Arrays, open_data

PACKAGE = Path(sources.__file__).parent


def names(paths):
    return {str(path.relative_to(PACKAGE)) for path in paths}


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_run_stands_on_its_learner_its_stream_and_the_simulation_and_no_more():
    behind = names(modules_behind(sa.MCDBF, open_data("digits"), sa.simulate))
    assert {"learners/mcdbf.py", "learners/base.py", "simulation.py", "streams/arrays.py"} <= behind
    assert not {"bench.py", "theory.py", "checks.py", "learners/soba.py", "learners/setlogit.py"} & behind
    assert not {name for name in behind if name.split("/")[0] in ("cli", "report", "logs", "service")}


def test_the_walk_finds_what_python_loads():
    """The packages' __init__, which load all neighbours, are left out: then they must be equal."""
    code = (
        "import importlib, sys, types, superarm\n"
        "for name in ('explore', 'learners', 'streams'):\n"
        "    package = types.ModuleType(f'superarm.{name}')\n"
        "    package.__path__ = [f'{superarm.__path__[0]}/{name}']\n"
        "    sys.modules[package.__name__] = package\n"
        "importlib.import_module(sys.argv[1])\n"
        "ours = [m for n, m in sys.modules.items() if n.startswith('superarm.')]\n"
        "print(*(m.__file__ for m in ours if hasattr(m, '__file__')))"
    )
    for name in ("superarm.learners.mcdbf", "superarm.learners.setlogit", "superarm.streams.catalog"):
        told = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=True)
        loaded = {one for one in names(map(Path, told.stdout.split())) if not one.endswith("__init__.py")}
        assert names(modules_behind(importlib.import_module(name))) == loaded


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
        "    def rule(self):\n"
        "        import mine_helper\n"
        "        return sa.theory.theorem6_bound, mine_helper.STEP\n"
    )
    return tmp_path


def test_a_users_file_is_followed_to_its_neighbours_and_into_the_package(own):
    mine = load(own / "mine.py", "mine_followed").Mine
    behind = modules_behind(mine)
    assert {own / "mine.py", own / "mine_helper.py"} <= set(behind)
    ours = names(path for path in behind if PACKAGE in path.parents)
    assert {"learners/perceptron.py", "theory.py"} <= ours
    assert "learners/mcdbf.py" not in ours


def test_only_what_code_does_changes_the_hash(own):
    mine = load(own / "mine.py", "mine_hashed").Mine
    text, helper = (own / "mine.py").read_text(), (own / "mine_helper.py").read_text()

    def now():
        return digest(modules_behind(mine))

    first = now()
    (own / "mine.py").write_text(text.replace("A learner.", "Another word.").replace("\n\n", "\n\n# why\n\n"))
    assert now() == first
    (own / "mine.py").write_text(text.replace("return sa", "x = 1\n        return sa"))
    assert now() != first
    (own / "mine.py").write_text(text)
    assert now() == first
    (own / "mine_helper.py").write_text(helper.replace("2.0", "3.0"))
    assert now() != first


def test_the_hash_does_not_know_where_files_lie(own, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    for name in ("mine.py", "mine_helper.py"):
        shutil.copy(own / name, other / name)
    here, there = (load(folder / "mine.py", f"mine_{folder.name}").Mine for folder in (own, other))
    assert digest(modules_behind(here)) == digest(modules_behind(there))


def test_objects_without_files_are_passed_over():
    assert modules_behind(len, 3, object) == []
    namespace = {}
    exec("class Loose: pass", namespace)
    assert modules_behind(namespace["Loose"]) == []


def test_instances_classes_functions_and_modules_can_be_asked():
    stream = Arrays([[1.0], [2.0]], [0, 1])
    assert modules_behind(stream) == modules_behind(Arrays)
    assert modules_behind(sa.simulate) == modules_behind(importlib.import_module("superarm.simulation"))
    from superarm.experiments import run  # a name that the package and a module in it share

    assert "experiments/run.py" in names(modules_behind(run))
