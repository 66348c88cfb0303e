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
from types import CodeType, ModuleType

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
            waiting += _imported(path, path.stat().st_mtime_ns)
    return sorted(found)


def digest(paths: Iterable[Path]) -> str:
    """One hash of these files, blind to comments, docstrings, layout, and where the files lie."""
    each = sorted(_digest(path, path.stat().st_mtime_ns) for path in paths)
    return hashlib.sha256("".join(each).encode()).hexdigest()[:16]


@lru_cache(maxsize=512)
def _digest(path: Path, modified: int) -> str:
    """Of the byte code: it knows no comments, and lines are kept apart from it."""
    code = compile(path.read_bytes(), "", "exec", dont_inherit=True, optimize=2)  # 2: without docstrings
    return hashlib.sha256(repr(_meaning(code)).encode()).hexdigest()


def _meaning(code: CodeType) -> tuple[object, ...]:
    """All of a code object but its lines."""
    constants = [
        _meaning(one)
        if isinstance(one, CodeType)
        else sorted(map(repr, one))
        if isinstance(one, frozenset)
        else one
        for one in code.co_consts
    ]
    names = code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, names, code.co_flags, code.co_argcount, code.co_kwonlyargcount


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


# ---------------------------------------------------------------- imports


@lru_cache(maxsize=512)
def _imported(path: Path, modified: int) -> tuple[Path, ...]:
    """The files that a file imports, as far as they are ours or lie beside it."""
    tree, package = _tree(path), _package(path)
    bound = dict(_bound(_at_import(tree) if package else ast.walk(tree), package))
    names = [name for names in bound.values() for name in names]
    packages = {name: full[0] for name, full in bound.items() if _is_package(full[0], path.parent)}
    for node in ast.walk(tree) if packages else ():
        if isinstance(node, ast.Attribute):  # what is taken out of a package
            root, *parts = _spelled(node)
            if root in packages:
                names.append(".".join([packages[root], *parts]))
    return tuple(dict.fromkeys(found for name in names for found in _resolve(name, path.parent)))


def _resolve(name: str, folder: Path) -> list[Path]:
    """The files behind a dotted name, if they are ours or lie in ``folder``."""
    first, *rest = name.split(".")
    here = HERE if first == OURS else folder / first
    if here.with_suffix(".py").is_file():
        return [here.with_suffix(".py")]
    while rest and (here / "__init__.py").is_file():
        offers = _offers(here / "__init__.py", (here / "__init__.py").stat().st_mtime_ns)
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


@lru_cache(maxsize=64)
def _offers(path: Path, modified: int) -> dict[str, str]:
    """The names that a package's ``__init__`` passes on, also lazily, and where they come from."""
    package = _package(path)
    own = ".".join(package)
    return {n: full[0] for n, full in _bound(ast.walk(_tree(path)), package) if full[0] != f"{own}.{n}"}


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def _package(path: Path) -> list[str]:
    """The package that a file of ours is in; nothing for a user's."""
    return list(path.relative_to(HERE.parent).parts[:-1]) if HERE in path.parents else []


def _is_package(name: str, folder: Path) -> bool:
    parts = name.split(".")
    return (HERE.parent if parts[0] == OURS else folder).joinpath(*parts, "__init__.py").is_file()


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The statements that run when a file is imported."""
    for inner in ast.iter_child_nodes(node):
        typing_only = isinstance(inner, ast.If) and "TYPE_CHECKING" in ast.dump(inner.test)
        if isinstance(inner, ast.stmt) and not typing_only:
            yield inner
            if isinstance(inner, ast.If | ast.Try | ast.With):
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
