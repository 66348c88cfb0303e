"""The figures are what docs/figures.py makes, and every one is shown."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_figure_is_made_shown_and_small() -> None:
    made = script("figures").FIGURES
    paths = [path for path in (DOCS / "img").glob("*.svg") if not path.stem.startswith("badge-")]
    files = {path.stem: path.stat().st_size for path in paths}
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in ("concepts.md", "coverage.md")]
    shown = {name for page in pages for name in re.findall(r"\(img/([\w-]+)\.svg\)", page)}
    assert set(made) == set(files) == shown
    assert max(files.values()) < 60_000


def test_a_learner_has_one_colour_in_all_figures() -> None:
    entry = r'd="M-10,0L10,0" stroke="([^"]+)".*?<text [^>]*>([^<]+)</text>'
    colours: dict[str, set[str]] = {}
    for path in (DOCS / "img").glob("*.svg"):
        for colour, curve in re.findall(entry, path.read_text(encoding="utf-8")):
            for learner in ("SetLogit", "MC-DBF", "Perceptron", "AveragedSoftmax"):
                if learner in curve:
                    colours.setdefault(learner, set()).add(colour)
    assert {learner: len(found) for learner, found in colours.items()} == dict.fromkeys(colours, 1)
    assert len(colours) == len(set.union(*colours.values())) == 4


def test_titles_are_no_wider_than_their_figures() -> None:
    """A title begins at the left edge; 14 pixels and bold, a letter is 7.8 wide on average."""
    for path in (DOCS / "img" / f"{name}.svg" for name in script("figures").FIGURES):
        text = path.read_text(encoding="utf-8")
        width = int(re.findall(r'viewBox="0 0 (\d+)', text)[0])
        for title in re.findall(r'font-weight="600"[^>]*>([^<]+)</text>', text):
            assert 7.8 * len(title) <= width, f"{path.name}: {title}"


def test_badges_say_what_pyproject_says() -> None:
    written = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "img").glob("badge-*.svg")}
    made = {f"badge-{name}": svg for name, svg in script("badges").badges().items()}
    assert written == made, "run: python docs/badges.py"
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert all(f"(docs/img/{name}.svg)" in readme for name in made)


@pytest.mark.parametrize("name", ["diluted-bit", "which-sets", "price", "gamma-exact"])
def test_exact_figures_are_current(name: str) -> None:
    """Those that need no runs: the same numbers as in the file, drawn again."""
    import vl_convert

    figures = script("figures")
    spec = figures.FIGURES[name]().to_dict() | {"config": figures.CONFIG}
    again = vl_convert.vegalite_to_svg(spec)
    written = (DOCS / "img" / f"{name}.svg").read_text(encoding="utf-8")
    # the lines' points, to a tenth of a pixel: text may be measured otherwise elsewhere
    assert _points(again) == _points(written), "run: python docs/figures.py"


def _points(svg: str) -> list[float]:
    paths = re.findall(r'aria-roledescription="(?:line|point) mark"[^>]*? d="([^"]+)"', svg)
    return [round(float(number), 1) for path in paths for number in re.findall(r"-?\d+\.?\d*", path)]
