"""Which C compiler builds superarm, and with which flags. Used by setup.py and by backend.py.

The compiler is $CC, or the one that Python was built with, or cc, gcc or clang. Where Linux has none of them,
it is Zig's, from the package `ziglang` of the package index: `python -m ziglang cc`.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

COMMON = ["-g0", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math"]
# What Cython makes: numbers are added in the order in which they are written.
CYTHON = ["-O2", "-w", *COMMON]
# Vectorised loops: sums may be added in another order, products fused with them; NaN and infinity are kept.
LOOPS = ["-O3", *COMMON, "-fassociative-math", "-fno-signed-zeros", "-freciprocal-math", "-ffp-contract=fast"]
GCC_LOOPS = [
    "--param=vect-max-peeling-for-alignment=0",  # where an array begins must not decide what is added first
    "-mno-avx256-split-unaligned-load",
    "-mno-avx256-split-unaligned-store",
]
# Levels of x86-64. A level's flags are the features that native/cpu.pyx asks the processor for, no more.
V3 = ["-mavx2", "-mfma", "-mf16c"]
V4 = [*V3, *(f"-mavx512{part}" for part in ("f", "cd", "bw", "dq", "vl")), "-mprefer-vector-width=256"]
X86_LEVELS = {"base": [], "v3": V3, "v4": V4}


class BuildError(SystemExit):
    """One sentence for the person who builds."""

    def __init__(self, sentence: str) -> None:
        super().__init__(f"superarm cannot be built: {sentence}")


def find_compiler() -> list[str] | None:
    """The command of a compiler that works here, or None."""
    if chosen := os.environ.get("CC"):
        command = shlex.split(chosen)
        if not works(*command):
            raise BuildError(f"the compiler that CC names does not work: {chosen}")
        return command
    built_with = shlex.split(sysconfig.get_config_var("CC") or "")[:1]
    for name in [*built_with, "cc", "gcc", "clang"]:
        if shutil.which(name) and works(name):
            return [name]
    return None


def zig() -> list[str]:
    """The command of Zig's compiler; without a target it would build for this very processor."""
    command = [sys.executable, "-m", "ziglang", "cc"]
    if glibc := os.environ.get("SUPERARM_GLIBC"):
        return [*command, "-target", f"{os.uname().machine}-linux-gnu.{glibc}"]
    return [*command, "-mcpu=baseline"]


def wants_zig() -> bool:
    """Whether the build must have `ziglang`: for a wheel for an old glibc, or where there is no compiler."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(os.environ.get("SUPERARM_GLIBC")) or find_compiler() is None


def c_compiler() -> list[str]:
    """The command that compiles, after all that can be missing was looked for."""
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").exists():
        raise BuildError(
            f"there is no Python.h in {include}: install the headers of your Python (Debian and Ubuntu: "
            "python3-dev, Fedora: python3-devel)"
        )
    if wants_zig():
        if importlib.util.find_spec("ziglang") is None:
            raise BuildError(
                "there is no C compiler, and no package `ziglang` to stand in for one: install gcc or clang, "
                "or pip install ziglang"
            )
        return zig()
    command = find_compiler()
    if command is None:
        raise BuildError("there is no C compiler: install Apple's with xcode-select --install")
    return command


@functools.cache
def works(*command: str) -> bool:
    """Whether it compiles a program of one line."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "try.c")
        source.write_text("#include <math.h>\n#include <stdlib.h>\nint main(void) { return 0; }\n")
        compile_it = [*command, "-c", source, "-o", source.with_suffix(".o")]
        try:
            return subprocess.run(compile_it, capture_output=True).returncode == 0
        except OSError:
            return False


def macros(command: list[str]) -> set[str]:
    """The names that the compiler defines by itself: who it is, and for which processor it compiles."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "none.c")
        source.touch()
        lines = subprocess.run([*command, "-dM", "-E", source], capture_output=True, text=True, check=True)
    return {words[1] for line in lines.stdout.splitlines() if len(words := line.split()) > 1}


def loop_flags(command: list[str]) -> dict[str, list[str]]:
    """The levels for which the vectorised loops are compiled, and the flags of each."""
    defined = macros(command)
    x86 = (
        "__x86_64__" in defined
        and "__ILP32__" not in defined
        and "universal2" not in sysconfig.get_platform()
    )
    gcc = [] if "__clang__" in defined else GCC_LOOPS if x86 else GCC_LOOPS[:1]
    return {level: [*LOOPS, *gcc, *flags] for level, flags in (X86_LEVELS if x86 else {"base": []}).items()}


if __name__ == "__main__":  # the Makefile asks what must be installed before it compiles
    print("ziglang" if wants_zig() else "")
