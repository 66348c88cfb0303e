"""Which source files stand behind an object, and one hash of what they do.

Results and compiled code are kept on disk under such a hash: neither may outlive a change of the code
that made them, and neither should be thrown away because a docstring was changed.

Imports are read from the files, not from modules in memory: a kernel asks while its module is still being
imported, and what else is loaded by then differs from process to process.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

__all__ = ["digest", "modules_behind"]

HERE = Path(__file__).resolve().parent
OURS = HERE.name


def modules_behind(*objects: object) -> list[Path]:
    """The files that define these objects (modules, classes, functions or instances) and all they import.

    Our own modules are followed, and those that lie beside a user's file. Of a package only what is asked
    for counts, not all that its ``__init__`` offers. Imports inside of our own functions are for side rooms
    (a plot, a log) and do not count.
    """
    waiting = [path for one in objects for path in _homes(one)]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            for name in _read(path).uses:
                waiting += _resolve(name, path.parent)
    return sorted(found)


def digest(paths: Iterable[Path]) -> str:
    """One hash of these files, blind to comments, docstrings, layout, and where the files lie."""
    return hashlib.sha256("".join(sorted(_read(path).digest for path in paths)).encode()).hexdigest()[:16]


def _homes(one: object) -> Iterator[Path]:
    """The file of a module or function, or those of a class and all that it inherits from."""
    if isinstance(one, ModuleType):
        names = [one.__name__]
    elif hasattr(one, "__qualname__") and not isinstance(one, type):  # a function, compiled or not
        names = [str(one.__module__)]
    else:
        names = [cls.__module__ for cls in (one if isinstance(one, type) else type(one)).__mro__]
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and (name.split(".")[0] == OURS or _is_users(Path(file).resolve())):
            yield Path(file).resolve()


def _is_users(file: Path) -> bool:
    """Whether a file is neither of an installed package nor of Python itself."""
    library = Path(ast.__file__).resolve().parent
    installed = library in file.parents or {"site-packages", "dist-packages"} & {*file.parts}
    return file.suffix == ".py" and not installed


def _resolve(name: str, folder: Path) -> list[Path]:
    """The files behind a dotted name, if they are ours or lie in ``folder``."""
    first, *rest = name.split(".")
    here = HERE if first == OURS else folder / first
    if here.with_suffix(".py").is_file():
        return [here.with_suffix(".py")]
    while rest and (here / "__init__.py").is_file():
        offers = _read(here / "__init__.py").offers
        name, *rest = rest
        if name == "*":
            return [path for one in offers.values() for path in _resolve(one, here)]
        if name in offers and not rest:
            return _resolve(offers[name], here)
        if (here / f"{name}.py").is_file():
            return [here / f"{name}.py"]
        if name in offers:
            return _resolve(offers[name], here)
        if not (here / name / "__init__.py").is_file():
            return [here / "__init__.py"]
        here = here / name
    return []


class _Source(NamedTuple):
    """What a file says."""

    digest: str
    uses: tuple[str, ...]  # dotted names that it imports, or takes out of what it imports
    offers: dict[str, str]  # names that it imports, and where from


def _read(path: Path) -> _Source:
    return _parsed(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=512)
def _parsed(path: Path, modified: int) -> _Source:
    tree = ast.parse(path.read_bytes())
    package = list(path.relative_to(HERE.parent).parts[:-1]) if HERE in path.parents else []
    statements = _at_import(tree) if package else ast.walk(tree)
    bound = dict(_bound(statements, package))
    names = [name for names in bound.values() for name in names]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root, *parts = _spelled(node)
            if root in bound:
                names += [".".join([one, *parts]) for one in bound[root][:1]]
    own = ".".join(package)
    offers = {n: full[0] for n, full in _bound(ast.walk(tree), package) if full[0] != f"{own}.{n}"}
    _strip_docstrings(tree)
    return _Source(hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(names), offers)


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The statements that run when a file is imported."""
    for inner in ast.iter_child_nodes(node):
        typing_only = isinstance(inner, ast.If) and "TYPE_CHECKING" in ast.dump(inner.test)
        if not typing_only and not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield inner
            yield from _at_import(inner)


def _bound(nodes: Iterable[ast.AST], package: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each name that an import statement binds, and the dotted names that it stands for."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    yield alias.asname, [alias.name]
                else:  # `import a.b` binds a
                    yield alias.name.split(".")[0], [alias.name.split(".")[0], alias.name]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            for alias in node.names:
                yield (
                    alias.asname or alias.name,
                    [".".join([*above, *([node.module] if node.module else []), alias.name])],
                )


def _spelled(node: ast.expr) -> list[str]:
    """``a.b.c`` as its parts; what is no such chain has no name at its root."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id if isinstance(node, ast.Name) else "", *reversed(parts)]


def _strip_docstrings(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
