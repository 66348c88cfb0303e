"""One hash of the code behind a run: results of older code are never taken for those of newer.

The hash is of the package's version, of compiled code's sources, and of the files that define the given
objects and the classes they inherit from; of a user's file, also of those beside it that it imports.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType

import superarm

HERE = Path(__file__).resolve().parents[1]
NATIVE = ("*.pyx", "*.pxd", "c/*.c", "c/*.h")


def code_digest(*objects: object) -> str:
    """One hash of the code behind these instances, classes or functions; blind to comments and docstrings."""
    each = sorted(_digest(path, path.stat().st_mtime_ns) for path in files_behind(*objects))
    return hashlib.sha256("".join([superarm.__version__, *each]).encode()).hexdigest()[:16]


def files_behind(*objects: object) -> list[Path]:
    """The files that define these objects, what users' files import beside them, and our compiled code."""
    waiting = [path for item in objects for path in _homes(item)]
    files = {path for pattern in NATIVE for path in (HERE / "native").glob(pattern) if not _generated(path)}
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            if HERE not in path.parents and path.suffix == ".py":
                waiting += _beside(path, path.stat().st_mtime_ns)
    return sorted(files)


def _generated(path: Path) -> bool:
    return path.suffix == ".c" and path.with_suffix(".pyx").is_file()


def _homes(item: object) -> Iterator[Path]:
    """The file of a function, or those of a class and all that it inherits from."""
    if hasattr(item, "__qualname__") and not isinstance(item, type):
        names = [str(item.__module__)]
    else:
        names = [cls.__module__ for cls in (item if isinstance(item, type) else type(item)).__mro__]
    library = Path(ast.__file__).resolve().parent
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None)
        path = None if file is None else Path(file).resolve()
        if path is not None and (HERE in path.parents or not _installed(path, library)):
            yield path


def _installed(path: Path, library: Path) -> bool:
    return library in path.parents or bool({"site-packages", "dist-packages"} & {*path.parts})


@lru_cache(maxsize=512)
def _beside(path: Path, modified: int) -> tuple[Path, ...]:
    """The files in a user's folder that a file imports, anywhere in it."""
    names = list[str]()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module or ''}.{alias.name}".strip(".") for alias in node.names]
            names += [node.module] if node.module else []
    files = list[Path]()
    for name in names:
        here = path.parent.joinpath(*name.split("."))
        files += [file for file in (here.with_suffix(".py"), here / "__init__.py") if file.is_file()]
    return tuple(files)


@lru_cache(maxsize=512)
def _digest(path: Path, modified: int) -> str:
    content = path.read_bytes()
    if path.suffix == ".py":  # byte code knows no comments; optimize=2: nor docstrings
        content = repr(_meaning(compile(content, "", "exec", dont_inherit=True, optimize=2))).encode()
    return hashlib.sha256(content).hexdigest()


def _meaning(code: CodeType) -> tuple[object, ...]:
    """All of a code object but its lines."""
    constants = [
        _meaning(constant)
        if isinstance(constant, CodeType)
        else sorted(map(repr, constant))
        if isinstance(constant, frozenset)
        else constant
        for constant in code.co_consts
    ]
    names = code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, names, code.co_flags, code.co_argcount, code.co_kwonlyargcount
