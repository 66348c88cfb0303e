"""What commands write: JSON on standard output, and files: none is overwritten by accident, a journal never."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from math import isnan
from pathlib import Path

from superarm.errors import InvalidInput

JOURNAL = b"SQLite format 3\0"


def check_output(
    path: Path | None,
    command: str,
    *,
    force: bool,
    option: str = "--output",
    endings: Collection[str] = (),
    inputs: Iterable[Path | str] = (),
) -> None:
    """Before the work: refuse a missing folder, a journal, an input, a wrong ending, a file without --force."""
    from superarm._files import BESIDE_JOURNAL

    if path is None:
        return
    owner = f"superarm {command}"
    if not path.parent.is_dir():
        raise InvalidInput.must(option, owner, "a file in an existing folder", str(path))
    endings_beside = (*BESIDE_JOURNAL, ".lock")
    journal = next((str(path).removesuffix(end) for end in endings_beside if str(path).endswith(end)), None)
    if _is_journal(path) or (journal is not None and _is_journal(Path(journal))):
        wanted = "a file that is no journal or database, nor part of one (nothing overwrites these)"
        raise InvalidInput.must(option, owner, wanted, str(path))
    if path.is_dir():
        raise InvalidInput.must(option, owner, "a file", f"the folder {path}")
    if any(Path(read).exists() and path.resolve() == Path(read).resolve() for read in inputs):
        raise InvalidInput.must(option, owner, "another file than those that are read", str(path))
    if path.exists() and not force:
        raise InvalidInput.must(option, owner, "a new file, or given with --force", str(path))
    if endings and path.suffix.lower() not in endings:
        wanted = f"a file that ends in one of {', '.join(endings)}"
        raise InvalidInput.must(option, owner, wanted, str(path))


def _is_journal(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(JOURNAL)) == JOURNAL
    except OSError:
        return False


def print_json(report: object) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(_without_nan(report)))


def _without_nan(value: object) -> object:
    """A report with None in place of NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and isnan(value) else value
