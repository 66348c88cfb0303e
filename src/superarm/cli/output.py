"""Files that commands write: none is overwritten by accident, and a journal never."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from superarm.errors import InvalidInput

__all__ = ["Force", "check_output"]

Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]

JOURNAL = b"SQLite format 3\0"
BESIDE = ("-wal", "-shm", "-mark", ".lock")  # what a journal has beside it


def check_output(path: Path | None, command: str, *, force: bool, option: str = "--output") -> None:
    """Refuse to write over a journal, or without --force over another file."""
    if path is None:
        return
    owner = next((str(path).removesuffix(end) for end in BESIDE if str(path).endswith(end)), None)
    if _is_journal(path) or (owner is not None and _is_journal(Path(owner))):
        wanted = "a file that is no journal or database, nor part of one (nothing overwrites these)"
        raise InvalidInput.must(option, f"superarm {command}", wanted, str(path))
    if path.exists() and not force:
        raise InvalidInput.must(option, f"superarm {command}", "a new file, or given with --force", str(path))


def _is_journal(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(JOURNAL)) == JOURNAL
    except OSError:
        return False
