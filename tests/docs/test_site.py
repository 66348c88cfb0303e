"""The site: MkDocs builds it without a warning, it is whole, and it needs no network."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from browser import visit

ROOT = Path(__file__).resolve().parents[2]
# fetched by the reader's browser without being asked
FETCHED = re.compile(r"""<(?:script|img|iframe)[^>]+?src=["']?([^"'> ]+)|<link[^>]+?href=["']?([^"'> ]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="MkDocs is not installed: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("site")
    call = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(call, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_links_lead_somewhere_and_nothing_is_fetched(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    anchors = {path: set(re.findall(r'\bid="?([^"\s>]+)', text)) for path, text in pages.items()}
    for path, text in pages.items():
        fetched = [source or link for source, link in FETCHED.findall(text)]
        assert not [target for target in fetched if "//" in target], path.name
        if path.name == "404.html":  # its links are from the root of a server
            continue
        for link in re.findall(r'<a [^>]*?href="([^"]*)"', text):
            target, _, anchor = unquote(unescape(link)).partition("#")
            if ":" in target:
                continue
            there = (path.parent / target).resolve() if target else path
            assert there.exists(), f"{path.name} links to {link}"
            assert not anchor or anchor in anchors.get(there, {anchor}), f"{path.name} links to {link}"


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site: Path) -> None:
    import superarm

    said = {
        name
        for path in (site / "api").glob("*.html")
        for name in re.findall(r'\bid="superarm\.([^"]+)"', path.read_text(encoding="utf-8"))
    }
    packages = [name for name in superarm.__all__ if importlib.util.find_spec(f"superarm.{name}") is not None]
    assert set(superarm.__all__) - {*said, *packages} == set()
    for package in (*packages, "logs", "sklearn", "service", "experiments", "report"):
        names = importlib.import_module(f"superarm.{package}").__all__
        missing = [
            name
            for name in names
            if not {f"{package}.{name}", f"{package}.{name}.{name}"} & said and not name.isupper()
        ]
        assert not missing, f"superarm.{package}: {missing} have no docstring, or no page"


@pytest.mark.slow
def test_examples_of_docstrings_are_code(site: Path) -> None:
    """As docs/doctests.py makes them."""
    page = (site / "api" / "decisions.html").read_text(encoding="utf-8")
    assert re.search(r'<div class="[^"]*highlight[^>]*>.*?Decision.*?given', page, re.S)
    assert "<blockquote>" not in page, "lines with >>> have become a quotation"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_reader_without_a_network_finds_a_page(site: Path, width: int, dark: bool) -> None:
    """Opened as a file: search finds, and every block has its copy button."""
    look = """
        const wait = ms => new Promise(done => setTimeout(done, ms));
        document.querySelector("[data-md-toggle=search]").click();
        await wait(2000);  // the index is read
        const field = document.querySelector("[data-md-component=search-query]");
        field.focus();
        field.value = "set_nll";
        field.dispatchEvent(new KeyboardEvent("keyup", {key: "l", bubbles: true}));
        const hits = () => [...document.querySelectorAll(".md-search-result__link")].map(a => a.pathname);
        for (let i = 0; i < 400 && !hits().length; i++) await wait(50);
        const ground = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3);
        return {hits: hits(), wide: document.documentElement.scrollWidth,
            copies: document.querySelectorAll("[data-clipboard-target]").length,
            blocks: document.querySelectorAll(".highlight pre").length,
            bright: ground.reduce((sum, c) => sum + +c, 0) / 3};
    """
    seen = visit(site / "index.html", site, script=look, width=width, dark=dark)
    assert any(path.endswith("losses.html") for path in seen.found["hits"]), seen
    assert seen.found["blocks"]
    assert seen.found["copies"] >= seen.found["blocks"]
    assert seen.found["wide"] <= width
    assert (seen.found["bright"] < 100) == dark
