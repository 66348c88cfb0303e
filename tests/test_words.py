"""Names are words of the field: those of the old dialect stay out of the rooms that have been cleared of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "superarm"
OLD = {"found", "made", "told", "said", "odds", "meant", "spelt", "respelt", "believe", "absorb"}
CLEARED = [
    *("checks", "data", "decisions", "explore", "learners", "native", "sklearn", "streams", "theory"),
    *("comparison.py", "errors.py", "groups.py", "losses.py", "onnx.py", "parameters.py", "simulation.py"),
    "sources.py",
]


def names(path: Path) -> set[str]:
    """Every word of a file of Python or Cython, without its strings and comments."""
    code = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    code = re.sub(r'"[^"\n]*"|\'[^\'\n]*\'|#.*', "", code)
    return set(re.findall(r"\b[a-z_]\w*", code))


@pytest.mark.parametrize("room", CLEARED)
def test_the_old_words_stay_out(room: str) -> None:
    files = [SOURCE / room] if room.endswith(".py") else sorted((SOURCE / room).rglob("*.p[yx]*"))
    assert files
    old = {str(path.relative_to(SOURCE)): names(path) & OLD for path in files}
    assert {name: words for name, words in old.items() if words} == {}
