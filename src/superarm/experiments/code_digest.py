"""One hash of the code behind a run: results of older code are never taken for those of newer.

The hash is of the package's version, of all our code that a run may pass through, and of a user's own learner: its
file and the other Python files in its folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import superarm

PACKAGE = Path(superarm.__file__).parent
RUN_FOLDERS = ("data", "decisions", "explore", "learners", "native", "streams", "theory")
RUN_FILES = ("groups.py", "losses.py", "parameters.py", "simulation.py")
SOURCES = ("*.py", "*.pyx", "*.pxd", "c/*.[ch]")


def code_digest(learner_spec: str) -> str:
    """Return the hash of the code behind a learner, as the registry names it: ``mc-dbf`` or ``file.py:Class``."""
    file_name = learner_spec.partition(":")[0]
    user_files = Path(file_name).parent.glob("*.py") if file_name.endswith(".py") else ()
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
