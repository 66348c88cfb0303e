"""Type stubs (.pyi) of the compiled modules, from their .pyx and .pxd files; setup.py writes them.

Types of arguments and attributes are those that Cython knows; a function returns Any where its .pyx does not say.
"""

from __future__ import annotations

import re
from pathlib import Path

NATIVE = Path(__file__).parents[1] / "src/superarm/native"
TYPES = {
    "Py_ssize_t": "int",
    "int": "int",
    "int64_t": "int",
    "uint64_t": "int",
    "double": "float",
    "bint": "bool",
    "str": "str",
    "bytes": "bytes",
    "dict": "dict[str, Any]",
    "tuple": "tuple[Any, ...]",
    "list": "list[Any]",
    "object": "Any",
    "np.ndarray": "NDArray[Any]",
}
SPECIAL = {  # what special methods return
    "__init__": "None",
    "__len__": "int",
    "__contains__": "bool",
    "__eq__": "bool",
    "__repr__": "str",
}
CONSTANTS = {
    "LEVEL": "str",
    "LEVELS": "tuple[str, ...]",
    "LOG_KEYS": "tuple[str, ...]",
    "RHO_GRID": "NDArray[Any]",
    "CLIP_START": "float",
    "CLIP_LIMIT": "float",
    "MAX_FEATURE": "float",
}


def parameter(text: str, classes: dict[str, str]) -> str:
    """`double bias=0.0` is `bias: float = ...`, `Cursor cursor=None` is `cursor: Cursor | None = ...`."""
    declared, _, default = (part.strip() for part in text.partition("="))
    *kind, name = declared.split()
    if name in ("self", "cls", "*") or name.startswith("*"):
        return name
    known = kind[-1] if kind else "object"
    python = TYPES.get(known, known if known in classes else "Any")
    if default == "None" and python != "Any":
        python += " | None"
    return f"{name}: {python}" + (" = ..." if default else "")


def signature(name: str, text: str, returns: str, classes: dict[str, str]) -> str:
    parameters = [parameter(part, classes) for part in re.split(r",\s*(?![^()]*\))", text) if part.strip()]
    if name == "__eq__":
        parameters = ["self", "other: object"]
    return f"def {name}({', '.join(parameters)}) -> {returns or SPECIAL.get(name, 'Any')}: ..."


def attributes(body: str, classes: dict[str, str]) -> list[str]:
    """What `cdef readonly` and `cdef public` show to Python."""
    lines = []
    for kind, names in re.findall(r"^    cdef (?:readonly|public) (\S+) ([\w, ]+)", body, re.M):
        python = TYPES.get(kind, kind if kind in classes else "Any")
        lines += [f"{name.strip()}: {python}" for name in names.split(",")]
    return lines


def bodies(text: str) -> dict[str, str]:
    """The text of each `cdef class`, by its name."""
    found = re.split(r"^cdef class (\w+)[^\n]*\n", text, flags=re.M)
    return {
        name: re.split(r"^\S", body, flags=re.M)[0]
        for name, body in zip(found[1::2], found[2::2], strict=True)
    }


def methods(body: str, indent: str, classes: dict[str, str]) -> list[str]:
    lines = []
    head = rf"(?:^{indent}@(\w+)\n)?^{indent}(?:def|cpdef(?: int| double)?) (\w+)"
    pattern = head + r"\(([^:]*?)\)(?: noexcept nogil)?(?: -> (.*))?:$"
    for decorator, name, text, returns in re.findall(pattern, body, re.M):
        if name == "__cinit__" or (name.startswith("_") and not name.startswith("__")):
            continue
        if decorator:
            lines.append(f"@{decorator}")
        lines.append(signature(name, " ".join(text.split()), returns, classes))
    return lines


def stub(path: Path, classes: dict[str, str]) -> str:
    """The stub of one module."""
    text, contract = path.read_text(), path.with_suffix(".pxd")
    declared = bodies(contract.read_text()) if contract.exists() else {}
    parts = [
        f"{name}: {CONSTANTS[name]}" for name in re.findall(r"^([A-Z_]+) = ", text, re.M) if name in CONSTANTS
    ]
    for members in re.findall(r"^cpdef enum:.*\n((?:    .*\n)+)", text, re.M):
        parts += [f"{name}: int" for name in re.findall(r"^    (\w+)", members, re.M)]
    for name, body in bodies(text).items():
        base = re.search(rf"^cdef class {name}\((\w+)\)", text, re.M)
        inside = [*attributes(declared.get(name, "") + body, classes), *methods(body, "    ", classes)]
        parts.append(f"class {name}{f'({base[1]})' if base else ''}:")
        parts += [f"    {line}" for line in inside or ["..."]]
    parts += methods(text, "", classes)
    used = {word for word in re.findall(r"\w+", "\n".join(parts)) if word in classes}
    imports = ["from typing import Any"] if re.search(r"\bAny\b", "\n".join(parts)) else []
    if "NDArray" in "\n".join(parts):
        imports.append("from numpy.typing import NDArray")
    modules = sorted({classes[name] for name in used} - {path.stem})
    for module in modules:
        names = sorted(name for name in used if classes[name] == module)
        imports.append(f"from superarm.native.{module} import {', '.join(names)}")
    head = f"# Made by buildtools/stubs.py from {path.name}."
    return "\n".join([head, *imports, "", *parts]) + "\n"


def stubs() -> dict[Path, str]:
    """Every stub, by its path."""
    sources = sorted(NATIVE.glob("*.pyx"))
    classes = {name: path.stem for path in sources for name in bodies(path.read_text())}
    return {path.with_suffix(".pyi"): stub(path, classes) for path in sources}


def write_stubs() -> None:
    """Write those that are not there, or have changed; delete what was built of modules that have gone."""
    texts = stubs()
    for path, text in texts.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    modules = {path.stem for path in texts}
    for built in (*NATIVE.glob("*.pyi"), *NATIVE.glob("*.so")):
        if built.name.partition(".")[0] not in modules:
            built.unlink()
