"""Run the notebooks anew, and keep what comes of it.

    python examples/notebooks.py                 all of them
    python examples/notebooks.py researcher      one

They are the source and the result in one: edit them in Jupyter, then run this. It needs the extras dev,
plots and sklearn. Pictures are PNG, so that they are seen wherever a notebook is.
"""

from __future__ import annotations

import sys
import time
import zlib
from base64 import b64decode, b64encode
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
NAMES = ("researcher", "practitioner", "data_scientist")
WIDGET = "application/vnd.jupyter.widget-view+json"


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with fresh outputs, and nothing in it about this machine or this hour."""
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=300, kernel_name="python3", record_timing=False).execute(cwd=str(FOLDER))
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(book.cells):
        cell.metadata, cell.id = {}, f"cell-{number}"
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_left_by_a_progress_bar(output)]
            for output in cell.outputs:
                if "image/png" in output.get("data", {}):
                    output.data["image/png"] = _smaller(output.data["image/png"])
    return book


def _is_left_by_a_progress_bar(output: nbformat.NotebookNode) -> bool:
    data = output.get("data", {})
    return WIDGET in data or data.get("text/plain") == "" or data.get("text/html") == ""


def _smaller(picture: str) -> str:
    """The same PNG, its pixels packed as well as zlib can: half the size of what vl-convert gives."""
    png = b64decode(picture)
    chunks, at = [], 8
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        chunks.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + size]))
        at += 12 + size
    pixels = zlib.compress(zlib.decompress(b"".join(d for kind, d in chunks if kind == b"IDAT")), 9)
    small = png[:8]
    for kind, data in [chunks[0], (b"IDAT", pixels), (b"IEND", b"")]:
        small += len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    return b64encode(small).decode()


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        path, began = FOLDER / f"{name}.ipynb", time.monotonic()
        nbformat.write(executed(path), path)
        print(f"{path.name}: {time.monotonic() - began:.1f} s, {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
