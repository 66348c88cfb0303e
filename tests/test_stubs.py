"""Type stubs of compiled modules: made from the .pyx files when these are compiled."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NATIVE = ROOT / "src/superarm/native"
made = runpy.run_path(str(ROOT / "buildtools/stubs.py"))["stubs"]()


def test_the_build_has_written_them():
    assert {path.name: path.read_text() for path in NATIVE.glob("*.pyi")} == {
        path.name: text for path, text in made.items()
    }, "python setup.py build_ext --inplace writes them anew"


@pytest.mark.parametrize("path", made, ids=lambda path: path.stem)
def test_what_a_stub_names_is_there(path):
    module = importlib.import_module(f"superarm.native.{path.stem}")
    for line in made[path].splitlines():
        if line.startswith(("def ", "class ")):
            name = line.split()[1].split("(")[0].rstrip(":")
            assert hasattr(module, name), name
