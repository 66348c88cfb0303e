"""The README is the home of the site, and its links into docs/ stay inside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent


def on_files(files: Files, config: Any) -> Files:
    """Put the README in as index.md, unless docs/ has one of its own."""
    if files.get_file_from_path("index.md") is None:
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        text = re.sub(r"\]\(docs/([^)]+)\)", r"](\1)", text)
        # other files of the repository are not on the site: their names stay, without a link
        text = re.sub(
            r"\[([^\]]+)\]\((?!https?:|#)([^)]*?\.(?:py|toml|txt)|LICENSE|[A-Z]+\.md|[a-z/]+/)\)", r"\1", text
        )
        files.append(File.generated(config, "index.md", content=text))
    return files
