"""Compiles src/superarm/**/*.pyx, on all cores, and writes their type stubs; what has not changed is left alone.

`pip install -e .` in a clone calls it; after a change, `make` or `python setup.py build_ext --inplace`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.modified import newer_group

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "buildtools"))
from compiler import CYTHON, BuildError, c_compiler, loop_flags  # noqa: E402
from stubs import write_stubs  # noqa: E402

SOURCE = Path("src")
C = SOURCE / "superarm/native/c"
LOOPS = "superarm.native.cpu"  # the module that has kernels.c in it, once for each level of processor
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}
JOBS = os.cpu_count() or 1


def extensions() -> list[Extension]:
    """One for each .pyx, the largest first: they take longest."""
    paths = sorted(SOURCE.rglob("*.pyx"), key=lambda path: (-path.stat().st_size, path))
    return [
        Extension(".".join(path.relative_to(SOURCE).with_suffix("").parts), [str(path)]) for path in paths
    ]


class Build(build_ext):
    """Cython, then C; native/c/kernels.c goes into native.cpu once for each level of processor."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or JOBS

    def run(self) -> None:
        try:
            import numpy
            from Cython.Build import cythonize
            from Cython.Compiler.Errors import CompileError
        except ImportError as error:
            raise BuildError(f"{error.name} is missing: pip install cython numpy setuptools") from None

        try:
            translated = cythonize(
                self.extensions,
                build_dir="build/cython",
                compiler_directives=DIRECTIVES,
                include_path=[str(SOURCE)],
                nthreads=JOBS if os.name != "nt" else 0,
                quiet=True,
                force=self.force,
            )
        except CompileError as error:  # Cython has said where and why
            raise BuildError(f"Cython refuses {error}") from None
        rules = ["setup.py", "buildtools/compiler.py"]
        loops = [str(path) for path in C.glob("*.[ch]")]
        c = {ext.name: ext for ext in translated}
        for ext in self.extensions:
            ext.sources = c[ext.name].sources
            ext.depends = [*c[ext.name].depends, *rules, *(loops if ext.name == LOOPS else [])]
            made_by_cython = str(Path(ext.sources[0]).parent)  # cpu.h, from cpu.pxd
            ext.include_dirs = [str(C), made_by_cython, numpy.get_include()]
            ext.define_macros = [("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")]
        super().run()

    def build_extensions(self) -> None:
        if self.compiler.compiler_type == "msvc":  # it has no flag for reassociating sums alone: plain loops
            flags = ["/O2", "/std:c11", "/w"]
            self.levels = {"base": flags}
        else:
            command = c_compiler()
            flags, self.levels = CYTHON, loop_flags(command)
            if "ziglang" in command:  # with nothing of what this Python was built with
                self.compiler.set_executables(
                    compiler_so=[*command, "-fPIC", "-fwrapv", "-DNDEBUG"],
                    linker_so=[*command, "-shared", "-s"],
                )
            else:
                self.compiler.compiler_so[:1] = self.compiler.linker_so[:1] = command
        for ext in self.extensions:
            ext.extra_compile_args = flags
            if len(self.levels) > 1:
                ext.define_macros.append(("SUPERARM_ALL_LEVELS", "1"))
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        if ext.name == LOOPS:
            if not self.force and not newer_group(ext.sources + ext.depends, self.get_ext_fullpath(ext.name)):
                return
            for level, flags in self.levels.items():
                ext.extra_objects += self.compiler.compile(
                    [str(C / "kernels.c")],
                    output_dir=str(Path(self.build_temp, level)),
                    macros=[*ext.define_macros, ("LEVEL", f"kernels_{level}")],
                    include_dirs=ext.include_dirs,
                    extra_postargs=flags,
                )
        super().build_extension(ext)


class Files(build_py):
    """What is left in build/lib of files that are gone must not reach a wheel."""

    def run(self) -> None:
        modules = {ext.name.rpartition(".")[2] for ext in self.distribution.ext_modules or []}
        for path in Path(self.build_lib).rglob("*"):
            compiled = path.suffix in (".so", ".pyd") and path.name.partition(".")[0] in modules
            if path.is_file() and not compiled:
                path.unlink()
        super().run()


# .ci/wheel: a wheel for systems with this version of glibc, or a newer one
GLIBC = os.environ.get("SUPERARM_GLIBC")
PLATFORM = {"plat_name": f"manylinux_{GLIBC.replace('.', '_')}_{os.uname().machine}"} if GLIBC else {}

write_stubs()
setup(
    ext_modules=[] if os.environ.get("SUPERARM_COMPILE") == "0" else extensions(),  # the Makefile compiles
    cmdclass={"build_ext": Build, "build_py": Files},
    options={"bdist_wheel": PLATFORM},
)
