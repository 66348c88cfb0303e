"""Compile src/superarm/native: one extension a .pyx, and the vectorised loops once for each level of processor."""

import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/superarm/native")
MATHS = ["-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-freciprocal-math", "-ffp-contract=fast", "-fno-math-errno"]
X86 = platform.machine().lower() in ("x86_64", "amd64") and sys.platform != "win32"
LEVELS = {"base": []} | ({"v3": ["-march=x86-64-v3"], "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"]} if X86 else {})


class Build(build_ext):
    def build_extensions(self):
        self.parallel = self.parallel or os.cpu_count()
        super().build_extensions()

    def build_extension(self, ext):
        if ext.name == "superarm.native.cpu":
            out = Path(self.build_temp)
            out.mkdir(parents=True, exist_ok=True)

            def one(level):
                return self.compiler.compile(
                    [str(NATIVE / "c/vectors.c")], output_dir=str(out / level), include_dirs=[str(NATIVE / "c")],
                    macros=[("LEVEL", f"vectors_{level}"), *LEVEL_MACRO],
                    extra_postargs=["-O3", *MATHS, "--param", "vect-max-peeling-for-alignment=0", *LEVELS[level]],
                )

            ext.extra_objects = [o for level in LEVELS for o in one(level)]
        super().build_extension(ext)


LEVEL_MACRO = [("SUPERARM_ALL_LEVELS", "1")] if X86 else []
extensions = [
    Extension(
        f"superarm.native.{path.stem}", [str(path)], include_dirs=[str(NATIVE / "c"), numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), *LEVEL_MACRO],
        extra_compile_args=["-O2", "-fno-math-errno", "-fno-trapping-math", "-w"],
    )
    for path in sorted(NATIVE.glob("*.pyx"))
]
directives = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True, "initializedcheck": False}
setup(
    ext_modules=cythonize(extensions, compiler_directives=directives, include_path=["src"], nthreads=0, quiet=True),
    cmdclass={"build_ext": Build},
)
