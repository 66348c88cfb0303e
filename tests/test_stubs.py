"""Type stubs of compiled modules: made from the .pyx files, and up to date."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
made = runpy.run_path(str(ROOT / "buildtools/stubs.py"))["stubs"]()


@pytest.mark.parametrize("path", made, ids=lambda path: path.stem)
def test_a_stub_is_what_its_module_says(path):
    assert path.exists(), "python buildtools/stubs.py writes it"
    assert path.read_text() == made[path], "python buildtools/stubs.py writes them anew"


@pytest.mark.parametrize("path", made, ids=lambda path: path.stem)
def test_what_a_stub_names_is_there(path):
    module = importlib.import_module(f"superarm.native.{path.stem}")
    for line in made[path].splitlines():
        if line.startswith(("def ", "class ")):
            name = line.split()[1].split("(")[0].rstrip(":")
            assert hasattr(module, name), name
