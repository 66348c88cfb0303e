"""The rules of the packages (docs/architecture.md), checked on every import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "superarm"

# A room may import those before it, and itself; never those after it.
ROOMS = [
    ("errors",),
    ("_types",),
    ("_extras",),
    ("_html",),
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
    ("sources",),
    ("experiments",),
    ("report",),
    ("comparison",),
    ("logs",),
    ("nightly",),
    ("journal",),
    ("service",),
    ("label",),
    ("play",),
    ("sklearn",),
    ("checks",),
    ("bench",),
    ("cli",),
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
# Inside of functions: (file, room).
EXCEPTIONS = {("simulation.py", "report")}
# Frameworks, and the only rooms that may import them.
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
    "httptools": {"service"},
    "msgspec": {"experiments", "journal", "service"},
    "orjson": {"journal", "service"},
    "uvloop": {"service"},
    "psycopg": {"journal"},
    "psycopg_pool": {"journal"},
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


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "superarm" and len(parts) > 1 and parts[1] in LEVEL else None


def test_every_file_has_a_room() -> None:
    tops = {path.parts[0].removesuffix(".py") for path in FILES} - {"__init__"}
    assert tops == set(LEVEL)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_go_up(file: Path) -> None:
    own = file.parts[0].removesuffix(".py")
    if own == "__init__":
        return
    for module in set(imports(SOURCE / file)) - typing_only(SOURCE / file):
        room = room_of(module)
        if room is not None and (str(file), room) not in EXCEPTIONS:
            assert LEVEL[room] <= LEVEL[own], f"{file} ({own}) imports {module}"
        framework = module.split(".")[0]
        if framework in FRAMEWORKS and not module.startswith("superarm"):
            assert own in FRAMEWORKS[framework], f"{file} imports {framework}"


def test_compiled_code_knows_only_itself() -> None:
    for path in (SOURCE / "native").glob("*.p[yx][xd]"):
        rooms = {line.split("superarm.")[1].split(".")[0].split()[0] for line in _imports_of(path)}
        assert rooms <= {"errors", "native"}, f"{path.name} imports {rooms}"


def _imports_of(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        line for line in lines if line.startswith(("from superarm.", "import superarm.", "cimport superarm."))
    ]


def test_the_kinds_of_row_are_told_apart_in_few_places() -> None:
    """A stage may treat the two parts of a row differently, in its own file; an algorithm sees one row."""
    shared = {"inputs.py", "feedback.py", "predictions.py", "model_files.py", "registry.py", "learner.py"}
    for file in FILES:
        if file.parts[0] == "learners" and file.name not in shared:
            text = (SOURCE / file).read_text(encoding="utf-8")
            assert "is_sparse" not in text, file
            assert "Row(" not in text, file


def test_nobody_but_learners_touches_their_private_parts() -> None:
    """What others need of learners, rules and decisions is public."""
    private = re.compile(r"\b(learner|decision|decisions|rule|cursor)\._[a-z]")
    for file in FILES:
        if file.parts[0] not in ("learners", "explore", "decisions"):
            found = private.search((SOURCE / file).read_text(encoding="utf-8"))
            assert found is None, f"{file}: {found and found[0]}"
