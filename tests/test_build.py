"""How the build finds a compiler, and what it says where something is missing (.ci/wheel builds for real)."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

BUILDTOOLS = Path(__file__).parents[1] / "buildtools"
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux builds with Zig's compiler")


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, BUILDTOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def compiler(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("SUPERARM_GLIBC", raising=False)
    return load("compiler")


@pytest.fixture
def hidden(monkeypatch, tmp_path):
    """A machine without a compiler."""
    monkeypatch.setenv("PATH", str(tmp_path))


def without(monkeypatch, package: str) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else found(name))


@linux
@pytest.mark.usefixtures("hidden")
def test_where_there_is_no_compiler_the_build_asks_for_zig(compiler, monkeypatch):
    monkeypatch.setitem(sys.modules, "compiler", compiler)
    pytest.importorskip("setuptools")
    assert compiler.find_compiler() is None
    backend = load("backend")
    assert backend.get_requires_for_build_wheel() == ["ziglang"]
    assert backend.get_requires_for_build_editable() == ["ziglang"]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert compiler.c_compiler() == [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline"]


@linux
def test_an_old_glibc_takes_zig(compiler, monkeypatch):
    monkeypatch.setenv("SUPERARM_GLIBC", "2.17")
    assert compiler.wants_zig()
    assert compiler.zig()[-1].endswith("-linux-gnu.2.17")


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_compiler_that_is_there_is_taken(compiler, monkeypatch):
    assert not compiler.wants_zig()
    monkeypatch.setenv("CC", "cc -pipe")
    assert compiler.c_compiler() == ["cc", "-pipe"]
    for flags in compiler.loop_flags(["cc"]).values():
        assert not {"-ffast-math", "-ffinite-math-only", "-march=native", "-Ofast"} & set(flags)


@linux
@pytest.mark.usefixtures("hidden")
def test_without_compiler_and_zig(compiler, monkeypatch):
    without(monkeypatch, "ziglang")
    with pytest.raises(
        SystemExit, match="there is no C compiler, and no package `ziglang` to stand in for one"
    ):
        compiler.c_compiler()


def test_without_headers_of_python(compiler, monkeypatch, tmp_path):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(SystemExit, match=r"^superarm cannot be built: there is no Python.h in .*python3-dev"):
        compiler.c_compiler()


def test_a_compiler_that_does_not_work(compiler, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(SystemExit, match="the compiler that CC names does not work: no-such-compiler -O2"):
        compiler.find_compiler()


def test_the_flags_of_a_level_are_what_is_asked_of_the_processor(compiler):
    asked = (BUILDTOOLS.parent / "src/superarm/native/cpu.pyx").read_text()
    names = {"-mfma": "FMA3"} | {flag: flag[2:].upper() for flag in compiler.V4 if flag != "-mfma"}
    features = [flag for flag in compiler.V4 if not flag.startswith("-mprefer")]
    assert all(f'"{names[flag]}"' in asked for flag in features)
