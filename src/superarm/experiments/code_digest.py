"""The hash of the code behind a run: our package's, and that of a user's own learner and rule."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import superarm
from superarm.learners.registry import is_file_spec

PACKAGE = Path(superarm.__file__).parent
RUN_FOLDERS = ("data", "decisions", "explore", "learners", "native", "streams", "theory")
RUN_FILES = ("groups.py", "losses.py", "parameters.py", "simulation.py")
SOURCES = ("*.py", "*.pyx", "*.pxd", "c/*.[ch]")


def code_digest(learner_spec: str, explore: Any = None) -> str:
    """Return the hash of the code behind a learner and its ``explore``: names, or ``file.py:Class`` each.

    It is of the package's version, of all our code that a run may pass through, and of a user's own learner and rule:
    their files, the other Python files in their folders, and what these import from there, compiled or not. Imports
    are read in the files and not in `sys.modules`, so that every process finds the same.
    """
    folders = {Path(spec.partition(":")[0]).parent for spec in (learner_spec, explore) if is_file_spec(spec)}
    files = {path for folder in folders for path in _user_files(folder)}
    return _hash(superarm.__version__, _package_digest(), _digest(files))[:16]


def _user_files(folder: Path) -> set[Path]:
    """Return the Python files in a folder, and those in and below it that they import, directly or not."""
    files = set[Path]()
    waiting = list(folder.glob("*.py"))
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting += _imported_files(path, folder)
    return files


def _imported_files(path: Path, folder: Path) -> list[Path]:
    """Return the files that a Python file imports from ``folder`` or, with leading dots, from its own package."""
    if path.suffix != ".py":
        return []
    modules = []
    for level, name in _imported_names(path.read_bytes()):
        module = path.parents[level - 1] if level else folder
        for part in name.split("."):
            module /= part
            modules.append(module)
    suffixes = (".py", "/__init__.py", *EXTENSION_SUFFIXES)
    files = {Path(f"{module}{suffix}") for module in modules for suffix in suffixes}
    return [file for file in files if file.is_file()]


@lru_cache(maxsize=512)
def _imported_names(source: bytes) -> list[tuple[int, str]]:
    """Return all names that a source imports, in functions too, and the number of dots before each."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:  # a file beside the learner, which no run passes through
        return []
    names = [(0, alias.name) for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            prefix = f"{node.module}." if node.module else ""
            names += [(node.level, prefix + alias.name) for alias in node.names]
    return names


@lru_cache(maxsize=1)
def _package_digest() -> str:
    files = {PACKAGE / name for name in RUN_FILES}
    files |= {path for name in RUN_FOLDERS for pattern in SOURCES for path in (PACKAGE / name).glob(pattern)}
    return _digest(files)


def _digest(files: Iterable[Path]) -> str:
    """Return the hash of the contents of files, wherever they lie."""
    return _hash(*sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in files))


def _hash(*texts: str) -> str:
    return hashlib.sha256("".join(texts).encode()).hexdigest()
