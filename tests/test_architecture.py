"""The rules of the packages (docs/architecture.md), checked on every import."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "superarm"

# A package may import those before it, and itself; never those after it.
PACKAGES = [
    ("errors",),
    ("_types",),
    ("_validation",),
    ("_extras",),
    ("_html",),
    ("_intervals",),
    ("_progress",),
    ("losses",),
    ("parameters",),
    ("_files",),
    ("native",),
    ("data",),
    ("groups",),
    ("decisions",),
    ("explore",),
    ("theory",),
    ("onnx",),
    ("learners",),
    ("streams",),
    ("simulation",),
    ("experiments",),
    ("report",),
    ("comparison",),
    ("logs",),
    ("http",),
    ("journal",),
    ("service",),
    ("label",),
    ("play",),
    ("sklearn",),
    ("checks",),
    ("bench",),
    ("cli",),
]
LEVEL = {package: level for level, packages in enumerate(PACKAGES) for package in packages}
# Inside of functions: (file, package).
EXCEPTIONS = {("simulation.py", "report")}
# Frameworks, and the only packages that may import them.
FRAMEWORKS = {
    "Cython": set(),
    "sklearn": {"sklearn", "streams"},
    "keras": {"streams"},
    "distributed": {"experiments"},
    "dask": {"experiments"},
    "joblib": {"experiments"},
    "altair": {"report", "logs", "label"},
    "vl_convert": {"report", "logs"},
    "onnx": {"onnx"},
    "typer": {"cli"},
    "httptools": {"http"},
    "msgspec": {"_validation", "cli", "experiments", "http", "journal", "label", "service"},
    "orjson": {"journal", "service"},
    "uvicorn": {"http", "service"},
    "uvloop": {"http"},
    "psycopg": {"journal"},
}
FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if path.name != "__main__.py")


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, for types alone or inside of functions, too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "superarm":
                yield from (f"superarm.{alias.name}" for alias in node.names)
            else:
                yield node.module


def typing_only(path: Path) -> set[str]:
    """Modules imported for type annotations, which cost nothing at run time."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    inner = [n for block in blocks for n in ast.walk(block)]
    found = {n.module for n in inner if isinstance(n, ast.ImportFrom) and n.module and n.module != "superarm"}
    for n in inner:
        if isinstance(n, ast.ImportFrom) and n.module == "superarm":
            found |= {f"superarm.{alias.name}" for alias in n.names}
    return found


def package_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "superarm" and len(parts) > 1 and parts[1] in LEVEL else None


def test_every_file_has_a_package() -> None:
    tops = {path.parts[0].removesuffix(".py") for path in FILES} - {"__init__"}
    assert tops == set(LEVEL)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_go_up(file: Path) -> None:
    own = file.parts[0].removesuffix(".py")
    if own == "__init__":
        return
    for module in set(imports(SOURCE / file)) - typing_only(SOURCE / file):
        package = package_of(module)
        if package is not None and (str(file), package) not in EXCEPTIONS:
            assert LEVEL[package] <= LEVEL[own], f"{file} ({own}) imports {module}"
        framework = module.split(".")[0]
        if framework in FRAMEWORKS and not module.startswith("superarm"):
            assert own in FRAMEWORKS[framework], f"{file} imports {framework}"


def test_the_table_of_the_page_is_in_this_order() -> None:
    """A package imports those in its own row and above it."""
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE)
    row = {
        name.removesuffix(".py"): i
        for i, cell in enumerate(cells)
        for name in re.findall(r"`([\w.]+)/?`", cell)
    }
    assert row.keys() == LEVEL.keys()
    for file in FILES:
        own = file.parts[0].removesuffix(".py")
        for module in set(imports(SOURCE / file)) - typing_only(SOURCE / file):
            package = package_of(module)
            if own in row and package is not None and (str(file), package) not in EXCEPTIONS:
                assert row[package] <= row[own], f"{file} imports {module}, which is further down"


def test_compiled_code_knows_only_itself() -> None:
    for path in (SOURCE / "native").glob("*.p[yx][xd]"):
        packages = {line.split("superarm.")[1].split(".")[0].split()[0] for line in _imports_of(path)}
        assert packages <= {"errors", "native"}, f"{path.name} imports {packages}"


def _imports_of(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        line
        for line in lines
        if line.lstrip().startswith(("from superarm.", "import superarm.", "cimport superarm."))
    ]


def test_the_kinds_of_row_are_told_apart_in_few_places() -> None:
    """A stage may treat the two parts of a row differently, in its own file; an algorithm sees one row."""
    shared = {"inputs.py", "failures.py", "model_files.py", "registry.py", "learner.py"}
    for file in FILES:
        if file.parts[0] == "learners" and file.name not in shared:
            text = (SOURCE / file).read_text(encoding="utf-8")
            assert "is_sparse" not in text, file
            assert "Row(" not in text, file


@pytest.mark.parametrize(
    ("names", "owners"),
    [
        ("learner|decision|decisions|rule|cursor", ("learners", "explore", "decisions")),
        ("store", ("journal",)),
    ],
)
def test_nobody_else_touches_private_parts(names: str, owners: tuple[str, ...]) -> None:
    """What others need of learners, rules, decisions and stores is public."""
    private = re.compile(rf"\b({names})\._[a-z]")
    for file in FILES:
        if file.parts[0] not in owners:
            found = private.search((SOURCE / file).read_text(encoding="utf-8"))
            assert found is None, f"{file}: {found and found[0]}"


def log_fields(file: Path) -> Iterator[tuple[int, set[str]]]:
    """The line of every log call with ``extra=``, and the names that it gives there."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assigned: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in targets:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
    for node in ast.walk(tree):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg == "extra":
                value = keyword.value
                given = assigned.get(value.id, []) if isinstance(value, ast.Name) else [value]
                dicts = [part for part in given if isinstance(part, ast.Dict)]
                keys = {key.value for part in dicts for key in part.keys if isinstance(key, ast.Constant)}
                yield keyword.value.lineno, {str(key) for key in keys}


def test_log_calls_overwrite_no_attribute_of_their_record() -> None:
    """Logging raises KeyError for such a field, where the level of the logger lets the call through."""
    reserved = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}
    calls = [(file, line, fields) for file in FILES for line, fields in log_fields(SOURCE / file)]
    assert len(calls) > 10
    assert [call for call in calls if not call[2] or call[2] & reserved] == []
