"""The tutorials and recipes run as they are printed, and print what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_blocks import COMPARED, alike, missing, run

ROOT = Path(__file__).parents[2]
SERVES = ("tutorial-practitioner", "tutorial-data-scientist", "logs")


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.slow
def test_page(name: str, tmp_path: Path) -> None:
    if name in SERVES:
        pytest.importorskip("httptools", reason="the extra 'serve' is not installed")
    page = ROOT / ("" if name == "README" else "docs") / f"{name}.md"
    for printed in run(page, tmp_path):
        assert alike(printed.said, printed.got), (
            f"{page.name}, line {printed.first}: {printed.what}\nsays\n{printed.said}\nbut printed\n"
            f"{printed.got}\n(to write it down: python tests/doc_blocks.py {page.relative_to(ROOT)})"
        )
    for module in missing(page):
        pytest.skip(f"{page.name} ran, but for the blocks that need {module}")
