"""One hash of the code behind a run: results of older code are never taken for those of newer.

The hash is of the package's version, of all our code that a run may pass through, and of a user's own learner: its
file and those beside it that it imports, blind to their comments and docstrings.
"""

from __future__ import annotations

import ast
import hashlib
from functools import lru_cache
from pathlib import Path

import superarm

PACKAGE = Path(superarm.__file__).parent
RUN_CODE = ("data", "decisions", "explore", "learners", "native", "streams", "theory")  # folders of ours
SOURCES = ("*.py", "*.pyx", "*.pxd", "c/*.[ch]")


def code_digest(use: str) -> str:
    """The hash of the code behind a learner, as the registry names it: ``mc-dbf`` or ``file.py:Class``."""
    file_name = use.partition(":")[0]
    user_files = _user_files(Path(file_name)) if file_name.endswith(".py") else set[Path]()
    digests = sorted(_user_digest(path.read_bytes()) for path in user_files)
    return _hash("".join([superarm.__version__, _package_digest(), *digests]).encode())[:16]


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=1)
def _package_digest() -> str:
    folders = [PACKAGE / name for name in RUN_CODE]
    files = {path for folder in folders for pattern in SOURCES for path in folder.glob(pattern)}
    digests = sorted(_hash(path.read_bytes()) for path in {*files, PACKAGE / "simulation.py"})
    return _hash("".join(digests).encode())


def _user_files(path: Path) -> set[Path]:
    """A user's file, and those in its folder that it imports, directly or not."""
    files, waiting = set[Path](), [path.resolve()]
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting += _imported_neighbours(path)
    return files


def _imported_neighbours(path: Path) -> list[Path]:
    """The files in a file's folder that it imports, anywhere in it."""
    names = list[str]()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module or ''}.{alias.name}".strip(".") for alias in node.names]
            names += [node.module] if node.module else []
    modules = [path.parent.joinpath(*name.split(".")) for name in names]
    files = [file for module in modules for file in (module.with_suffix(".py"), module / "__init__.py")]
    return [file for file in files if file.is_file()]


@lru_cache(maxsize=512)
def _user_digest(content: bytes) -> str:
    """The hash of what a file of Python does: of its syntax tree without docstrings."""
    tree = ast.parse(content)
    for node in ast.walk(tree):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                node.body = node.body[ast.get_docstring(node) is not None :]
    return _hash(ast.dump(tree).encode())
