"""The file of labels that several commands take."""

from __future__ import annotations

from pathlib import Path

from superarm.errors import InvalidInput


def read_labels(path: Path) -> list[str]:
    """One label a line; empty lines, and the mark that some editors put first, do not count."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        wanted = "a UTF-8 text file with one label a line"
        raise InvalidInput.must("--labels", "superarm", wanted, str(path)) from error
    line_of: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        label = line.strip()
        if label in line_of:
            wanted = f"another label than that of line {line_of[label]}"
            raise InvalidInput.must(f"line {number}", str(path), wanted, label)
        if label:
            line_of[label] = number
    if len(line_of) < 2:
        raise InvalidInput.must("labels", str(path), "at least two, one a line", len(line_of))
    return list(line_of)
