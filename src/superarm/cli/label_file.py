"""The file of labels that several commands take."""

from __future__ import annotations

from pathlib import Path

from superarm.errors import InvalidInput

__all__ = ["read_labels"]


def read_labels(path: Path) -> list[str]:
    """One label a line; empty lines, and the mark that some editors put first, do not count."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        wanted = "a UTF-8 text file with one label a line"
        raise InvalidInput.must("--labels", "superarm", wanted, str(path)) from error
    labels = [line for line in lines if line]
    if len(set(labels)) != len(labels) or len(labels) < 2:
        raise InvalidInput.must("--labels", "superarm", "at least two distinct labels", labels)
    return labels
