"""One hash of the code behind a run: results of older code are never taken for those of newer.

The hash is of the package's version, of all our code that a run may pass through, and of a user's own learner and rule:
their files and the other Python files in their folders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import superarm
from superarm.learners.registry import names_file

PACKAGE = Path(superarm.__file__).parent
RUN_FOLDERS = ("data", "decisions", "explore", "learners", "native", "streams", "theory")
RUN_FILES = ("groups.py", "losses.py", "parameters.py", "simulation.py")
SOURCES = ("*.py", "*.pyx", "*.pxd", "c/*.[ch]")


def code_digest(learner_spec: str, explore: Any = None) -> str:
    """Return the hash of the code behind a learner and its ``explore``: names, or ``file.py:Class`` each."""
    folders = {Path(spec.partition(":")[0]).parent for spec in (learner_spec, explore) if names_file(spec)}
    user_files = (path for folder in folders for path in folder.glob("*.py"))
    return _hash(superarm.__version__, _package_digest(), _digest(user_files))[:16]


@lru_cache(maxsize=1)
def _package_digest() -> str:
    files = {PACKAGE / name for name in RUN_FILES}
    files |= {path for name in RUN_FOLDERS for pattern in SOURCES for path in (PACKAGE / name).glob(pattern)}
    return _digest(files)


def _digest(files: Iterable[Path]) -> str:
    """Return the hash of the contents of files, wherever they lie."""
    return _hash(*sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in files))


def _hash(*texts: str) -> str:
    return hashlib.sha256("".join(texts).encode()).hexdigest()
