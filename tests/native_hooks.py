"""The functions of native_hooks.pyx, compiled when a test wants the first of them, and kept in build/hooks."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import superarm

ROOT = Path(__file__).parents[1]
SOURCE = Path(__file__).with_suffix(".pyx")
NATIVE = Path(superarm.__file__).parent / "native"


@functools.cache
def _hooks() -> Any:
    contract = [SOURCE, *sorted(NATIVE.glob("*.pxd"))]
    key = hashlib.sha256(b"".join([sys.version.encode(), *(path.read_bytes() for path in contract)]))
    folder = ROOT / "build" / "hooks" / key.hexdigest()[:16]
    if not folder.exists():
        _compile(folder)
    spec = importlib.util.spec_from_file_location("native_hooks", next(folder.glob("native_hooks.*")))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compile(folder: Path) -> None:
    pytest.importorskip("Cython")
    import numpy

    compiler = runpy.run_path(str(ROOT / "buildtools/compiler.py"))["c_compiler"]()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        shutil.copy(SOURCE, place)
        command = [sys.executable, "-m", "Cython.Build.Cythonize", "--inplace", "--quiet", SOURCE.name]
        env = {**os.environ, "PYTHONPATH": str(NATIVE.parents[1])}
        env |= {"CC": shlex.join(compiler), "CFLAGS": f"-O1 -w -I{numpy.get_include()}"}
        built = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
        library = next(path for path in Path(place).glob("native_hooks.*") if path.suffix in (".so", ".pyd"))
        ready = Path(place) / "ready"
        ready.mkdir()
        library.rename(ready / library.name)
        if not folder.exists():  # another process may have been first
            ready.rename(folder)


def __getattr__(name: str) -> Any:
    return getattr(_hooks(), name)
